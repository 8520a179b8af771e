"""Tools: functions of the host that cells call by name, as plain functions."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pydantic
import pytest

from cellblock import AsyncSession, Cell, Done, ExecutionLimits, Policy, Session, SessionBusy, SessionClosed
from cellblock.events import ToolCall

LIMITS = ExecutionLimits(timeout_seconds=20)


def twice(number: int, times: int = 2, *, note: str = "") -> int:
    """A number, several times over."""
    return number * times


def echo(*args: object, **kwargs: object) -> list[object]:
    return [list(args), kwargs]


class Unlucky(Exception):
    pass


def fail(kind: str) -> None:
    if kind == "own":
        raise Unlucky("of the host's own type")
    raise {"value": ValueError, "key": KeyError, "os": FileNotFoundError}[kind]("told")


async def later(number: int, seconds: float = 0.0) -> int:
    """Adds one, after a while."""
    await asyncio.sleep(seconds)
    return number + 1


@pytest.fixture
def equipped(open_session: Callable[..., Session]) -> Session:
    return open_session(limits=LIMITS, tools=[twice, echo, fail, later])


def lack(subclass: bool) -> None:
    kind = type("OutOfRoom", (MemoryError,), {}) if subclass else MemoryError
    raise kind("the host has no memory")


async def lack_later() -> None:
    raise MemoryError("the host has no memory")


@pytest.mark.parametrize("trust_level", ["isolated", "local"])
@pytest.mark.parametrize(
    ("source", "kind"),
    [("lack(False)", "MemoryError"), ("lack(True)", "OutOfRoom"), ("await lack_later()", "MemoryError")],
)
def test_lack_of_memory_of_a_tool_is_an_error_like_any_other(trust_level: str, source: str, kind: str) -> None:
    with Session(trust_level=trust_level, limits=LIMITS, tools=[lack, lack_later]) as session:  # type: ignore[arg-type]
        session.run("x = 1")
        cell = session.run(f"x = 2\n{source}")
        assert cell.error is not None
        assert (cell.error.kind, cell.error.type, cell.error.message) == ("raised", kind, "the host has no memory")
        assert cell.error.hint == ""
        assert not cell.rolled_back
        assert session.run("x").value == 2
        caught = session.run(f"try: {source}\nexcept MemoryError as error: said = str(error)\nsaid")
        assert caught.value == "the host has no memory" if kind == "MemoryError" else not caught.ok
        assert session.run("raise MemoryError").error.kind == "memory"


def test_tool_is_called_as_a_plain_function(equipped: Session) -> None:
    assert equipped.run("twice(21)").value == 42
    assert equipped.run("twice(2, times=5, note='x')").value == 10
    assert equipped.run("[twice(n) for n in range(4)]").value == [0, 2, 4, 6]


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2.5, "text", b"bytes", [1, [2]], {"a": {"b": 1}}, (1, 2), {1, 2}, date(2026, 1, 2), Path("a/b")],
    ids=repr,
)
def test_values_cross_both_ways(equipped: Session, value: object) -> None:
    equipped["value"] = value
    assert equipped.run("echo(value, key=value)").value == [[value], {"key": value}]


def test_array_crosses_both_ways(equipped: Session) -> None:
    args, kwargs = equipped.run("import numpy as np\necho(np.arange(1000.0).reshape(10, 100))").value
    assert kwargs == {}
    np.testing.assert_array_equal(args[0], np.arange(1000.0).reshape(10, 100))


def test_what_is_not_portable_is_the_callers_error(equipped: Session) -> None:
    cell = equipped.run("echo(object())")
    assert cell.error is not None
    assert cell.error.type == "TypeError"
    assert cell.error.message.startswith("echo(): an argument cannot be passed to the host: ")


def test_result_that_is_not_portable_is_told(open_session: Callable[..., Session]) -> None:
    def give() -> object:
        return threading.Lock()

    cell = open_session(tools=[give]).run("give()")
    assert cell.error is not None
    assert cell.error.type == "TypeError"
    assert cell.error.message.startswith("give() returned what cannot be passed into a session: ")


def test_wrong_arguments_are_refused_before_the_call(equipped: Session) -> None:
    cell = equipped.run("twice()")
    assert cell.error is not None
    told = "twice() missing a required argument: 'number'", "twice(number: int, times: int = 2, *, note: str = '')"
    assert (cell.error.type, cell.error.message) == ("TypeError", "; it is ".join(told))
    assert "inspect" not in cell.error.traceback


@pytest.mark.parametrize(("kind", "caught"), [("value", "ValueError"), ("key", "KeyError"), ("os", "OSError")])
def test_exception_crosses_with_its_type_where_it_is_pythons(equipped: Session, kind: str, caught: str) -> None:
    assert equipped.run(f"try: fail({kind!r})\nexcept {caught} as error: shown = str(error)\nshown").ok


def test_exception_of_another_type_crosses_by_name(equipped: Session) -> None:
    cell = equipped.run("fail('own')")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message) == ("Unlucky", "of the host's own type")
    assert "fail('own')" in cell.error.traceback
    assert "worker" not in cell.error.traceback


def test_signature_documentation_and_annotations_show(equipped: Session) -> None:
    shown = equipped.run("help(twice)").text
    assert "twice(number: 'int', times: 'int' = 2, *, note: 'str' = '') -> 'int'" in shown
    assert "A number, several times over." in shown
    assert equipped.run("import inspect\ninspect.iscoroutinefunction(later), twice.__name__").value == (True, "twice")


@pytest.mark.alone
def test_async_tools_run_at_the_same_time(equipped: Session) -> None:
    began = time.monotonic()
    assert equipped.run("import asyncio\nawait asyncio.gather(*(later(n, 0.3) for n in range(5)))").value == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert time.monotonic() - began < 1.2


def test_threads_of_a_cell_call_at_the_same_time(open_session: Callable[..., Session]) -> None:
    here = threading.Barrier(4, timeout=10)

    def meet(number: int) -> int:
        here.wait()
        return number

    session = open_session(limits=LIMITS, tools=[meet])
    cell = session.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: found = list(pool.map(meet, range(4)))\nfound"
    )
    assert cell.value == [0, 1, 2, 3]


def test_tools_are_no_names_of_the_session_and_can_be_shadowed(equipped: Session) -> None:
    assert equipped.names() == {}
    assert equipped.run("def twice(n): return 'mine'\ntwice(1)").value == "mine"
    assert equipped.run("del twice\ntwice(1)").value == 2
    equipped.clear()
    assert equipped.run("twice(1)").value == 2


def test_tools_are_there_after_a_death_and_after_undo(equipped: Session) -> None:
    assert equipped.run("import os\nos._exit(1)").error is not None
    assert equipped.run("twice(1)").value == 2
    assert equipped.run("import os\nos._exit(1)").error is not None
    equipped.undo()
    assert equipped.run("twice(2)").value == 4


@pytest.mark.sampled(0)
def test_tool_that_hangs_is_cut_by_the_time_limit_and_costs_no_cpu(open_session: Callable[..., Session]) -> None:
    released = threading.Event()
    session = open_session(limits=ExecutionLimits(timeout_seconds=0.5), tools=[released.wait])
    session2 = open_session(limits=ExecutionLimits(timeout_seconds=0.5), tools=[_named(released)])
    cell = session2.run("hang()")
    released.set()
    assert cell.error is not None
    assert cell.error.kind == "timeout"
    assert cell.usage.cpu_ms < 400
    assert session2.run("hang()").value is True
    assert session.run("1").value == 1


def _named(event: threading.Event) -> Callable[[], bool]:
    def hang() -> bool:
        return event.wait(30)

    return hang


def test_call_is_told_as_it_happens(equipped: Session) -> None:
    events = list(equipped.stream("print('before')\nx = twice(4, note='n')\nprint('after', x)"))
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.name, call.args, call.kwargs) for call in calls] == [("twice", (4,), {"note": "n"})]
    assert isinstance(events[-1], Done)
    texts = [event.text for event in events if not isinstance(event, ToolCall | Done)]
    assert "".join(texts) == "before\nafter 8\n"


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", ["twice(1)", "asyncio.run(later(1))"])
def test_a_thread_calls_no_function_between_cells_and_takes_no_request(
    open_session: Callable[..., Session], call: str
) -> None:
    called: list[int] = []

    def twice(number: int) -> int:
        called.append(number)
        return 2 * number

    async def later(number: int) -> int:
        called.append(number)
        return number

    session = open_session(limits=LIMITS, tools=[twice, later])
    session.run(
        "import asyncio, threading, time\nfound = []\n"
        "def call(seconds=0.0):\n"
        "    time.sleep(seconds)\n"
        f"    try: found.append({call})\n"
        "    except Exception as error: found.append(str(error))\n"
        "    open('called', 'w').close()\n"
        "threading.Thread(target=call, args=(0.5,)).start()"
    )
    until = time.monotonic() + 20
    while "called" not in session.files.list():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert session.run("1 + 1").value == 2
    assert session.run("found").value == ["functions of the host can be called while a cell runs, and none does"]
    assert session.run("found.clear(); call(); found").value in ([2], [1])
    assert called == [1]


def test_call_of_a_thread_that_outlives_its_cell_ends(equipped: Session) -> None:
    equipped.run(
        "import threading, time\nfound = []\n"
        "def call():\n"
        "    time.sleep(0.3)\n"
        "    try: found.append(twice(1))\n"
        "    except Exception as error: found.append(str(error))\n"
        "thread = threading.Thread(target=call); thread.start()"
    )
    assert equipped.run("thread.join(5)\nthread.is_alive()").value is False


@pytest.mark.parametrize(
    ("tools", "error"),
    [
        ([lambda: 1], "cannot be the name of a tool"),
        ([twice, twice], "two tools are called 'twice'"),
        ([3], "a tool must be a function with a name"),
        (twice, "tools is a list of functions, not <function twice"),
    ],
    ids=["lambda", "twice", "number", "no list"],
)
def test_what_cannot_be_a_tool_is_refused_when_the_session_is_made(tools: object, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        Session(tools=tools)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_both_kinds_of_tool_work_on_an_event_loop() -> None:
    import anyio

    async def wait(seconds: float) -> float:
        await anyio.sleep(seconds)
        return seconds

    async with AsyncSession(limits=LIMITS, tools=[twice, wait]) as session:
        assert (await session.run("twice(2), await wait(0.01)")).value == (4, 0.01)


def test_slow_plain_tools_run_at_the_same_time_and_hold_no_event_loop(open_session: Callable[..., Session]) -> None:
    meeting = threading.Barrier(3, timeout=10)

    def meet(number: int) -> int:
        meeting.wait()
        return number

    async def tick() -> int:
        await asyncio.sleep(0)
        return meeting.n_waiting

    session = open_session(limits=LIMITS, tools=[meet, tick])
    cell = session.run(
        "import threading\nfound = []\n"
        "threads = [threading.Thread(target=lambda n=n: found.append(meet(n))) for n in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "while await tick() < 2: pass\n"
        "found.append(meet(2))\nfor thread in threads: thread.join()\nsorted(found)"
    )
    assert (cell.value, cell.error) == ([0, 1, 2], None)


def test_tool_sees_the_context_of_its_caller() -> None:
    import contextvars

    who = contextvars.ContextVar("who", default="nobody")

    def ask() -> str:
        return who.get()

    async def run() -> object:
        async with AsyncSession(limits=LIMITS, tools=[ask]) as session:
            who.set("somebody")
            return (await session.run("ask()")).value

    assert asyncio.run(run()) == "somebody"


def test_text_before_a_call_stands_before_it(equipped: Session) -> None:
    source = "import sys, os\nfor n in range(20):\n    print(n)\n    if n % 2: os.write(1, b'raw\\n')\n    twice(n)"
    told: list[object] = []
    for event in equipped.stream(source):
        if isinstance(event, ToolCall):
            told.append(event.args[0])
        elif not isinstance(event, Done):
            told += event.text.split()
    expected: list[object] = []
    for n in range(20):
        expected += [str(n), *(["raw"] if n % 2 else []), n]
    assert told == expected


@pytest.mark.sampled(0)
def test_session_with_tools_in_a_forked_program_has_threads_of_its_own(open_session: Callable[..., Session]) -> None:
    import os

    assert open_session(limits=LIMITS, tools=[twice]).run("twice(1)").value == 2
    child = os.fork()
    if not child:
        status = 1
        try:
            with Session(limits=LIMITS, tools=[twice]) as session:
                status = 0 if session.run("twice(2)").value == 4 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_arguments_are_large_or_cost_too_much_to_read(equipped: Session) -> None:
    """Large ones are read apart from the event loop; chosen keys are the caller's error, as what is malformed is."""
    assert equipped.run("len(echo(list(range(200_000)))[0][0])").value == 200_000
    size = 2**13
    build = f"""
place, chain, at = bytearray({size}), [], 1
def extend():
    global at
    place[at] = 1
    chain.append(at)
    at = (5 * at + 1) % {size}
while len(chain) < {size} // 2:
    extend()
keys, start = dict.fromkeys(chain), frozenset(chain[:{size} // 16])
for key in range({size}, {size} * 8):
    where, left = key % {size}, key
    while place[where] and left:
        left >>= 5
        where = (where * 5 + left + 1) % {size}
    if not left and where in start and len(keys) < {size} * 2 // 3:
        keys[key] = None
        extend()
"""
    equipped.run(build)
    refused = equipped.run("echo(keys)").error
    assert refused is not None
    assert refused.message == "echo(): malformed arguments: keys whose places in a table meet"


# ------------------------------------------------------------------------------ tools that use their own session

USES: dict[str, Callable[[Session], object]] = {
    "run": lambda session: session.run("1"),
    "run, without waiting": lambda session: session.run("1", wait=False),
    "stream": lambda session: list(session.stream("1")),
    "shell": lambda session: session.shell("true"),
    "undo": lambda session: session.undo(),
    "clear": lambda session: session.clear(),
    "names": lambda session: session.names(),
    "get": lambda session: session["x"],
    "set": lambda session: session.__setitem__("x", 1),
    "aside": lambda session: session.aside("1"),
    "hibernate": lambda session: session.hibernate(),
    "checkout": lambda session: session.checkout("HEAD"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("use", USES)
def test_tool_that_would_wait_for_its_own_cell_is_told_at_once(opened: Callable[..., Session], use: str) -> None:
    session = opened(tools=[_called("ask", lambda: USES[use](session))])
    cell = session.run("x = 1\nask()")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message) == (
        "SessionBusy",
        "ask() uses session 'one', a cell of which has called it and waits for it "
        "(return what the cell is to go on with, or use a branch or another session)",
    )
    assert session.run("x").value == 1


def _called(name: str, function: Callable[[], object]) -> Callable[[], object]:
    function.__name__ = name
    return function


@pytest.mark.sampled(0)
def test_what_needs_no_turn_works_in_a_tool_of_the_session_itself(opened: Callable[..., Session]) -> None:
    def ask() -> object:
        session.files.write("a", b"1")
        with session.branch() as branch:
            branch.run("x = 2")
        session.flush()
        return session.files.list(), session.files.read("a"), session.checkpoint(), len(session.log())

    session = opened(tools=[ask])
    session.run("x = 1")
    assert session.run("ask()[:2]").value == (["a"], b"1")
    assert session.run("x").value == 1


def test_tool_that_closes_its_own_session_ends_the_cell(open_session: Callable[..., Session]) -> None:
    session = open_session(tools=[_called("leave", lambda: session.close())])
    with pytest.raises(SessionClosed):
        session.run("leave()")


def test_tool_that_reaches_its_own_session_by_another_is_told_at_once(open_session: Callable[..., Session]) -> None:
    inner = open_session(tools=[_called("back", lambda: outer.run("1").value)], limits=LIMITS)
    outer = open_session(tools=[_called("ask", lambda: inner.run("back()").text)], limits=LIMITS)
    assert "SessionBusy: ask() uses the session, a cell of which" in str(outer.run("ask()").value)
    assert outer.run("1").ok


def test_thread_of_a_tool_that_carries_its_context_is_told_at_once(open_session: Callable[..., Session]) -> None:
    found: list[str] = []

    def follow() -> None:
        with pytest.raises(SessionBusy) as caught:
            session.run("1")
        found.append(str(caught.value))

    def ask() -> None:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(follow,))
        thread.start()
        thread.join()

    session = open_session(tools=[ask])
    assert session.run("ask()").ok
    assert found[0].startswith("ask() uses the session, a cell of which")


def test_what_a_tool_leaves_behind_may_use_the_session_after_the_cell(open_session: Callable[..., Session]) -> None:
    ended, values = threading.Event(), []

    def follow() -> None:
        ended.wait()
        values.append(session.run("2").value)

    def leave() -> None:
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(follow,)))
        threads[0].start()

    threads: list[threading.Thread] = []
    session = open_session(tools=[leave])
    assert session.run("leave()").ok
    ended.set()
    threads[0].join()
    assert values == [2]


def test_function_of_a_policy_at_local_that_uses_its_own_session_is_told_at_once() -> None:
    def ask() -> object:
        return session.run("1").value

    with Session(trust_level="local", policy=Policy().fn(ask), limits=LIMITS) as session:
        error = session.run("ask()").error
        assert error is not None
        assert error.message.startswith("a function of the policy uses the session")


@pytest.mark.anyio
async def test_async_tool_that_uses_its_own_session_is_told_at_once() -> None:
    async def ask() -> object:
        return (await session.run("1")).value

    async def gathered() -> object:
        return await asyncio.gather(session.names(), asyncio.to_thread(lambda: None))

    async with AsyncSession(tools=[ask, gathered], limits=LIMITS) as session:
        for name in ("ask", "gathered"):
            error = (await session.run(f"await {name}()")).error
            assert error is not None
            assert error.message.startswith(f"{name}() uses the session, a cell of which has called it")


# ------------------------------------------------------------------------------ whatever a tool raises


class Own(BaseException):
    """No Exception."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "error", [SystemExit(2), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), Own("so")], ids=repr
)
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_whatever_a_tool_raises_is_the_error_of_its_cell_alone(
    open_session: Callable[..., Session], error: BaseException, *, is_async: bool
) -> None:
    def plain() -> None:
        raise error

    async def awaited() -> None:
        raise error

    other, session = open_session(), open_session(tools=[plain, awaited])
    failure = session.run("await awaited()" if is_async else "plain()").error
    assert failure is not None
    said = f": {error}" if str(error) else ""
    name = "awaited" if is_async else "plain"
    assert (failure.type, failure.message) == ("RuntimeError", f"{name}() raised {type(error).__name__}{said}")
    assert (session.run("1").value, other.run("2").value, open_session().run("3").value) == (1, 2, 3)


def cancel(later: float | None) -> None:
    """Cancel the task that runs, as a library may, be it after so many seconds."""
    task = asyncio.current_task()
    assert task is not None
    if later is None:
        task.cancel()
    else:
        asyncio.get_running_loop().call_later(later, task.cancel)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("later", [None, 0.05])
@pytest.mark.parametrize("is_async", [False, True], ids=["Session", "AsyncSession"])
def test_cancelling_of_the_task_of_a_call_is_the_error_of_the_call(later: float | None, *, is_async: bool) -> None:
    async def cancelled() -> None:
        cancel(later)
        await asyncio.sleep(60)

    async def caught() -> int:
        try:
            await cancelled()
        except asyncio.CancelledError:
            return 1
        return 0

    tools, source = [cancelled, caught], "caught = await caught()\nawait cancelled()"

    async def run() -> tuple[Cell, Cell]:
        async with AsyncSession(tools=tools, limits=LIMITS) as session:
            return await session.run(source), await session.run("caught")

    if is_async:
        cell, after = asyncio.run(run())
    else:
        with Session(tools=tools, limits=LIMITS) as session:
            cell, after = session.run(source), session.run("caught")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message) == ("RuntimeError", "cancelled() raised CancelledError")
    assert after.value == 1


@pytest.mark.anyio
async def test_cancelling_of_the_wait_for_a_plain_function_is_the_error_of_its_call() -> None:
    begun, ended = threading.Event(), threading.Event()
    known: set[asyncio.Task[object]] = set()

    def waits() -> None:
        begun.set()
        ended.wait(30)

    async def cancel_others() -> None:
        while not begun.is_set():
            await asyncio.sleep(0.01)
        for task in asyncio.all_tasks() - known - {asyncio.current_task()}:
            task.cancel()

    async with AsyncSession(tools=[waits, cancel_others], limits=LIMITS) as session:
        await session.run("1")
        known |= asyncio.all_tasks()
        cell = await session.run(
            "import threading\n"
            "def call():\n"
            "    global said\n"
            "    try: waits()\n"
            "    except RuntimeError as error: said = str(error)\n"
            "thread = threading.Thread(target=call)\nthread.start()\nawait cancel_others()\nthread.join()\nsaid"
        )
        ended.set()
    assert (cell.value, cell.error) == ("waits() raised CancelledError", None)


@pytest.mark.anyio
async def test_exit_of_a_tool_leaves_an_async_host() -> None:
    def leave() -> None:
        sys.exit("enough")

    async with AsyncSession(tools=[leave], limits=LIMITS) as session:
        error = (await session.run("leave()")).error
        assert error is not None
        assert error.message == "leave() raised SystemExit: enough"
        assert (await session.run("1")).value == 1


@pytest.mark.anyio
@pytest.mark.threat("W11")
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
async def test_error_of_a_tool_is_read_beside_the_event_loop(*, is_async: bool) -> None:
    begun, ended = threading.Event(), threading.Event()

    class Slow(Exception):
        def __str__(self) -> str:
            begun.set()
            return "the loop went on" if ended.wait(20) else "the loop waited"

    def plain() -> None:
        raise Slow

    async def awaited() -> None:
        raise Slow

    async def look() -> None:
        while not begun.is_set():
            await asyncio.sleep(0.01)
        ended.set()

    async with AsyncSession(tools=[plain, awaited], limits=ExecutionLimits(timeout_seconds=60)) as session:
        looking = asyncio.create_task(look())
        error = (await session.run("await awaited()" if is_async else "plain()")).error
        await looking
    assert error is not None
    assert error.message == "the loop went on"


class Liar(type):
    """A metaclass that leaves when its classes are asked for their names."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit(7)


@pytest.mark.anyio
@pytest.mark.threat("L9")
@pytest.mark.parametrize("leaves", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Own])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
async def test_error_that_leaves_when_it_is_read_is_an_answer(leaves: type[BaseException], *, is_async: bool) -> None:
    class Leaving(Exception, metaclass=Liar):
        def __str__(self) -> str:
            raise leaves(7)

        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise leaves(7)

        args = __cause__ = __class__  # type: ignore[assignment]

    def plain() -> None:
        raise Leaving

    async def awaited() -> None:
        raise Leaving

    async with AsyncSession(tools=[plain, awaited], limits=LIMITS) as session:
        error = (await session.run("await awaited()" if is_async else "plain()")).error
        assert error is not None
        assert (error.type, error.message) == ("Leaving", "its message could not be read")
        assert (await session.run("1")).value == 1


@pytest.mark.threat("W11")
def test_error_of_many_parts_is_told_by_their_number(open_session: Callable[..., Session]) -> None:
    adapter = pydantic.TypeAdapter(list[int])

    def save(rows: list[int]) -> int:
        return len(adapter.validate_python(rows))

    error = open_session(tools=[save], limits=LIMITS).run("save(['x'] * 20_000)").error
    assert error is not None
    assert error.message == "20,000 validation errors for list[int]"


def test_task_of_a_tool_that_exits_leaves_the_loop_of_all_sessions(
    open_session: Callable[..., Session], caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        sys.exit("enough")

    async def scatter() -> None:
        await asyncio.gather(fail())

    async def stop() -> None:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)

    session = open_session(tools=[scatter, stop])
    error = session.run("await scatter()").error
    assert error is not None
    assert error.message == "scatter() raised SystemExit: enough"
    assert session.run("await stop()").ok
    assert [one.message for one in caplog.records] == ["a task of a tool ended the event loop"] * 2


_CALLS = """
import asyncio, os
calls = [asyncio.ensure_future(work(number)) for number in range(20)]
await asyncio.sleep(0)
"""


@pytest.mark.sampled(0)
@pytest.mark.threat("W11")
@pytest.mark.parametrize("end", ["killed by the host", "ends itself", "meets its time limit"])
def test_no_host_function_begins_once_its_cell_has_ended(end: str) -> None:
    begun: list[int] = []

    async def scenario() -> None:
        async def work(number: int) -> int:
            begun.append(number)
            if number == 0:
                time.sleep(0.3)  # the other calls have come by then, and wait for the loop
                if end == "killed by the host":
                    session.kill()
                time.sleep(1.2)
            return number

        limits = ExecutionLimits(timeout_seconds=1 if end == "meets its time limit" else 20)
        async with AsyncSession(tools=[work], limits=limits) as session:
            await session.run("1")
            last = "os._exit(1)" if end == "ends itself" else "await asyncio.gather(*calls)"
            cell = await session.run(_CALLS + last)
            assert not cell.ok
            assert (await session.run("2")).value == 2

    asyncio.run(scenario())
    assert begun == [0] or (not begun and end == "ends itself")


INVALID = "invalid start byte"


def undecodable() -> None:
    b"\xff".decode()


def grouped() -> None:
    raise ExceptionGroup("two failed", [ValueError("first"), TypeError("second")])


@pytest.mark.parametrize(
    ("tool", "name", "message", "caught"),
    [
        (undecodable, "UnicodeDecodeError", f"'utf-8' codec can't decode byte 0xff in position 0: {INVALID}", True),
        (grouped, "ExceptionGroup", "two failed (2 sub-exceptions)", False),
    ],
)
def test_exception_that_takes_more_than_a_message_keeps_its_name_and_message(
    tool: Callable[[], None], name: str, message: str, caught: bool
) -> None:
    with Session(tools=[tool]) as session:
        error = session.run(f"{tool.__name__}()").error
        assert error is not None
        assert (error.type.rpartition(".")[2], error.message) == (name, message)
        source = f"try: {tool.__name__}()\nexcept {name}: told = True\nexcept Exception: told = False\ntold"
        assert session.run(source).value is caught


@pytest.mark.sampled(0)
def test_any_number_of_calls_may_be_made_at_once(open_session: Callable[..., Session]) -> None:
    """The host takes some; the others wait for their turn, and those that are left by their callers take none."""

    async def twice(number: int) -> int:
        await asyncio.sleep(0.01)
        return number * 2

    session = open_session(tools=[twice])
    cell = session.run(
        "import asyncio\n"
        "left = [asyncio.ensure_future(twice(n)) for n in range(3000)]\n"
        "await asyncio.sleep(0.001)\n"
        "for one in left: one.cancel()\n"
        "sum(await asyncio.gather(*[twice(n) for n in range(3000)]))"
    )
    assert (cell.value, cell.error) == (2999 * 3000, None)


def test_tool_that_ends_an_iteration_is_told_by_name(open_session: Callable[..., Session]) -> None:
    def following() -> int:
        return next(iter(()))

    async def following_later() -> int:
        return next(iter(()))

    session = open_session(tools=[following, following_later])
    assert session.run("try: following()\nexcept StopIteration: caught = True\ncaught").value is True
    error = session.run("await following_later()").error
    assert error is not None
    assert (error.type, error.message) == ("RuntimeError", "following_later() raised StopIteration")


def test_tool_is_called_by_the_name_that_python_reads(open_session: Callable[..., Session]) -> None:
    def tool() -> int:
        return 1

    tool.__name__ = "\ufb01nd"
    assert open_session(tools=[tool]).run("\ufb01nd(), find()").value == (1, 1)
