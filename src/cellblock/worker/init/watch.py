"""Watches what the processes of a session hold together, which no limit of a single process bounds, and what
no limit of a process counts at all: page tables, what sockets hold, file locks, and the kernel's share of descriptors.

The cheap look adds up private memory; pages that forked processes still share count in each, so only when that sum
is over the limit are they counted exactly, each divided by those who share it. Then the process that holds most is
to be killed. The worker is spared while others are there, as its private memory has a limit that raises MemoryError
instead; it goes for what is past that.

A process may hide what it holds exactly (by being undumpable, or by the end of its first thread): its memory counts
in full, and each of its descriptors as the worst there is, once it has hidden them for longer than it takes to make a
frozen copy, as the worker and the copy hide meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cellblock.worker import holdings
from cellblock.worker.confine.rlimits import DATA_HEADROOM_BYTES, LOADING_TIMES
from cellblock.worker.init.crowd import Crowd
from cellblock.worker.init.pace import Pace
from cellblock.worker.init.sockets import Account, Sockets

BUSY_SECONDS = 0.05
"""Between two looks while a process of the session runs."""
IDLE_SECONDS = 0.1
"""Between two looks at whether one has run; if none has, nothing can have changed."""
_MOST_PUT_OFF = 4
"""So many looks in a row see to nothing but a crowd that grows: in it, counting takes a second."""
_SOON_SECONDS = 0.02

UNSEEN = "what could not be counted"
"""Description of what a session holds where looking at it fails again and again."""
_SLACK_BYTES = 32 * 2**20
_WORKER_SLACK_BYTES = 64 * 2**20
"""The worker's own limit lets it have `DATA_HEADROOM_BYTES` more while no cell's code runs, and a stack."""

_MAKING_SECONDS = 2.0
"""In which a copy of the worker becomes ready. Both hide from its first moment on."""

_MANY_MAPPINGS, _MAPPINGS_BYTES = 2000, 16 * 2**20
"""Who has more than the first is taken to have all that the kernel lets a process have."""
_FEW_PROCESSES = 4
"""So few hold little by their mappings."""
_FEW_DESCRIPTORS = 512
"""So many, of all processes together, are not looked at one by one."""
_MOST_LOCKS = 4096
_MOST_WATCHED = 65_536
_MOST_TABLES = 1024  # an open file of /proc that was read keeps what it showed


@dataclass(frozen=True, slots=True)
class Excess:
    """An excess over a limit, and the process to be killed for it.

    `unruly`: it is no memory, but processes that run though they were stopped.
    """

    held: str
    process: int
    unruly: bool = False

    def told(self, worker: int) -> dict[str, object]:
        """Message to the host."""
        return {"curbed": self.held, "worker": self.process == worker, "unruly": self.unruly}


class Watch:
    """Looks at every process of the session. `worker` is the one that runs the cells.

    By default those are all of this pid namespace but its first, and every socket of the network namespace is theirs.
    Given other `processes`, sockets are not counted.
    """

    def __init__(self, limit_bytes: int, processes: Callable[[], Iterable[int]] | None = None) -> None:
        self._limit = self._of_cells = limit_bytes
        self._processes = processes or holdings.processes
        self._sockets = Sockets() if processes is None else None
        self._account = Account()
        self.worker = self._image = self._reserved = self._most_pipes = 0
        self._ran: dict[int, int] = {}
        self.frozen: frozenset[int] = frozenset()
        self.scribes: frozenset[int] = frozenset()
        """Disposable copies that save: each may hold what a worker may, and that counts to nobody else's."""
        self._counted_at = 0
        self._crowded: set[int] = set()
        self._dying: set[int] = set()
        self._hiding: dict[int, float] = {}
        self._crowd = Crowd(self._processes)
        self._put_off = 0
        self._counting, self._listing, self._opening, self._reading = self._paces = (
            Pace(10),
            Pace(4),
            Pace(30),
            Pace(30, least=1),
        )

    def begin(self, worker: int | None = None) -> None:
        """A worker has just been put into the session, and all it holds is its preloaded image."""
        self.worker = _newest_from_outside() if worker is None else worker
        # Its limit counts from what it had: a cell that has begun already does not raise that.
        soft, data = (holdings.limit(self.worker, b"Max data size", soft=soft) for soft in (True, False))
        if data - soft >= (loading := LOADING_TIMES * self._of_cells):  # nothing but loading a state may have begun
            data -= loading
        self._reserved = max(0, data - self._of_cells - DATA_HEADROOM_BYTES)
        self._image = min(self._reserved, holdings.memory(self.worker))
        self._most_pipes = 256 + 4 * holdings.limit(self.worker, b"Max processes", soft=True)
        self._counted_at = 0
        self._ran = {self.worker: 0}
        self._crowd = Crowd(self._processes)

    def load(self, loading: bool) -> None:
        """Allow for a state being loaded into the worker, which takes more than cells may hold, or no more."""
        self._limit = self._of_cells * (1 + LOADING_TIMES * loading)

    def exempt(self, frozen: frozenset[int]) -> None:
        """Leave frozen copies of the worker out: they hold what they share with it."""
        self.frozen = frozen

    def follow(self, worker: int) -> None:
        """A frozen copy was woken, and is the worker now."""
        self.worker = worker
        self.frozen -= {worker}
        self._counted_at = 0
        self._ran = {worker: 0}

    def continued(self) -> None:
        """Every process was sent a SIGCONT, those too that were to wait for their turn."""
        self._crowd.continued()

    @property
    def running(self) -> frozenset[int]:
        """The processes that are not frozen copies, as of the last look at them."""
        return frozenset(self._ran)

    def still_mapped(self, known: frozenset[int], device: int, between: Callable[[], object]) -> frozenset[int]:
        """Of inodes that were mapped to be shared, those that a process of the session has mapped still."""
        processes = [one for one in self._processes() if one not in self.frozen]
        return holdings.still_mapped(known, processes, device, between)

    def look(self) -> tuple[float, Excess | None]:
        """Seconds until the next look, and what is too much; a process is named once."""
        ran = any(holdings.processor_time(process) != ran or not ran for process, ran in self._ran.items())
        if not (ran or self._crowd.waiting or any(pace.owed for pace in self._paces)):
            return IDLE_SECONDS, None
        for pace in self._paces:
            pace.owed = False
        alive = set(self._processes()) - self.frozen
        before, self._ran = self._ran, {process: holdings.processor_time(process) for process in alive}
        self._dying &= alive
        alive -= self._dying
        used = {process: self._ran[process] - before.get(process, 0) for process in alive}
        excess = self._of_processors(used)
        if excess is None and self._crowd.grows and self._put_off < _MOST_PUT_OFF:
            self._put_off += 1
            return _SOON_SECONDS, None
        self._put_off = 0
        if excess is None:
            new = alive - before.keys() - {self.worker}
            if new and (life := holdings.life(self.worker)) is not None and not life.ended:  # else the next may be new
                for process in new:
                    holdings.be_killed_first(process)  # rather than the worker, with which the names go
            excess = (
                self._of_scribes(alive)
                or self._of_memory(alive - self.scribes)
                or self._of_locks(alive)
                or self._of_descriptors(alive)
            )
        if excess is not None:
            self._dying.add(excess.process)
            return 0.0, excess
        return BUSY_SECONDS, None

    def _of_processors(self, used: dict[int, int]) -> Excess | None:
        defiant = self._crowd.thin(used, self.worker, self.frozen)
        return Excess(f"{defiant} processes that ran out of turn", self.worker, unruly=True) if defiant else None

    def _of_scribes(self, alive: set[int]) -> Excess | None:
        most = self._reserved + self._limit + _WORKER_SLACK_BYTES
        for process in alive & self.scribes:
            if (held := holdings.memory(process)) > most:
                return Excess(_megabytes(held - self._image), process)
        return None

    def _of_memory(self, alive: set[int]) -> Excess | None:
        self._look_at_sockets()
        self._look_at_mappings(alive)
        held = {process: holdings.memory(process) + self._mappings(process) for process in alive}
        estimate = sum(held.values()) - self._image + self._account.total
        if estimate <= self._limit + _SLACK_BYTES:
            return None
        others = alive - {self.worker}
        if not others:
            lives = map(holdings.life, self._dying)
            if not all(life is None or life.ended for life in lives):
                return None  # what they held may still be among what sockets hold
            return self._past_its_own(held, self._accounted().total)
        # pages shared by forks can keep the sum high for ever, and each exact count takes its time
        if not self._counting.due() and estimate < self._counted_at * 1.1:
            return None
        with self._counting.timed():
            self._account = self._accounted()
            weights = {process: holdings.weigh(process) for process in alive}
            exact = {process: self._exact(process, weights[process]) for process in alive}
        if (made := self._being_made(exact, weights)) is not None:
            others.discard(made)
            del exact[made]
        # frozen copies share in what is divided: no less is held than what the worker has, and others do not share
        alone = sum(weight.alone for process in others if (weight := weights[process]) is not None)
        total = max(sum(exact.values()), held.get(self.worker, 0) + alone) + self._account.total
        if total <= self._limit + _SLACK_BYTES + self._image // 2:
            self._counted_at = estimate
            return None
        self._counted_at = 0
        sockets = {process: self._sockets_of(process) for process in alive}
        if not others:
            return self._past_its_own(held, sockets[self.worker])
        largest = max(others, key=lambda process: exact[process] + sockets[process])
        return self._past_its_own(held, sockets.get(self.worker, 0)) or Excess(_megabytes(total), largest)

    def _being_made(self, exact: dict[int, int], weights: dict[int, holdings.Weight | None]) -> int | None:
        """The process that may be a copy of the worker which has not said yet that it is ready: young, hidden, and
        no larger than the worker can be. It holds what it shares."""
        most = self._reserved + self._limit + _WORKER_SLACK_BYTES
        newest = time.clock_gettime(time.CLOCK_BOOTTIME) - _MAKING_SECONDS
        found = None
        for process, weight in weights.items():
            if weight is None and process != self.worker and exact[process] <= most:
                life = holdings.life(process)
                if life is not None and life.started / holdings.TICKS > newest:
                    found, newest = process, life.started / holdings.TICKS
        return found

    def _exact(self, process: int, weight: holdings.Weight | None) -> int:
        private = holdings.memory(process) if weight is None else weight.part + holdings.page_tables(process)
        return private + self._mappings(process)

    def _past_its_own(self, held: dict[int, int], sockets: int) -> Excess | None:
        """The worker, if it holds more than it can within its own limit."""
        total = held.get(self.worker, 0) + sockets
        if total <= self._reserved + self._limit + _WORKER_SLACK_BYTES:
            return None
        return Excess(_megabytes(total - self._image), self.worker)

    def _look_at_sockets(self) -> None:
        if self._listing.due():
            with self._listing.timed():
                self._account = self._accounted()

    def _accounted(self) -> Account:
        return Account() if self._sockets is None else self._sockets.account()

    def _sockets_of(self, process: int) -> int:
        by_inode = self._account.by_inode
        return sum(by_inode.get(inode, 0) for inode in holdings.files(process).sockets) if by_inode else 0

    def _look_at_mappings(self, alive: set[int]) -> None:
        if len(alive) <= _FEW_PROCESSES:
            self._crowded = set()
        elif self._reading.due():
            with self._reading.timed():
                self._crowded = {process for process in alive if holdings.has_mappings(process, _MANY_MAPPINGS)}

    def _mappings(self, process: int) -> int:
        return _MAPPINGS_BYTES if process in self._crowded else 0

    def _of_locks(self, alive: set[int]) -> Excess | None:
        locks = holdings.locks()
        if self._sockets is None:  # those of the whole machine
            locks = {process: count for process, count in locks.items() if process in alive}
        return self._too_many("file locks", locks, sum(locks.values()), _MOST_LOCKS)

    def _of_descriptors(self, alive: set[int]) -> Excess | None:
        count = sum(holdings.descriptors(process) for process in alive)
        if count <= _FEW_DESCRIPTORS or not self._opening.due():
            return None
        with self._opening.timed():
            opened = self._opened(alive)
        pipes = {process: len(one.pipes) for process, one in opened.items()}
        watched = {process: one.watched for process, one in opened.items()}
        tables = {process: one.tables for process, one in opened.items()}
        distinct = len(set[int]().union(*(one.pipes for one in opened.values())))
        excess = (
            self._too_many("pipes", pipes, distinct, self._most_pipes)
            or self._too_many("watches of epoll", watched, sum(watched.values()), _MOST_WATCHED)
            or self._too_many("open files of /proc", tables, sum(tables.values()), _MOST_TABLES)
        )
        if excess is not None:
            self._opening.again()
        return excess

    def _opened(self, alive: set[int]) -> dict[int, holdings.Files]:
        """Open files of each process. One that has hidden them for no longer than it takes to make a copy counts as
        having none."""
        opened = {process: holdings.files(process) for process in alive}
        now, before = time.monotonic(), self._hiding
        self._hiding = {process: before.get(process, now) for process, files in opened.items() if files.guessed}
        for process, since in self._hiding.items():
            if now - since < _MAKING_SECONDS:
                opened[process] = holdings.Files()
                self._opening.owed = True
        return opened

    def _too_many(self, what: str, each: dict[int, int], total: int, most: int) -> Excess | None:
        """Excess if there are more than allowed, with the process that has most of them; the worker only if no other
        has as many."""
        if total <= most:
            return None
        return Excess(
            f"{total} {what}, over {most}", max(each, key=lambda process: (each[process], process != self.worker))
        )


def _newest_from_outside() -> int:
    """The worker: its parent is not of this pid namespace. One that was killed before it may not quite have gone."""
    lives = {process: life for process in holdings.processes() if (life := holdings.life(process)) is not None}
    entered = [process for process, life in lives.items() if life.parent == 0]
    return max(entered, key=lambda process: (lives[process].started, process), default=0)


def _megabytes(held: int) -> str:
    return f"{held >> 20} MB, over their memory limit"
