"""A family in a container of its own: one session and its branches, with all walls of the level `isolated` inside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cellblock.container import Container, default_image
from cellblock.errors import IsolationUnavailable
from cellblock.executors.container.bounds import Bounds
from cellblock.executors.container.options import PYTHON
from cellblock.executors.container.running import Running, run
from cellblock.executors.process.enclosure import Enclosure, session_bytes, session_processes
from cellblock.executors.process.family import Family, Profile
from cellblock.executors.process.kinds import Kind
from cellblock.executors.process.zygote import Progress
from cellblock.executors.protocol import KernelSpec
from cellblock.hosting.threads import begun
from cellblock.limits import ExecutionLimits
from cellblock.walls import Applied, Wall
from cellblock.worker import control

_IMAGE_BYTES = 512 * 2**20
"""Size of an interpreter with its packages, and of the processes that make sessions of it."""
_SESSIONS = 2
"""Number of sessions at their limits that a container has room for: branches share it."""
_MORE_PROCESSES = 64


@dataclass(frozen=True, slots=True)
class Box:
    """The properties that two containers share if one can stand for the other."""

    container: Container
    profile: Profile
    memory_bytes: int
    processes: int


def box_of(spec: KernelSpec) -> Box:
    """The container for a session of a spec."""
    container = spec.container or Container()
    return Box(
        replace(container, image=container.image or default_image()),
        Profile(spec.python or PYTHON, spec.preload, spec.policy is not None),
        _SESSIONS * session_bytes(spec.limits, _IMAGE_BYTES, saved=spec.saved),
        _SESSIONS * session_processes(spec.limits, saved=spec.saved) + _MORE_PROCESSES,
    )


class ContainerFamily(Family):
    """One session, and its branches: their container ends with the last of them."""

    trust_level = "sandboxed"
    lone = True

    def __init__(self, box: Box, running: Running, wall: Wall, bounds: Bounds) -> None:
        super().__init__(box.profile, running)
        self.walls = (wall,)
        self.running = running
        self._bounds = bounds
        self._host = os.getpid()

    @classmethod
    def started(cls, box: Box, progress: Progress | None = None, expected: Kind | None = None) -> ContainerFamily:
        """Start a container, and wait until its packages are imported. Blocks; raises what is missing."""
        if progress is not None:
            progress("starting a container")
        python = box.profile.python
        running = run(box.container, python=python, memory_bytes=box.memory_bytes, processes=box.processes)
        try:
            wall = inspected(running)
            bounds = Bounds.of(running, box.memory_bytes, box.processes, box.container.cpus)
            control.send(running.channel, {"begin": True})
            family = cls(box, running, wall, bounds)
        except BaseException:
            running.close()
            running.await_end()
            raise
        family.settle(progress, expected)
        return family

    def enclosure(self, limits: ExecutionLimits, *, saved: bool) -> Enclosure:
        return self._bounds

    def stir(self) -> None:
        """Nothing is put anywhere: the container's group holds them all."""

    def leave(self, shell: object) -> None:
        super().leave(shell)
        if self.idle and os.getpid() == self._host:  # a forked copy of the host only lets go
            self.end_soon()

    def end_soon(self) -> None:
        """End it while nobody waits: a collector may be calling."""
        begun(self.close, name="cellblock-container")


_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_NAMESPACES = ("pid", "mnt", "ipc", "uts", "net")


def inspected(running: Running) -> Applied:
    """The wall that a container is; IsolationUnavailable where a part of it is missing.

    Its first process waits meanwhile, in the namespaces that it was started in.
    """
    try:
        missing = sorted(_missing(Path("/proc") / str(running.pid)))
    except (OSError, KeyError, ValueError) as error:
        raise _refused(running, f"what stands around it cannot be read: {error}") from None
    if missing:
        raise _refused(running, f"it was started without {', '.join(missing)}")
    started = f"{running.engine.said}, {running.runtime}, {running.image}"
    detail = f"{started}; no network, read-only root, no capabilities, no new privileges, system call filter"
    return Applied(mechanism="container", detail=detail)


def _missing(process: Path) -> Iterator[str]:
    lines = (process / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if any(int(status[name], 16) for name in _CAPABILITIES):
        yield "dropping every capability"
    if status["NoNewPrivs"] != "1":
        yield "no-new-privileges"
    if status["Seccomp"] != "2":
        yield "a system call filter"
    for name in _NAMESPACES:
        if os.readlink(process / "ns" / name) == os.readlink(f"/proc/self/ns/{name}"):
            yield f"a {name} namespace of its own"
    devices = (process / "net" / "dev").read_text(encoding="utf-8").splitlines()[2:]
    if any(device.partition(":")[0].strip() != "lo" for device in devices):
        yield "taking away the network"
    if not _is_read_only(process):
        yield "a read-only root"


def _is_read_only(process: Path) -> bool:
    """Of the mount that was put over `/` last: its point is the fifth field, its options are the sixth."""
    mounts = (line.split() for line in (process / "mountinfo").read_text(encoding="utf-8").splitlines())
    options = [fields[5].split(",") for fields in mounts if fields[4] == "/"]
    return bool(options) and "ro" in options[-1]


def _refused(running: Running, reason: str) -> IsolationUnavailable:
    return IsolationUnavailable(
        f"a container of {running.engine.said} with {running.runtime} is not a wall: {reason}",
        mechanism="container",
        hint="use another runtime or engine: container=Container(runtime=…)",
    )
