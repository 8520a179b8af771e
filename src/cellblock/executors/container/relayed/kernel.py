"""A kernel in a container whose own kernel is another than the host's: gVisor's, or one in a virtual machine.

The engine's command, which started the container, stays as the line to the relay inside.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cellblock.container import Container, default_image
from cellblock.errors import CellblockError, IsolationUnavailable, MountRefused, SessionClosed
from cellblock.executors.container.engine import Engine, ask, engine_of, not_started, working_directory
from cellblock.executors.container.inspection import Bounds
from cellblock.executors.container.options import PYTHON, new_name, options_of, program
from cellblock.executors.container.relayed.pump import Pump
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.process.link import Link, Taken
from cellblock.executors.process.linked import boot_time, require_possible
from cellblock.executors.process.shell import files_gone
from cellblock.executors.process.zygote import Zygote
from cellblock.executors.protocol import Died, Kernel, KernelSpec, Row
from cellblock.executors.reduced import homes
from cellblock.executors.reduced.keeper import Keeper
from cellblock.executors.reduced.kernel import ReducedKernel
from cellblock.hosting import to_thread
from cellblock.hosting.account import SANDBOX_UID
from cellblock.hosting.forks import watch_forks
from cellblock.limits import ExecutionLimits
from cellblock.walls import Applied, Unavailable, Wall
from cellblock.wire.messages import Hello
from cellblock.worker import control
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
_PARTS = ("workspace", "tmp")


@dataclass(frozen=True, slots=True)
class Contained:
    """A container with a relay, and the engine's command that is the line to it."""

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
        return f"{self.engine.title}, {self.container.runtime or self.engine.runtime}, {self.image}"

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
        cwd=working_directory(),
    )
    return Contained(process, engine, container, image, python, name, memory, processes)


class RelayedKeeper(Keeper):
    """The relay of a session. Not thread-safe."""

    def __init__(
        self, channel: socket.socket, home: str, owner: int | None, lock: int, started: Contained, pump: Pump
    ) -> None:
        super().__init__(channel, home, owner)
        self._lock = lock
        self.started = started
        self.pump = pump
        self.bounds: Enclosure | None = None
        """The walls that the engine has put around it, once it is ready."""

    @classmethod
    def start(cls, starter: Callable[[KernelSpec, str], Contained], spec: KernelSpec) -> RelayedKeeper:
        """Start a relay, and wait until its packages are imported. Blocks; raises what is missing."""
        owner = SANDBOX_UID if os.getuid() == 0 else None
        base = _base()
        home, lock = homes.make(base, None, *_PARTS)
        for part in _PARTS:
            if owner is not None:
                os.chown(part, owner, owner, dir_fd=lock)
        os.fchmod(lock, 0o711)
        try:
            if spec.progress is not None:
                spec.progress("starting a container")
            started = starter(spec, home)
        except BaseException:
            os.close(lock)
            homes.discard(home)
            raise
        channel, end = control.pair()
        watch_forks(channel)
        keeper = cls(channel, home, owner, lock, started, Pump(started, end))
        try:
            keeper.bounds = keeper._prepare(spec)
        except BaseException:
            keeper.close()
            raise
        return keeper

    def _prepare(self, spec: KernelSpec) -> Enclosure:
        more = {
            "guard": spec.policy is not None,
            "disk_bytes": spec.limits.max_disk_mb * 2**20,
            "files": spec.limits.max_files,
            "memory_bytes": memory_bytes(spec.limits),
        }
        try:
            Zygote(self.channel, "the image", spec.preload, more).await_ready(spec.progress)
        except EOFError:
            raise self.started.refused(self._reason) from None
        return self.started.bounds()

    def tell(self, what: str, **more: float) -> None:
        """Send a message. Its kernel has a clock of its own: what is told is how long ago something was."""
        since = more.pop("since", None)
        super().tell(what, **more, **({} if since is None else {"ago": boot_time() - since}))

    async def how_it_ended(self, token: int) -> Died:
        death = await super().how_it_ended(token)
        return replace(death, reason=f"ended: {self._reason}") if self._gone and not death.reason else death

    @property
    def _reason(self) -> str:
        return self.pump.reason or "its container is gone"

    def _lost(self) -> SessionClosed:
        if self._outgrown:
            return super()._lost()
        return files_gone(self._reason)

    def close(self) -> None:
        """Have it end, and remove the session's directory. Blocks until both are done."""
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_WR)
        self.pump.await_end()
        self.let_go()
        homes.discard(self.home)

    def let_go(self) -> None:
        super().let_go()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@functools.cache
def _base() -> str:
    base = homes.base()
    homes.remove_stale(base)
    return base


_RELAYED = "a container that is reached over its engine's command"
_DIRECT = 'name a runtime that shares the host\'s kernel: container=Container(runtime="runc")'
_LACKING: tuple[Wall, ...] = (
    Unavailable(mechanism="checkpoints", reason=f"{_RELAYED} keeps none, and no branches", remedy=_DIRECT),
    Unavailable(mechanism="door", reason=f"no descriptor leads into {_RELAYED}", remedy=_DIRECT),
    Unavailable(mechanism="mounts", reason=f"{_RELAYED} gives none", remedy=f"write copies, or {_DIRECT}"),
)

_NOBODY = -1
"""Number of no process: the kernel refuses to read or write memory by it."""


class RelayedLauncher:
    """Opens kernels in containers whose kernel is not the host's, each in one of its own."""

    def __init__(self, starter: Callable[[KernelSpec, str], Contained] = contained) -> None:
        self._starter = starter

    async def open(self, spec: KernelSpec) -> RelayedKernel:
        if spec.mounts:
            raise MountRefused(f"mounts: {_RELAYED} gives none", hint=f"write copies with session.files, or {_DIRECT}")
        if spec.network:
            raise IsolationUnavailable(
                f"{_RELAYED} can have no door to the network",
                mechanism="door",
                hint=f"give the session a tool that asks the network, or {_DIRECT}",
            )
        require_possible(spec)  # before anything is made
        keeper = await to_thread.run_sync(RelayedKeeper.start, self._starter, spec)
        return await RelayedKernel(keeper, spec, keeper.bounds).open()

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        """Refuse: no containers are kept ready."""
        if count:
            raise CellblockError(f"{_RELAYED} is not started beforehand", hint=f"open it when needed, or {_DIRECT}")


class RelayedLink(Link):
    """A link whose relay drops packets of other processes than the worker. A descriptor tells the worker's end."""

    def __init__(self, taken: Taken | None = None) -> None:
        super().__init__(taken)
        self.pidfd, self.death = os.pipe()
        self._epoll.register(self.pidfd, select.EPOLLIN)

    def close_ends(self) -> None:
        super().close_ends()
        os.close(self.death)

    def _recognise(self, pid: int) -> bool:
        self.pid = pid
        return True

    def _receive(self) -> tuple[bytes | None, int]:
        packet, sender = super()._receive()
        return packet, _NOBODY if sender else 0


class RelayedKernel(ReducedKernel):
    """A live worker behind a relay. Its death ends a turn with `Died`; `recover` has the relay make another."""

    trust_level = "sandboxed"
    where = _RELAYED
    instead = _DIRECT

    _keeper: RelayedKeeper

    async def branch(self, spec: KernelSpec, state: int | None = None) -> tuple[Kernel, tuple[Row, ...]]:
        raise CellblockError(f"a session in {_RELAYED} cannot be branched", hint=_DIRECT)

    def _linked(self) -> RelayedLink:
        return RelayedLink()

    def _ask(self, link: RelayedLink) -> None:  # type: ignore[override]  # as `_linked` makes them
        self._keeper.attach(link.token, link.ends, self._setup(link), link.death)

    def _walls(self, hello: Hello, worker: int) -> tuple[Wall, ...]:
        told = (Applied(mechanism=name, detail=detail) for name, detail in hello.walls)
        said = f"{self._keeper.started.said}; no network, read-only root, no capabilities, no new privileges"
        bounds = self._enclosure.wall
        around = Applied(mechanism="container", detail=said), *(() if bounds is None else (bounds,))
        return (*around, *_LACKING, self._files_wall(), *told)

    def interrupt(self) -> None:
        """See `Kernel`. Between two requests nothing is sent: it could come after the request that is next."""
        if self._link is not None and self._link.busy:
            super().interrupt()

    def _signal(self, number: signal.Signals) -> None:
        if self._link is not None and os.getpid() == self._host:
            self._keeper.tell("kill" if number == signal.SIGKILL else "interrupt")
