"""Starts a container with a kernel of its own, and keeps the engine's command as the line to its relay."""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cellblock.container import Container, default_image
from cellblock.errors import IsolationUnavailable
from cellblock.executors.container.bounds import Bounds
from cellblock.executors.container.engine import Engine, aside, ask, engine_of, not_started
from cellblock.executors.container.options import PYTHON, new_name, options_of, program
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.protocol import KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.worker.confine import layout
from cellblock.worker.relayed.relay import TMP

_MEBI = 2**20
_KERNEL_BYTES, _IMAGE_BYTES = 640 * _MEBI, 512 * _MEBI
"""Memory of the runtime's own kernel, with what is filled before the relay looks, and of an interpreter and its
packages."""
_PROCESS_BYTES = 4 * _MEBI
"""Memory of a process that is a copy of another and does nothing."""
_KERNEL_PROCESSES = 512
"""Threads of the host's that serve as the processors and processes of that kernel."""
_SEE = "see what the engine says"


@dataclass(frozen=True, slots=True)
class Contained:
    """The relay in a container of an engine."""

    process: subprocess.Popen[bytes]
    engine: Engine
    container: Container
    image: str
    python: str
    name: str
    memory_bytes: int
    processes: int

    @property
    def said(self) -> str:
        return f"{self.engine.said}, {self.container.runtime or self.engine.runtime}, {self.image}"

    @property
    def pid(self) -> int:
        """The host's process that runs it."""
        told = ask(self.engine.words("inspect", "--type", "container", "--format", "{{.State.Pid}}", self.name))
        return int(told.stdout.strip() or 0)

    def bounds(self) -> Enclosure:
        if self.engine.apart:
            reason = "its engine runs it in a virtual machine, whose limits are not to be read from here"
            return Bounds.missing(reason, _SEE)
        try:
            return Bounds.of(self, self.memory_bytes, self.processes, self.container.cpus)
        except (IsolationUnavailable, ValueError) as error:
            return Bounds.missing(f"its engine does not tell of it: {error}", _SEE)

    def remove(self) -> None:
        with contextlib.suppress(IsolationUnavailable):
            ask(self.engine.words("kill", "--signal", "KILL", self.name))  # podman's rm would first wait for SIGTERM
            ask(self.engine.words("rm", "--force", self.name))

    def refused(self, said: str) -> IsolationUnavailable:
        return not_started(self.engine, self.image, self.python, [(self.container.runtime, said)])


def memory_bytes(limits: ExecutionLimits) -> int:
    """Most memory that the container of a session within its limits may take."""
    processes = limits.max_processes * _PROCESS_BYTES
    return limits.max_memory_mb * _MEBI + processes + _IMAGE_BYTES + _KERNEL_BYTES


def contained(spec: KernelSpec, home: str) -> Contained:
    """Start the container that a session names, which sees the directories of `home` as the session's. Blocks."""
    container = spec.container or Container()
    engine, image, python = engine_of(container.engine), container.image or default_image(), spec.python or PYTHON
    name = new_name()
    memory = memory_bytes(spec.limits)
    processes = 2 * spec.limits.max_processes + _KERNEL_PROCESSES
    options = options_of(container, engine, memory_bytes=memory, processes=processes)
    for part, place in (("workspace", layout.WORKSPACE), ("workspace", "/workspace"), ("tmp", TMP)):
        options += ("--mount", f"type=bind,source={Path(home) / part},target={place}")
    line = ["run", "--interactive", "--name", name, *options, *program(python, image, "relayed")]
    process = subprocess.Popen(
        engine.words(*line, runtime=container.runtime),
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=aside(),
    )
    return Contained(process, engine, container, image, python, name, memory, processes)
