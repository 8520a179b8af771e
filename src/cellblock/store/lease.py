"""Leases on sessions: what identifies their holders, whether these live, the thread that renews, and the clock.

A lease runs out when its holder has not been heard of for `SECONDS`; that of a process of this machine that has died
is over at once. The number that a new holder gets, the epoch, stands in every write: what an old one still sends is
refused, however late it comes.

Processes of one machine tell the time by the monotonic clock, which nobody sets, and where that began, in seconds since
1970, as the first process that asked since the machine started reckoned it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import asdict
from functools import cache
from pathlib import Path

from cellblock.errors import StoreError
from cellblock.hosting import clock
from cellblock.hosting.threads import begun
from cellblock.hosting.unique import unique_word
from cellblock.patience import Deadline
from cellblock.patience import left as leaving
from cellblock.store.address import canonical, parsed, summed, unsummed
from cellblock.store.database import Database, Value
from cellblock.store.words import Holder

SECONDS = 30.0
_LONGEST_WAIT = 2.0
_LATEST_MS = 2**53

_log = logging.getLogger("cellblock.store")
_held_here: dict[str, Callable[[], bool]] = {}
"""The nonces of this process's leases: of one that is not among them nobody is left who could release it, nor of one
where the function says so. It is called in any thread, and takes no lock."""
_dropped: set[str] = set()
"""Those of them whose sessions nobody uses any more, while the last commits are being written."""


def new_holder() -> Holder:
    """This process, with a nonce of its own."""
    holder = Holder(
        host=socket.gethostname(), boot=boot(), pids=namespace("pid"), pid=os.getpid(), started=_started(os.getpid()),
        nonce=unique_word(),
    )  # fmt: skip
    _held_here[holder.nonce] = lambda: False
    return holder


def watch(holder: Holder, is_left: Callable[[], bool]) -> None:
    """Have `is_left` asked whether nobody is left who could release what a holder of this process has."""
    if holder.nonce in _held_here:
        _held_here[holder.nonce] = is_left


def forget(holder: Holder) -> None:
    """This process holds no more by that nonce."""
    _held_here.pop(holder.nonce, None)
    _dropped.discard(holder.nonce)


def drop(holder: Holder) -> None:
    """Nobody uses what is held any more; it is held until its last commits are written. Takes no lock."""
    if holder.nonce in _held_here:
        _dropped.add(holder.nonce)


def is_dropped(holder: Holder) -> bool:
    """True if a holder of this process is about to let go by itself."""
    return holder.nonce in _dropped


def as_text(holder: Holder) -> str:
    """A holder as the tables keep it."""
    return canonical(asdict(holder)).decode()


def from_text(text: str) -> Holder:
    """Holder of a text that `as_text` wrote. StoreError: another text."""
    try:
        found = parsed(text)
        assert isinstance(found, dict)
        holder = Holder(**found)
        assert type(holder.pid) is type(holder.started) is int
        assert 0 < holder.pid < 2**31
        return holder
    except (AssertionError, TypeError, StoreError):
        raise StoreError(f"the holder of a session cannot be read: {text[:200]!r}") from None


def is_here(holder: Holder) -> bool:
    """True if a holder is this process."""
    here = (boot(), namespace("pid"), os.getpid(), _started(os.getpid()))
    return (holder.boot, holder.pids, holder.pid, holder.started) == here


def is_near(holder: Holder) -> bool:
    """True where the end of a holder is seen from here: it is on this machine, and in no other container.

    Of a holder on a machine that hides which one it is (`ProcSubset=pid` of systemd), nothing is seen.
    """
    is_known = bool(holder.boot and holder.pids and holder.started)
    return is_known and (holder.boot, holder.pids) == (boot(), namespace("pid"))


def is_gone(holder: Holder) -> bool:
    """True where a holder is known to be dead; of one on another machine, or in another container, nothing is known."""
    here = is_here(holder)
    if here and (is_left := _held_here.get(holder.nonce)) is not None:
        return is_left()
    return is_near(holder) and (here or _has_ended(holder.pid, holder.started))


def _has_ended(pid: int, started: int) -> bool:
    """True if a process is known to be gone. One that other users may not see (`hidepid`) is none that is known."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    stat = _read(f"/proc/{pid}/stat")
    return stat != "" and _start_in(stat) != started


class LeaseKeeper:
    """The thread of a store that renews its leases, three times within `seconds`. It runs while there are any."""

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, int], tuple[Callable[[], None], Callable[[], bool]]] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, session_id: int, epoch: int, lost: Callable[[], None], left: Callable[[], bool]) -> None:
        """Renew a lease until it is let go; `lost` is called from the thread when another holder has it.

        `left` is asked each time before: it releases what nobody is left to release, and is True then.
        """
        with self._lock:
            if self._thread is None:
                self._wake = threading.Event()
                every = self._seconds / 3
                self._thread = begun(_renew_while_alive, weakref.ref(self), self._wake, every, name="cellblock-leases")
            self._kept[session_id, epoch] = lost, left

    def let_go(self, session_id: int, epoch: int) -> None:
        """Renew a lease no more."""
        with self._lock:
            self._kept.pop((session_id, epoch), None)
            if self._kept or self._thread is None:
                return
            self._wake.set()
            self._thread = None

    def stop(self) -> None:
        """Renew nothing more."""
        with self._lock:
            self._kept.clear()
            self._wake.set()
            self._thread = None

    def renew(self) -> None:
        """Renew every lease now. One whose row is locked keeps no other; StoreError once the others are renewed."""
        until = self._database.now() + self._seconds
        with self._lock:
            kept = dict(self._kept)
        failed: StoreError | None = None
        for (session_id, epoch), (lost, left) in kept.items():
            try:
                sql = "UPDATE sessions SET until = ? WHERE id = ? AND epoch = ?"
                if not left() and not self._soon(sql, until, session_id, epoch):
                    self.let_go(session_id, epoch)
                    lost()
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed

    def _soon(self, sql: str, *parameters: Value) -> int:
        """A statement that waits for others' locks no longer than leases can."""
        deadline, context = Deadline(), copy_context()
        deadline.give(_LONGEST_WAIT)
        context.run(leaving.set, (*leaving.get(), deadline))
        return context.run(self._database.once, sql, *parameters)


def _renew_while_alive(reference: weakref.ref[LeaseKeeper], wake: threading.Event, pause: float) -> None:
    """Until `wake` is set, or the store was forgotten. One that fails is tried again; epochs protect meanwhile."""
    while not wake.wait(pause):
        keeper = reference()
        if keeper is None:
            return
        try:
            keeper.renew()
        except StoreError as error:
            if wake.is_set():  # the store was closed meanwhile
                return
            _log.warning("leases could not be renewed: %s", error)
        del keeper


def _started(pid: int) -> int:
    """When a process started, in ticks since boot; 0 if there is none, or it is dead and only not yet collected."""
    return _start_in(_read(f"/proc/{pid}/stat"))


def _start_in(stat: str) -> int:
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" else 0


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


# --- this machine, and its clock ---


@cache
def boot() -> str:
    """Name of the time since this machine started; "" where it hides that."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, PermissionError):
        return ""


def namespace(kind: str) -> str:
    """The namespace of this process: `pid`, in which pids mean what they say, or `time`, whose monotonic clock is one;
    containers of one kernel may have one each. "" where it cannot be told.
    """
    try:
        return os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return ""


def clock_began() -> float:
    """When the monotonic clock began, by the wall clock as it is set now."""
    return clock.wall() - clock.now()


def clock_as_text(began: float) -> str:
    """The beginning of this process's monotonic clock as the tables keep it; "" where it cannot be told from others."""
    return summed({"boot": boot(), "clock": namespace("time"), "began_ms": round(began * 1000)}) if boot() else ""


def clock_from_text(text: str) -> float | None:
    """Beginning of this process's monotonic clock in a text that `clock_as_text` wrote; None: it is another one's."""
    try:
        found = unsummed(text)
    except StoreError:
        return None
    began = found.get("began_ms")
    if (found.get("boot"), found.get("clock")) != (boot(), namespace("time")) or type(began) is not int:
        return None
    return began / 1000 if 0 <= began < _LATEST_MS else None
