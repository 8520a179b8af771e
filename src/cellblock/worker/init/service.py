"""The work of init in a furnished session: requests of the host, and looks at what the session holds."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NoReturn

from cellblock.hosting import sockets
from cellblock.worker import control, holdings, procfs
from cellblock.worker.border import Border
from cellblock.worker.confine import namespaces, root
from cellblock.worker.confine.syscalls import PR_SET_DUMPABLE, prctl
from cellblock.worker.ended import ended_children
from cellblock.worker.init import ending
from cellblock.worker.init.budget import Budget
from cellblock.worker.init.captures import Captures
from cellblock.worker.init.expected import Copies
from cellblock.worker.init.filehistory import FileHistory
from cellblock.worker.init.quota import Quota
from cellblock.worker.init.supervisor import MAPPED, Supervisor
from cellblock.worker.init.watch import IDLE_SECONDS, UNSEEN, Excess, Watch
from cellblock.worker.peak import Peak

_MAX_MISSED = 20
_MAX_PATH = 200
_MOST_ENDED = 100

Message = Mapping[str, object]


class Service:
    """One thread waits for the host's messages, for calls that it supervises, and for the time of its next look."""

    def __init__(
        self, channel: socket.socket, store: int, *, memory_bytes: int, checkpoint_bytes: int, nested: bool
    ) -> None:
        """`store` is a directory that no cell reaches; a `nested` session is a branch."""
        self._channel = channel
        self._border = Border(partial(control.tell, channel))
        self._nested = nested
        self._ready = select.poll()
        self._ready.register(channel, select.POLLIN)
        self._watch = Watch(memory_bytes)
        self._budget = Budget(checkpoint_bytes)
        self._quota = Quota()
        self._history = FileHistory(root.own(), store, self._watch.still_mapped)
        self._supervisor = Supervisor(self._ready, self._history)
        self._copies = Copies(self._ready, self._found)
        self._captures = Captures(self._ready)
        self._history.spare = self._captures.drop_files
        self._peak: Peak | None = None
        self._made: set[int] = set()
        """Frozen copies and scribes whose end was not seen yet."""
        self._adopted = 0
        self._ended: dict[int, int] | None = None
        """Statuses of processes that ended between a sweep and word of the worker that was woken then: it may be done
        by then."""
        self._of_branches: deque[tuple[int, int | None]] = deque(maxlen=_MOST_ENDED)
        """Ends of processes of branches that init had adopted, the newest last: their first workers, too."""
        self._kept = 0
        self._reaped = -1
        """After the beginning of which checkpoint a process of a cell ended that init had adopted."""
        self._gives_way = False
        self._look_at = time.monotonic() + IDLE_SECONDS
        self._history.between = self._look_in_time
        self._answers: dict[object, Callable[[Message, list[int]], None]] = {
            "supervise": self._supervise,
            "seal": self._seal,
            "keep": self._keep,
            "reserve": self._reserve,
            "copy": self._copy,
            "adopt": self._adopt,
            "sweep": self._sweep,
            "speak": self._speak,
            "end beside": self._end_beside,
            "hold back": self._hold_back,
            "end": self._end,
            "stirred": self._stirred,
            "export": self._export,
            "exported": self._exported,
            "import": self._import,
            "as_imported": self._as_imported,
            "part": self._part,
            "parted": self._parted,
            "hollow": self._hollow,
            "branches": self._branches,
            "admit": self._admit,
            "capture": self._capture,
        }
        signal.signal(signal.SIGCHLD, lambda *_: self._border.carry_out("reap", self._reap))
        signal.signal(MAPPED, lambda *_: self._history.suspect_all())

    def serve(self) -> NoReturn:
        """Until the host is gone."""
        while True:
            pause = max(0.0, self._look_at - time.monotonic()) if self._history.is_settled else 0.0
            ready = self._ready.poll(pause * 1000)
            self._look_in_time()  # calls that come without a pause must not put it off
            if not ready:
                self._border.carry_out("copy files", self._copy_more)
            for descriptor, _ in ready:
                self._border.carry_out("hear", partial(self._hear, descriptor))
            if any(descriptor == self._channel.fileno() for descriptor, _ in ready):
                self._border.carry_out("receive", self._receive)
                continue  # it may have said who the worker is now
            self._supervisor.copies = self._watch.frozen
            for descriptor, happened in ready:
                self._border.carry_out("supervise", partial(self._supervisor.serve, descriptor, happened))

    def _look_in_time(self) -> None:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + IDLE_SECONDS
            self._border.look(self._look, self._end_unseen)

    def _hear(self, descriptor: int) -> None:
        if self._captures.hear(descriptor):
            self._know_scribes()
        else:
            self._copies.hear(descriptor)

    def _receive(self) -> None:
        """Do what the host asks for. Descriptors that came along and that nobody took are closed."""
        message, descriptors = control.receive(self._channel)
        if message is None:
            os._exit(0)
        what = str(message["do"])
        done = self._border.carry_out(what, lambda: self._answers[what](message, descriptors), asked=True)
        control.close_all(descriptors)
        if what == "keep" and not done:
            control.tell(self._channel, {"unkept": message["number"]})
            control.tell(self._channel, {"kept": message["number"]})

    def _copy_more(self) -> None:
        """Copy a piece of the large files that are still to be copied."""
        if (full := self._history.copy_more()) is not None:
            self._let_go(*full)

    def _look(self) -> None:
        """At what the session's processes hold, and its frozen copies."""
        pause, excess = self._watch.look()
        self._tell_gone()
        self._budget.hold()
        sooner, too_old = self._budget.look(self._watch.running, self._watch.worker)
        if too_old is not None:
            self._let_go(too_old, "max_checkpoint_mb")
        if self._watch.frozen != self._budget.frozen:  # what was let go has ended
            self._count_copies()
        if self._peak is not None:
            self._peak.find()
        self._look_at = time.monotonic() + (pause if sooner is None else min(pause, sooner))
        self._give_way(len(self._watch.running - self._watch.scribes) == 1)
        if excess is not None:
            self._curb(excess)

    def _tell_gone(self) -> None:
        for number in self._budget.gone():
            control.tell(self._channel, {"gone": number})

    def _give_way(self, alone: bool) -> None:
        """While the worker is alone, interrupt nobody: what the host asks for can wait until it has told of its reply.

        Among more processes we come as soon as we can.
        """
        if alone is not self._gives_way:
            self._gives_way = alone
            with contextlib.suppress(OSError):  # a host that forbids it is interrupted, no more
                os.sched_setscheduler(0, os.SCHED_BATCH if alone else os.SCHED_OTHER, os.sched_param(0))

    def _curb(self, excess: Excess) -> None:
        of_worker = excess.process == self._watch.worker
        if excess.process in self._watch.scribes:  # no cell's doing, and the host sees it end
            with contextlib.suppress(ProcessLookupError):
                os.kill(excess.process, signal.SIGKILL)
            return
        control.tell(self._channel, excess.told(self._watch.worker))  # before its death is seen
        if of_worker and not self._copies.being_made:  # else the host sweeps, which waits for those
            ending.end_all(self._budget.kept, self._captures.scribes)  # none of the others will outlive it
            self._budget.leave()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(excess.process, signal.SIGKILL)

    def _end_unseen(self) -> None:
        self._curb(Excess(UNSEEN, self._watch.worker))

    def _found(self, process: int, numbers: set[int], channel: int) -> None:
        """A frozen copy is ready."""
        if process == self._watch.worker:  # whatever a cell says
            os.close(channel)
            return
        self._budget.add(process, numbers, channel)
        self._count_copies()
        if self._peak is not None:  # the worker, which has made it, hides no longer
            self._peak.find()

    def _count_copies(self) -> None:
        """Leave out of the session's limits what the budget knows as copies."""
        self._watch.exempt(self._budget.frozen)
        self._made |= self._budget.frozen
        self._quota.have(len(self._watch.frozen), making=self._copies.being_made)

    def _let_go(self, number: int, limit: str) -> None:
        """End the copies, and forget the files, of every checkpoint up to one."""
        self._budget.release(number)
        self._history.forget_through(number)
        control.tell(self._channel, {"let go": number, "for": limit})

    def _reap(self) -> None:
        """Collect the processes that init adopted and that have ended; tell how the worker did, if it is one."""
        for process, status in ended_children(self._look_back):
            if self._of_branches and self._of_branches[-1] == (process, None):
                self._of_branches[-1] = process, status
            if self._ended is not None:
                self._ended[process] = status
            elif process == self._adopted:
                control.tell(self._channel, {"ended": process, "status": status})

    def _look_back(self, ended: int) -> None:
        if holdings.nested(ended):
            self._of_branches.append((ended, None))
        if self._reaped < self._kept and self._is_of_a_cell(ended):
            self._reaped = self._kept
        self._made.discard(ended)

    def _supervise(self, _message: Message, descriptors: list[int]) -> None:
        self._supervisor.expect(descriptors.pop())

    def _seal(self, message: Message, _descriptors: list[int]) -> None:
        """A worker was put into the session, and nothing is to be attached any more."""
        prctl(PR_SET_DUMPABLE, 0)
        self._watch.begin()
        self._budget.reserved, self._ended = False, None
        self._supervisor.worker = self._watch.worker
        self._quota.of(self._watch.worker, _number(message["processes"]))

    def _keep(self, message: Message, descriptors: list[int]) -> None:
        """A step has come to its end: a checkpoint."""
        self._watch.load(False)
        self._kept = number = _number(message["number"])
        if descriptors:
            self._copies.expect(descriptors.pop(), {number})
        if (repeated := message["repeated"]) is not None:
            for known in (self._copies, self._budget):
                known.share(number, _number(repeated))
        forgotten = _numbers(message["forgotten"])
        self._copies.drop(forgotten)
        self._budget.end(forgotten)
        self._count_copies()
        self._budget.spared, self._budget.reserved = 2 if message["tentative"] else 1, False
        self._history.forget(forgotten)
        if (full := self._history.keep(number, spared=self._budget.spared - 1)) is not None:
            self._let_go(*full)
        if self._peak is not None:
            self._peak.find()
            self._peak.reset()
        control.send(self._channel, {"kept": number})

    def _reserve(self, _message: Message, _descriptors: list[int]) -> None:
        """No checkpoint is let go until the next step."""
        self._budget.reserved = True
        self._settle()
        control.send(self._channel, {"reserved": True})

    def _copy(self, _message: Message, descriptors: list[int]) -> None:
        """Let the host write to the large files; tell how many were copied so far."""
        self._settle()
        with sockets.adopted(descriptors.pop()) as answer:
            control.tell(answer, {"copied": self._history.copied})

    def _settle(self) -> None:
        if (full := self._history.settle()) is not None:
            self._let_go(*full)

    def _adopt(self, message: Message, descriptors: list[int]) -> None:
        """A frozen copy was woken and is the worker now, or a branch's first process."""
        worker = self._adopted = self._supervisor.worker = _number(message["worker"])
        self._made.discard(worker)
        ended, self._ended = self._ended, None
        if ended is not None and worker in ended:
            control.tell(self._channel, {"ended": worker, "status": ended[worker]})
        self._watch.load(False)
        self._watch.follow(worker)
        numbers = self._budget.woken(worker)
        if descriptors:
            self._copies.expect(descriptors.pop(), {_number(message["number"]), *numbers})
        self._budget.reserved = False
        if self._peak is not None:
            self._peak.close()
        self._peak = Peak(worker)
        self._quota.of(worker, _number(message["processes"]))
        self._quota.have(len(self._watch.frozen), making=self._copies.being_made)

    def _sweep(self, message: Message, _descriptors: list[int]) -> None:
        """End every process but the frozen copies that are spared, and set the files back to a checkpoint."""
        self._copies.hear_all()
        self._budget.end_false()
        spared = self._budget.kept.intersection(_numbers(message["spared"]))
        self._copies.forget()
        self._watch.exempt(spared)
        self._budget.reserved = True
        self._budget.retain(spared)
        self._budget.forget(_numbers(message["forgotten"]))
        ending.end_all(spared, self._captures.scribes)
        self._budget.leave()
        root.repair_home(nested=self._nested)
        self._history.forget(_numbers(message["forgotten"]))
        missed = self._history.rewind(_number(message["number"])) if "number" in message else []
        prctl(PR_SET_DUMPABLE, bool(message["attaches"]))  # until it is sealed again
        self._reap()  # what was ended has changed nothing of the state that the session is put into
        self._reaped, self._ended = -1, {}
        self._budget.speak(_number(message["wakes"]))
        control.send(self._channel, {"swept": True, "missed": _told(missed)})

    def _speak(self, message: Message, _descriptors: list[int]) -> None:
        """The host speaks to a frozen copy, 0 for none, which runs meanwhile."""
        self._budget.speak(_number(message["copy"]))

    def _end_beside(self, message: Message, descriptors: list[int]) -> None:
        """End what a frozen copy has made beside a branch, which could hear what is said to that."""
        spared = self._budget.kept | self._captures.scribes | {self._watch.worker}
        alone = ending.end_beside(_number(message["copy"]), float(str(message["since"])), spared)
        with sockets.adopted(descriptors.pop()) as answer:
            control.tell(answer, {"alone": alone})

    def _hold_back(self, message: Message, _descriptors: list[int]) -> None:
        """The worker is about to be interrupted."""
        self._exempt(message["frozen"])
        ending.hold_back(float(str(message["since"])), self._watch.worker, self._watch.frozen)

    def _end(self, message: Message, _descriptors: list[int]) -> None:
        """End what a cell has started."""
        self._exempt(message["frozen"])
        self._tell_gone()
        spared = self._watch.frozen | self._captures.scribes
        count = ending.end_since(float(str(message["since"])), self._watch.worker, spared)
        self._budget.hold()
        self._watch.continued()
        control.send(self._channel, {"count": count})

    def _stirred(self, message: Message, _descriptors: list[int]) -> None:
        """Tell if other processes than the worker may have changed anything since a checkpoint."""
        others = (one for one in holdings.processes() if one != self._watch.worker and self._is_of_a_cell(one))
        alive = any(life is not None and not life.ended for life in map(holdings.life, others))
        control.send(self._channel, {"stirred": alive or self._reaped >= _number(message["since"])})

    def _export(self, message: Message, descriptors: list[int]) -> None:
        """Give the host what a branch is made of: the files of a checkpoint, and this session's namespaces."""
        holdings.expect_branches()
        with sockets.adopted(descriptors.pop()) as answer:
            try:
                files = self._history.export(_number(message["number"]))
                ends = [files, os.dup(self._history.store), procfs.duplicate(), *namespaces.opened()]
            except OSError as error:  # no /proc on this host
                control.tell(answer, {"exported": False, "reason": str(error)})
                return
            control.send(answer, {"exported": True}, ends[:5])
            for end in ends:
                os.close(end)

    def _exported(self, _message: Message, _descriptors: list[int]) -> None:
        self._history.release()

    def _import(self, _message: Message, descriptors: list[int]) -> None:
        """In a branch, or before the names of a stored state: take over the files."""
        self._watch.load(True)
        store, files = descriptors.pop(), descriptors.pop()
        control.send(self._channel, {"imported": _told(self._history.take_over(files, store))})

    def _as_imported(self, message: Message, _descriptors: list[int]) -> None:
        """The names are loaded: have the files be what was taken over, whatever modules did as their code was run."""
        missed = self._history.rewind(0)
        self._history.keep(_number(message["number"]))
        control.send(self._channel, {"as_imported": _told(missed)})

    def _part(self, message: Message, descriptors: list[int]) -> None:
        """Let a frozen copy make the worker of a branch; 0 ends that."""
        self._supervisor.parting = _number(message["copy"])
        with sockets.adopted(descriptors.pop()) as answer:
            control.tell(answer, {"parting": self._supervisor.parting})

    def _parted(self, message: Message, descriptors: list[int]) -> None:
        """Tell how a branch's first worker has ended, whose parent this is."""
        self._reap()
        ended = dict(self._of_branches)
        with sockets.adopted(descriptors.pop()) as answer:
            control.tell(answer, {"status": ended.get(_number(message["worker"]))})

    def _hollow(self, _message: Message, _descriptors: list[int]) -> None:
        """The session is closed, and holds the namespaces of its branches still."""
        self._copies.forget()
        self._watch.exempt(frozenset())
        self._budget.retain(frozenset())
        ending.end_all()

    def _branches(self, message: Message, _descriptors: list[int]) -> None:
        """Branches may have so many processes in all."""
        self._quota.give(_number(message["processes"]), holdings.processes())

    def _admit(self, message: Message, descriptors: list[int]) -> None:
        """Let a frozen copy, of this session or a branch, make a scribe while the host holds a channel open."""
        capture = self._captures.begin(descriptors[0], _number(message["copy"]), None)
        if capture is None:
            return
        descriptors.clear()
        self._know_scribes()
        control.tell(capture.channel, {"admitted": True})

    def _capture(self, message: Message, descriptors: list[int]) -> None:
        """Give the host the files of a checkpoint, which stay while it holds the channel open."""
        number = _number(message["number"])
        kept = self._history.kept(number)
        capture = self._captures.begin(descriptors[0], 0, kept) if kept is not None else None
        if capture is None:
            return
        descriptors.clear()
        files = self._history.told(number, _number(message["since"]))
        with contextlib.suppress(OSError):  # the host has let go of it already
            control.send(capture.channel, {"files": True}, [files, self._history.store], flags=socket.MSG_DONTWAIT)
        os.close(files)

    def _know_scribes(self) -> None:
        self._supervisor.saving = self._captures.copies
        self._watch.scribes = self._captures.scribes
        self._made |= self._captures.scribes
        self._quota.tie(self._captures.scribes)
        self._quota.saving(len(self._captures.scribes | self._captures.copies), self._captures.copies)

    def _exempt(self, frozen: object) -> None:
        self._watch.exempt(frozenset(_numbers(frozen)))

    def _is_of_a_cell(self, process: int) -> bool:
        """False for frozen copies, scribes, and the workers of branches, and for what looks like one while one is made.

        They are children of init once they are made.
        """
        if process in self._made or holdings.nested(process):
            return False
        making = self._copies.being_made or self._captures.copies or self._supervisor.parting
        return not (making and holdings.is_copy(process))


def _told(paths: list[str]) -> list[str]:
    return [path[:_MAX_PATH] for path in paths[:_MAX_MISSED]]


def _number(value: object) -> int:
    return int(str(value))


def _numbers(value: object) -> list[int]:
    return [_number(one) for one in value] if isinstance(value, list) else []
