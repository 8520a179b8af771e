"""What a session makes its host hold is bounded: old outputs make room, and a cell that goes on filling ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from cellblock import Cell, ExecutionLimits, Opaque, OutputType, Session, Versioned
from cellblock.errors import CaptureFailed
from cellblock.wire import connection, frames
from cellblock.wire.messages import Request, ToolReply

MB = 2**20
BIG = "class Big:\n    def _repr_html_(self): return 'x' * 190_000"
LIMITS = ExecutionLimits(max_host_mb=16, timeout_seconds=20)
FULL = (
    "memory",
    "MemoryError",
    "the session had the program around it hold more than 16 MB",
    "show, return and pass less at a time, or raise ExecutionLimits(max_host_mb=…)",
)


def error_of(cell: Cell) -> tuple[str, str, str, str] | None:
    if cell.error is None:
        return None
    hint = cell.error.hint.partition(";")[0]  # one that had to be killed says what is left besides
    return cell.error.kind, cell.error.type, cell.error.message, hint


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    async def waits(what: object) -> int:
        await asyncio.sleep(20)
        return 0

    def count(what: object) -> int:
        return len(what)  # type: ignore[arg-type]

    def blank(megabytes: int) -> bytes:
        return bytes(megabytes * MB)

    return open_session(limits=LIMITS, tools=[waits, count, blank])


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "what",
    ["bytes(3 << 20)", "[[]] * 40_000", "'x' * 200_000"],
    ids=["large buffers", "many small objects", "text"],
)
def test_arguments_of_calls_under_way_end_the_cell_past_the_limit(session: Session, what: str) -> None:
    cell = session.run(f"import asyncio\nwhat = {what}\nawait asyncio.gather(*[waits(what) for _ in range(500)])")
    assert error_of(cell) == FULL
    assert session.run("what = 1; what").value == 1


USES: dict[str, Callable[[Session], object]] = {
    "run": lambda session: session.run("y = '" + "x" * 200_000 + "'"),
    "shell": lambda session: session.shell("true # " + "x" * 100_000),
    "bind": lambda session: session.__setitem__("y", "x" * 200_000),
    "get": lambda session: session["x"],
    "names": lambda session: session.names(),
    "clear": lambda session: session.clear(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("use", USES)
def test_session_goes_on_where_its_program_lacked_memory_for_a_request(
    session: Session, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    def lack(*_: object) -> None:
        raise MemoryError

    session.run("x = 1")
    session.run("x = 2")
    session.names()
    with monkeypatch.context() as patched:
        patched.setattr("cellblock.wire.connection.encode_request", lack)
        with pytest.raises(MemoryError):
            USES[use](session)
    assert sorted(session.names()) == ["x"]
    died = session.run("import os\nos._exit(3)")
    assert (died.rolled_back, died.lost) == (True, ())
    assert (session.run("x").value, session["x"]) == (2, 2)
    session.undo(2)
    assert session["x"] == 1


@pytest.mark.sampled(0)
def test_session_goes_on_where_its_program_lacked_memory_in_the_middle_of_a_request(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = frames._cut

    def lack(parts: Sequence[frames.Buffer]) -> Iterator[bytes]:
        yield next(iter(cut(parts)))
        raise MemoryError

    session.run("x = 1")
    session.names()
    with monkeypatch.context() as patched:
        patched.setattr(frames, "_cut", lack)
        with pytest.raises(MemoryError):
            session.run("x = 2 #" + "x" * 200_000)
    assert [session.run("x").value for _ in range(2)] == [1, 1]


def test_answer_that_its_program_lacked_memory_to_send_is_an_error_of_the_call(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = connection.encode_request

    def lack(request: Request, number: int) -> frames.Frame:
        if isinstance(request, ToolReply) and request.error is None:
            raise MemoryError("none is left")
        return encode(request, number)

    with monkeypatch.context() as patched:
        patched.setattr(connection, "encode_request", lack)
        error = session.run("count('x')").error
    assert error is not None
    assert (error.type, error.message) == ("MemoryError", "none is left")
    assert session.run("count('x')").value == 1


@pytest.mark.sampled(0)
def test_arguments_that_were_answered_are_held_no_more(session: Session) -> None:
    assert session.run("sum(count(bytes(3 << 20)) for _ in range(20))").value == 60 * MB
    assert session.run("sum(len(blank(3)) for _ in range(20))").value == 60 * MB


def test_call_that_fits_in_no_case_ends_its_cell(session: Session) -> None:
    assert error_of(session.run("count(bytes(20 << 20))")) == FULL
    assert session.run("count(bytes(2 << 20))").value == 2 * MB


@pytest.mark.sampled(0)
def test_displays_of_one_cell_end_it_past_the_limit(session: Session) -> None:
    cell = session.run(f"{BIG}\nfor n in range(200): display(Big())")
    assert error_of(cell) == FULL
    assert 30 < len(cell.outputs) < 100


@pytest.mark.sampled(0)
def test_outputs_of_the_oldest_cells_are_dropped_and_named(session: Session) -> None:
    cells = [session.run(f"{BIG}\ndisplay(Big())\n'a value'") for _ in range(100)]
    assert all(cell.ok and cell.outputs[0].data["text/html"] == "x" * 190_000 for cell in cells)
    first, last = session.notebook[0], session.notebook[-1]
    assert [(one.type, one.stream) for one in first.outputs] == [(OutputType.TEXT, "stderr")]
    assert first.outputs[0].text.startswith("[2 outputs dropped, ")
    assert first.outputs[0].text.endswith(
        " bytes: the outputs and values of the oldest cells make room for newer ones (ExecutionLimits.max_host_mb)]\n"
    )
    assert last == cells[-1]


@pytest.mark.sampled(0)
def test_value_counts_as_what_it_is_once_it_was_read(session: Session) -> None:
    cells = [session.run("[[] for _ in range(50_000)]") for _ in range(10)]
    assert session.notebook[0].value == [[]] * 50_000  # 200 kB in all ten as they came
    for cell in cells:
        assert cell.value == [[]] * 50_000
    session.run("1")
    assert session.notebook[0].value == Opaque(
        "dropped", "the outputs and values of the oldest cells make room for newer ones (ExecutionLimits.max_host_mb)"
    )
    assert cells[0].value == [[]] * 50_000
    assert session.notebook[-2].value == [[]] * 50_000


def test_what_the_caller_asks_for_is_given(session: Session) -> None:
    session.run("x = bytes(30 << 20)")
    assert session["x"] == bytes(30 * MB)
    assert session.run("x").value == bytes(30 * MB)
    session.files.write("large", bytes(30 * MB))
    assert session.files.read("large") == bytes(30 * MB)


@pytest.mark.sampled(0)
def test_answers_that_wait_for_a_commit_end_the_cell_past_the_limit(
    open_session: Callable[..., Session], url: str
) -> None:
    def shout(text: str) -> str:
        return text.upper()

    session = open_session(name="x", state=Versioned(url), tools=[shout], limits=LIMITS)
    assert error_of(session.run("for _ in range(200): shout('x' * 200_000)")) == FULL
    assert session.run("for _ in range(5): shout('x' * 200_000)").ok
    session.flush()
    assert session.run("for _ in range(5): shout('x' * 200_000)").ok


@pytest.mark.sampled(0)
def test_description_of_the_saved_state_counts_and_is_not_kept_past_the_limit(
    open_session: Callable[..., Session], url: str
) -> None:
    many = "for n in range({}): globals()[f'name_{{n}}'] = [n]"
    with open_session(name="x", state=Versioned(url), limits=LIMITS) as session:
        session.run("x = 1")
        session.flush()
        before = session._session._account.held
        session.run(many.format(1000))
        session.flush()
        assert session._session._account.held > before + 1000 * 1000
        session.run(many.format(10_000))
        with pytest.raises(CaptureFailed, match="what describes its state takes more than 16 MB"):
            session.flush()
        assert session.run("del n\nfor one in [*globals()]:\n    if one.startswith('name_'): del globals()[one]").ok
        session.flush()
        assert session._session._account.held < before + 1000 * 1000
    with open_session(name="x", state=Versioned(url), limits=LIMITS) as session:
        assert session.run("x").value == 1


FLOODS = {
    "tiny chunks": "whole(b''.join(struct.pack('<cII', b'C', 4, n) for n in range(100_000)))",
    "a long index": "whole(struct.pack('<cI', b'I', 30 << 20)); time.sleep(1000)",
    "a long record": "whole(struct.pack('<cI', b'I', 0) + struct.pack('<cI', b'R', 30 << 20)); time.sleep(1000)",
}
FLOOD = """
import os, struct, time
def is_open(one):
    try: os.fstat(one)
    except OSError: return False
    return True
def whole(data):
    ours, view = next(filter(is_open, range(3, 256))), memoryview(data)
    while view: view = view[os.write(ours, view):]
class Flood:
    def __reduce__(self):
        %s
        return int, (1,)
flood = Flood()
"""


@pytest.mark.sampled(0)
@pytest.mark.hostile
@pytest.mark.threat("W7")
@pytest.mark.parametrize("what", FLOODS)
def test_whatever_a_value_sends_while_it_is_saved_counts_before_it_is_held(
    open_session: Callable[..., Session], url: str, what: str
) -> None:
    with open_session(name="x", state=Versioned(url), limits=LIMITS) as session:
        assert session.run("x = 1").ok
        session.flush()
        before = session._session._account.held
        assert session.run(FLOOD % FLOODS[what]).ok
        with pytest.raises(CaptureFailed, match="what describes its state takes more than 16 MB"):
            session.flush()
        assert session._session._account.held < before + MB
        assert session.run("del flood").ok
        session.flush()
    with open_session(name="x", state=Versioned(url), limits=LIMITS) as session:
        assert session.run("x").value == 1


@pytest.mark.sampled(0)
def test_call_of_a_plain_function_that_has_not_begun_when_its_cell_ends_never_does(
    open_session: Callable[..., Session],
) -> None:
    began: list[int] = []
    freed = threading.Event()

    def work(number: int) -> int:
        began.append(number)
        freed.wait(20)
        return number

    def quick(number: int) -> int:
        time.sleep(0.005)
        return number

    flood = open_session(tools=[work], limits=ExecutionLimits(timeout_seconds=1))
    beside = open_session(tools=[quick])
    cell = "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(110).map(work, range(110)))"
    ended = threading.Thread(target=flood.run, args=(cell,))
    ended.start()
    while len(began) < 40:
        time.sleep(0.01)
    assert beside.run("quick(1)").value == 1  # while every thread of the other's waits
    ended.join()
    before = len(began)
    freed.set()
    assert flood.run("work(1000)").value == 1000
    assert began[before:] == [1000]


def test_a_wide_character_makes_all_of_its_text_count_as_wide() -> None:
    limits = ExecutionLimits(max_host_mb=64, max_output_bytes=8 * MB)
    with Session(limits=limits) as session:
        cell = session.run("print('a' * (4 << 20) + chr(0x1f600))")
        assert cell.ok
        assert session._session._account.held > 16 * MB
        assert session.run("for _ in range(6): print('a' * (1 << 20) + chr(0x1f600))").ok
        assert session.notebook[cell.id].outputs[0].text.startswith("aaa")
        assert session.run("print('a' * (6 << 20) + chr(0x1f600))").ok
        assert "dropped" in session.notebook[cell.id].outputs[0].text
