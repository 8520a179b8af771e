"""Sessions at the level `local`: what the host and its cells share, who may stop a cell, and how a session ends."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import anyio
import pytest

from cellblock import (
    AsyncSession,
    Cell,
    CellblockError,
    CellState,
    Done,
    ExecutionLimits,
    Live,
    Output,
    Policy,
    Session,
    SessionBusy,
    SessionClosed,
    ToolCall,
    UnpicklableError,
)
from cellblock.executors.local.turn import LocalTurn

LOOP = "print('begun')\nwhile True: pass"


class Account:
    """A class that the host may grant."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance
        self.heard: list[object] = []

    def pay(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    def hear(self, thing: object) -> None:
        self.heard.append(thing)


class Holder:
    """A class that it does not."""

    def __init__(self, held: object) -> None:
        self.held = held


class Stubborn:
    def __deepcopy__(self, memo: object) -> object:
        raise RuntimeError("I am one")


@pytest.fixture
def open_local(open_session: Callable[..., Session]) -> Callable[..., Session]:
    """Opens sessions of this level."""
    return lambda **options: open_session(trust_level="local", **options)


@pytest.fixture
def local(open_local: Callable[..., Session]) -> Session:
    """A session with the whole of the audited standard library."""
    return open_local()


# ------------------------------------------------------------------------------------------------ S3: copies


@pytest.mark.threat("L8")
def test_what_cells_change_of_a_value_is_not_seen_by_the_host(local: Session) -> None:
    ours = {"rows": [[1], {2}, bytearray(b"3")], "n": 4}
    local["x"] = ours
    local.run("x['rows'][0].append(0); x['rows'][1].add(0); x['rows'][2].append(0); x['n'] = 0; x['new'] = 0")
    assert ours == {"rows": [[1], {2}, bytearray(b"3")], "n": 4}


def test_what_the_host_changes_of_a_value_is_not_seen_by_cells(local: Session) -> None:
    ours = {"rows": [[1]]}
    local["x"] = ours
    ours["rows"][0].append(2)
    assert local.run("x").value == {"rows": [[1]]}


def test_what_comes_out_is_a_copy_each_time(local: Session) -> None:
    cell = local.run("x = [[1]]\nx")
    for got in (cell.value, local["x"]):
        assert got == [[1]]
        got[0].append(2)  # type: ignore[index]
    assert local.run("x").value == local["x"] == [[1]]
    local.run("x[0].append(3)")
    assert cell.value == [[1, 2]]  # the host's, from here on


def test_identity_within_one_value_is_kept(local: Session) -> None:
    shared: list[int] = []
    local["x"] = (shared, shared)
    assert local.run("x[0] is x[1]").value is True


def test_objects_of_granted_classes_stay_live_wherever_they_are_held(open_local: Callable[..., Session]) -> None:
    session = open_local(policy=Policy().cls(Account))
    account, rows = Account(1), [1]
    session["account"], session["accounts"] = account, {"a": [account], "rows": rows}
    session["holder"] = Holder([account])
    assert session.run("account is accounts['a'][0], account.pay(5)").value == (True, 6)
    assert account.balance == 6
    account.pay(1)
    assert session.run("account.balance").value == 7
    session.run("accounts['rows'].append(2); accounts['a'].append(3)")
    assert rows == [1]
    assert session._session._kernel._runner.world.globals["holder"].held[0] is account  # type: ignore[union-attr]


def test_object_of_a_class_that_was_not_granted_is_a_copy_and_opaque_to_cells(local: Session) -> None:
    account = Account(1)
    local["account"] = account
    assert local._session._kernel._runner.world.globals["account"] is not account  # type: ignore[union-attr]
    error = local.run("account.pay(1)").error
    assert error is not None
    assert error.kind == "refused"
    assert account.balance == 1


def test_heirs_of_a_granted_class_stay_live_as_far_as_it_was_granted(open_local: Callable[..., Session]) -> None:
    class Heir(Account):
        def own(self) -> int:
            return self.pay(100)

    session = open_local(policy=Policy().cls(Account, include=["pay"]))
    heir = Heir(1)
    session["heir"] = [heir]
    assert session.run("heir[0].pay(1)").value == heir.balance == 2
    assert session.run("heir[0].own()").error is not None
    assert heir.balance == 2


class Ledger:
    """Grants of it leave out `inner`, `sealed` and `total`."""

    rows: ClassVar = ["opened"]
    total: ClassVar = 7

    def name(self) -> str:
        return "the ledger"

    def inner(self) -> str:
        return "not for cells"

    @property
    def sealed(self) -> str:
        return "not for cells"


@pytest.mark.threat("L1")
@pytest.mark.parametrize(
    "source",
    [
        "Ledger().inner()",
        "Ledger().sealed",
        "Ledger.total",
        "Ledger.inner(Ledger())",
        "getattr(Ledger(), 'in' + 'ner')()",
        "class Mine(Ledger): pass\nMine().inner()",
        "class Mine(Ledger):\n    def go(self): return self.sealed\nMine().go()",
        "class Mine(Ledger):\n    def go(self): return super().inner()\nMine().go()",
        "class Mine(Ledger):\n    def go(self): return super().sealed\nMine().go()",
        "class Mine(Ledger):\n    @classmethod\n    def go(cls): return super().total\nMine.go()",
        "Ledger.__dict__['rows'].append('forged')",
        "match Ledger():\n    case Ledger(sealed=found): found",
    ],
)
def test_what_the_grant_of_a_class_leaves_out_is_reached_by_no_way(
    open_local: Callable[..., Session], source: str
) -> None:
    policy = Policy().cls(Ledger, exclude=["inner", "sealed", "total"], subclassable=True)
    session = open_local(policy=policy)
    granted = "class Mine(Ledger):\n    def go(self): return super().name()\nMine().go()"
    assert session.run(granted).value == "the ledger"
    error = session.run(source).error
    assert error is not None
    assert (error.kind, Ledger.rows) == ("refused", ["opened"])


@pytest.mark.threat("L3")
def test_class_is_inherited_from_where_its_grant_says_so(open_local: Callable[..., Session]) -> None:
    source = "class Mine(Ledger): pass\nMine().name()"
    error = open_local(policy=Policy().cls(Ledger)).run(source).error
    assert error is not None
    assert (error.kind, error.message) == ("refused", "Ledger cannot be inherited from [class]")
    assert open_local(policy=Policy().cls(Ledger, subclassable=True)).run(source).value == "the ledger"


@pytest.mark.threat("L1")
def test_dir_and_help_show_what_is_granted_and_no_more(open_local: Callable[..., Session]) -> None:
    session = open_local(policy=Policy().cls(Ledger, exclude=["inner", "sealed", "total"]))
    shown = session.run("[name for name in dir(Ledger()) if not name.startswith('_')]").value
    assert shown == ["name", "rows"]
    assert session.run("help(Ledger())").text.splitlines()[-1] == "name, rows"


@pytest.mark.threat("L4")
@pytest.mark.parametrize(
    "source",
    [
        "from statistics import median",
        "from statistics import mode",
        "import statistics\nstatistics.median([1])",
        "import statistics\ngetattr(statistics, 'me' + 'dian')([1])",
        "import statistics\nvars(statistics)['median']([1])",
    ],
)
def test_what_the_grant_of_a_module_leaves_out_is_no_member_of_it(
    open_local: Callable[..., Session], source: str
) -> None:
    session = open_local(policy=Policy().module(statistics, include=["me*"], exclude=["median"]))
    assert session.run("import statistics\nstatistics.mean([1, 2])").value == 1.5
    assert session.run(source).error is not None


@pytest.mark.threat("L1")
@pytest.mark.parametrize("source", ["'{0[a]}'.format({'a': 1})", "'{d[a]}'.format_map({'d': {'a': 1}})"])
def test_indices_in_format_strings_are_up_to_the_policy(open_local: Callable[..., Session], source: str) -> None:
    assert open_local().run(source).value == "1"
    error = open_local(policy=Policy(format_index=False)).run(source).error
    assert error is not None
    assert (error.kind, error.message) == ("refused", "Format string index access not allowed [format]")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (len, "the function len is the host's.*policy.fn"),
        ([{"f": test_identity_within_one_value_is_kept}], "the function test_identity.*policy.fn"),
        (Account(1).pay, "the function pay.*policy.fn"),
        (math, "the module math is the host's.*policy.module"),
        ((Account,), "the class Account is the host's.*policy.cls"),
        (threading.Lock(), "cannot be copied into the session.*policy.cls"),
        (Stubborn(), "I am one.*policy.cls"),
        ((n for n in range(3)), "cannot be copied into the session.*policy.cls"),
    ],
)
def test_what_no_copy_can_be_made_of_is_refused_with_what_to_do(local: Session, value: object, what: str) -> None:
    with pytest.raises(UnpicklableError, match=what):
        local["x"] = value
    assert local.names() == {}


def test_nothing_is_pickled_on_the_way_in_or_out(local: Session) -> None:
    class Unpicklable:
        def __reduce__(self) -> str:
            raise AssertionError("pickled")

        def __deepcopy__(self, memo: object) -> Unpicklable:
            return Unpicklable()

    heard: list[str] = []
    listening = [True]
    sys.addaudithook(lambda event, _: heard.append(event) if listening and event.startswith("pickle") else None)
    local["x"], local["y"] = Unpicklable(), [1]
    local.run("y.append(2)\ny")
    assert local["y"] == [1, 2]
    listening.clear()
    assert heard == []
    assert "cellblock.worker.copies" not in _modules_of_a_local_session()


def _modules_of_a_local_session() -> set[str]:
    program = (
        "import sys\nfrom cellblock import Session\n"
        "with Session(trust_level='local') as session:\n    session['x'] = [1]\n    session.run('x').value\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    return set(done.stdout.split())


# -------------------------------------------------------------------------------------------------- N9: state


def test_live_state_keeps_whatever_names_hold_until_the_session_is_closed(open_local: Callable[..., Session]) -> None:
    session = open_local(state=Live())
    session.run("numbers = (n for n in range(9)); next(numbers)\ndouble = lambda n: 2 * n")
    assert session.run("double(next(numbers))").value == 2
    assert session.run("del double\nnext(numbers)").value == 2


def test_state_none_remembers_nothing_of_a_cell(open_local: Callable[..., Session]) -> None:
    session = open_local(state=None)
    session["x"] = 1
    assert session.run("from __future__ import annotations\ny = x + 1\ny").value == 2
    assert session.names() == {}
    for source in ("x", "y"):
        error = session.run(source).error
        assert error is not None
        assert error.type == "NameError"
    assert session.run("z = 1\n1/0").error is not None
    assert session.names() == {}
    assert len(session.notebook) == 4


def test_other_states_are_refused(open_session: Callable[..., Session]) -> None:
    with pytest.raises(CellblockError, match="state=None is for trust_level='local'"):
        open_session(state=None)
    with pytest.raises(TypeError, match=r"state must be Versioned\(\), Live\(\) or None, not str"):
        open_session(trust_level="local", state="live")


# ------------------------------------------------------------------------------------------------------ tools


def fail(kind: str) -> None:
    """Raises an exception of that name."""
    raise {"ValueError": ValueError, "KeyError": KeyError, "Own": type("Own", (Exception,), {})}[kind]("no")


def echo(*args: object, **kwargs: object) -> list[object]:
    return [list(args), kwargs]


async def later(number: int, seconds: float = 0.0) -> int:
    """The number, a little later."""
    await asyncio.sleep(seconds)
    return number


@pytest.fixture
def equipped(open_local: Callable[..., Session]) -> Session:
    return open_local(tools=[echo, fail, later])


def test_tools_take_and_give_structured_copies(equipped: Session) -> None:
    kept: list[list[object]] = []

    assert equipped.run("echo(1, [2.5, {'k': (b'b', None)}], {3, 4}, a={'x': True})").value == [
        [1, [2.5, {"k": (b"b", None)}], {3, 4}],
        {"a": {"x": True}},
    ]
    equipped.run("rows = [1]\nback = echo(rows)\nback[0][0].append(2)")
    assert equipped["rows"] == [1]
    assert kept == []


@pytest.mark.parametrize(
    ("kind", "caught"), [("ValueError", "ValueError"), ("KeyError", "KeyError"), ("Own", "Exception")]
)
def test_errors_of_tools_are_the_cells_to_catch(equipped: Session, kind: str, caught: str) -> None:
    source = f"try: fail({kind!r})\nexcept {caught} as e: got = type(e).__name__ + str(e)\ngot"
    assert "no" in str(equipped.run(source).value)
    error = equipped.run(f"fail({kind!r})").error
    assert error is not None
    assert error.type.endswith(kind)
    assert "tools.py" not in error.traceback


def test_what_is_not_portable_is_no_argument_of_a_tool(equipped: Session) -> None:
    error = equipped.run("echo(lambda: 1)").error
    assert error is not None
    assert "cannot be passed to the host" in error.message


@pytest.mark.alone
def test_async_tools_run_at_the_same_time(equipped: Session) -> None:
    began = time.monotonic()
    source = "import asyncio\nawait asyncio.gather(*[later(n, 0.3) for n in range(5)])"
    assert equipped.run(source).value == [0, 1, 2, 3, 4]
    assert time.monotonic() - began < 1.2


def test_calls_are_told_as_they_happen(equipped: Session) -> None:
    events = list(equipped.stream("print('a')\necho(1)\nprint(await later(2))"))
    told = [
        (type(event), getattr(event, "text", getattr(event, "name", "")))
        for event in events
        if isinstance(event, Output | ToolCall)
    ]
    assert told == [(Output, "a\n"), (ToolCall, "echo"), (ToolCall, "later"), (Output, "2\n")]
    assert isinstance(events[-1], Done)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", ["hang()", "import asyncio\nawait asyncio.sleep(60)", "await hang_async()"])
def test_waiting_for_a_tool_or_a_timer_ends_at_the_time_limit(open_local: Callable[..., Session], source: str) -> None:
    released = threading.Event()

    def hang() -> None:
        released.wait(30)

    async def hang_async() -> None:
        await asyncio.sleep(30)

    session = open_local(tools=[hang, hang_async], limits=ExecutionLimits(timeout_seconds=0.4))
    session.run("kept = 1")
    began = time.monotonic()
    error = session.run(source).error
    assert error is not None
    assert error.kind == "timeout"
    assert time.monotonic() - began < 3
    released.set()
    assert session["kept"] == 1
    assert session.run("kept + 1").value == 2


def test_tools_are_there_after_a_kill_and_a_recovery(equipped: Session) -> None:
    equipped.kill()
    equipped.run("1")
    assert equipped.run("echo(1)").value == [[1], {}]


def test_tools_are_no_names_of_the_session_and_can_be_shadowed(equipped: Session) -> None:
    assert equipped.names() == {}
    assert equipped.run("echo = 1\necho").value == 1
    assert equipped.run("del echo\necho()").value == [[], {}]


# ------------------------------------------------------------------------------------------- stopping a cell


def running(session: Session, source: str = LOOP) -> tuple[threading.Thread, list[Cell]]:
    """A thread in which a cell has begun, and where it ends up."""
    cells: list[Cell] = []
    begun = threading.Event()

    def follow() -> None:
        for event in session.stream(source):
            if isinstance(event, Output):
                begun.set()
            elif isinstance(event, Done):
                cells.append(event.cell)

    thread = threading.Thread(target=follow)
    thread.start()
    assert begun.wait(20)
    return thread, cells


@pytest.mark.threat("L7")
@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    try: spin()\n    except BaseException: pass",
        "while True:\n    try: spin()\n    except: pass",
        "while True:\n    try: spin()\n    finally: continue",
        "while True:\n    try:\n        try: spin()\n        finally: raise ValueError\n    except ValueError: pass",
    ],
)
def test_no_handler_takes_what_ends_a_cell(open_local: Callable[..., Session], source: str) -> None:
    session = open_local(limits=ExecutionLimits(timeout_seconds=0.3))
    cell = session.run(f"def spin():\n    while True: pass\n{source}")
    assert (cell.state, cell.rolled_back) == (CellState.TIMEOUT, False)
    assert session.run("callable(spin)").value is True


def test_interrupt_ends_the_cell_and_keeps_names(local: Session) -> None:
    thread, cells = running(local, "x = 1\n" + LOOP)
    local.interrupt()
    thread.join(20)
    assert cells[0].error is not None
    assert (cells[0].error.type, cells[0].error.kind) == ("KeyboardInterrupt", "raised")
    assert local["x"] == 1


def test_interrupt_between_cells_is_nothing(local: Session) -> None:
    local.interrupt()
    assert local.run("sum(range(1000))").value == 499500


def test_kill_ends_the_cell_and_says_what_is_lost(local: Session) -> None:
    local.run("x = 1")
    thread, cells = running(local)
    local.kill()
    thread.join(20)
    assert cells[0].error is not None
    assert cells[0].error.kind == "crashed"
    assert [loss.name for loss in cells[0].lost] == ["x"]
    assert local.names() == {}
    assert local.run("1 + 1").value == 2


_CTRL_C = """
import os, signal, sys, threading
from cellblock import Session
with Session(trust_level="local") as session:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        session.run("x = 1\\nwhile True: pass")
    except KeyboardInterrupt:
        print("interrupted", session["x"], session.run("x + 1").value)
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_ctrl_c_interrupts_the_cell_and_raises_in_the_host() -> None:
    done = subprocess.run([sys.executable, "-c", _CTRL_C], capture_output=True, text=True, timeout=60, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "interrupted 1 2\nTrue\n"), done.stderr


@pytest.mark.anyio
async def test_cancelled_run_ends_its_cell_and_the_session_goes_on() -> None:
    async with AsyncSession(trust_level="local") as session:
        await session.run("x = 1")
        with anyio.move_on_after(0.3) as scope:
            await session.run("while True: pass")
        assert scope.cancelled_caught
        assert (await session.run("x")).value == 1


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_event_loop_goes_on_while_a_cell_runs() -> None:
    async with AsyncSession(trust_level="local", limits=ExecutionLimits(timeout_seconds=1)) as session:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await anyio.sleep(0.01)
                ticks += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            cell = await session.run("while True: pass")
            tasks.cancel_scope.cancel()
        assert cell.error is not None
        assert cell.error.kind == "timeout"
        assert ticks > 10


def test_two_sessions_in_two_threads_keep_apart(open_local: Callable[..., Session]) -> None:
    source = (
        "import asyncio\nfor n in range(200):\n    own.append(n)\n    print(me, n)\nawait asyncio.sleep(0)\nlen(own)"
    )
    cells: dict[int, Cell] = {}

    def work(number: int, session: Session) -> None:
        session["me"], session["own"] = number, []
        cells[number] = session.run(source)

    sessions = [open_local() for _ in range(4)]
    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for number, cell in cells.items():
        assert cell.value == 200
        assert cell.outputs[0].text == "".join(f"{number} {n}\n" for n in range(200))
    assert len(cells) == 4


def test_end_of_one_cell_touches_no_other_session(open_local: Callable[..., Session]) -> None:
    one, two = open_local(), open_local()
    thread, cells = running(one)
    other, others = running(two, "print('begun')\nfor n in range(3_000_000): pass\nn")
    one.interrupt()
    thread.join(20)
    other.join(60)
    assert cells[0].error is not None
    assert others[0].value == 2_999_999


def test_one_session_in_two_threads_takes_turns(local: Session) -> None:
    thread, cells = running(local, "print('begun')\nimport asyncio\nawait asyncio.sleep(0.3)\nx = 1\nx")
    with pytest.raises(SessionBusy):
        local.run("x", wait=False)
    assert local.run("x + 1").value == 2
    thread.join(20)
    assert cells[0].value == 1


# -------------------------------------------------------------------------------------------- ends of sessions


def cellblock_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("cellblock-local")}


def gone(threads: set[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(5)
    return not any(thread.is_alive() for thread in threads)


def test_close_ends_the_running_cell_and_its_thread(open_local: Callable[..., Session]) -> None:
    before = cellblock_threads()
    session = open_local()
    ended: list[BaseException] = []

    def follow() -> None:
        try:
            session.run("while True: pass")
        except SessionClosed as error:
            ended.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)
    session.close()
    thread.join(20)
    assert not thread.is_alive()
    assert gone(cellblock_threads() - before)
    with pytest.raises(SessionClosed):
        session.run("1")


def test_closed_sessions_leave_no_thread_and_no_descriptor(open_local: Callable[..., Session]) -> None:
    def use() -> None:
        session = open_local()
        session.run("import asyncio\nawait asyncio.sleep(0)")
        session.close()

    use()
    gc.collect()
    before, descriptors = cellblock_threads(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        use()
    assert cellblock_threads() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.fixture
def unheard() -> Iterator[list[Any]]:
    """What finalizers warn of, which pytest would take for errors of the test."""
    import warnings

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield told


def test_session_that_is_dropped_without_close_ends_its_thread_and_says_so(unheard: list[Any]) -> None:
    before = cellblock_threads()
    session = Session(trust_level="local")
    session.run("import asyncio\nx = [1]\nawait asyncio.sleep(0)")
    mine = cellblock_threads() - before
    assert len(mine) == 1
    del session
    gc.collect()
    assert gone(mine)
    assert [str(one.message) for one in unheard if one.category is ResourceWarning] == ["a session was not closed"]


def test_session_that_is_dropped_while_its_thread_is_late_ends_it(
    unheard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told, goes_on = LocalTurn.tell, threading.Event()

    def late(turn: LocalTurn, event: Any) -> None:
        told(turn, event)
        goes_on.wait()

    monkeypatch.setattr(LocalTurn, "tell", late)
    before = cellblock_threads()
    session = Session(trust_level="local")
    session.run("x = [1]")
    mine = cellblock_threads() - before
    del session
    gc.collect()
    goes_on.set()
    assert gone(mine)
    assert [one.category for one in unheard] == [ResourceWarning]


def test_forked_copy_of_the_host_has_no_local_session(local: Session) -> None:
    local.run("x = 1")
    child = os.fork()
    if child == 0:
        try:
            local._session._living()
        except SessionClosed:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_signal_handlers_of_the_host_are_never_touched(local: Session) -> None:
    handlers = [signal.getsignal(number) for number in range(1, 32)]
    thread, _ = running(local)
    assert [signal.getsignal(number) for number in range(1, 32)] == handlers
    local.interrupt()
    thread.join(20)
    assert [signal.getsignal(number) for number in range(1, 32)] == handlers


@pytest.mark.sampled(0)
def test_a_call_that_cannot_be_ended_is_left_a_second_after_the_limit_and_the_session_is_dead() -> None:
    def wait(seconds: float) -> None:
        time.sleep(seconds)

    limits = ExecutionLimits(timeout_seconds=0.3)
    with Session(trust_level="local", policy=Policy().fn(wait), limits=limits) as session:
        began = time.monotonic()
        cell = session.run("wait(6)")
        assert time.monotonic() - began < 5
        assert cell.error is not None
        assert (cell.state, cell.error.kind) == (CellState.TIMEOUT, "timeout")
        assert "the session is dead" in cell.error.hint
        with pytest.raises(SessionClosed, match="the session is dead"):
            session.run("1")


def test_clear_leaves_no_value_of_before() -> None:
    with Session(trust_level="local") as session:
        session.run("secret: str = 'kept'\nsecret")
        session.clear()
        assert session.run("_").error.type == "NameError"  # type: ignore[union-attr]
        assert session.run("other: str = 'x'\nlist(__annotations__)").value == ["other"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("seconds", [0.05, pytest.param(0.02, marks=pytest.mark.slow), 0.3])
def test_import_that_meets_the_limit_leaves_the_library_whole_for_the_program(seconds: float) -> None:
    program = f"""
from cellblock import *
policy, limits = Policy(trusted=["numpy", "pandas"]), ExecutionLimits(timeout_seconds={seconds})
with Session(trust_level="local", policy=policy, limits=limits) as session:
    print(session.run("import numpy, pandas\\nwhile True: pass").state.value)
    import numpy, pandas
    print(int(pandas.DataFrame({{"a": numpy.arange(3)}}).a.sum()))
    while (cell := session.run("import numpy\\nint(numpy.arange(3).sum())")).state.value == "timeout":
        pass  # on a busy machine
    print(cell.value)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("timeout\n3\n3\n", "")
