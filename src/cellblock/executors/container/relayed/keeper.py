"""The host's hold on a relay: starts it, and speaks to it through its pump as to a keeper of this machine."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from collections.abc import Callable
from dataclasses import replace

from cellblock.errors import SessionClosed
from cellblock.executors.container.relayed.pump import Pump
from cellblock.executors.container.relayed.starting import Contained, memory_bytes
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.process.linked import boot_time
from cellblock.executors.process.zygote import Zygote
from cellblock.executors.protocol import Died, KernelSpec
from cellblock.executors.reduced import homes
from cellblock.executors.reduced.keeper import Keeper
from cellblock.hosting.account import SANDBOX_UID
from cellblock.hosting.forks import watch_forks
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
        """What the engine has put around it, once it is ready."""

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
        return SessionClosed(f"{self._reason}, and its files with it", hint="open a new session")

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
