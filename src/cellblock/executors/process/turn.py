"""One request under way: reads the worker's events and text, and puts them in the order they were made."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import termios
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio.lowlevel

from cellblock.executors.process import memory
from cellblock.executors.process.link import Link
from cellblock.executors.protocol import Curbed, Died, Fetch, TurnEvent, WorkerGone
from cellblock.executors.text import TextBudget
from cellblock.hosting import clock, to_thread
from cellblock.wire.frames import ProtocolError
from cellblock.wire.messages import (
    Display,
    Finished,
    Loading,
    Request,
    Reserved,
    Supplied,
    ToolCalled,
    ToolReply,
    ToolRoom,
    Wanted,
)
from cellblock.wire.text import Demultiplexer, Place, Text

_FINAL_READS = 8
"""Most chunks that are read from a pipe once the worker has replied; more comes from processes that live on."""

_KEPT_IN_PIPE = 16 * 1024

_SHORT_WAIT = 0.001
"""Seconds that a turn that is alone in this process waits for its first event without giving the event loop a turn.

Most cells reply sooner, and going through the loop costs more than the cell: about 100 µs after a pause.
"""

_TAKES_BEFORE_PAUSE = 32
_SECONDS_BEFORE_PAUSE = 0.005
"""Most reads and answers of a turn, and most seconds, before it lets the event loop's other tasks and
deadlines go on. One time of reading takes a packet, of which a frame may become whole, and a chunk of each pipe."""

_LAST_LOOK_SECONDS = 0.01
"""Seconds for reading what has come by a request's deadline: what the pipes and the socket hold takes 1 to 5 ms."""

_MAX_HELD, _MAX_PLACES = 2**20, 1000
"""Bytes of text, and texts and places, that wait for an event. An honest one comes sooner."""

_SUPPLY_SECONDS = 30.0

_under_way = 0
"""Number of turns of this process that have begun and not ended."""


Before = Callable[[], Awaitable[None]]
"""A wait that a request needs before it is sent."""


class Overseer(Protocol):
    """Who knows of the worker what the worker cannot tell."""

    async def how_it_ended(self) -> Died: ...

    def finished(self, *, tentative: bool) -> None:
        """The request was carried out. `tentative`: it met its memory limit, for which it may be gone back on."""
        return

    def curbed(self) -> str | None:
        """Description of what the session's processes held when one was killed for it, None if none was; EOFError at
        the end."""
        ...

    def exceeded(self) -> str | None:
        """The reason for which the kernel has killed a process of the session since the last call, if it has."""
        return None


class ProcessTurn:
    """Events of one request. Text is passed on as it comes until the limit, then only its tail is kept."""

    def __init__(self, link: Link, max_output_bytes: int, overseer: Overseer) -> None:
        self._link = link
        self._overseer = overseer
        self._budget = TextBudget(max_output_bytes)
        self._demultiplexer = Demultiplexer(link.nonce)
        self._events: deque[TurnEvent] = deque()
        self._wanted: deque[Wanted] = deque()
        self.fetch: Fetch | None = None
        """Gives the bytes that a restore asks for."""
        self.loading = ""
        """The group that the worker says it loads."""
        self._held: deque[Text | Place] = deque()
        self._held_bytes = 0
        self._place_read = 0
        self._place_reached = 0
        self._fresh = True
        self._gone: Died | None = None
        self.sent = False
        self._takes = 0
        self._pause_at = 0.0
        self._ended = self._curbed = False
        global _under_way
        _under_way += 1

    def begin(self, request: Request, end: socket.socket | None, before: Before | None) -> None:
        """Send the request as far as that takes no waiting, with the end for a checkpoint after it.

        What `before` waits for comes first, where it is given.
        """
        self._before, self._request, self._checkpoint = before, request, end
        if before is None:
            self._send()

    def _send(self) -> None:
        try:
            self._look_before()
            self.sent = self._link.send(self._request, self._checkpoint)
        except WorkerGone as gone:
            self._gone = gone.death

    def _look_before(self) -> None:
        """`WorkerGone` if the worker has ended or takes no other request, or said between turns what it may not.

        A child of a dead worker may hold the socket, and would take what is sent. What threads of earlier cells have
        shown since is taken as shown by this turn; what was killed since is no doing of its cell.
        """
        if not self._link.takes_another:
            raise WorkerGone
        while not self._has_had_its_share():
            ready = self._link.ready(0)
            if self._link.pidfd in ready:
                raise WorkerGone
            if self._link.alarm in ready:
                self._link.hear_alarm()
            self._read_notices(between=True)
            if self._link.socket not in ready:
                return
            self._take(ready - {self._link.notices, self._link.alarm})
            if self._ended:
                death = self._events[-1]
                raise WorkerGone(death if isinstance(death, Died) else None)

    async def send_rest(self, seconds: float) -> None:
        try:
            if self._before is not None:
                before, self._before = self._before, None
                await before()
                self._send()
            if self._gone is not None:
                raise WorkerGone(self._gone if self._gone.reason else await self._overseer.how_it_ended()) from None
            await self._link.flush(seconds)
            self.sent = True
        except BaseException:
            self.close()
            raise

    def at_once(self) -> TurnEvent | None:
        if self._fresh:
            self._fresh = False
            self._link.require_open()
            if _under_way == 1:
                self._wait_a_moment()
        return self._events.popleft() if self._events else None

    async def next(self) -> TurnEvent:
        while not self._events:
            self._link.require_open()
            if self._wanted:
                await self._supply(self._wanted.popleft())
                continue
            if self._link.large is not None:
                await self._read_large()
                continue
            ready = self._link.ready(0)
            if not ready:
                self._takes = 0
                await self._link.readable()
                continue
            if self._has_had_its_share():
                self._takes = 0
                await anyio.lowlevel.checkpoint()
                self._link.require_open()
                continue
            self._take(ready)
            has_more = self._link.socket in ready  # which tells of what it did before its end
            if self._link.pidfd in ready and not (has_more or self._events):
                with anyio.CancelScope(shield=True):  # it has ended: a deadline that passes now is not what ended it
                    death = await self._overseer.how_it_ended()
                self._link.require_open()
                self._end(death)
        self._fresh = False  # nothing was sent since
        return self._events.popleft()

    def has_ended(self) -> bool:
        until = clock.now() + _LAST_LOOK_SECONDS
        while not self._ended and clock.now() < until and self._link.large is None and (ready := self._link.ready(0)):
            if ready == {self._link.pidfd}:
                return True
            self._take(ready)
        return self._ended

    def _has_had_its_share(self) -> bool:
        """True if the loop's other tasks come first; else this counts as one time more."""
        now = clock.now()
        if not self._takes:
            self._pause_at = now + _SECONDS_BEFORE_PAUSE
        self._takes += 1
        return self._takes > _TAKES_BEFORE_PAUSE or now >= self._pause_at

    async def _supply(self, wanted: Wanted) -> None:
        if self.fetch is None:
            raise ProtocolError("nothing is restored")
        buffers = tuple(await self.fetch(wanted.addresses))
        lengths = tuple(map(len, buffers))
        if wanted.beside and sum(lengths) <= wanted.beside[0][2]:
            await to_thread.run_sync(memory.store_at, wanted.beside[0][1], buffers, self._link.pid, self._link.pidfd)
            self.reply(Supplied(call=wanted.call, lengths=lengths))
        else:
            self.reply(Supplied(call=wanted.call, buffers=buffers))
        if not self.sent:
            await self._link.flush(_SUPPLY_SECONDS)
            self.sent = True

    def reply(self, reply: ToolReply | ToolRoom | Supplied) -> None:
        if self._ended:  # what ended it came along with the call: nobody waits for an answer
            return
        self._fresh = not self._has_had_its_share()  # a cell that calls without a pause does not hold the loop
        try:
            self.sent = self._link.send(reply)
        except WorkerGone:  # told by the next event
            return

    def _wait_a_moment(self) -> None:
        """Wait for the worker. What comes first may be no more than the place of a display in the text."""
        for _ in range(2):
            ready = self._link.ready(_SHORT_WAIT)
            self._take(ready)
            if self._events or not ready:
                return

    async def _read_large(self) -> None:
        try:
            if (event := await self._link.read_large()) is not None:
                self._place(event)
            while (event := self._link.receive()) is not None:
                self._place(event)
        except ProtocolError as error:
            self._end(Died(reason=f"broke the protocol: {error}"))

    def _take(self, ready: set[int]) -> None:
        try:
            self._read(ready)
        except ProtocolError as error:
            self._end(Died(reason=f"broke the protocol: {error}"))

    def _read(self, ready: set[int]) -> None:
        if self._link.stdout in ready:
            self._read_stdout()
        if self._link.stderr in ready:
            self._read_stderr()
        if self._link.notices in ready:
            self._read_notices()
        if self._link.alarm in ready:
            self._link.hear_alarm()
        if self._link.socket in ready and self._link.large is None:
            self._link.pull()
        while (event := self._link.receive()) is not None:
            self._place(event)

    def _place(self, event: object) -> None:
        """Put an event where its mark says, or at the end of all text."""
        if isinstance(event, Finished):
            self._end(event)
        elif isinstance(event, Display | ToolCalled):
            if self._place_read < event.mark:  # its mark was written first, so it is there to be read
                self._read_stdout(skips=False)
            self._place_reached = event.mark
            if isinstance(event, Display):
                self._events.extend(self._budget.before_display(is_result=event.is_result))
            self._events.append(event)
            self._release()
        elif isinstance(event, Reserved):
            self._events.append(event)
        elif isinstance(event, Wanted):
            self._wanted.append(event)
        elif isinstance(event, Loading):
            self.loading = event.group

    def _end(self, event: Finished | Died) -> None:
        ready = self._link.ready(0)
        if self._link.stdout in ready:
            for _ in range(_FINAL_READS):
                if not self._read_stdout():
                    break
        if self._link.stderr in ready:
            for _ in range(_FINAL_READS):
                if not self._read_stderr():
                    break
        for text in self._demultiplexer.rest():
            self._hold(text)
        self._place_reached = 2**64
        self._release()
        self._events.extend(self._budget.finish())
        if self._link.alarmed and isinstance(event, Finished) and (held := self._overseer.exceeded()) is not None:
            self._curb(held)
            self._link.alarmed = False
        self._events.append(event)
        self.close()
        if isinstance(event, Finished):
            failure = event.failure
            self._overseer.finished(tentative=failure is not None and (failure.kind == "memory" or self._curbed))

    def close(self) -> None:
        """No more events are wanted. Safe to call twice."""
        global _under_way
        if not self._ended:
            self._ended = True
            _under_way -= 1

    def _read_stdout(self, *, skips: bool = True) -> bool:
        if skips:
            self._skip(self._link.stdout)
        data = self._link.read(self._link.stdout)
        for item in self._demultiplexer.feed(data):
            if isinstance(item, Place):
                self._place_read = max(self._place_read, item.number)
            self._hold(item)
        self._release()
        return bool(data)

    def _read_stderr(self) -> bool:
        self._skip(self._link.stderr)
        data = self._link.read(self._link.stderr)
        if data:
            self._events.extend(self._budget.add(Text("stderr", data)))
        return bool(data)

    def _read_notices(self, *, between: bool = False) -> None:
        try:
            held = self._overseer.curbed()
        except EOFError:  # init is gone, and the worker with it
            self._link.forget_notices()
            return
        if between and self._link.alarmed:
            self._link.alarmed, killed = False, self._overseer.exceeded()  # its count is read, whoever else has killed
            held = held or killed
        if held is not None:
            self._curb(held, between=between)

    def _curb(self, held: str, *, between: bool = False) -> None:
        self._curbed |= not between
        self._events.extend(self._budget.before_display())
        self._events.append(Curbed(held=held, between=between))

    def _hold(self, item: Text | Place) -> None:
        self._held.append(item)
        if isinstance(item, Text):
            self._held_bytes += len(item.data)

    def _release(self) -> None:
        """Pass on held text up to the first place whose event has not come yet; all but so much, if it never comes."""
        while self._held:
            item = self._held[0]
            if isinstance(item, Text):
                self._held_bytes -= len(item.data)
                self._events.extend(self._budget.add(item))
            elif item.number > self._place_reached and self._held_bytes < _MAX_HELD and len(self._held) < _MAX_PLACES:
                return
            self._held.popleft()

    def _skip(self, pipe: int) -> None:
        """Throw away what is past the limit without reading it, all but the pipe's last bytes.

        Only while no event waits to be read: its place may be within that.
        """
        if not self._budget.exhausted:
            return
        waiting = _waiting(pipe)
        if waiting > 2 * _KEPT_IN_PIPE and self._link.large is None and self._link.socket not in self._link.ready(0):
            with contextlib.suppress(BlockingIOError):  # a cell has taken it back since
                self._budget.skip(os.splice(pipe, _null(), waiting - _KEPT_IN_PIPE, flags=os.SPLICE_F_NONBLOCK))


def _waiting(pipe: int) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))
    return int(count)


_null_descriptor = -1


def _null() -> int:
    global _null_descriptor
    if _null_descriptor < 0:
        _null_descriptor = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
    return _null_descriptor
