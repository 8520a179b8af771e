"""One request under way in the kernel's thread: what it tells, and how a waiting loop is woken for it."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock

import anyio

from cellblock.callers import callers
from cellblock.errors import SessionClosed
from cellblock.executors.protocol import Died, TurnEvent, Written
from cellblock.executors.text import TextBudget
from cellblock.waking import waker
from cellblock.wire.messages import Display, Finished, ToolReply, ToolRoom
from cellblock.wire.text import Text

_MOMENT = 0.001
_LOOK_SECONDS = 0.01


def _nothing(*_: object) -> None:
    return None


class LocalTurn:
    """A turn. `tell` and `write` are called in the kernel's thread; `look` now and then, while somebody waits."""

    sent = True

    def __init__(
        self, *, max_output_bytes: int, take: Callable[[ToolReply | ToolRoom], None], look: Callable[[], None]
    ) -> None:
        self.callers = callers.get()
        self._events: SimpleQueue[TurnEvent | None] = SimpleQueue()
        self._text = TextBudget(max_output_bytes)
        self._take = take
        self._look = look
        self._lock = Lock()
        self._wake: Callable[[], None] | None = None
        self._fresh = True
        self._closed = False
        self.ended = False

    # ------------------------------------------------------------------- the kernel's thread

    def tell(self, event: TurnEvent) -> None:
        """Tell an event; after the last one nothing is told any more."""
        with self._lock:
            if self.ended:
                return
            if isinstance(event, Display):
                self._put_all(self._text.before_display(is_result=event.is_result))
            elif isinstance(event, Finished | Died):
                self._put_all(self._text.finish())
                self.ended = True
                self._take = self._look = _nothing  # which lead to the kernel: this thread may go on late
            self._put(event)

    def write(self, stream: str, text: str) -> None:
        """Tell text, as far as there is room for it."""
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if not self.ended:
                self._put_all(self._text.add(Text(stream, data)))

    def _put_all(self, events: list[Written]) -> None:
        for event in events:
            self._put(event)

    def _put(self, event: TurnEvent | None) -> None:
        self._events.put(event)
        if self._wake is not None:
            wake, self._wake = self._wake, None
            wake()

    # ------------------------------------------------------------------------------ the host

    async def send_rest(self, seconds: float) -> None:
        return None

    def at_once(self) -> TurnEvent | None:
        try:
            event = self._events.get(timeout=_MOMENT) if self._fresh else self._events.get_nowait()
        except Empty:
            self._fresh = False
            return None
        return self._given(event)

    async def next(self) -> TurnEvent:
        while True:
            try:
                return self._given(self._events.get_nowait())
            except Empty:
                pass
            arrived = anyio.Event()
            with self._lock:
                self._wake = waker(arrived.set)
                waiting = self._events.empty()
            if waiting:
                with anyio.move_on_after(_LOOK_SECONDS):
                    await arrived.wait()
                self._look()

    def has_ended(self) -> bool:
        return self.ended

    def reply(self, reply: ToolReply | ToolRoom) -> None:
        self._fresh = True
        self._take(reply)

    def close(self) -> None:
        """The kernel was closed: whoever waits is told so."""
        with self._lock:
            self._closed = self.ended = True
            self._put(None)

    def _given(self, event: TurnEvent | None) -> TurnEvent:
        if event is None:
            self._events.put(None)
            raise SessionClosed("the session was closed", hint="open a new one")
        return event
