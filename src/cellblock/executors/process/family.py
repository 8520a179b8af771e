"""The host's hold on a family: a nursery and the zygote that make every session of a profile.

Started on first use and kept until this process ends. A zygote that dies is replaced in the same family, since
sessions need only the nursery to live; when the nursery dies the family is replaced. Every end of a channel that
this process holds is closed in its forked copies, so that the family's end is tied to this process alone.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import select
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from cellblock.errors import IsolationUnavailable
from cellblock.executors.process.deaths import Deaths
from cellblock.executors.process.forks import watch_forks
from cellblock.executors.process.launching import launch
from cellblock.executors.process.zygote import NEEDED, Progress, Zygote, failure
from cellblock.worker import control

_DEATH_SECONDS = 0.5
_PACKAGE = Path(__file__).parents[2]
_log = logging.getLogger("cellblock")


@dataclass(frozen=True, slots=True)
class Profile:
    """What sessions of one family share: the interpreter and the packages imported beforehand."""

    python: str
    preload: tuple[str, ...] = ()


class FamilyGone(Exception):
    """The family, or its zygote, ended before it could do what was asked; another can be asked."""


class Family:
    """A running family. All methods may be called from any thread."""

    def __init__(self, profile: Profile) -> None:
        """Start the nursery. Returns at once; what keeps it from starting is told when a zygote is waited for."""
        self.profile = profile
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._tokens = 0
        self._deaths = Deaths()
        self._zygote: Zygote | None = None
        self._retired: list[Zygote] = []
        self._shells: set[int] = set()
        self.used = time.monotonic()
        """When a session of it was last made or ended."""
        try:
            launched = launch(profile.python)
        except OSError as error:
            reason = f"{profile.python} cannot be started: {error}"
            raise IsolationUnavailable(reason, mechanism="python", hint=NEEDED) from error
        self._process, self._nursery = launched.process, launched.channel
        watch_forks(self._nursery)
        self._nursery.setblocking(False)
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which is told to who waits for a zygote
            control.send(self._nursery, {"expose": [str(_PACKAGE)]})

    @classmethod
    def start(cls, profile: Profile, progress: Progress | None = None) -> Family:
        """Start a family and wait until its packages are imported. Blocks; raises what it lacks."""
        if sys.platform != "linux":
            raise IsolationUnavailable(
                f"trust_level='isolated' needs Linux, this is {sys.platform}",
                mechanism="namespaces",
                hint="run it on Linux: a virtual machine or a container on this one will do",
            )
        family = cls(profile)
        try:
            family.renew(progress)
        except BaseException:
            family.close()
            raise
        return family

    @property
    def alive(self) -> bool:
        """Whether its sessions live; it can make new ones, perhaps after a new zygote."""
        self._read_notices()
        return self._process.poll() is None and self._nursery.fileno() >= 0

    @property
    def ready(self) -> bool:
        """Whether a session can be made at once."""
        return self.alive and self._zygote is not None and self._zygote.alive

    def ensure_ready(self, progress: Progress | None = None) -> None:
        """Make a new zygote if there is none that lives. Blocks meanwhile."""
        with self._renewing:
            if not self.ready:
                _log.warning("the zygote of %s has ended; starting another", self.profile.python)
                self._renew(progress)

    def renew(self, progress: Progress | None = None) -> None:
        """Put a new zygote in the place of the one there is, once it is ready. Blocks until then.

        The new one is another program's start, so its address space is laid out anew.
        """
        with self._renewing:
            self._renew(progress)

    def _renew(self, progress: Progress | None) -> None:
        zygote = Zygote(self.profile.python, self.profile.preload)
        try:
            with zygote.end:
                self._ask({"make": "zygote"}, zygote.end)
            zygote.await_ready(progress)
        except (EOFError, FamilyGone):
            zygote.close()
            raise self._why(zygote.importing) from None
        except BaseException:
            zygote.close()
            raise
        with self._lock:
            old, self._zygote = self._zygote, zygote
            if old is not None:
                old.retire()
                self._retired.append(old)

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
        return IsolationUnavailable(reason, mechanism="start", hint=NEEDED)

    def make_shell(self, init: socket.socket, *, disk_bytes: int, files: int, memory_bytes: int, mounts: bool) -> None:
        """Ask for a shell whose first process speaks on `init`, where it waits for trees if it is to have `mounts`.

        `FamilyGone` when nobody is there to make it.
        """
        wanted = {"disk_bytes": disk_bytes, "files": files, "memory_bytes": memory_bytes, "mounts": mounts}
        self._ask({"make": "shell", **wanted}, init)

    def _ask(self, message: dict[str, object], end: socket.socket) -> None:
        try:
            with self._lock:
                control.send(self._nursery, message, [end.fileno()])
        except OSError as error:
            raise FamilyGone from error

    def attach(self, init: int, ends: tuple[socket.socket, int, int], setup: dict[str, object]) -> int:
        """Ask for a worker in a shell; the token under which its end will be known."""
        worker, stdout, stderr = ends
        with self._lock:
            self._tokens += 1
            self._deaths.expect(self._tokens)
            try:
                if self._zygote is None:
                    raise FamilyGone
                self._zygote.attach({**setup, "token": self._tokens}, [init, worker.fileno(), stdout, stderr])
            except OSError as error:
                raise FamilyGone from error
            return self._tokens

    def how_it_ended(self, token: int) -> int | None:
        """The wait status of a worker that is dead; None if nobody tells it soon. Blocks."""
        deadline = time.monotonic() + _DEATH_SECONDS
        while True:
            self._read_notices()
            with self._lock:
                status = self._deaths.take(token)
                channels = [one.channel for one in self._zygotes()]
                if self._nursery.fileno() >= 0:
                    channels.append(self._nursery)
            left = deadline - time.monotonic()
            if status is not None or left < 0 or not channels:
                return status
            wait = select.poll()
            for channel in channels:
                wait.register(channel, select.POLLIN)
            wait.poll(left * 1e3)

    def forget(self, token: int) -> None:
        """Nobody will ask how this worker ended. Takes no lock: a collector may call it anywhere."""
        self._deaths.forget(token)

    def enter(self, shell: object) -> None:
        """A shell of this family lives."""
        self._shells.add(id(shell))
        self.used = time.monotonic()

    def leave(self, shell: object) -> None:
        """It lives no more. Takes no lock, as `forget`."""
        self._shells.discard(id(shell))
        self.used = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether no session of it is open."""
        return not self._shells

    def _zygotes(self) -> list[Zygote]:
        """Those that may still tell something."""
        present = [] if self._zygote is None else [self._zygote]
        return [one for one in (*self._retired, *present) if one.alive]

    def _read_notices(self) -> list[dict[str, object]]:
        """Take what nursery and zygotes tell; what the nursery told.

        Its notices are read first and used last: they are of workers whose zygote told which they are before it ended.
        """
        with self._lock:
            from_nursery = self._from_nursery()
            for zygote in self._zygotes():
                for notice in zygote.notices():
                    self._deaths.note(notice)
            for notice in from_nursery:
                self._deaths.note(notice)
            self._retired = [one for one in self._retired if one.alive]
            return from_nursery

    def _from_nursery(self) -> list[dict[str, object]]:
        told = []
        while self._nursery.fileno() >= 0:
            try:
                notice, _ = control.receive(self._nursery)
            except BlockingIOError:
                break
            except (OSError, json.JSONDecodeError):
                notice = None
            if notice is None:
                self._nursery.close()
                break
            told.append(notice)
        return told

    def close(self) -> None:
        """End the family and every session of it."""
        with self._lock:
            self._nursery.close()
            for zygote in self._zygotes():
                zygote.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_families: dict[Profile, Family] = {}
_starting = threading.Lock()


def running(profile: Profile) -> Family | None:
    """The family of a profile, if there is one that can make a session at once."""
    family = _families.get(profile)
    return family if family is not None and family.ready else None


def family_of(profile: Profile, progress: Progress | None = None) -> Family:
    """The family of a profile, started if there is none that lives, with a zygote. Blocks while one starts.

    `progress` is told what is waited for: "importing pandas", say. The same goes to the logger `cellblock`.
    """
    family = running(profile)
    if family is not None:
        return family
    with _starting:
        family = _families.get(profile)
        if family is None or not family.alive:
            if family is not None:
                family.close()
            family = _families[profile] = Family.start(profile, progress)
        family.ensure_ready(progress)
        return family


@atexit.register
def _close_all() -> None:
    while _families:
        _families.popitem()[1].close()


def _after_fork_in_child() -> None:
    _families.clear()
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
