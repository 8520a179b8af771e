"""A kernel in a container whose own kernel is another than the host's: gVisor's, or one in a virtual machine."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import socket
from collections.abc import Callable
from dataclasses import replace

from cellblock.errors import CellblockError, IsolationUnavailable, MountRefused, SessionClosed
from cellblock.executors.container.relayed.pump import Pump
from cellblock.executors.container.relayed.starting import Contained, contained, memory_bytes
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
from cellblock.walls import Applied, Unavailable, Wall
from cellblock.wire.messages import Hello
from cellblock.worker import control

_PARTS = ("workspace", "tmp")


class RelayedKeeper(Keeper):
    """One session's relay. Not thread-safe."""

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
"""The number of no process: who would read or write the worker's memory by it is refused by the kernel."""


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
        """None are kept: whoever asks for some is told so."""
        if count:
            raise CellblockError(f"{_RELAYED} is not started beforehand", hint=f"open it when needed, or {_DIRECT}")


class RelayedLink(Link):
    """A link whose socket brings the worker's words alone: the relay drops the rest. A descriptor tells its end."""

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
    """One live worker behind a relay. Its death ends a turn with `Died`; `recover` has the relay make another."""

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
