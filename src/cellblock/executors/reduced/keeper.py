"""The host's hold on a session's keeper: its control channel, what it tells, and the session's files."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import replace

from cellblock.errors import IsolationUnavailable, SessionClosed
from cellblock.executors.process.family import FamilyGone
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.linked import death_of
from cellblock.executors.process.shell import could_not, files_gone
from cellblock.executors.process.waits import SECONDS, answered, readable
from cellblock.executors.process.zygote import DEATH_SECONDS, failure
from cellblock.executors.protocol import Died, KernelSpec
from cellblock.executors.reduced import homes, identity
from cellblock.executors.reduced.family import Family
from cellblock.hosting import to_thread
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.waiting import ready
from cellblock.worker import control

_log = logging.getLogger("cellblock")
_PARTS = ("workspace", "tmp")


class Keeper:
    """One session's keeper. Not thread-safe."""

    def __init__(self, channel: socket.socket, home: str, owner: int | None) -> None:
        self.channel = channel
        self.home = home
        self.owner = owner
        root = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.files = ProcessFiles(root, owner)
        self._ended: dict[int, Died] = {}
        self._curbed: str | None = None
        self._excess = self._outgrown = ""
        self._unruly = False
        self._swept = False
        self._unswept = ""
        self.unmade = 0
        """The error number why there is no worker, if that is why."""
        self._counts: list[int] = []
        self._gone = False

    @classmethod
    async def make(cls, family: Family, spec: KernelSpec) -> Keeper:
        """`FamilyGone` when the zygote ended before there was one."""
        taken = identity.take() if os.getuid() == 0 else None
        account = taken.account if taken else None
        channel, end = control.pair()
        watch_forks(channel)
        home, lock = homes.make(family.base, account.session if account else None, *_PARTS)
        try:
            message: dict[str, object] = {
                "home": home,
                "account": [account.keeper, account.session] if account else None,
                "memory_bytes": spec.limits.max_memory_mb * 2**20,
                "disk_bytes": spec.limits.max_disk_mb * 2**20,
                "files": spec.limits.max_files,
            }
            family.keep(message, [end.fileno(), lock, *([taken.hold.fileno()] if taken else [])])
            end.close()
            channel.setblocking(False)
            keeper = cls(channel, home, account.session if account else None)
        except BaseException:
            channel.close()
            homes.discard(home)
            raise
        finally:
            end.close()
            os.close(lock)
            if taken:
                taken.hold.close()
        await answered(channel, "keeper", mechanism="keeper")
        report = control.heard(channel)
        if report is None:
            await to_thread.run_sync(keeper.close)
            if not family.alive:
                raise FamilyGone
            raise IsolationUnavailable("keeper: it ended at once", mechanism="keeper", hint="see its message on stderr")
        if "failed" in report:
            await to_thread.run_sync(keeper.close)
            raise failure(report, "")
        return keeper

    def attach(self, token: int, ends: tuple[socket.socket, int, int], setup: dict[str, object], *more: int) -> None:
        """Have it make a worker, whose end is then known by `token`. `more` descriptors go along with its ends."""
        self._excess = self._outgrown = ""
        self._unruly, self.unmade, self._curbed = False, 0, None
        worker, stdout, stderr = ends
        try:
            control.send(
                self.channel, {**setup, "do": "attach", "token": token}, [worker.fileno(), stdout, stderr, *more]
            )
        except OSError as error:
            raise self._lost() from error

    def read(self) -> None:
        """Take what it has told; EOFError once it is gone."""
        while not self._gone:
            try:
                notice = control.heard(self.channel)
            except BlockingIOError:
                return
            except OSError:
                notice = None
            match notice:
                case None:
                    self._gone = True
                case {"ended": int(token), "status": int(status)}:
                    self._ended[token] = replace(death_of(status), untaken="unread" in notice)
                case {"curbed": str(held), "worker": True, "unruly": bool(unruly)}:
                    self._excess, self._unruly = held, unruly
                case {"curbed": str(held)}:
                    self._curbed = held
                case {"outgrown": str(reason)}:
                    self._outgrown = reason
                case {"swept": True}:
                    self._swept = True
                case {"count": int(count)}:
                    self._counts.append(count)
                case {"failed": "attach", "errno": int(number)}:
                    self.unmade = number
                case {"failed": str(what), "reason": str(reason)}:
                    _log.warning("the keeper of a session could not %s: %s", what, reason)
                    if what == "end":
                        self._counts.append(0)
                    elif what == "sweep":
                        self._unswept = reason
        raise EOFError

    @property
    def ended(self) -> bool:
        """True if it is gone, and every process of the session with it."""
        try:
            self.read()
        except EOFError:
            return True
        return False

    def curbed(self) -> str | None:
        """Description of what was held when a process other than the worker was killed for it since the last call."""
        self.read()
        held, self._curbed = self._curbed, None
        return held

    async def how_it_ended(self, token: int) -> Died:
        """The end of a worker that is dead, as far as it is known soon. A step: the channel has one reader."""
        with contextlib.suppress(EOFError, TimeoutError):
            await self._told(lambda: token in self._ended, DEATH_SECONDS)
        death = self._ended.pop(token, Died())
        if self._outgrown:
            death = replace(death, reason=f"was ended: {self._outgrown}")
        return replace(death, excess=self._excess or death.excess, unruly=self._unruly)

    def tell(self, what: str, **more: float) -> None:
        """Send a message."""
        with contextlib.suppress(ConnectionError):  # it is gone, which the worker's death tells
            control.send(self.channel, {"do": what, **more})

    async def end_since(self, began: float) -> int:
        """Have what the worker started since a time of CLOCK_BOOTTIME killed; how many processes that were."""
        self.tell("end", since=began)
        try:
            await self._told(lambda: bool(self._counts))
        except EOFError:  # it is gone, and all that it would have ended
            return 0
        return self._counts.pop()

    async def sweep(self) -> None:
        """Have every process of the session killed; `SessionClosed` when the keeper is gone, and with it the files."""
        self._swept, self._unswept = False, ""
        try:
            control.send(self.channel, {"do": "sweep"})
            await self._told(lambda: self._swept or bool(self._unswept))
        except (OSError, EOFError) as error:
            raise self._lost() from error
        if not self._swept:
            raise could_not("sweep", self._unswept)

    async def _told(self, known: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Wait until it has told what makes something known; EOFError once it is gone."""
        self.read()
        while not known():
            await readable(self.channel.fileno(), seconds)
            self.read()

    def _lost(self) -> SessionClosed:
        """Error for when the keeper has ended."""
        if self._outgrown:
            return SessionClosed(f"it was ended: {self._outgrown}", hint="open a new session, with higher limits")
        return files_gone("its keeper is gone")

    def let_go(self) -> None:
        """Close without a wait; the keeper ends the session's processes and empties its directory on its own."""
        self.channel.close()
        self.files.close()

    def close(self) -> None:
        """Have it end, and remove the session's directory. Blocks until both are done."""
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_WR)
        with contextlib.suppress(EOFError):
            while ready(self.channel, seconds=SECONDS):
                self.read()
        self.let_go()
        if self._gone:
            homes.discard(self.home)
