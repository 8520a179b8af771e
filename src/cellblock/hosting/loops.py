"""The engine's own event loops, and what is held on any loop: it ends where that was closed, or stopped."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from selectors import BaseSelector, DefaultSelector
from typing import Generic, TypeVar, cast

from cellblock.hosting import sockets
from cellblock.hosting.clock import now

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop as the program's own are, uvloop's say, since its tools run there; asyncio's go by the engine's clock.

    A border: a policy of the program's that raises, whatever it is, is passed over.
    """
    policy = type(getattr(asyncio.events, "_event_loop_policy", None)).__module__.partition(".")[0]
    loop: asyncio.AbstractEventLoop | None = None
    if sys.platform == "win32" or (policy not in ("builtins", "asyncio") and socket.socket is sockets.Socket):
        with suppress(Exception):
            loop = asyncio.new_event_loop()
    loop = loop or _Loop(DefaultSelector(), sockets.pair(sockets.STREAM))
    if isinstance(loop, asyncio.BaseEventLoop):
        loop.time = now  # type: ignore[method-assign]
    return loop


class _Loop(asyncio.SelectorEventLoop):
    """One of asyncio's that other threads wake by sockets of the engine's: another class may have replaced the
    program's, and not send."""

    def __init__(self, selector: BaseSelector, pair: tuple[socket.socket, socket.socket]) -> None:
        self._pair = pair
        try:
            super().__init__(selector)
        except BaseException:  # as of a handler of the program's log
            for end in pair:
                end.close()
            self._closed = True  # or it would complain of what it has not come to have
            raise

    def _make_self_pipe(self) -> None:
        self._ssock, self._csock = self._pair
        self._ssock.setblocking(False)
        self._csock.setblocking(False)
        self._internal_fds += 1  # type: ignore[attr-defined]
        self._add_reader(self._ssock.fileno(), self._read_from_self)  # type: ignore[attr-defined]


class OfLoop(Generic[T]):
    """An attribute that is made with its first use, and anew for another event loop where that of its last use ended.

    A lock that is held there, by a task that does not go on, is free for those of the other loop.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"{name} of a loop"

    def __get__(self, instance: object, owner: type | None = None) -> T:
        if instance is None:  # as of a class
            return cast("T", self)
        here = asyncio._get_running_loop()
        value: T
        value, loop = vars(instance).get(self._key) or (self._make(), here)
        if loop is not here is not None:
            if loop is not None and not loop.is_running():
                value = self._make()
            loop = here
        vars(instance)[self._key] = value, loop
        return value
