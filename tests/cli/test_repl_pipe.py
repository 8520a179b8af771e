"""`cellblock repl` where stdin is no terminal: blocks as they come, no prompts, and nothing of the host's files."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock.cli.blocks import Pipe

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


def test_results_are_shown_without_prompts(cellblock: Cellblock) -> None:
    done = cellblock("repl", stdin=b"x = 6\nx * 7\nprint('done')")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"42\ndone\n", b"")


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("source", "printed"),
    [
        (b"def f():\n    a = 1\n\n    # why\n# not\n    return a\n\nf()\nf() + 1\n", b"1\n2\n"),
        (b"def f():\n    return 1\nf()\n'next'\n", b"1\n'next'\n"),
        (b"if 0:\n    1\n\nelse:\n    print(2)\n\n3\n", b"2\n3\n"),
        (b"s = '''a\n\nb'''\ns\n(1,\n\n 2)\n", b"'a\\n\\nb'\n(1, 2)\n"),
        (b"for i in range(2): print(i)\n", b"0\n1\n"),
        (b"\xef\xbb\xbfx = 1\r\nif x:\r\n    print('\xc3\xa9')\r\n\r\n2", "é\n2\n".encode()),
        (b"\n\n  \n# only a comment\n", b""),
        (b"", b""),
        (b"!echo inside; pwd\n", b"inside\n/session/workspace\n"),
        (b":names\nx = 1\n:names\n", b"nothing is bound\nx  int  28 B  1\n"),
        (b"1\nexit()\n2\n", b"1\n"),
    ],
)
def test_blocks_of_a_script(cellblock: Cellblock, source: bytes, printed: bytes) -> None:
    done = cellblock("repl", stdin=source)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, b"")


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("source", "status", "told"),
    [
        (b"1/0\nprint('after')", 1, "ZeroDivisionError: division by zero"),
        (b"1 +\n2", 1, "SyntaxError: invalid syntax"),
        (b"f(\n1", 1, "SyntaxError: '(' was never closed"),
        (b"import os; os._exit(0)\n1/0\n", 3, "ZeroDivisionError: division by zero"),
        (b"x = b'x' * 10**9\n:nothing", 3, "cellblock: no command :nothing (:help lists them)"),
        (b"x = b'x' * 10**9", 3, "cellblock: the session is as it was before this cell"),
        (b"!exit 4", 1, "CommandFailed: exit status 4"),
        (b"x = '\0'", 1, "source code string cannot contain null bytes"),
        (b"x = 1\ny = '\xe9'\n", 2, "cellblock: stdin: line 2: not UTF-8: byte 0xe9: invalid continuation byte"),
        (b":nothing\n", 1, "cellblock: no command :nothing (:help lists them)"),
    ],
)
def test_exit_status_is_that_of_the_worst_cell(cellblock: Cellblock, source: bytes, status: int, told: str) -> None:
    done = cellblock("repl", "--memory", "100", stdin=source)
    assert done.returncode == status
    assert told in done.stderr.decode().splitlines()[-1]


@pytest.mark.sampled(0)
@pytest.mark.threat("W1")
@pytest.mark.parametrize(
    "command", [":load {secret}", ":put {secret}", ":save {directory}/out.py", ":get made {directory}/out"]
)
def test_commands_of_a_pipe_do_not_reach_the_hosts_files(cellblock: Cellblock, tmp_path: Path, command: str) -> None:
    (tmp_path / "secret.py").write_text("print('the secret')")
    line = command.format(secret=tmp_path / "secret.py", directory=tmp_path)
    done = cellblock("repl", stdin=f"open('made', 'w').close()\n{line}\n:files\n".encode())
    assert (done.returncode, done.stdout) == (1, b"made\n")
    assert b"is for the keyboard alone: it reaches your files, and stdin is not a terminal" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["secret.py"]


@pytest.mark.sampled(0)
def test_files_are_listed_by_names_that_open_them(cellblock: Cellblock) -> None:
    names = ["a  b", " c", "d\te", "e\udcff", "x\ny", "z\x1b["]
    done = cellblock("repl", stdin=f"for one in {names!a}: open(one, 'w').close()\n\n:files\n".encode())
    listed = done.stdout.decode().splitlines()
    assert sorted(ast.literal_eval(one) if one[:1] == "'" else one for one in listed) == sorted(names)
    assert all(one.isprintable() for one in listed)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("between", [b"\n", b"# why\n", b"1,\n\n"])
def test_work_of_a_block_grows_with_its_lines_and_not_with_their_square(tmp_path: Path, between: bytes) -> None:
    lines = 20_000
    source = b"(\n" + between * lines + b"1)\n'next'\n"
    (tmp_path / "stdin").write_bytes(source)
    calls: Counter[str] = Counter()

    def count(_frame: object, event: str, called: object) -> None:
        if event == "c_call":
            calls[getattr(called, "__name__", "")] += 1
            assert calls["strip"] < 5 * lines
            assert calls["compile"] < lines / 5

    with open(tmp_path / "stdin", "rb") as stdin:
        pipe = Pipe(stdin.fileno())
        sys.setprofile(count)
        try:
            blocks = [pipe.block(), pipe.block(), pipe.block()]
        finally:
            sys.setprofile(None)
    assert blocks == [source[: -len(b"\n'next'\n")].decode(), "'next'", None]


@pytest.mark.sampled(0)
def test_program_that_waits_gets_the_reply_to_each_block() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cellblock", "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        replies = []
        for block in (b"x = 1\nx\n", b"for i in range(1):\n    print(x + 1)\n\n", b"def f():\n    return 3\n\nf()\n"):
            process.stdin.write(block)
            replies.append(process.stdout.readline())
        process.stdin.close()
        assert process.wait(30) == 0
    assert replies == [b"1\n", b"2\n", b"3\n"]


@pytest.mark.sampled(0)
def test_ctrl_c_ends_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cellblock", "repl"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"print('ready')\nimport time; time.sleep(60)\nprint('after')\n")
        assert process.stdout.readline() == b"ready\n"
        shown = b""
        while b"KeyboardInterrupt" not in shown:  # the first may come between the two cells, and ends it there
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
            shown = err + b"KeyboardInterrupt"
        assert (process.returncode, out) == (130, b"")


@pytest.mark.sampled(0)
def test_pictures_are_named_only_where_they_are_asked_for(cellblock: Cellblock, tmp_path: Path) -> None:
    source = b"type('P', (), {'_repr_png_': lambda self: b'\\x89PNG\\r\\n\\x1a\\n'})()"
    done = cellblock("repl", stdin=source)
    assert done.stderr == b"cellblock: an image of 8 bytes (--pictures DIR keeps it)\n"
    done = cellblock("repl", "--pictures", "kept", stdin=source)
    assert done.stderr == b"cellblock: picture: kept/cell-1.png\n"
    assert (tmp_path / "kept/cell-1.png").read_bytes() == b"\x89PNG\r\n\x1a\n"


@pytest.mark.sampled(0)
def test_pictures_that_cannot_be_saved_are_named(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    source = b"type('P', (), {'_repr_png_': lambda self: b'\\x89PNG\\r\\n\\x1a\\n'})()"
    done = cellblock("repl", "--pictures", "taken", stdin=source)
    assert done.stderr == b"cellblock: picture not saved: cell-1.png: Not a directory\n"


@pytest.mark.sampled(0)
def test_a_picture_that_is_text_is_shown_as_text(cellblock: Cellblock) -> None:
    source = b"type('S', (), {'_repr_svg_': lambda self: '<svg/>', '__repr__': lambda self: 'a drawing'})()"
    assert cellblock("repl", stdin=source).stdout == b"a drawing\n"


@pytest.mark.sampled(0)
def test_history_is_not_touched(cellblock: Cellblock, tmp_path: Path) -> None:
    cellblock("repl", stdin=b"1\n", environment={"HOME": str(tmp_path), "XDG_STATE_HOME": ""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(0)
def test_reader_that_goes_away_ends_it() -> None:
    done = subprocess.run(
        f"(echo 'for i in range(10**6): print(i)'; echo; sleep 5) | {sys.executable} -m cellblock repl | head -1",
        shell=True, capture_output=True, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--file", "none.csv"], b"cellblock: --file 'none.csv': 'none.csv' does not exist"),
        (["--memory", "0"], b"argument --memory: '0' is not a whole number from 1 to 1048576"),
        (["--preload", "no_such_package"], b"cellblock: cannot preload no_such_package: ModuleNotFoundError"),
        (["script.py"], b"unrecognized arguments: script.py"),
    ],
)
def test_what_cannot_be_used_is_named(cellblock: Cellblock, words: list[str], reason: bytes) -> None:
    done = cellblock("repl", *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert reason in done.stderr.splitlines()[-1]
