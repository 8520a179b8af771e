"""The thread of a local kernel: carries out requests in one world, one after the other."""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cellblock.callers import callers
from cellblock.errors import SourceRejected
from cellblock.executors.local import process
from cellblock.executors.local.turn import LocalTurn
from cellblock.executors.protocol import Handed
from cellblock.guard import budget
from cellblock.guard.signals import Stop
from cellblock.guard.stdlib.numbers import bound_decimals
from cellblock.guard.weights import light
from cellblock.guard.world import World
from cellblock.hosting import clock
from cellblock.hosting.forks import Lock
from cellblock.hosting.loops import new_loop
from cellblock.hosting.threads import begun
from cellblock.policy import Policy
from cellblock.snapshots import Snapshot
from cellblock.text import type_name
from cellblock.values import portable
from cellblock.wire.messages import (
    Clear,
    Equip,
    Failure,
    Fetch,
    Finished,
    Request,
    Reserved,
    Run,
    Shell,
    Survey,
    ToolCalled,
)
from cellblock.worker import survey
from cellblock.worker.failures import chained, describe, refused
from cellblock.worker.keeping import Row, Written, read, unkept
from cellblock.worker.names import Names
from cellblock.worker.references import Shown
from cellblock.worker.saving.losses import at_once
from cellblock.worker.show import figures
from cellblock.worker.show.display import Bundle, bundle
from cellblock.worker.tools import ENDED, Answer, Tools, result

if TYPE_CHECKING:
    import inspect
    from asyncio import AbstractEventLoop

    from cellblock.worker.channel import Channel
    from cellblock.worker.interpreter import Interpreter

T = TypeVar("T")

_COROUTINE = 0x80
_IMPORT_SECONDS = 60.0

_STACK_BYTES = 1 << 29
"""Of address space: C code goes down into nested objects without counting, as deep as memory has room for them."""


class Runner:
    """One world and the thread that runs in it. A runner whose thread does not come back is left to itself."""

    def __init__(
        self,
        policy: Policy,
        *,
        seed: int,
        value_bytes: int,
        megabytes: int | None = None,
        forgets: bool = False,
        scoped: bool = False,
    ) -> None:
        self.world = World(policy, write=self._write)
        if scoped:
            self.world.scope(partial(unkept, self.world))
        self.world.values["random"] = random.Random(seed)  # noqa: S311 - the session's, to be repeated
        own = process.Own(write=self.world.say, show=self._tell_shown)
        self._own = own if policy.trusted else None
        self.names: dict[str, str] = {}
        self.written: Written = {}
        """The groups of names that were written last."""
        self.busy = False
        self._value_bytes = value_bytes
        self._megabytes = megabytes
        self._forgets = forgets
        self._inbox: SimpleQueue[tuple[Any, LocalTurn | Future[Any]] | None] = SimpleQueue()
        self._turn: LocalTurn | None = None
        self._loop: AbstractEventLoop | None = None
        self._left = False
        self._lines: dict[str, list[str]] = {}
        self._max_text = 10_000
        self._found = Names(cast("Interpreter", _Namespace(self.world)))
        self.tools = LocalTools(self._tell, value_bytes)
        self.world.bind_builtin("display", self._display)
        _hush()
        self._thread = begun(self._serve, name="cellblock-local", stack_bytes=_STACK_BYTES)

    def give(self, request: Request, turn: LocalTurn) -> None:
        """Have a request carried out."""
        self.busy = True
        self._inbox.put((request, turn))

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Have something else done in its thread, after what was given before."""
        self.busy = True
        future: Future[T] = Future()
        self._inbox.put((work, future))
        return future

    def restore(self, snapshot: Snapshot, get: Callable[[str], bytes]) -> tuple[Row, ...]:
        """In its thread: bind what a snapshot holds. Definitions of classes are run, and can be ended as a cell can."""
        ending = self.world.ending
        ending.begin()
        try:
            rows = read(self.world, snapshot, get)
        finally:
            try:
                self._end()
            except Stop:
                self._end()
        self.names, _ = self._found.news()
        return rows

    def _end(self) -> None:
        """Whatever was to end what ran does not come any more: it may come once more as this is called."""
        ending = self.world.ending
        ending.over = True
        while ending.thread:
            try:
                ending.end()
            except Stop:
                sys.settrace(None)

    def finish(self) -> None:
        """Let the thread end, once it has nothing to do."""
        self._inbox.put(None)

    def wait(self, seconds: float) -> bool:
        """True if the request under way has ended; waits so long for it, and for the import of a library to its end.
        """
        until = clock.now() + seconds
        patience = until + _IMPORT_SECONDS
        while self.busy and clock.now() < until:
            time.sleep(0.002)
            if self.world.ending.importing:
                until = min(clock.now() + seconds, patience)
        return not self.busy

    # -------------------------------------------------------------------------------- serving

    def join(self, seconds: float) -> bool:
        """As `wait`, and until the thread has ended, which it was to."""
        until = clock.now() + seconds
        if self.wait(seconds):
            self._thread.join(max(0.0, until - clock.now()))
        return not self._thread.is_alive()

    def _serve(self) -> None:
        bound_decimals()
        try:
            while (taken := self._inbox.get()) is not None:
                self._take(*taken)
                del taken  # which leads to the kernel: it is to end when nobody holds it
        finally:
            self.world.ending.end()  # another thread may get this one's number
            self._close()
            self.world.rehearsal.close()
            _unhush()

    def _take(self, asked: Any, whom: LocalTurn | Future[Any]) -> None:
        if isinstance(whom, LocalTurn):
            self._answer(asked, whom)
            return
        try:
            result = asked()
        except BaseException as error:  # for who waits for it
            self.busy = False
            whom.set_exception(error)
        else:
            self.busy = False
            whom.set_result(result)

    def _answer(self, request: Request, turn: LocalTurn) -> None:
        self._turn = turn
        callers.set(turn.callers)
        self.tools.begin(1)
        finished = self._carry_out(request)
        self.names = {**self.names, **finished.gained}
        for name in finished.dropped:
            self.names.pop(name, None)
        self._turn = None
        self.busy = False
        turn.tell(finished)

    def _carry_out(self, request: Request) -> Finished:
        """Security border: whatever the cell's code does or raises becomes a `Finished`."""
        began, cpu = time.perf_counter(), time.thread_time()
        value: tuple[portable.Buffer, ...] = ()
        failure: Failure | None = None
        late: BaseException | None = None
        ending = self.world.ending
        traced = sys.gettrace()
        try:
            try:
                if self._own is not None:
                    process.begin(self._own)
                ending.begin()
                budget.begin(self._megabytes)
                value = self._perform(request)
            except BaseException as error:
                ending.over = True
                sys.settrace(None)
                failure = self._failure(error)
        except BaseException as error:  # it was ended while its failure was told
            late = error
        ending.over = True  # where what ends the cell was lost, too: nothing may come between
        try:
            self._end()
        except Stop:
            self._end()
        if isinstance(late, Stop):
            failure = describe(late, self._lines, self._max_text)
        elif late is not None:
            failure = Failure(type=type_name(late), message="", traceback="", kind="raised")
        del late  # its traceback leads here
        if self._own is not None:
            process.end()
        if traced is not None:
            sys.settrace(traced)
        self.world.rehearsal.abandon()
        if self._left:
            self._leave_loop()
        self.tools.forget()
        if self._forgets and isinstance(request, Run):
            self.world.clear()
        gained, dropped = self._found.news()
        return Finished(
            number=0,
            failure=failure,
            duration_ms=(time.perf_counter() - began) * 1e3,
            cpu_ms=(time.thread_time() - cpu) * 1e3,
            memory_peak=0,
            gained=gained,
            dropped=dropped,
            unsaved={name: kind for name in gained if (kind := at_once(self.world.globals.get(name))) is not None},
            buffers=value,
        )

    def _perform(self, request: Request) -> tuple[portable.Buffer, ...]:
        globals = self.world.globals
        match request:
            case Run():
                return self._run(request)
            case Handed():
                globals[request.name] = request.value
            case Fetch():
                if request.name not in self.world.names():
                    raise KeyError(request.name)
                return self._encode(globals[request.name])
            case Survey():
                namespace = cast("Interpreter", _Namespace(self.world))
                return self._encode(survey.names(namespace, request.max_names, request.max_preview))
            case Clear():
                self.world.clear()
            case Equip():
                for spec in request.tools:
                    self.world.bind_tool(str(spec["name"]), self.tools.stub(spec))
            case Shell():
                raise NoShell('there is no shell at trust level local: use trust_level="isolated"')
            case _:
                raise RuntimeError(f"a local session takes no {type(request).__name__}")
        return ()

    def _run(self, request: Run) -> tuple[portable.Buffer, ...]:
        self._max_text = request.max_text
        source = request.source.removeprefix("\ufeff")
        self._lines[request.filename] = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        program = self.world.cell(source, request.filename)
        codes = self.world.run(program)
        value: Any = None
        if any(code.co_flags & _COROUTINE for code in codes):
            value = self._await(codes)
        else:
            for code in codes:
                value = eval(code, self.world.globals)
        if value is None or program.last is None:
            self._show_figures()
            return ()
        self.world.builtins["_"] = value
        value = _bearable(value)
        self._show(value, is_result=True)
        self._show_figures()
        return self._encode(value)

    def _show_figures(self) -> None:
        """Show what the cell has drawn and not shown."""
        for figure in figures.flush() if self._own is not None else ():
            self._tell_shown(figure)

    def _await(self, codes: list[Any]) -> object:
        """Run a top-level `await` on the session's event loop, which lives on between cells."""
        import asyncio

        async def each() -> object:
            value: Any = None
            for code in codes:
                value = eval(code, self.world.globals)
                if code.co_flags & _COROUTINE:
                    value = await value
            for _ in range(2):
                await asyncio.sleep(0)  # asynchronous generators that were dropped are closed now
            return value

        if self._loop is None or self._loop.is_closed():
            self._loop = new_loop()
            self._loop.set_exception_handler(lambda loop, context: None)  # it would tell the host's log
            asyncio.set_event_loop(self._loop)
        try:
            with self.world.ending.waking(self._loop):
                return self._loop.run_until_complete(each())
        except Stop:
            self._left = True  # whatever is under way in it is not gone on with
            raise

    def _leave_loop(self) -> None:
        """Give up the event loop of a cell that was ended, which may not have had the time to stop."""
        import asyncio

        self._left = False
        asyncio._set_running_loop(None)
        asyncio.set_event_loop(None)
        self._close()

    def _close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop._thread_id = None  # type: ignore[attr-defined]  # else it counts as running where it was ended within
            loop.close()

    # -------------------------------------------------------------------------------- telling

    def _tell(self, event: Any) -> None:
        if self._turn is not None:
            self._turn.tell(event)

    def _write(self, stream: str, text: str) -> None:
        if self._turn is not None:
            self._turn.write(stream, text)

    def _display(self, *values: object, **_options: object) -> None:
        """Show values, each as a notebook does."""
        for value in values:
            self._show(_bearable(value), is_result=False)

    def _show(self, value: object, *, is_result: bool) -> None:
        self._tell_shown(bundle(value, self._max_text), is_result=is_result)
        if self._own is not None:
            figures.close_shown(value)

    def _tell_shown(self, shown: Bundle, *, is_result: bool = False) -> None:
        size = sum(map(len, shown.buffers.values())) + sum(len(str(part)) for part in shown.data.values())
        self._tell(shown.display(is_result=is_result, mark=0, size=size))

    def _encode(self, value: object) -> tuple[portable.Buffer, ...]:
        """The portable form of a value, or of an `Opaque` that stands for it."""
        return portable.pack_or_opaque(value, self._value_bytes)

    def _failure(self, error: BaseException) -> Failure | None:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return None
        if isinstance(error, SourceRejected):
            return refused(error)
        _lighten(error)
        failure = describe(error, self._lines, self._max_text)
        for held in ("__traceback__", "__context__"):  # their frames would keep the cell's objects alive
            BaseException.__setattr__(error, held, None)
        return failure


def _bearable(value: object) -> object:
    """A value that can be shown, or what tells why it cannot."""
    try:
        return light(value)
    except MemoryError as error:
        return Shown(f"<{type_name(value)}: {error}>")


def _lighten(error: BaseException) -> None:
    """Have an error, and those behind it, hold nothing that its message could not be made of."""
    for one in chained(error):
        given = BaseException.args.__get__(one)  # type: ignore[attr-defined]
        try:
            light(given)
        except MemoryError as heavy:
            BaseException.args.__set__(one, (f"<{heavy}>",))  # type: ignore[attr-defined]


class NoShell(Exception):
    """There is no shell at this level."""


class _Namespace:
    """The namespace of a session, and the names in it that are the cells'."""

    def __init__(self, world: World) -> None:
        self.namespace = world.globals
        self.names = world.names


_LOOK_SECONDS = 0.05


class LocalTools(Tools):
    """As in a worker, but answers come from another thread instead of a channel."""

    def __init__(self, speak: Callable[[ToolCalled | Reserved], None], value_bytes: int) -> None:
        encode = partial(portable.encode, max_bytes=value_bytes)
        super().__init__(cast("Channel", None), speak, lambda: 0, encode=encode, beside=False)

    def _wait(self, number: int) -> Answer:
        while (reply := self._plain.get(number, ENDED)) is None:  # between two looks the cell can be ended
            with self._told:
                self._told.wait_for(lambda: self._plain.get(number, ENDED) is not None, _LOOK_SECONDS)
        return reply

    async def _call_async(self, name: str, bound: inspect.BoundArguments) -> object:
        import asyncio

        future: Any = asyncio.get_running_loop().create_future()
        number, request = self._begun(self._futures, future)
        try:
            self._send(number, request, name, bound)
            while not future.done():
                await asyncio.wait([future], timeout=_LOOK_SECONDS)
            return result(future.result())
        finally:
            self._futures.pop(number, None)


_MODULE = r"<cell"
_hushing = Lock()
_hushed = 0


def _hush() -> None:
    """Have the host hear no warnings about the source of cells, which are for their author, while a session is open."""
    global _hushed
    with _hushing:
        _hushed += 1
        if _hushed == 1:
            for kind in (SyntaxWarning, DeprecationWarning):
                warnings.filterwarnings("ignore", category=kind, module=_MODULE)


def _unhush() -> None:
    """A session has closed."""
    global _hushed
    with _hushing:
        _hushed -= 1
        if not _hushed:
            ours = [one for one in warnings.filters if getattr(one[3], "pattern", None) == _MODULE]
            for one in ours:
                warnings.filters.remove(one)  # type: ignore[attr-defined]
            getattr(warnings, "_filters_mutated", lambda: None)()  # what remembers the filters looks at them again
