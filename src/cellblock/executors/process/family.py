"""The host's hold on a family: a nursery and the zygote that make every session of a profile.

A zygote that dies is replaced in the same family, since
sessions need only the nursery to live; when the nursery dies the family is replaced. Every end of a channel that
this process holds is closed in its forked copies, so that the family's end is tied to this process alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cellblock.errors import IsolationUnavailable
from cellblock.executors.process.enclosure import Enclosure, expect_one
from cellblock.executors.process.kinds import Kind
from cellblock.executors.process.launching import Launched, launch
from cellblock.executors.process.stopped import go_on
from cellblock.executors.process.zygote import (
    DEATH_SECONDS,
    START_SECONDS,
    Deaths,
    Progress,
    Zygote,
    failure,
    needed,
    not_started,
)
from cellblock.hosting import clock
from cellblock.hosting.conditions import WALLS, require
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.waiting import ready
from cellblock.limits import ExecutionLimits
from cellblock.walls import Wall
from cellblock.worker import control

if TYPE_CHECKING:
    from cellblock.executors.container.running import Running

_FULL_SECONDS = 10.0
_EXPECTED_SECONDS = 60.0
_log = logging.getLogger("cellblock")


@dataclass(frozen=True, slots=True)
class Profile:
    """Properties that sessions of one family share: the interpreter and the packages imported beforehand, the guard's
    if they are `guarded`, and the user that the program was."""

    python: str
    preload: tuple[str, ...] = ()
    guarded: bool = False
    user: int = field(default_factory=os.geteuid)


class FamilyGone(Exception):
    """The family, or its zygote, ended before it could do what was asked; another can be asked."""


class Family:
    """A running family. All methods may be called from any thread."""

    trust_level = "isolated"
    walls: tuple[Wall, ...] = ()
    """The walls around all of it, besides the walls of each session."""
    lone = False
    """True if it ends with its last session."""

    def __init__(self, profile: Profile, started: Launched | Running) -> None:
        """Of what was started, which may still be on its way: what keeps it is told when a zygote is waited for."""
        self.profile = profile
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._tokens = 0
        self._deaths = Deaths()
        self._zygote: Zygote | None = None
        self._saved = False
        self._shells: set[int] = set()
        self.used = clock.now()
        """When a session of it was last made or ended."""
        self._started, self._nursery = started, started.channel
        self._first: socket.socket | None = started.zygote
        watch_forks(self._nursery)
        self._nursery.setblocking(False)

    @classmethod
    def start(cls, profile: Profile, progress: Progress | None = None, expected: Kind | None = None) -> Family:
        """Start a family and wait until its packages are imported. Blocks; raises what it lacks.

        A session of the kind that is `expected` is made while they are.
        """
        require(*WALLS)
        try:
            started = launch(profile.python)
        except OSError as error:
            raise not_started(profile.python, error) from error
        family = cls(profile, started)
        family.settle(progress, expected)
        return family

    def settle(self, progress: Progress | None, expected: Kind | None) -> None:
        """Wait until the packages are imported. What keeps them from it ends the family, and is raised."""
        try:
            if expected is not None:
                self.expect(expected)
            with self._renewing:
                self._renew(progress)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """True if its sessions live; it can make new ones, perhaps after a new zygote."""
        self._read_notices()
        return self._started.alive and self._nursery.fileno() >= 0

    def enclosure(self, limits: ExecutionLimits, *, saved: bool) -> Enclosure:
        """The enclosure for a session of it."""
        return Enclosure(limits, saved=saved)

    def stir(self) -> None:
        """A session's processes will be put into an enclosure in some milliseconds."""
        expect_one(self._started.pid)

    def rouse(self) -> None:
        """Have the processes that make sessions go on where somebody has stopped them: nursery and zygote."""
        go_on(self._started.pid, "a process that makes sessions", generations=2)

    @property
    def ready(self) -> bool:
        """True if a session can be made at once."""
        return self.alive and self._zygote is not None and self._zygote.alive

    def ensure_ready(self, progress: Progress | None = None) -> None:
        """Make a new zygote if there is none that lives. Blocks meanwhile."""
        with self._renewing:
            if not self.ready:
                _log.warning("the zygote of %s has ended; starting another", self.profile.python)
                self._renew(progress)

    def _renew(self, progress: Progress | None) -> None:
        """Make a zygote, and wait until it is ready."""
        channel, end = (self._first, None) if self._first is not None else control.pair()
        self._first = None
        more = {"guard": self.profile.guarded, "saved": self._saved}
        zygote = Zygote(channel, self.profile.python, self.profile.preload, more)
        try:
            if end is not None:
                with end:
                    self._ask({"make": "zygote"}, end)
            zygote.await_ready(progress)
        except (EOFError, FamilyGone):
            zygote.close()
            raise self._why(zygote.importing) from None
        except BaseException:
            zygote.close()
            raise
        with self._lock:
            self._zygote = zygote

    def save(self) -> None:
        """Sessions of it are to be saved: zygotes import what that takes, so that not each worker has to."""
        with self._lock:
            if self._saved or self._zygote is None:
                return
            self._saved = True
            with contextlib.suppress(OSError):  # it has ended: the next one is told when it starts
                _send(self._zygote.channel, {"saved": True}, [])

    def _why(self, importing: str) -> Exception:
        """Why there is no zygote: what the launched process said before it ended, or that something just ended."""
        for notice in self._read_notices():
            if "failed" in notice:
                return failure(notice, self.profile.python)
        if self.alive and importing:
            report = {"failed": "preload", "module": importing, "reason": "its process ended", "remedy": ""}
            return failure(report, self.profile.python)
        if self.alive or self._zygote is not None:
            return FamilyGone()
        reason = f"start: {self.profile.python} ended before it was ready"
        return IsolationUnavailable(reason, mechanism="start", hint=needed())

    def make_shell(self, init: socket.socket, kind: Kind, *, mounts: bool) -> None:
        """Ask for a shell whose first process speaks on `init`, where it waits for trees if it is to have `mounts`.

        Without them it may be answered with a spare. `FamilyGone` when nobody is there to make it.
        """
        self._ask({"make": "shell", "kind": kind, "mounts": mounts, "spare": not mounts}, init)

    def make_branch(self, init: socket.socket, spaces: Sequence[int], kind: Kind, *, mounts: bool) -> None:
        """As `make_shell`, within the user and pid namespace of a session."""
        try:
            with self._lock:
                _send(self._nursery, {"make": "branch", "kind": kind, "mounts": mounts}, [init.fileno(), *spaces])
        except OSError as error:
            raise FamilyGone from error

    def expect(self, kind: Kind) -> None:
        """A session of this kind will be asked for as soon as there can be one: it is made meanwhile."""
        with contextlib.suppress(FamilyGone):
            self._ask({"make": "spare", "kind": kind, "seconds": _EXPECTED_SECONDS})

    def took(self, token: int) -> None:
        """A spare was taken; the end of its worker will be asked for under this token."""
        self._deaths.expect(token)

    def keep(self, kind: Kind, count: int, *, wait: bool) -> None:
        """Keep so many spares, and wait until they are there. Raises what keeps one from being made."""
        message: Kind = {"make": "spares", "kind": kind, "count": count}
        if not wait:
            self._ask(message)
            return
        answer, end = control.pair()
        with answer:
            with end:
                self._ask(message, end)
            answer.settimeout(START_SECONDS)
            try:
                report = control.heard(answer)
            except TimeoutError:
                raise IsolationUnavailable(
                    f"start: {count} sessions were not ready within {START_SECONDS:.0f} s",
                    mechanism="start",
                    hint="see whether the machine is overloaded, or ask for fewer",
                ) from None
        if report is None or report.get("failed") == "spare":  # a process ended while it was made
            raise FamilyGone
        if "failed" in report:
            raise failure(report, self.profile.python)

    def _ask(self, message: Kind, end: socket.socket | None = None) -> None:
        try:
            with self._lock:
                _send(self._nursery, message, [] if end is None else [end.fileno()])
        except OSError as error:
            raise FamilyGone from error

    def attach(self, init: int, ends: Sequence[socket.socket | int], setup: dict[str, object]) -> int:
        """Ask for a worker in a shell that gets these ends; the token under which its end will be known."""
        numbers = [end if isinstance(end, int) else end.fileno() for end in ends]
        with self._lock:
            self._tokens += 1
            self._deaths.expect(self._tokens)
            try:
                if self._zygote is None:
                    raise FamilyGone
                message = {**setup, "token": self._tokens}
                _send(self._zygote.channel, message, [init, *numbers])
            except OSError as error:
                raise FamilyGone from error
            return self._tokens

    def how_it_ended(self, token: int) -> int | None:
        """The wait status of a worker that is dead; None if nobody tells it soon, as `Deaths.take`. Blocks."""
        deadline = clock.now() + DEATH_SECONDS
        while True:
            self._read_notices()
            with self._lock:
                status = self._deaths.take(token)
                channels = [self._zygote.channel] if self._zygote is not None and self._zygote.alive else []
                if self._nursery.fileno() >= 0:
                    channels.append(self._nursery)
            left = deadline - clock.now()
            if status is not None or left < 0 or not channels:
                return status
            ready(*channels, seconds=left)

    def forget(self, token: int) -> None:
        """Nobody will ask how this worker ended. Takes no lock: a collector may call it anywhere."""
        self._deaths.forget(token)

    def enter(self, shell: object) -> None:
        """A shell of this family lives."""
        self._shells.add(id(shell))
        self.used = clock.now()

    def leave(self, shell: object) -> None:
        """It lives no more. Takes no lock, as `forget`."""
        self._shells.discard(id(shell))
        self.used = clock.now()

    @property
    def idle(self) -> bool:
        """True if no session of it is open."""
        return not self._shells

    def _read_notices(self) -> list[dict[str, object]]:
        """Take what nursery and zygote tell; what the nursery told.

        Its notices are read first and used last: they are of workers whose zygote told which they are before it ended.
        """
        with self._lock:
            from_nursery = control.told(self._nursery)
            for notice in (*(control.told(self._zygote.channel) if self._zygote is not None else ()), *from_nursery):
                self._deaths.note(notice)
            return from_nursery

    def part(self) -> None:
        """It is to end, and every session of it."""
        with self._lock:
            self._nursery.close()
            if self._first is not None:
                self._first.close()
            if self._zygote is not None:
                self._zygote.close()

    def close(self) -> None:
        """End the family and every session of it."""
        self.part()
        self._started.await_end()

    def await_end(self) -> None:
        """Wait until it has ended, if it is about to. Blocks."""
        if self.lone and self.idle:
            self.close()


def _send(channel: socket.socket, message: Mapping[str, object], descriptors: Sequence[int]) -> None:
    """Send on a channel that does not block; a reader that has much to do is waited for, and blocks us meanwhile."""
    while True:
        try:
            control.send(channel, message, descriptors)
            return
        except BlockingIOError:
            if not ready(channel, seconds=_FULL_SECONDS, event=select.POLLOUT):
                raise TimeoutError from None
