"""The states a session can go back to: frozen copies of its worker, and numbers under which init keeps its files."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass, field

import anyio

from cellblock.executors.process.waits import readable
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.waiting import ready
from cellblock.worker import control

_READY_SECONDS = 10.0
_MOST_ANSWERS = 100


class Frozen:
    """A frozen copy of a worker. Its process may not be there yet, or not any more."""

    def __init__(self) -> None:
        self._worker = self._copy = 0
        self.channel, self.end = _ends()
        self._inner = 0
        self._word_taken = False
        self.gone = False
        """True if its process is no more, or was given up, though nobody let go of it."""
        self.left = False
        """True if something went on when it was woken: the copy that was made next may be of what that led to."""

    def follow(self, worker: int) -> None:
        """It is of the worker of this pid, which is no copy of itself, whatever a cell says with its end."""
        self._worker = worker

    def is_worker(self, process: int) -> bool:
        """True if this process, by its pid, is the copy that was woken last."""
        return process == self._worker

    def pid(self) -> int:
        """The copy's process by its number in the session; 0 where there is none, or it is not ready yet.

        The kernel stamped it on the copy's word that it is ready. A worker that died before it made the copy leaves
        an end of file.
        """
        if self.gone:
            return 0
        if not self._inner and self._has_spoken:
            self._copy = control.ready(self.channel)
            self._inner = inner_pid(self._copy) if self._copy != self._worker else 0
        return self._inner

    def number(self, level: int) -> int:
        """Of a copy that is ready: its number so many pid namespaces above its session's."""
        return inner_pid(self._copy, level)

    @property
    def ended(self) -> bool:
        """True if its process was there, and is no more, which was not known."""
        if self.gone or not self.pid():
            return False
        try:
            process = os.pidfd_open(self._copy)
        except ProcessLookupError:
            return True
        try:
            return ready(process)
        finally:
            os.close(process)

    @property
    def lost(self) -> bool:
        """True without a copy, and without one being made."""
        return self.settled and (not self.pid() or self.ended)

    @property
    def settled(self) -> bool:
        """True if the copy is ready, or will never be."""
        return bool(self._inner) or self._has_spoken

    @property
    def _has_spoken(self) -> bool:
        return ready(self.channel)

    @property
    def _claimed_twice(self) -> bool:
        """True if something follows the word that it is ready, which is taken away: init must have heard it."""
        self._take_word()
        return self._has_spoken

    def _take_word(self) -> None:
        if not self._word_taken:
            self.channel.recv(len(control.READY), socket.MSG_DONTWAIT)
            self._word_taken = True

    def wake(self) -> socket.socket:
        """Wake the copy, which leaves another behind; the socket it speaks on."""
        self._worker, self._copy = self._copy, 0
        with contextlib.suppress(OSError):
            self._take_word()
        awake, end = self.channel, self.end
        self.channel, self.end = _ends()
        self._inner, self._word_taken = 0, False
        with contextlib.suppress(OSError):  # it is gone, which its end of file tells
            awake.setblocking(False)
            control.send(awake, {"wake": True}, [self.end.fileno()])
        self.end.close()
        end.close()
        return awake

    async def apart(self, *, sole: bool) -> socket.socket:
        """A socket to the copy, which made it, that no cell can have had: for one order with descriptors.

        Cells had the other end of the channel, and may read what is sent there. OSError where the copy gives none, or,
        of a `sole` one, where another process has said that it is the copy.
        """
        if sole and self._claimed_twice:
            raise OSError("another process says that it is the copy")
        ours, theirs = _ends()
        with ours:
            with theirs:
                control.send(self.channel, control.APART, [theirs.fileno()], flags=socket.MSG_DONTWAIT)
            for _ in range(_MOST_ANSWERS):
                if (apart := control.given(ours, self._copy)) is not None:
                    apart.setblocking(False)
                    return apart
                await readable(ours.fileno(), _READY_SECONDS)
        raise OSError("others answer in the copy's place")

    def save(self, apart: socket.socket, message: dict[str, object], end: int) -> None:
        """Have the copy make a scribe that speaks on a socket, and go on waiting."""
        with contextlib.suppress(OSError):  # it is gone, which the socket's end of file tells
            control.send(apart, {"save": True, **message}, [end])

    def part(self, apart: socket.socket, message: dict[str, object], ends: list[int]) -> Frozen:
        """Have the copy make the worker of a branch, and go on waiting; the first checkpoint of the branch."""
        first = Frozen()
        first.left = self.left
        with contextlib.suppress(OSError):  # it is gone, which the worker's silence tells
            control.send(apart, {"branch": True, **message}, [*ends[:3], first.end.fileno(), *ends[3:]])
        first.end.close()
        return first

    def close(self) -> None:
        """Let go of the copy, which then ends."""
        self.channel.close()
        self.end.close()


def _ends() -> tuple[socket.socket, socket.socket]:
    """The host's end of a copy's channel, on which the kernel stamps who speaks, and the copy's."""
    channel, end = control.pair()
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    watch_forks(channel)
    return channel, end


@dataclass(slots=True)
class Checkpoint:
    """A state after a step. Without a `memory` the namespace is the empty one that a new worker has.

    `number` is that of its files, which are `unkept` where init could not remember them: it cannot be gone back to.
    `failed` is how many requests in a row have ended its worker.
    """

    number: int
    memory: Frozen | None = None
    names: dict[str, str] = field(default_factory=dict)
    failed: int = 0
    unkept: bool = False


class Checkpoints:
    """The states of one session, oldest first; there always is one. At most `depth` steps can be gone back."""

    def __init__(self, depth: int, first: Checkpoint | None = None) -> None:
        self._depth = depth
        self._states = [first or Checkpoint(0)]
        self._lost = 0
        self._late = 0
        """Number of copies given up since one got ready."""
        self._numbers = 0
        self._expected: Frozen | None = None
        self._pending: Frozen | None = None
        self._forgotten: list[int] = []
        self._leaving: list[Frozen] = []
        self.bound = "max_checkpoints"
        """The limit that last kept states from being more, by its name."""

    @property
    def newest(self) -> Checkpoint:
        """The state that a failure goes back to."""
        return self._states[-1]

    def of(self, number: int) -> Checkpoint | None:
        """The state of a number, if it is one that can be gone back to."""
        return next((one for one in self._states if one.number == number), None)

    @property
    def steps(self) -> int:
        """Number of steps that can be undone."""
        return len(self._states) - 1

    @property
    def latest(self) -> int:
        """The number last given to a state, which may have been undone."""
        return self._numbers

    @property
    def numbers(self) -> tuple[int, ...]:
        """Every state's number, oldest first."""
        return tuple([one.number for one in self._states])

    @property
    def descriptors(self) -> int:
        """Number of descriptors open for copies."""
        ready = [one for one in (self._expected, self._pending) if one is not None]
        return len(self._memories()) + len(self._leaving) + 2 * len(ready)

    @property
    def expects(self) -> bool:
        """True if all is ready for the next step's copy, or there are to be none."""
        return self._expected is not None or not self._depth

    def expect(self) -> tuple[int, list[int]]:
        """Make ready for the next step's copy, and let go of those there are too many of: what `add` will return."""
        self._let_leave()
        self._expected = Frozen()
        most = max(0, len(self._states) - self._depth)
        return self._numbers + 1, [*self._forgotten, *(one.number for one in self._states[:most])]

    def _let_leave(self) -> None:
        leaving, self._leaving = self._leaving, []
        for memory in leaving:
            memory.close()

    def prepare(self, worker: int) -> socket.socket | None:
        """The end for a copy that the worker, by its pid, is to leave after the request that is about to be sent."""
        if self._pending is not None:
            self.discard()
        self._pending, self._expected = self._expected, None
        if self._pending is None:
            return None
        self._pending.follow(worker)
        return self._pending.end

    def channels(self) -> list[socket.socket]:
        """Sockets on which the newest state's copy says that it is ready."""
        return [self.newest.memory.channel] if self.newest.memory is not None else []

    def discard(self) -> None:
        """The step that was prepared for did not come to an end, or another state comes before the next step's."""
        for memory in (self._pending, self._expected):
            if memory is not None:
                memory.close()
        self._pending = self._expected = None
        self._let_leave()

    @property
    def pending(self) -> bool:
        """True if a copy was prepared for."""
        return self._pending is not None

    def add(self, names: dict[str, str]) -> tuple[int, list[int]]:
        """The step came to its end: the new state's number, and those of states that are forgotten for it."""
        memory, self._pending = self._pending, None
        if memory is not None:
            memory.end.close()
        return self._push(memory, names)

    def repeat(self) -> tuple[int, list[int]]:
        """A step that changed files alone: a state whose memory is that of the one before."""
        self.discard()
        return self._push(self.newest.memory, self.newest.names)

    def _push(self, memory: Frozen | None, names: dict[str, str]) -> tuple[int, list[int]]:
        self._numbers += 1
        if len(self._states) > self._depth:
            self.bound = "max_checkpoints"
        self._states.append(Checkpoint(self._numbers, memory, names))
        before = self._states[: -self._depth - 1]
        del self._states[: -self._depth - 1]
        self._leaving += self._unused(before)  # init ends them, and this is not waited for
        forgotten, self._forgotten = self._forgotten, []
        return self._numbers, [*forgotten, *(one.number for one in before)]

    def let_go(self, number: int, bound: str) -> None:
        """Init has let go of every state up to one, for a limit. The newest stays, whatever is left of it."""
        older = [one for one in self._states[:-1] if one.number <= number]
        if older:
            self.bound = bound
            del self._states[: len(older)]
            self._release(older)
            self._forgotten += [one.number for one in older]

    def lose(self, number: int) -> None:
        """The copy of a state is no more."""
        for one in self._states:
            if one.number == number and one.memory is not None and not one.memory.gone:
                one.memory.gone = True
                self._lost += 1

    def lose_ended(self) -> int:
        """Number of copies that have ended, which nobody let go of, since this was last asked."""
        for memory in self._memories():
            if memory.ended:
                memory.gone = True
                self._lost += 1
        lost, self._lost = self._lost, 0
        return lost

    def has(self, steps: int) -> bool:
        """True if the state before so many steps is there."""
        if steps > self.steps:
            return False
        state = self._states[-1 - steps]
        return not (state.unkept or (state.memory is not None and (state.memory.gone or state.memory.lost)))

    def back(self, steps: int) -> list[int]:
        """Make an older state the newest; the numbers of those that came after it. What was prepared for is dropped."""
        self.discard()
        later = self._states[len(self._states) - steps :]
        del self._states[len(self._states) - steps :]
        self._release(later)
        return [one.number for one in later]

    def fall_back(self, wanted: int) -> Checkpoint:
        """The newest state's copy is gone: the one before it that has a copy, and is now the newest.

        Where none has, an empty namespace over the files of the state that was `wanted`. What is dropped here is to be
        forgotten with the next step.
        """
        dropped = self._states[-1:]
        del self._states[-1:]
        if not any(one.memory is not None for one in self._states):
            dropped, self._states = [*dropped, *self._states], [Checkpoint(wanted)]
        while self.newest.number != wanted and self.newest.memory is None:
            dropped.append(self._states.pop())
        self._release(dropped)
        self._forgotten += [one.number for one in dropped if one.number != self.newest.number]
        return self.newest

    async def pids(self) -> list[int]:
        """The processes of every frozen copy, by their numbers in the session.

        Waits for those that are being made. One that does not get ready, as a cell's own code holds it up, is given up,
        and the next ones are waited for less long.
        """
        awaited = [one for one in self._memories() if not (one.gone or one.settled)]
        with anyio.move_on_after(_READY_SECONDS / (1 + self._late)):
            for one in awaited:
                await anyio.wait_readable(one.channel)
        for one in awaited:
            one.gone = not one.settled
            self._late = self._late + 1 if one.gone else 0
        return self.known()

    def being_made(self) -> int | None:
        """The descriptor on which the newest state's copy will say that it is ready, or end; None where it has."""
        memory = self.newest.memory
        return None if memory is None or memory.settled else memory.channel.fileno()

    def known(self) -> list[int]:
        """The same, of those that are ready by now."""
        return [pid for one in self._memories() if (pid := one.pid())]

    def _memories(self) -> list[Frozen]:
        return list({id(one.memory): one.memory for one in self._states if one.memory is not None}.values())

    def _release(self, states: list[Checkpoint]) -> None:
        for memory in self._unused(states):
            memory.close()

    def _unused(self, states: list[Checkpoint]) -> list[Frozen]:
        """The copies that states which are no more had to themselves."""
        return [
            one.memory
            for one in states
            if one.memory is not None and all(one.memory is not kept.memory for kept in self._states)
        ]

    def close(self) -> None:
        """Let go of every copy."""
        self.discard()
        for one in self._states:
            if one.memory is not None:
                one.memory.close()


def inner_pid(pid: int, level: int = 0) -> int:
    """A process of a session by its number in the session's own pid namespace, or so many above; 0 where it is gone.

    Asked of a descriptor: `/proc/PID` of a process that is not dumpable may be hidden from its own user (hidepid).
    """
    if pid <= 0:
        return 0
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    try:
        with open(f"/proc/self/fdinfo/{process}", encoding="ascii") as told:
            numbers = next(line.split()[1:] for line in told if line.startswith("NSpid:"))
    finally:
        os.close(process)
    return max(0, int(numbers[-1 - level])) if len(numbers) > level else 0
