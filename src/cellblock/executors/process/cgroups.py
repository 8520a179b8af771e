"""Control groups around sessions, where this process may make some: one for each session, below one for the process.

What the kernel counts to a group it bounds in one sum: memory of all processes, files in memory, and what it keeps for
them itself. Processors are shared among groups, however many processes one has. An empty group is used again by a
later session, which costs less than a new one. That of a process is locked while the process lives: what is found
unlocked was left behind by one that was killed, and is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
from pathlib import Path

from cellblock.errors import CellblockError
from cellblock.executors.process import delegation
from cellblock.executors.process.delegation import PREFIX, NotDelegated, Place
from cellblock.hosting.forks import Lock
from cellblock.hosting.shortage import short_of
from cellblock.hosting.threads import begun, later
from cellblock.hosting.unique import unique_word

_KEPT = 8
"""Groups that no session uses; there are more while processes are in them."""
_AGAIN_SECONDS = 1.0
_FULL = 0.75
_STALE_BYTES = 32 * 2**20
"""A group in which more than this was left behind, in caches, is not used again."""

_LIMITS = {1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), 2: ("memory.max", "memory.swap.max")}
_USAGE = {1: "memory.usage_in_bytes", 2: "memory.current"}
_MOST = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
_WEIGHT = {1: "cpu.shares", 2: "cpu.weight"}
_WEIGHTS = {1: (1024, 262_144), 2: (100, 10_000)}
"""A group's usual weight, and the most."""
_EVENTS = {1: "memory.oom_control", 2: "memory.events"}


Folders = dict[str, tuple[Path, int]]
"""By controller: where its groups are, and by which version of groups."""


class Group:
    """One session's group: a directory in each hierarchy."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        (self._memory, self._version), (self._pids, _) = folders["memory"], folders["pids"]
        self._directories = {folder for folder, _ in folders.values()}
        self.memory_bytes = self._processes = self._kills = 0
        for folder in self._directories:
            folder.mkdir()
        self.descriptor, self.mask = -1, select.EPOLLPRI if self._version == 2 else select.EPOLLIN
        """While it is in use: ready, for this mask, once memory has been short in the group."""

    def listen(self) -> None:
        """It is in use from now on."""
        events = os.open(self._events, os.O_RDONLY | os.O_CLOEXEC)
        if self._version == 2:
            os.pread(events, 4096, 0)  # what was before is no news
            self.descriptor = events
            return
        try:
            self.descriptor = os.eventfd(0)
            alarm = f"{self.descriptor} {events}"
            (self._memory / "cgroup.event_control").write_text(alarm, encoding="ascii")
        finally:
            os.close(events)

    def fall_silent(self) -> None:
        """It is used no more: nothing of it is open."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    @property
    def _events(self) -> Path:
        return self._memory / _EVENTS[self._version]

    def bound(self, memory_bytes: int, processes: int) -> None:
        """Limit what is held in it, in memory and swap together, and how many processes and threads there are."""
        self._kills = self._count()
        if (memory_bytes, processes) == (self.memory_bytes, self._processes):
            return
        memory, swap = (self._memory / name for name in _LIMITS[self._version])
        first = self._version == 1
        if first and swap.exists():
            swap.write_text("-1", encoding="ascii")  # it is never below that of memory alone
        memory.write_text(str(memory_bytes), encoding="ascii")
        if swap.exists():
            swap.write_text(str(memory_bytes) if first else "0", encoding="ascii")
        (self._pids / "pids.max").write_text(str(processes), encoding="ascii")
        self.memory_bytes, self._processes = memory_bytes, processes

    def add(self, pid: int) -> None:
        """Put a process in, and with it all that it starts from now on."""
        for folder in self._directories:
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def killed(self) -> int:
        """Number of processes that the kernel has killed for want of memory since this was last asked."""
        before, self._kills = self._kills, self._count()
        return self._kills - before

    def hear(self) -> None:
        """Take note of a `descriptor` that is ready, so that it no longer is."""
        if self._version == 1:
            os.eventfd_read(self.descriptor)
        else:
            os.pread(self.descriptor, 4096, 0)

    @property
    def empty(self) -> bool:
        """True if no process is in it."""
        return not any((folder / "cgroup.procs").read_bytes() for folder in self._directories)

    @property
    def full(self) -> bool:
        """True if there is little room left."""
        return self.usage() > self.memory_bytes * _FULL

    def usage(self) -> int:
        """Bytes that are counted to it."""
        return int((self._memory / _USAGE[self._version]).read_text(encoding="ascii"))

    def most(self) -> int:
        """The most bytes that were ever counted to it; where the kernel does not tell, what it may hold."""
        with contextlib.suppress(OSError):
            return int((self._memory / _MOST[self._version]).read_text(encoding="ascii"))
        return self.memory_bytes

    @property
    def detail(self) -> str:
        """Summary of each controller, with the version of groups."""
        does = {"memory": f" {self.memory_bytes >> 20} MB", "pids": f" {self._processes}"}
        return ", ".join(f"v{version} {name}{does.get(name, '')}" for name, (_, version) in self._folders.items())

    def remove(self) -> None:
        """Let go of it, and remove it if it is empty."""
        self.fall_silent()
        for folder in self._directories:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _count(self) -> int:
        words = self._events.read_bytes().split()
        return int(words[words.index(b"oom_kill") + 1])


class Groups:
    """The groups of this process. All methods may be called from any thread."""

    def __init__(self) -> None:
        """Make the one that holds the others; `NotDelegated` where that cannot be."""
        self._lock = threading.Lock()
        self._made = 0
        self._looking_again = False
        self._free: list[Group] = []
        self._all: set[Group] = set()
        self._locks: list[int] = []
        self._folders: Folders = {}
        name = PREFIX + unique_word()
        for place in delegation.places():
            _remove_stale(place.folder)
            folder = self._claim(place, name)
            self._folders |= dict.fromkeys(place.controllers, (folder, place.version))
        self._entrance: tuple[str, Path] | None = None
        with contextlib.suppress(NotDelegated, OSError):
            self._entrance = delegation.entrance()

    def _claim(self, place: Place, name: str) -> Path:
        folder = place.folder / name
        try:
            self._locks.append(_made(folder))
            if place.version == 2:
                delegation.give(folder, place.controllers)
        except OSError as error:
            self.close()
            raise NotDelegated(str(error)) from error
        return folder

    def stir(self, process: int) -> None:
        """Call some milliseconds before a process is moved. `process` is one that makes sessions.

        The first move after a while waits until every processor has passed through the scheduler, and those soon after
        it do not. So a process is moved to where it is, by a thread; one that somebody has moved elsewhere stays there.
        """
        if self._entrance is not None:
            with contextlib.suppress(CellblockError):  # of a thread that cannot be started
                begun(_move_to_where_it_is, process, *self._entrance, name="cellblock-stir")

    def take(self) -> Group:
        """An empty group. OSError when one more cannot be made."""
        with self._lock:
            group = self._used_before() or self._new()
            try:
                group.listen()
            except OSError:
                self._free.append(group)
                raise
            self._weigh()
            return group

    def _used_before(self) -> Group | None:
        for group in [one for one in self._free if one.empty]:
            self._free.remove(group)
            if group.usage() <= _STALE_BYTES:
                return group
            self._remove(group)
        return None

    def _new(self) -> Group:
        self._made += 1
        group = Group({name: (at / f"s{self._made}", version) for name, (at, version) in self._folders.items()})
        self._all.add(group)
        return group

    def _weigh(self) -> None:
        """Have the sessions together weigh as much as so many single groups of processes would."""
        if "cpu" in self._folders:
            folder, version = self._folders["cpu"]
            each, most = _WEIGHTS[version]
            weight = min(each * max(1, len(self._all) - len(self._free)), most)
            (folder / _WEIGHT[version]).write_text(str(weight), encoding="ascii")

    def give_back(self, group: Group) -> None:
        """A session has ended; its processes may still be ending."""
        with self._lock:
            group.fall_silent()
            self._free.append(group)
            self._remove_the_rest()
            self._weigh()

    def _remove_the_rest(self) -> None:
        """All but those that are kept. Those in which something is still ending are looked at again."""
        for one in [one for one in self._free[:-_KEPT] if one.empty]:
            self._free.remove(one)
            self._remove(one)
        if len(self._free) > _KEPT and not self._looking_again:
            with contextlib.suppress(CellblockError):  # of a thread that cannot be started: the next one looks
                later(_AGAIN_SECONDS, self._look_again, "cellblock-groups")
                self._looking_again = True

    def _look_again(self) -> None:
        with self._lock:
            self._looking_again = False
            self._remove_the_rest()

    def _remove(self, group: Group) -> None:
        self._all.discard(group)
        group.remove()

    def folders(self) -> list[Path]:
        """The directories there are below those of this process."""
        return [found for folder in {at for at, _ in self._folders.values()} for found in folder.glob("s*")]

    def close(self) -> None:
        """Remove them all; their processes have ended."""
        with self._lock:
            self._free.clear()
            for group in list(self._all):
                self._remove(group)
            for folder, _ in set(self._folders.values()):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            self.let_go()

    def let_go(self) -> None:
        """Give the locks back."""
        while self._locks:
            os.close(self._locks.pop())


def _move_to_where_it_is(process: int, group: str, entrance: Path) -> None:
    with contextlib.suppress(OSError):  # it has ended, or may not be moved
        if group in Path(f"/proc/{process}/cgroup").read_text(encoding="utf-8").splitlines():
            entrance.write_text(str(process), encoding="ascii")


def _made(folder: Path) -> int:
    """Make a directory: a descriptor that holds its lock. Until then another program takes it for one that was left
    behind, and may remove it."""
    while True:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        with contextlib.suppress(FileNotFoundError):
            descriptor = _locked(folder, waits=True)
            if folder.exists() and os.path.samestat(os.stat(folder), os.fstat(descriptor)):
                return descriptor
            os.close(descriptor)


def _locked(folder: Path, *, waits: bool = False) -> int:
    """A descriptor that holds the lock of a directory; OSError where another has it, unless one `waits`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_stale(folder: Path) -> None:
    """Remove what processes that were killed have left here, as far as nothing runs in it."""
    for left in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = _locked(left)
            try:
                for group in left.glob("s*"):
                    group.rmdir()
                left.rmdir()
            finally:
                os.close(descriptor)


_groups: Groups | NotDelegated | None = None
_finding = Lock()


def of_this_process() -> Groups:
    """The groups of this process, looked for once. `NotDelegated` where there can be none, or for want of a resource
    none at the moment."""
    global _groups
    with _finding:
        if _groups is None:
            try:
                _groups = Groups()
            except NotDelegated as reason:
                if reason.__cause__ is not None and short_of(reason.__cause__) is not None:
                    raise
                _groups = reason
        if isinstance(_groups, NotDelegated):
            raise NotDelegated(str(_groups), _groups.remedy)
        return _groups


def give_back(group: Group) -> None:
    """A session of this process has ended; a forked copy of the process only lets go."""
    if isinstance(_groups, Groups):
        with contextlib.suppress(OSError):  # this process has become another user, or the groups are out of its sight
            _groups.give_back(group)


def remove_all() -> None:
    """At the end of this process, when no session of it has a process any more."""
    global _groups
    if isinstance(_groups, Groups):
        closed, _groups = _groups, None  # sessions that nobody closed give theirs back later still
        closed.close()


def _after_fork_in_child() -> None:
    global _groups
    if isinstance(_groups, Groups):
        _groups.let_go()
    _groups = None


os.register_at_fork(after_in_child=_after_fork_in_child)
