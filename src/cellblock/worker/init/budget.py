"""Memory that a session's frozen copies cost, and the choice of those to let go when it is too much.

A copy shares its pages with the worker until one of them changes. So what the copies cost is what all processes hold
together, each page counted once, less what those hold that run. To count that takes a millisecond for some hundred
megabytes of each process: it is done only where it could be too much, after somebody has run, one process at a time
and with pauses.

A copy hides itself, from init too. Asked over its channel it opens a window: the file of `/proc` that tells what it
holds, which cannot lie. One that does not counts in full.

A copy runs only while somebody speaks to it, whatever a cell passes off as one. One that the worker has left behind, as
by an undo, is stopped. A child of the worker is not, as the worker would be sent a signal for it: it ends once it has
run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Collection, Generator

from cellblock.hosting import sockets
from cellblock.hosting.waiting import ready
from cellblock.worker import control, holdings

_PACE = 20.0
"""A count is not begun before so many times the processor time that the one before took."""
_ANSWER_SECONDS = 0.5
_SOON_SECONDS = 0.02
_RAN_NS = 50_000_000
"""Nanoseconds that a copy may run while nobody speaks to it: after a word it has something left to do."""
_FASTEST = 16.0
"""Bytes that a process changes in a nanosecond, at most: what copies cost cannot have grown by more."""


class Copy:
    """A frozen copy: its process, and the numbers of the checkpoints that it is the memory of.

    `most` is what it holds, shared or not, in bytes.
    """

    def __init__(self, process: int, numbers: set[int], channel: int) -> None:
        """`channel` is its to close. ProcessLookupError if the process is gone."""
        self.process, self.numbers = process, numbers
        self.end = os.pidfd_open(process)
        self.channel = channel
        self.window = self.answer = -1
        self.asked = 0.0
        self.most = holdings.memory(process)
        self._ran = holdings.processor_time(process)
        self.is_left = holdings.parent(process) == 1
        """True if the worker is not its parent."""

    @property
    def newest(self) -> int:
        """The newest of its checkpoints."""
        return max(self.numbers)

    def has_run(self) -> bool:
        """True if it ran while nobody spoke to it: it is none."""
        return holdings.processor_time(self.process) > self._ran + _RAN_NS

    def rest(self) -> None:
        """Somebody has spoken to it."""
        self._ran = holdings.processor_time(self.process)

    def signal(self, number: signal.Signals) -> None:
        """Stop it, have it go on, or end it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.end, number)

    @property
    def ended(self) -> bool:
        """True if its process is gone."""
        return ready(self.end)

    def ask(self) -> None:
        """Have it open its window; the answer is to come on `answer`."""
        self.asked = time.monotonic()
        self.signal(signal.SIGCONT)
        ours, theirs = control.pair()
        with theirs, sockets.adopted(os.dup(self.channel)) as channel:
            with contextlib.suppress(OSError):
                control.send(channel, control.SHOW, [theirs.fileno()], flags=socket.MSG_DONTWAIT)
        self.answer = ours.detach()

    def hear(self) -> None:
        """It has answered, or will not."""
        with sockets.adopted(self.answer) as told:
            self.answer = -1
            self.rest()
            with contextlib.suppress(OSError):
                _, descriptors, _, _ = socket.recv_fds(told, 64, 1, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
                for descriptor in descriptors:
                    if self.window < 0 and holdings.is_window(descriptor, self.process):
                        self.window = descriptor
                    else:
                        os.close(descriptor)

    def weigh(self) -> int:
        """Bytes of its memory, each page divided by those who share it, and its page tables."""
        weight = holdings.weigh_through(self.window) if self.window >= 0 else None
        return self.most if weight is None else weight.part + holdings.page_tables(self.process)

    def close(self) -> None:
        """Let go of it."""
        for descriptor in (self.end, self.channel, self.window, self.answer):
            if descriptor >= 0:
                os.close(descriptor)
        self.end = self.channel = self.window = self.answer = -1


class Budget:
    """Watches the copies of one session. None is let go that is among the newest `spared`."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._copies: list[Copy] = []
        self._leaving: list[Copy] = []
        self.spared = 1
        self._spoken_to = 0
        self.reserved = False
        """True if the host is about to go back, to any of them, or is at it."""
        self._counting: Generator[None, None, int | None] | None = None
        self._counted = self._held = self._ran = 0
        self._running: frozenset[int] = frozenset()
        self._took = self._next = 0.0

    def add(self, process: int, numbers: set[int], channel: int) -> None:
        """A copy is ready."""
        try:
            self._copies.append(Copy(process, numbers, channel))
        except OSError:  # it is gone
            os.close(channel)
        self.hold()

    def speak(self, process: int) -> None:
        """The host speaks to this copy, which is to run, and to no other; 0 for none."""
        before, self._spoken_to = self._spoken_to, process
        for copy in self._copies:
            if copy.process == process:
                copy.signal(signal.SIGCONT)
            elif copy.process == before:
                copy.rest()
        self.hold()

    def leave(self) -> None:
        """The worker has ended."""
        for copy in self._copies:
            copy.is_left = True
        self.hold()

    def hold(self) -> None:
        """Stop the copies that the worker has left, but one that is spoken to: whoever has all processes go on has
        these go on, too.
        """
        for copy in self._silent():
            if copy.is_left:
                copy.signal(signal.SIGSTOP)

    def _silent(self) -> list[Copy]:
        """The copies that nobody speaks to."""
        return [copy for copy in self._copies if copy.process != self._spoken_to and copy.answer < 0]

    def end_false(self) -> list[int]:
        """End what was passed off as a copy; the numbers of its checkpoints."""
        false = [copy for copy in self._silent() if copy.has_run()]
        for copy in false:
            self._end(copy)
        return [number for copy in false for number in copy.numbers]

    def share(self, number: int, earlier: int) -> None:
        """A checkpoint's copy is that of an earlier one."""
        for copy in self._copies:
            if earlier in copy.numbers:
                copy.numbers.add(number)

    @property
    def kept(self) -> frozenset[int]:
        """The processes of the copies that there are."""
        return frozenset(copy.process for copy in self._copies)

    @property
    def frozen(self) -> frozenset[int]:
        """The processes of the copies that there are, or that are ending."""
        return frozenset(copy.process for copy in (*self._copies, *self._leaving))

    def forget(self, numbers: Collection[int]) -> None:
        """The host has let go of checkpoints."""
        for copy in self._of_no_other(numbers):
            self._drop(copy)

    def end(self, numbers: Collection[int]) -> None:
        """The host lets go of the oldest checkpoints, and leaves it to us to end their copies."""
        for copy in self._of_no_other(numbers):
            self._end(copy)

    def _of_no_other(self, numbers: Collection[int]) -> list[Copy]:
        """The copies that are the memory of no checkpoint, now that these are none any more."""
        for copy in self._copies:
            copy.numbers.difference_update(numbers)
        return [copy for copy in self._copies if not copy.numbers]

    def retain(self, processes: Collection[int]) -> None:
        """No copy is left but these."""
        for copy in [copy for copy in self._copies if copy.process not in processes]:
            self._drop(copy)

    def woken(self, process: int) -> set[int]:
        """A copy is the worker now; the numbers of its checkpoints, of which the copy that it leaves is the memory."""
        numbers: set[int] = set()
        for copy in [copy for copy in self._copies if copy.process == process]:
            numbers |= copy.numbers
            self._drop(copy)
        return numbers

    def release(self, number: int) -> None:
        """End the copies of all checkpoints up to one."""
        for copy in [copy for copy in self._copies if copy.newest <= number]:
            self._end(copy)

    def _end(self, copy: Copy) -> None:
        self._copies.remove(copy)
        copy.signal(signal.SIGKILL)
        self._leaving.append(copy)

    def gone(self) -> list[int]:
        """The checkpoints whose copies are no more, though nobody has let go of them.

        The kernel has ended them, where memory was short; or they were no frozen copies, and end here.
        """
        if self.reserved:  # one of them is being woken, and does not stay as it was
            return []
        numbers = self.end_false()
        for copy in [copy for copy in self._copies if copy.ended]:
            numbers += copy.numbers
            self._drop(copy)
        return numbers

    def _drop(self, copy: Copy) -> None:
        self._copies.remove(copy)
        copy.close()

    def look(self, running: Collection[int], worker: int) -> tuple[float | None, int | None]:
        """Seconds until the next look, None where nothing has to be looked at; the checkpoint up to which to let go.

        `running` are the processes of the session that are not frozen, the worker among them.
        """
        for copy in [copy for copy in self._leaving if copy.ended]:
            self._leaving.remove(copy)
            copy.close()
        if self._leaving:
            return _SOON_SECONDS, None
        may_be_too_much = len(self._copies) > self.spared and sum(copy.most for copy in self._copies) > self._limit
        if self.reserved or worker not in running or not may_be_too_much:
            self._counting = None
            return None, None
        if self._counting is None:
            pause = self._before_counting(running)
            if pause != 0.0:
                return pause, None
            self._counting, self._took = self._count(tuple(running), worker), 0.0
        began = time.process_time()
        try:
            next(self._counting)
            return 0.0, None
        except StopIteration as counted:
            self._counting = None
            value = counted.value
        finally:
            self._took += time.process_time() - began
            self._next = time.monotonic() + _PACE * self._took
        if value is None:
            return _SOON_SECONDS, None
        self._running, self._counted = frozenset(running), value
        if self._counted <= self._limit or len(self._copies) <= self.spared:
            return None, None
        self._next = 0.0
        return _SOON_SECONDS, self._copies[0].newest

    def _before_counting(self, running: Collection[int]) -> float | None:
        """Seconds to wait before a count; None where there is no reason for one."""
        if self._running == frozenset(running) and self._at_most(running) <= self._limit:
            return None
        now = time.monotonic()
        for copy in self._copies:
            if not copy.asked:
                copy.ask()
            if copy.answer >= 0:
                if not ready(copy.answer) and now < copy.asked + _ANSWER_SECONDS:
                    return _SOON_SECONDS
                copy.hear()
        self.hold()
        return max(0.0, self._next - now)

    def _at_most(self, running: Collection[int]) -> int:
        """Most that the copies can cost by now: pages that a process no longer has it let go, or has others for."""
        ran = sum(map(holdings.processor_time, running)) - self._ran
        if not ran:
            return self._counted
        held = sum(map(holdings.memory, running))
        return self._counted + self._held - held + int(_FASTEST * ran)

    def _count(self, running: tuple[int, ...], worker: int) -> Generator[None, None, int | None]:
        """Cost of the copies; None where it cannot be told, as the worker hides while it makes a copy.

        Another process that hides is that copy, or counts in full to the session's own memory.
        """
        self._running = frozenset()
        self._held = sum(map(holdings.memory, running))
        self._ran = sum(map(holdings.processor_time, running))
        frozen = part = least = 0
        for copy in tuple(self._copies):
            yield
            if copy in self._copies:
                frozen += copy.weigh()
        for process in running:
            yield
            weight = holdings.weigh(process)
            if weight is not None:
                part += weight.part
                least += weight.whole if process == worker else weight.alone
            elif process == worker:
                return None
        return max(0, frozen + part - max(part, least))
