"""An event loop of our own, in a thread of its own, on which blocking interfaces carry out what is async."""

from __future__ import annotations

import _thread
import asyncio
import logging
import os
import socket
import sys
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from traceback import walk_tb
from typing import Any, Generic, TypeVar, cast

import anyio

from cellblock.callers import callers
from cellblock.errors import CellblockError, SessionClosed
from cellblock.hosting.conditions import filtered, replaced, require
from cellblock.hosting.forks import Lock, emptied, importing
from cellblock.hosting.loops import new_loop
from cellblock.hosting.threads import BEFORE_THE_END, begun, told
from cellblock.text import message_of, type_name

T = TypeVar("T")

carried_out: ContextVar[bool] = ContextVar("carried_out", default=False)
"""True within a step of what our loop carries out, in a worker thread too: such a step never waits for the loop."""

_log = logging.getLogger("cellblock")
_OPEN = "open a new session"
_LOOK_SECONDS = 1.0
"""Seconds between two looks of a waiting thread at the loop's thread."""

_loop: asyncio.AbstractEventLoop | None = None
_pid = os.getpid()
_wakes_by: tuple[int, int, int] | None = None
"""The descriptor that other threads wake the loop by, with the device and the inode that it had."""
_starting = Lock()
_tasks: set[asyncio.Task[None]] = emptied(set())
_warned = False


class Outcome(Generic[T]):
    """The future result of another thread. The first that is given counts.

    A handler of a signal may raise at any moment of a wait, so a thread that waits has no lock that the other takes: a
    `Future` has, and our loop would wait for that for ever.
    """

    def __init__(self) -> None:
        self.is_given = False
        self._is_set = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._given = _thread.allocate_lock()
        self._given.acquire()

    def give(self, value: T | None = None, error: BaseException | None = None) -> None:
        """Set the result of a call, or the exception it raised."""
        if not self._is_set:
            self._is_set, self._value, self._error = True, value, error
            self._hand_over()

    def _hand_over(self) -> None:
        self.is_given = True
        self._given.release()

    def wait(self, seconds: float) -> bool:
        """True if it is given by so many seconds from now."""
        if not self.is_given and self._given.acquire(timeout=seconds):
            self._given.release()  # another may wait
        return self.is_given

    def take(self) -> tuple[T | None, BaseException | None]:
        """The result and the exception. Once: what is taken is the taker's alone."""
        taken, self._value, self._error = (self._value, self._error), None, None
        return taken

    def result(self) -> T:
        """Take the result, or raise the exception."""
        value, error = self.take()
        if error is not None:
            try:
                raise error
            finally:
                del error, self  # its traceback holds this frame
        return cast("T", value)


class Answer(Outcome[T]):
    """The result of a call on our loop. `task` carries the call out, where it takes one.

    It is handed over in a turn of the loop of its own. The call has let go of all that it used by then, so what its
    caller drops next is the caller's to end: a session is free at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, then: Callable[[], None] | None = None) -> None:
        """`then` is called once it is given, where it is."""
        super().__init__()
        self.loop = loop
        self.task: asyncio.Task[None] | None = None
        self._then = then

    def _hand_over(self) -> None:
        self.loop.call_soon(self._hand_over_now)

    def _hand_over_now(self) -> None:
        super()._hand_over()
        if self._then is not None:
            self._then()

    def cancel_call(self) -> None:
        """On our loop: cancel the call, once its task has begun, which may have been given what only it can let go."""
        if self.task is not None:
            self.loop.call_soon(self.task.cancel)
        else:  # the caller left before the loop was told of it
            self.give(error=asyncio.CancelledError())


def call(function: Callable[..., Awaitable[T]], *args: object, **options: object) -> T:
    """Run a coroutine function on our loop and wait for it, as `answer_of`."""
    result: T = answer_of(in_task, _tasks, partial(function, *args, **options))
    return result


def answer_of(start: Callable[..., None], *args: object) -> Any:
    """Have `start` called on our loop, with an `Answer` for its last argument, and wait for that.

    What is raised in the waiting thread, be it Ctrl-C or what a handler of a signal raises, cancels the call, and
    leaves here once that has ended: nothing is carried out for a caller who has gone.
    """
    answer = Answer[Any](_loop_to_wait_for())
    try:
        answer.loop.call_soon_threadsafe(_begin, start, *args, answer)
        return _result(answer)
    except BaseException:
        _cancel(answer)
        raise
    finally:
        del answer  # it holds what was raised, and the traceback of that this frame


def finish(function: Callable[[], Awaitable[object]]) -> None:
    """Run what ends something on our loop, and wait for it. For finalizers too, which run in any thread at any time.

    Where the loop itself, or a step of its work, is what runs, the end is only begun. When the interpreter ends nothing
    is done: the kernel ends all that is open. The same where the loop's descriptors were closed.
    """
    if sys.is_finalizing() or _is_deaf():
        return
    answer = Answer[Any](our_loop())
    answer.loop.call_soon_threadsafe(_begin, in_task, _tasks, function, answer)
    if not is_own_step():
        _result(answer)


def _begin(start: Callable[..., None], *args: object) -> None:
    """On our loop, in a copy of the caller's context: begin a call, which is no task of another library's, trio say."""
    carried_out.set(True)
    if (sniffio := sys.modules.get("sniffio")) is not None:
        sniffio.current_async_library_cvar.set(None)
    start(*args)


def in_task(tasks: set[asyncio.Task[None]], function: Callable[[], Awaitable[object]], answer: Answer[Any]) -> None:
    """On our loop: carry out a call in a task. `tasks` holds it until it is done; the loop itself holds none."""
    answer.task = task = asyncio.get_running_loop().create_task(_fulfil(function, answer))
    tasks.add(task)
    task.add_done_callback(partial(_ended, tasks, answer))


def _ended(tasks: set[asyncio.Task[None]], answer: Answer[Any], task: asyncio.Task[None]) -> None:
    tasks.discard(task)
    answer.task = None
    answer.give(error=asyncio.CancelledError())  # it did not begin


async def _fulfil(function: Callable[[], Awaitable[object]], answer: Answer[Any]) -> None:
    try:
        answer.give(await function())
    except BaseException as error:  # the caller's
        answer.give(error=told(error))
    finally:
        del answer  # as in `answer_of`


def _result(answer: Answer[T]) -> T:
    """Wait for an answer, for as long as there is a thread that can give it."""
    while not answer.wait(_LOOK_SECONDS):
        _require_hearing()
        if answer.loop is not _loop:
            raise SessionClosed("the thread of the blocking sessions ended in the middle of a call", hint=_OPEN)
    try:
        return answer.result()
    finally:
        del answer  # as in `answer_of`


def _cancel(answer: Answer[Any]) -> None:
    """Cancel a call, and wait until it has ended, however it does, as `finish` waits."""
    if answer.is_given or sys.is_finalizing() or answer.loop is not _loop or _is_deaf():  # or this is a fork
        return
    answer.loop.call_soon_threadsafe(answer.cancel_call)
    while not is_own_step() and not answer.wait(_LOOK_SECONDS) and answer.loop is _loop and not _is_deaf():
        continue
    answer.take()  # nobody else does, and its traceback holds what the call used


class Run(Generic[T]):
    """A coroutine function that runs on our loop beside the caller."""

    def __init__(self, function: Callable[[], Awaitable[T]], *, done: Callable[[], None] | None = None) -> None:
        """`done` is called on our loop once it has ended."""
        self._answer = Answer[T](_loop_to_wait_for(), then=done)
        self._answer.loop.call_soon_threadsafe(_begin, in_task, _tasks, function, self._answer)

    def result(self) -> T:
        """Wait for its result. What is raised in the waiting thread cancels it, as in `answer_of`."""
        try:
            return _result(self._answer)
        except BaseException:
            self.end()
            raise
        finally:
            del self  # as in `answer_of`

    def end(self) -> None:
        """Cancel it, and wait until it has ended, however it does, as `finish` waits."""
        _cancel(self._answer)


def our_loop() -> asyncio.AbstractEventLoop:
    """Our loop, begun with its first use. Its thread is a daemon: it must not keep the interpreter from leaving."""
    global _loop, _wakes_by
    _require_hearing()
    if _pid != os.getpid():
        raise CellblockError(
            "this process was forked by a program that told Python nothing of it, from one that has used a session",
            hint="use sessions in the workers alone; with uWSGI, set lazy-apps = true",
        )
    if _loop is None:
        require(replaced)
        with _starting:
            if _loop is None:
                started = Outcome[asyncio.AbstractEventLoop]()
                begun(_serve, started, name="cellblock")
                while not started.wait(_LOOK_SECONDS):
                    continue
                loop = started.result()
                _wakes_by, _loop = _identity(getattr(loop, "_csock", None)), loop
    return _loop


def _identity(wakes_by: socket.socket | None) -> tuple[int, int, int] | None:
    """A descriptor, with the file that it stands for; None where a loop of another kind has none that is known."""
    if wakes_by is None:
        return None
    status = os.fstat(wakes_by.fileno())
    return wakes_by.fileno(), status.st_dev, status.st_ino


def _is_deaf(fstat: Callable[[int], os.stat_result] = os.fstat) -> bool:
    """True once the program has closed the loop's descriptors, as by `os.closerange`: its thread wakes no more.

    `fstat` is the system's, whatever stands in the module's place by now, as in a test with files that are not there.
    """
    if _wakes_by is None:
        return False
    try:
        status = fstat(_wakes_by[0])
    except OSError:
        return True
    return (status.st_dev, status.st_ino) != _wakes_by[1:]


def _require_hearing() -> None:
    if _is_deaf():
        raise SessionClosed(
            "this program has closed the descriptors of cellblock, so no session can be used in it any more",
            hint="close only descriptors that are the program's own, or do it before the first session is opened",
        )


def _loop_to_wait_for() -> asyncio.AbstractEventLoop:
    """Our loop, for one who waits for what it carries out; an error where that would be for ever."""
    if sys.is_finalizing():
        raise SessionClosed("the interpreter ends, and all sessions with it", hint=BEFORE_THE_END)
    if asyncio._get_running_loop() is not None:
        if asyncio._get_running_loop() is _loop:
            who = callers.get()[-1].name if callers.get() else "this"
            raise CellblockError(
                f"{who} waits for the event loop of the blocking sessions, on which it runs",
                hint="make it a plain function, without async: that runs in a thread; or await an AsyncSession",
            )
        _warn_inside_a_loop()
    return our_loop()


def is_own_step() -> bool:
    """True if our loop, or a step of what it carries out, is what runs: as where a finalizer happens to be called."""
    running = asyncio._get_running_loop()
    return carried_out.get() if running is None else running is _loop


def _serve(started: Outcome[asyncio.AbstractEventLoop]) -> None:
    """Run the loop for ever. A task of a tool's that raises SystemExit or KeyboardInterrupt, or stops it, does not.

    Where it cannot be made, or ends all the same, those who wait are told, and the next call begins another.
    """
    global _loop, _wakes_by
    try:
        with importing():
            loop = new_loop()
        with suppress(Exception):  # a border, as in `new_loop`
            asyncio.set_event_loop(loop)
        for_ever = loop.create_task(_for_ever(started))
        while True:
            try:
                loop.run_until_complete(for_ever)
            except (KeyboardInterrupt, SystemExit, RuntimeError) as error:
                loop.call_exception_handler({"message": "a task of a tool ended the event loop", "exception": error})
    except BaseException as error:  # a border: it is told to the one who waits for the start, or by the next call
        if not started.is_given:
            started.give(error=_not_started(error))
            return
        _log.exception("the event loop of the blocking sessions ended")
        if _is_deaf():  # so are the sessions: it stays, for all callers to be told
            return
        _loop = _wakes_by = None
        with suppress(Exception):  # of descriptors that are gone
            loop.close()


def _not_started(error: BaseException) -> CellblockError:
    """The error of a loop that could not be made for another one."""
    if isinstance(error, PermissionError):
        try:
            require(filtered)
        except CellblockError as refused:
            return refused
    if isinstance(error, CellblockError):
        return error
    said = f"{type_name(error)}: {message_of(error, 500)}"
    is_logging = any(frame.f_code.co_filename == logging.__file__ for frame, _ in walk_tb(error.__traceback__))
    see = "mend the logging handler that raises" if is_logging else "see the event loop policy of this program"
    failure = CellblockError(f"no event loop could be started for blocking sessions: {said}", hint=see)
    failure.__cause__ = error
    return failure


async def _for_ever(started: Outcome[asyncio.AbstractEventLoop]) -> None:
    loop = asyncio.get_running_loop()
    with importing():
        anyio.get_cancelled_exc_class()  # imports what anyio has for loops, while nobody waits for a turn of this one
    started.give(loop)
    await loop.create_future()


def _warn_inside_a_loop() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "a blocking Session blocks the running event loop; use AsyncSession there, or an agent's arun()",
            RuntimeWarning,
            stacklevel=6,
        )


def _after_fork_in_child() -> None:
    global _loop, _wakes_by, _pid
    _pid = os.getpid()
    _loop = _wakes_by = None


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_after_fork_in_child)
