"""Resources that the processes of a session hold, as `/proc` tells it to their init: memory, descriptors, mappings,
locks.

A process whose first thread has ended shows nothing under its own entry, all of it under each thread's.
"""

from __future__ import annotations

import contextlib
import operator
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from cellblock.worker import procfs

TICKS = os.sysconf("SC_CLK_TCK")
"""In a second."""

_NICEST = 19
_SCHEDULED = 2  # with a pid, the number of that process's clock
_STOP = 1 << signal.SIGSTOP - 1  # among the pending signals of a `status`
_EVERY_SIGNAL = sum(1 << number - 1 for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
"""As the blocked signals of a `status`: those two cannot be."""
_EXITING = 0x4  # among the flags of a `stat`
_LEAST_READ = 4096
_LOCKS_BYTES = 1 << 20
"""About twenty thousand lines of `/proc/locks`."""
_MAPPINGS_READ = 256 * 1024
"""Some two to four thousand lines of `maps`, which take a millisecond."""
_SHARED = re.compile(rb"^\S+ ...s \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Life:
    """Of a process: `started` in ticks since the machine did; `ended` when nothing is left but to tell its parent."""

    parent: int
    started: int
    ended: bool


class Stand(Enum):
    """State of a stop: it is obeyed; the process has yet to leave the kernel, or to have a processor at all;
    it ends first; or it was continued since."""

    STILL = auto()
    STOPPING = auto()
    ENDING = auto()
    RUNNING = auto()


@dataclass(slots=True)
class Files:
    """Open files of a process: pipes and sockets by inode, the number of what epoll instances watch, and of files of
    `/proc`.

    `guessed` where that is hidden: each is then taken for the worst it can be.
    """

    pipes: set[int] = field(default_factory=set)
    sockets: set[int] = field(default_factory=set)
    watched: int = 0
    tables: int = 0
    guessed: bool = False


_branched = False


def expect_branches() -> None:
    """There may be pid namespaces within this one from now on, whose processes are not this session's."""
    global _branched
    _branched = True


def may_be_branched() -> bool:
    """True if there may be such processes."""
    return _branched


def nested(process: int) -> bool:
    """True if it is of a pid namespace within this one."""
    return _branched and depth(process) > 1


def depth(process: int) -> int:
    """Number of pid namespaces that it is in, of those that this process sees; 0 if it is gone."""
    return len(_numbers(process, b"NSpid:"))


def is_copy(process: int) -> bool:
    """True for a frozen copy of a worker and for what a copy has forked, ended or not.

    Those block every signal, from before they are forked until a copy is woken. False where the host masks `/proc`.
    """
    blocked = int(_value(_read(procfs.path(f"{process}/status")), b"SigBlk:") or b"0", 16)
    return blocked & _EVERY_SIGNAL == _EVERY_SIGNAL


def number_inside(process: int, which: bytes) -> int:
    """The number of a thread (NSpid) or of its process (NStgid) in its own pid namespace; 0 if it is gone."""
    return [0, *_numbers(process, which)][-1]


def known_as(number: int) -> list[int]:
    """The processes of branches that have this number in their own pid namespace."""
    return [one for one in _listed() if len(known := _numbers(one, b"NSpid:")) > 1 and known[-1] == number]


def _numbers(process: int, which: bytes) -> list[int]:
    return [*map(int, _value(_read(procfs.path(f"{process}/status")), which).split())]


def stat(process: int) -> list[bytes]:
    """The words of its `stat` behind its name, which may hold anything; none where it is gone."""
    return _stat(procfs.path(process))


def parent(process: int) -> int:
    """The number of its parent; -1 if it is gone."""
    words = stat(process)
    return int(words[1]) if words else -1


def process_of(thread: int) -> int:
    """The process that a thread belongs to; 0 if it is gone."""
    return int(_value(_read(procfs.path(f"{thread}/status")), b"Tgid:") or b"0")


def processes() -> Iterator[int]:
    """Every process of this pid namespace but its first, and those of branches; none where the host masks `/proc`."""
    return (one for one in _listed() if not (_branched and nested(one)))


def everyone() -> frozenset[int]:
    """The same, and the processes of branches."""
    return frozenset(_listed())


def _listed() -> Iterator[int]:
    try:
        names = os.listdir(procfs.path())
    except OSError:
        return
    for name in names:
        if name.isdigit() and name != "1":
            yield int(name)


def life(process: int) -> Life | None:
    """Its parent, when it began, and whether it has ended; None if it is gone."""
    words = stat(process)
    if not words:
        return None
    ended = words[0] in (b"Z", b"X") and len(list(_entries(process))) <= 2
    return Life(parent=int(words[1]), started=int(words[19]), ended=ended)


@dataclass(frozen=True, slots=True)
class Weight:
    """Bytes of private memory, in or out of swap: `whole` counts in full what other processes share, `part` has each
    page divided by those who do, `alone` is what none shares."""

    whole: int
    part: int
    alone: int


def memory(process: int) -> int:
    """Bytes of private memory, in or out of swap, and of page tables. Counts in full what forks share; 0 if gone."""
    return _of_its_threads(process, _memory)


def weigh(process: int) -> Weight | None:
    """Memory of a process, page by page; None where that is hidden. Takes a millisecond for some hundred megabytes."""
    return _weight(_read(f"{_going_on(process)}/smaps_rollup"))


def weigh_through(window: int) -> Weight | None:
    """The same of a process that hides, through a file of `/proc` that it has opened of itself."""
    try:
        return _weight(os.pread(window, _LEAST_READ, 0))
    except OSError:  # it has ended
        return None


def is_window(descriptor: int, process: int) -> bool:
    """True if an open file is the one of `/proc` that tells what a process holds."""
    try:
        there = os.fstat(descriptor).st_dev == os.stat("/proc").st_dev
        return there and os.readlink(f"/proc/self/fd/{descriptor}") == f"/proc/{process}/smaps_rollup"
    except OSError:
        return False


def page_tables(process: int) -> int:
    """Bytes of them; 0 if it is gone."""
    return _kilobytes(_read(procfs.path(f"{process}/status")), b"VmPTE:")


def processor_time(process: int) -> int:
    """Nanoseconds that it has run, all its threads together; 0 if gone. Costs less than a file of `/proc`."""
    try:
        return time.clock_gettime_ns(~process << 3 | _SCHEDULED)
    except OSError:
        return 0


def threads(process: int) -> int:
    """Number of threads of a process; 0 if it is gone."""
    try:
        return os.stat(f"/proc/{process}/task").st_nlink - 2
    except OSError:
        return 0


def ready(process: int) -> Iterator[int]:
    """Its threads that run or wait for a processor."""
    for folder in _entries(process):
        thread = folder.rpartition("/task/")[2]
        if thread != folder and _stat(folder)[:1] == [b"R"]:
            yield int(thread)


def stand(process: int) -> Stand:
    """State of a process that was sent a stop. One that is not seen to obey does not."""
    pending = int(_value(_read(procfs.path(f"{process}/status")), b"ShdPnd:") or b"0", 16) & _STOP
    threads = [words for folder in _entries(process) if "/task/" in folder and (words := _stat(folder))]
    still = [words[0] in (b"T", b"t") for words in threads]
    ending = [int(words[6]) & _EXITING != 0 or words[0] in (b"Z", b"X") for words in threads]
    if all(ending) and (threads or not processor_time(process)):
        return Stand.ENDING
    if threads and all(map(operator.or_, still, ending)):
        return Stand.STILL  # first: one that stands still and is sent another stop has that one pending
    return Stand.STOPPING if pending else Stand.RUNNING


def limit(process: int, name: bytes, *, soft: bool = False) -> int:
    """A hard limit that it is under, or a `soft` one, such as "Max data size"; 0 where there is none."""
    for line in _read(procfs.path(f"{process}/limits")).splitlines():
        if line.startswith(name):
            found = line.split()[-3 if soft else -2]
            return int(found) if found.isdigit() else 0
    return 0


def be_killed_first(process: int) -> None:
    """Have the kernel kill this process before any other where memory ends. One that hides from its init is left out.
    """
    with contextlib.suppress(OSError), open(procfs.path(f"{process}/oom_score_adj"), "wb", buffering=0) as file:
        file.write(b"1000")


def make_nicer(process: int, by: int) -> None:
    """Make it nicer than this process, which is as nice as the host, by so much; one that is so already is left."""
    nice = min(os.getpriority(os.PRIO_PROCESS, 0) + by, _NICEST)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it may become nicer by itself meanwhile
        if os.getpriority(os.PRIO_PROCESS, process) < nice:
            os.setpriority(os.PRIO_PROCESS, process, nice)


def descriptors(process: int) -> int:
    """Number of open descriptors of a process. Linux before 6.2 does not say so without listing them, nor where they
    are hidden: 0."""
    return _of_its_threads(process, _descriptors)


def files(process: int) -> Files:
    """Open files of a process."""
    found = Files()
    for folder in _entries(process):
        try:
            numbers = os.listdir(f"{folder}/fd")
        except PermissionError:
            return _worst(process)
        except OSError:
            continue
        for number in numbers:
            _classify(folder, number, found)
        if numbers:
            break
    return found


def has_mappings(process: int, many: int) -> bool:
    """True if it has more than so many mappings; true too where its list, with paths as long as it likes, is long."""
    listed = b"".join(_pieces(f"{_going_on(process)}/maps", _MAPPINGS_READ))
    return listed.count(b"\n") > many or len(listed) == _MAPPINGS_READ


def open_to_write(thread: int, descriptor: int) -> os.stat_result | None:
    """Status of a file that a thread has open to be written; None for another. PermissionError where that is hidden.
    """
    try:
        told = os.stat(procfs.path(f"{thread}/fd/{descriptor}"))
        with open(procfs.path(f"{thread}/fdinfo/{descriptor}"), "rb") as file:
            flags = int(_value(file.read(_LEAST_READ), b"flags:") or b"0", 8)
    except FileNotFoundError:
        return None
    return told if flags & os.O_ACCMODE != os.O_RDONLY else None


class _Every(frozenset[int]):
    """Any inode."""

    def __contains__(self, inode: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


EVERY = _Every()


def still_mapped(
    known: frozenset[int], processes: Iterable[int], device: int, between: Callable[[], object]
) -> frozenset[int]:
    """Of inodes that are known to have been mapped to be shared, those that one of the processes has mapped so.

    All there are, where a process hides its mappings, as one of a branch does, or has too many to be looked at. 1 ms
    for a process that maps a few hundred libraries; `between` is called after each.
    """
    found: set[int] = set()
    for process in processes if known else ():
        between()
        maps = _read(f"{_going_on(process)}/maps", _MAPPINGS_READ)
        if len(maps) == _MAPPINGS_READ or (not maps and processor_time(process)):
            return EVERY
        for major, minor, inode in _SHARED.findall(maps):
            if int(inode) in known and os.makedev(int(major, 16), int(minor, 16)) == device:
                found.add(int(inode))
    return frozenset(found)


def locks() -> dict[int, int]:
    """File locks by the process that holds them; waiting for one counts too."""
    held: dict[int, int] = {}
    for line in b"".join(_pieces(procfs.path("locks"), _LOCKS_BYTES)).splitlines():
        words = line.replace(b"-> ", b"").split()
        if len(words) > 4 and words[4].isdigit():
            held[int(words[4])] = held.get(int(words[4]), 0) + 1
    return held


def _going_on(process: int) -> str:
    """The entry of `/proc` of a thread of it that has not ended; its own where there is none."""
    own = procfs.path(process)
    return next((one for one in _entries(process) if _stat(one)[:1] not in ([], [b"Z"], [b"X"])), own)


def _of_its_threads(process: int, measure: Callable[[str], int]) -> int:
    for folder in _entries(process):
        if found := measure(folder):
            return found
    return 0


def _entries(process: int) -> Iterator[str]:
    """Its own entry of `/proc`, then those of its threads."""
    yield procfs.path(process)
    try:
        threads = os.listdir(procfs.path(f"{process}/task"))
    except OSError:
        return
    for thread in threads:
        yield procfs.path(f"{process}/task/{thread}")


def _stat(folder: str) -> list[bytes]:
    return _read(f"{folder}/stat").rpartition(b")")[2].split()


def _memory(folder: str) -> int:
    status = _read(f"{folder}/status")
    return _kilobytes(status, b"RssAnon:") + _kilobytes(status, b"VmSwap:") + _kilobytes(status, b"VmPTE:")


def _weight(rollup: bytes) -> Weight | None:
    weight = Weight(
        whole=_kilobytes(rollup, b"Anonymous:") + _kilobytes(rollup, b"Swap:"),
        part=_kilobytes(rollup, b"Pss_Anon:") + _kilobytes(rollup, b"SwapPss:"),
        alone=_kilobytes(rollup, b"Private_Dirty:"),
    )
    return weight if weight.part else None


def _descriptors(folder: str) -> int:
    try:
        told = os.stat(f"{folder}/fd").st_size
        return told or len(os.listdir(f"{folder}/fd"))
    except OSError:
        return 0


def _classify(folder: str, number: str, found: Files) -> None:
    try:
        target = os.readlink(f"{folder}/fd/{number}")
    except OSError:
        return
    kind, _, inode = target.partition(":[")
    if kind == "pipe":
        found.pipes.add(int(inode[:-1]))
    elif kind == "socket":
        found.sockets.add(int(inode[:-1]))
    elif target == "anon_inode:[eventpoll]":
        found.watched += _read(f"{folder}/fdinfo/{number}", 1 << 20).count(b"tfd:")
    elif target.startswith("/proc/"):
        found.tables += 1


def _worst(process: int) -> Files:
    """Every descriptor the only one of a pipe, or half of them epoll instances that watch the other half."""
    count = descriptors(process)
    pipes = {-(process << 32 | number) for number in range(count)}
    return Files(pipes=pipes, watched=(count // 2) ** 2, tables=count, guessed=True)


def _kilobytes(status: bytes, name: bytes) -> int:
    at = status.find(name)
    return 0 if at < 0 else int(status[at + len(name) : status.index(b"kB", at)]) * 1024


def _read(path: str, most: int = _LEAST_READ) -> bytes:
    return b"".join(_pieces(path, most))


def _pieces(path: str, most: int) -> Iterator[bytes]:
    """A file of `/proc` up to so many bytes; nothing of one that is gone or hidden."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        while most > 0 and (piece := os.read(descriptor, min(most, 65536))):
            yield piece
            most -= len(piece)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _value(status: bytes, name: bytes) -> bytes:
    """Value of a name in a `status`; empty where it is not there."""
    for line in status.splitlines():
        if line.startswith(name):
            return line[len(name) :]
    return b""
