"""What cells print: its order, its bytes, what is kept of too much of it, and streams that a cell breaks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from cellblock import Cell, CellState, Done, ExecutionLimits, Output, Session

NOTE = re.compile(r"\n\[\.\.\. (\d+) bytes cut \.\.\.\]\n")


def streams(cell: Cell) -> list[tuple[str | None, str]]:
    return [(output.stream, output.text) for output in cell.outputs]


def test_stdout_and_stderr_stay_in_the_order_they_were_written(session: Session) -> None:
    cell = session.run("import sys\nfor n in range(3):\n    print('o', n)\n    print('e', n, file=sys.stderr)")
    assert streams(cell) == [pair for n in range(3) for pair in (("stdout", f"o {n}\n"), ("stderr", f"e {n}\n"))]
    assert cell.text == "o 0\ne 0\no 1\ne 1\no 2\ne 2"


def test_subprocesses_and_raw_writes_stand_where_they_were_made(session: Session) -> None:
    source = (
        "import os, subprocess\nprint('a')\nos.write(1, b'b\\n')\nprint('c', end='\\n')\n"
        "subprocess.run('echo d; echo e', shell=True)\nprint('f')\nos.system('echo g')\nprint('h')"
    )
    assert streams(session.run(source))[0] == ("stdout", "a\nb\nc\nd\ne\nf\ng\nh\n")


def test_stderr_of_subprocesses_is_stderr(session: Session) -> None:
    cell = session.run("import subprocess\nx = subprocess.run('echo no >&2', shell=True)")
    assert streams(cell) == [("stderr", "no\n")]


def test_text_without_a_newline_is_shown_with_the_cell_that_wrote_it(session: Session) -> None:
    assert session.run("import sys\nx = sys.stdout.write('half')").text == "half"
    assert session.run("1").text == "1"


def test_stream_tells_text_before_the_cell_ends(session: Session) -> None:
    events = session.stream(
        "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.005)\nprint('then')"
    )
    first = next(events)
    assert isinstance(first, Output)
    assert first.text == "first\n"
    session.files.write("go", b"")
    *between, done = events
    assert [event.text for event in between if isinstance(event, Output)] == ["then\n"]
    assert isinstance(done, Done)
    assert done.cell.text == "first\nthen"


def test_text_is_utf8_whatever_is_printed(session: Session) -> None:
    cell = session.run("print('é€😀\\0\\x1b[31m\\ud800')")
    assert cell.text == "é€😀\0\x1b[31m\\ud800"
    assert session.run("import os\nos.write(1, b'\\xff\\xfe ok')\nNone").text == "\ufffd\ufffd ok"


def test_characters_split_over_many_writes_are_whole(session: Session) -> None:
    source = "import os, time\nfor byte in ('é€😀' * 50).encode(): os.write(1, bytes([byte]))"
    assert session.run(source).text == "é€😀" * 50


@pytest.mark.parametrize(
    ("source", "total", "end"),
    [
        ("print('a' * 50_000, end='')", 50_000, 5000),
        ("for n in range(10_000): print('a' * 99)", 1_000_000 - 1, 4999),  # no text ends with a newline
        ("import os\nfor n in range(100): os.write(1, b'a' * 1000)", 100_000, 5000),
        ("import sys\nx = sys.stderr.write('a' * 50_000)", 50_000, 5000),
    ],
)
def test_note_counts_exactly_the_bytes_that_were_cut(session: Session, source: str, total: int, end: int) -> None:
    head, count, tail = NOTE.split(session.run(source).text)
    assert (len(head), len(tail)) == (5000, end)
    assert len(head) + int(count) + len(tail) == total


def test_result_has_no_more_text_than_the_limit(session: Session) -> None:
    assert len(session.run("'a' * 50_000").text) <= 10_100


def test_text_at_the_limit_is_whole_and_one_byte_more_is_cut(session: Session) -> None:
    assert session.run("print('a' * 10_000, end='')").text == "a" * 10_000
    assert "bytes cut" in session.run("print('a' * 10_001, end='')").text


@pytest.mark.sampled(0)
def test_cut_text_keeps_the_beginning_and_the_end(session: Session) -> None:
    text = session.run("print('BEGIN')\nfor n in range(100_000): print(n)\nprint('END')").text
    assert text.startswith("BEGIN\n0\n1\n2\n")
    assert text.endswith("99998\n99999\nEND")


PRINTED = re.compile(r"\n\[\.\.\. (\d+) bytes of output cut: the limit is 10000 \.\.\.\]\n")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", ["isolated", "local"])
@pytest.mark.parametrize("count", [3_000, 5_000, 10_000])  # printed are 1.4, 2.4 and 5 times the limit
def test_result_comes_after_all_that_was_printed_and_ends_the_text(
    open_session: Callable[..., Session], level: str, count: int
) -> None:
    session = open_session(trust_level=level)
    *events, done = session.stream(f"for n in range({count}): print(n)\n'the result'")
    assert isinstance(done, Done)
    *printed, result = [event for event in events if isinstance(event, Output)]
    assert "".join(one.text for one in printed).endswith(f"\n{count - 1}\n")
    assert result.is_result
    assert [(one.stream, one.text[-5:]) for one in done.cell.outputs] == [("stdout", f"{count - 1}\n"), (None, "sult'")]
    assert done.cell.text.endswith(f"\n{count - 1}\n'the result'")
    assert done.cell.cut == max(0, sum(len(f"{n}\n") for n in range(count)) - 15_000)


def test_displays_past_the_limit_stand_where_they_were_made(session: Session) -> None:
    cell = session.run("for n in range(15):\n    print(f'<{n}>' * 30_000)\n    display(n)\nprint('DONE')")
    shown = re.findall(r"<\d+>(?=\n)|^\d+$|DONE", "".join(f"{output.text}\n" for output in cell.outputs), re.MULTILINE)
    places = [shown.index(f"{n}") for n in range(15)]
    assert places == sorted(places)
    assert all(shown[shown.index(f"{n}") - 1] == f"<{n}>" for n in range(9))
    assert shown[-1] == "DONE"
    head, count, tail = NOTE.split(cell.text)
    notes = PRINTED.findall(tail)
    assert len(notes) > 1
    whole = sum(len(f"<{n}>") * 30_000 + 1 + len(f"{n}\n") for n in range(15)) + len("DONE")
    seen = len(head) + len(PRINTED.sub("", tail))
    assert seen + int(count) + sum(map(int, notes)) == whole


def test_many_displays_between_prints_show_no_more_text(session: Session) -> None:
    cell = session.run("for n in range(3000):\n    print('a' * 1000)\n    display(n)\nprint('DONE')")
    assert sum(len(output.text) for output in cell.outputs if output.stream == "stdout") < 17_000
    assert len(cell.outputs) < 520
    assert "DONE" in cell.text


def test_error_is_kept_whole_after_text_that_was_cut(session: Session) -> None:
    cell = session.run("print('a' * 100_000)\n1/0")
    assert cell.text.endswith("ZeroDivisionError: division by zero")
    assert "Traceback (most recent call last):" in cell.text


def test_smallest_limit_keeps_counting(open_session) -> None:  # type: ignore[no-untyped-def]
    session = open_session(limits=ExecutionLimits(max_output_bytes=1, timeout_seconds=20))
    cell = session.run("print('a' * 1000, end='')")
    assert len(cell.text) < 100
    kept = "".join(re.sub(r"\n\[\.\.\. \d+ bytes.*?\.\.\.\]\n", "", output.text) for output in cell.outputs)
    (count,) = (
        int(number) for output in cell.outputs for number in re.findall(r"(\d+) bytes of output cut", output.text)
    )
    assert len(kept) + count == 1000


def test_live_part_of_an_endless_output_streams(session: Session) -> None:
    events = session.stream("n = 0\nwhile True:\n    print(n)\n    n += 1")
    got = ""
    for event in events:
        if isinstance(event, Done):
            break
        if isinstance(event, Output):
            got += event.text
        if len(got) >= 5000:
            session.interrupt()
    assert got.startswith("0\n1\n2\n")


@pytest.mark.sampled(0)
def test_a_gigabyte_of_output_costs_the_host_nothing_that_stays(session: Session) -> None:
    cell = session.run("chunk = 'a' * 10_000_000\nfor n in range(100): print(chunk, end='')")
    assert cell.state is CellState.COMPLETED
    assert sum(len(output.text) for output in cell.outputs) < 20_000
    head, count, tail = NOTE.split(cell.text)
    assert len(head) + int(count) + len(tail) == 1_000_000_000


def test_flood_of_several_processes_meets_the_time_limit(hasty: Session) -> None:
    source = "x = 1\nimport subprocess\nyes = [subprocess.Popen(['yes']) for _ in range(4)]\nwhile True: pass"
    assert hasty.run(source).state is CellState.TIMEOUT
    assert hasty.run("x").value == 1
    assert hasty.run("for one in yes: one.kill(), one.wait()").ok


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.stdout.close()",
        "import sys\nsys.stderr.close()",
        "import sys\nsys.stdout = None",
        "import sys\nsys.stdout = object()",
        "import sys\ndel sys.stdout",
        "import os\nos.close(1)",
        "import os\nos.close(1); os.close(2); os.close(0)",
        "import os\nos.dup2(os.open('elsewhere', os.O_CREAT | os.O_WRONLY), 1)",
        "import sys, io\nsys.stdout = io.StringIO()\nsys.stdout.close()",
        "import sys\nsys.stdout.detach()\nNone",
        "import sys\nsys.stdout.reconfigure(encoding='ascii', errors='strict')",
    ],
)
def test_next_cell_prints_after_a_cell_broke_its_streams(session: Session, source: str) -> None:
    session.run("x = 1")
    session.run(source)
    cell = session.run("import os\nprint('again')\nos.write(1, b'raw\\n')\nx")
    assert (cell.state, cell.value) == (CellState.COMPLETED, 1), cell.error
    assert "raw" in cell.text
    assert "again" in cell.text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("which", ["3, 300", "0, 300"])
def test_cell_that_closes_every_descriptor_and_goes_on_meets_the_time_limit(hasty: Session, which: str) -> None:
    cell = hasty.run(f"import os\nos.closerange({which})\nwhile True: pass")
    assert cell.state is CellState.TIMEOUT
    assert hasty.run("6 * 7").value == 42


def test_sessions_go_on_beside_one_that_closed_its_descriptors(session: Session, hasty: Session) -> None:
    thread = threading.Thread(target=hasty.run, args=("import os\nos.closerange(0, 300)\nwhile True: pass",))
    thread.start()
    assert [session.run(f"{n}").value for n in range(20)] == list(range(20))
    thread.join(10)
    assert not thread.is_alive()


def test_text_that_looks_like_a_mark_only_mislabels_itself(session: Session) -> None:
    forged = "b'\\0\\x1bcb' + bytes(8) + bytes([letter]) + bytes(8)"
    source = f"import os\nfor letter in b'EOMX': os.write(1, {forged})\nprint('end')"
    assert session.run(source).text.endswith("end")
    assert session.run("print('next')").text == "next"


def test_thread_that_prints_after_its_cell_is_shown_with_a_later_cell(session: Session) -> None:
    session.run(
        "import os, threading, time\nshown = threading.Event()\n"
        "def work():\n"
        "    while not os.path.exists('over'): time.sleep(0.01)\n"
        "    print('late', flush=True); shown.set()\n"
        "threading.Thread(target=work).start()"
    )
    session.files.write("over", "")
    assert session.run("x = shown.wait(10)").text == "late"
