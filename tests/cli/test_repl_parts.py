"""Parts of the prompt: where blocks end, the history's file, what Tab completes, the line while it opens."""

from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path
from types import FrameType

import anyio
import pytest

from cellblock.cli.blocks import Block
from cellblock.cli.keyboard import MAX_ENTRIES, MAX_MATCHES, Completer, History, default_path
from cellblock.cli.opening import Setup
from cellblock.cli.progress import redrawn
from cellblock.limits import ExecutionLimits


def cells(text: str) -> list[str]:
    """The blocks of lines that are typed one after the other; one that is not whole has `…` at its end."""
    found, block = [], Block()
    for line in text.split("\n"):
        if block.add(line):
            found.append(block.source)
            block = Block()
    return [*found, block.source + "…"] if block else found


@pytest.mark.parametrize(
    ("typed", "blocks"),
    [
        ("x = 1; y", ["x = 1; y"]),
        ("f(1,\n\n2)", ["f(1,\n\n2)"]),
        ("s = '''a\n\nb'''", ["s = '''a\n\nb'''"]),
        ('s = """a\'\'\'\n"""', ['s = """a\'\'\'\n"""']),
        ("s = 'a # ( \\' '", ["s = 'a # ( \\' '"]),
        ("a + \\\nb", ["a + \\\nb"]),
        ("if x: 1\n", ["if x: 1\n"]),
        ("if x:\n    1\nelse:\n    2\n", ["if x:\n    1\nelse:\n    2\n"]),
        ("@d\n@e\nclass A:\n    x = 1\n", ["@d\n@e\nclass A:\n    x = 1\n"]),
        ("async def f():\n    await g()\n", ["async def f():\n    await g()\n"]),
        ("try:\n    1\nfinally:\n    2\n", ["try:\n    1\nfinally:\n    2\n"]),
        ("match x:\n    case 1:\n        2\n", ["match x:\n    case 1:\n        2\n"]),
        ("with a as b: pass\n", ["with a as b: pass\n"]),
        ("def f():\n    return 1\nf()", ["def f():\n    return 1\nf()"]),
        ("def f():\n\n    return 1\n", ["def f():\n\n    return 1\n"]),
        ("await x", ["await x"]),
        ("x is 1; '\\d'", ["x is 1; '\\d'"]),
        ("# a comment", ["# a comment"]),
        ("", [""]),
        # wrong beyond repair: at once
        ("x = = 1", ["x = = 1"]),
        ("'abc", ["'abc"]),
        ("  x", ["  x"]),
        ("def f():\n    x = )", ["def f():\n    x = )"]),
        ("\0", ["\0"]),
        ("-" * 100_000 + "1", ["-" * 100_000 + "1"]),
        # not whole
        ("x = (", ["x = (…"]),
        ("if x:", ["if x:…"]),
        ("if x:\n    # later\n", ["if x:\n    # later\n…"]),
        ("@d", ["@d…"]),
        ("class A:\n    x = '''", ["class A:\n    x = '''…"]),
    ],
)
def test_block_ends_where_python_ends_it(typed: str, blocks: list[str]) -> None:
    assert cells(typed) == blocks


def test_paste_is_whole_when_it_can_be_run() -> None:
    assert Block().add("def f():\n\n    return 1\n\nfor i in x:\n    f()")
    assert not Block().add("def f():\n    x = (")


@pytest.mark.parametrize(
    ("lines", "last"),
    [(["def f():"] + ["    x = 1"] * 3_000, ""), (["@d"] * 3_000 + ["def f(): pass"], ""),
     (["x = 1 + \\"] + ["1 + \\"] * 3_000, "1"), (["x = 'a\\"] + ["b\\"] * 3_000, "'")],
    ids=["a body", "decorators", "joined lines", "a text"],
)  # fmt: skip
def test_block_outside_brackets_is_not_parsed_at_each_line(lines: list[str], last: str) -> None:
    block, parsed = Block(), 0

    def count(frame: FrameType, event: str, called: object) -> None:
        nonlocal parsed
        parsed += event == "c_call" and getattr(called, "__name__", "") == "compile"

    sys.setprofile(count)
    try:
        whole = {block.add(line) for line in lines}
    finally:
        sys.setprofile(None)
    assert (whole, block.add(last)) == ({False}, True)
    assert parsed < 1_000


def test_empty_line_does_not_end_a_block_that_goes_on() -> None:
    block = Block()
    assert [block.add("if x:"), block.add("    1", goes_on=True), block.add("", goes_on=True)] == [False] * 3
    assert block.add("    2") is False
    assert block.add("") is True


def test_statement_that_only_a_newer_python_knows_goes_on_to_an_empty_line() -> None:
    lines = ["@d", "def f[<T>](x):", "    return x", ""]  # an error to every Python that this runs on
    block = Block(newer=True)
    assert [block.add(line) for line in lines] == [False, False, False, True]
    block = Block()
    assert [block.add(line) for line in lines[:2]] == [False, True]
    assert Block(newer=True).add("type X = = int") is True


def test_what_only_the_parser_can_tell_is_told_at_an_empty_line() -> None:
    block = Block()
    assert block.add('x = f"{d["("]}"') is False  # taken for an open bracket
    assert block.add("") is True


# --------------------------------------------------------------------------------------- history


def test_history_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state/cellblock/history"
    History(path).add("x = 1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert History(path).entries == ["x = 1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_history_keeps_blocks_and_no_repetition(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    assert [history.add(entry) for entry in ("a\nb", "a\nb", "", " ", "\x1b\u2028é", "x" * 200_000)] == [
        True, False, False, False, True, False,
    ]  # fmt: skip
    assert History(tmp_path / "history").entries == ["a\nb", "\x1b\u2028é"]


def test_two_histories_keep_the_entries_of_both(tmp_path: Path) -> None:
    one, other = History(tmp_path / "history"), History(tmp_path / "history")
    one.add("1")
    other.add("2")
    one.add("3")
    assert History(tmp_path / "history").entries == ["1", "2", "3"]


def test_history_that_has_grown_is_cut_to_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"{json.dumps(str(number))}\n" for number in range(2 * MAX_ENTRIES + 1)))
    entries = [str(number) for number in range(MAX_ENTRIES + 1, 2 * MAX_ENTRIES + 1)]
    assert History(path).entries == entries
    assert len(path.read_text().splitlines()) == MAX_ENTRIES


def test_lines_of_the_history_that_are_none_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "history").write_bytes(b'"a"\n"half of\n[1]\n\xff\n"c\\u0000d"\n' + b"[" * 100_000 + b'\n"b\\ud800"\n')
    assert History(tmp_path / "history").entries == ["a", "b\ufffd"]


def test_history_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("")
    (tmp_path / "history").symlink_to("target")
    with pytest.raises(OSError, match="symbolic link"):
        History(tmp_path / "history")


def test_history_lies_in_the_users_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/states")
    assert default_path() == Path("/states/cellblock/history")
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_path() == Path("/home/me/.local/state/cellblock/history")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # a user without a row, as in containers
    assert default_path() is None


# ------------------------------------------------------------------------------------- completion


@pytest.fixture
def completer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Completer:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in put.csv").touch()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/one-a.py").touch()
    (tmp_path / "scripts/one-b.py").touch()
    return Completer(
        (":help", ":names", ":load", ":get"),
        lambda: ["frame", "framed", "fr\x1b[2Jx", *(f"n{number}" for number in range(2 * MAX_MATCHES))],
        lambda: ["out.csv", "sub/out.csv"],
    )


@pytest.mark.parametrize(
    ("line", "begin", "found"),
    [
        ("fra", 0, ["frame", "framed"]),
        ("x = fr", 4, ["frame", "framed", "from", "frozenset"]),
        ("imp", 0, ["import"]),
        ("frame.he", 0, []),
        ("", 0, ["    "]),
        ("    ", 4, ["    "]),
        (":", 1, ["get", "help", "load", "names"]),
        (":na", 1, ["names"]),
        (":na", 0, [":names"]),
        (":load scr", 6, ["scripts/"]),
        (":load scripts/", 14, ["one-a.py", "one-b.py"]),
        (":load scripts/one-", 18, ["a.py", "b.py"]),
        (":load none/x", 11, []),
        (":get ou", 5, ["out.csv"]),
        ("!cat sub/o", 9, ["out.csv"]),
    ],
)
def test_completions(completer: Completer, line: str, begin: int, found: list[str]) -> None:
    assert completer.matches(line, begin, len(line)) == found


def test_completions_are_bounded(completer: Completer) -> None:
    assert len(completer.matches("n", 0, 1)) == MAX_MATCHES


# ---------------------------------------------------------------------------------------- opening


class Screen(io.StringIO):
    """A stream that says it is a terminal, and when it is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = anyio.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


@pytest.mark.sampled(0)
def test_what_is_imported_is_known_while_it_starts() -> None:
    setup = Setup({"preload": ("netrc",), "limits": ExecutionLimits()})
    setup.started.result(60)
    assert setup.doing == "importing netrc"


@pytest.mark.anyio
async def test_what_takes_long_is_told_and_wiped_out() -> None:
    screen = Screen()
    async with redrawn(screen, lambda seconds: f"opening: importing \x1b[2Jpandas ({seconds:.1f} s)"):
        await screen.written.wait()
    first, *_, last = screen.getvalue().split("\r")[1:]
    assert first.startswith("\x1b[2Kopening: importing pandas (0.")
    assert last == "\x1b[2K"


@pytest.mark.anyio
async def test_what_is_done_at_once_writes_nothing_and_raises_as_it_is() -> None:
    screen = Screen()
    with pytest.raises(OSError, match="the reason"):
        async with redrawn(screen, str, after=0.5):
            raise OSError("the reason")
    assert screen.getvalue() == ""
