"""The engine's threads: daemons, which start while the interpreter ends too, as those of `concurrent.futures` do not.

Their stacks have a size of their own, where a program has set a smaller one by `threading.stack_size`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Event, Thread, stack_size
from typing import Any, TypeVar

from cellblock.errors import CellblockError, IsolationUnavailable, SessionClosed
from cellblock.hosting.conditions import require, threadless
from cellblock.hosting.forks import Lock, emptied
from cellblock.hosting.shortage import short_of

T = TypeVar("T")
BEFORE_THE_END = "use sessions before that"
_STACK_BYTES = 8 * 2**20
_IDLE_SECONDS = 2.0
_MOST_IDLE = 40
_starting = Lock()
_idle: dict[SimpleQueue[Callable[[], object]], None] = emptied({})
"""Queues of the threads that wait for work, in the order in which they began to. Each thread ends after a while."""


def begun(function: Callable[..., object], *args: object, name: str, stack_bytes: int = _STACK_BYTES) -> Thread:
    """A thread that carries out a function, and keeps no interpreter from leaving."""
    thread = Thread(target=function, args=args, name=name, daemon=True)
    with _starting:  # the size is the process's, for threads that start from now on
        before = stack_size()
        stack_size(max(before, stack_bytes))
        try:
            thread.start()
        except RuntimeError as error:
            error.stack_bytes = stack_bytes  # type: ignore[attr-defined]  # for `short_of`, whoever asks it
            raise told(error) from error
        finally:
            stack_size(before)
    return thread


def told(error: BaseException) -> BaseException:
    """An error, or the meaning of the one that Python raises where it starts no thread, anyio's neither."""
    said = str(error) if isinstance(error, RuntimeError) else ""
    if "interpreter shutdown" in said:  # in handlers of `atexit`, since Python 3.12
        return SessionClosed("the interpreter ends, and this Python starts no threads then", hint=BEFORE_THE_END)
    if "subinterpreter" in said or "(sub)interpreter" in said:
        return CellblockError(
            "this is a sub-interpreter, which allows no daemon threads", hint="use sessions in the main interpreter"
        )
    if "start new thread" in said:
        try:
            require(threadless)
        except IsolationUnavailable as refused:
            return refused
    return short_of(error, "no thread can be started") or error if said else error


def in_thread(work: Callable[[], T], name: str) -> Future[T]:
    """Call a function that may block in a thread of its own: nobody waits for another's."""
    future: Future[T] = Future()
    begun(_answer, future, work, name=name)
    return future


def hand(work: Callable[[], object]) -> None:
    """Have a function called at once, by the thread that had work last of those that wait, or by another. It raises
    nothing."""
    try:
        mine, _ = _idle.popitem()
    except KeyError:
        mine = SimpleQueue()
        begun(_take, mine, name="cellblock work")
    mine.put(work)


def _take(mine: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        try:
            work = mine.get(timeout=_IDLE_SECONDS)
        except Empty:
            if _idle.pop(mine, True) is None:
                return
            continue  # it is about to be handed some
        work()
        del work
        if len(_idle) >= _MOST_IDLE:
            return
        _idle[mine] = None


def later(seconds: float, function: Callable[[], object], name: str) -> Event:
    """Call a function so many seconds from now, in a thread of its own, unless the event is set before."""
    given_up = Event()
    begun(lambda: given_up.wait(seconds) or function(), name=name)
    return given_up


class Pool:
    """Up to so many threads, which take up work in order."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Call a function once a thread has come to it."""
        future: Future[T] = Future()
        if len(self._threads) < self._most:
            self._threads.append(begun(_serve, self._work, name=self._name))
        self._work.put((future, work))
        return future

    def close(self, *, wait: bool) -> None:
        """Cancel what no thread has taken up; with `wait` until all have ended."""
        try:
            while (given := self._work.get_nowait()) is not None:
                given[0].cancel()
        except Empty:
            pass
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads if wait else ():
            thread.join()


def _serve(work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (given := work.get()) is not None:
        _answer(*given)


def _answer(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # told to whoever waits
        future.set_exception(error)
