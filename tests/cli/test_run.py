"""`cellblock run`: streams, exit statuses, JSON, files in and out, scripts, and everything that cannot be run."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import AsyncSession, ExecutionLimits
from cellblock.cli import main
from cellblock.cli.export import Shelf, safe
from cellblock.cli.source import decode, split

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.mark.sampled(0)
def test_text_goes_to_the_stream_it_was_written_to(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", stdin=b"import sys\nprint('out')\nprint('err', file=sys.stderr)\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


@pytest.mark.sampled(0)
def test_last_expression_is_shown_on_a_line_of_its_own(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", stdin=b"print('a', end='')\n[1, 2]")
    assert (done.returncode, done.stdout) == (0, b"a\n[1, 2]\n")


@pytest.mark.sampled(0)
def test_text_arrives_while_the_cell_runs() -> None:
    script = b"import sys\nprint('early')\nwhile True: pass\n"
    with subprocess.Popen(
        [sys.executable, "-m", "cellblock", "run", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(script)
        process.stdin.close()
        line = process.stdout.readline()
        still_running = process.poll() is None
        process.kill()
    assert (line, still_running) == (b"early\n", True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("source", "status", "told"),
    [
        (b"1/0", 1, "ZeroDivisionError: division by zero"),
        (b"x = (", 1, "SyntaxError: '(' was never closed"),
        (b"import sys; sys.exit(3)", 1, ""),
        (b"import sys; sys.exit('no input')", 1, "no input"),
        (b"import sys; sys.exit(0)", 0, ""),
        (b"raise SystemExit", 0, ""),
        (b"input()", 1, "hint: nobody answers input() here"),
        (b"import os; os._exit(0)", 3, "cellblock: crashed: the session's process left with status 0"),
        (b"import os; os.kill(os.getpid(), 11)", 3, "was killed by SIGSEGV"),
        (b"x = bytearray(10**9)", 3, "(--memory MB allows more)"),
        (b"", 0, ""),
    ],
)
def test_exit_status_tells_how_it_ended(cellblock: Cellblock, source: bytes, status: int, told: str) -> None:
    done = cellblock("run", "-", "--memory", "100", stdin=source)
    last = (done.stderr.decode().splitlines() or [""])[-1]
    assert (done.returncode, told in last if told else last) == (status, True if told else "")


@pytest.mark.sampled(0)
def test_time_limit_stops_a_loop(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", "--timeout", "0.3", stdin=b"while True: pass")
    assert done.returncode == 3
    assert done.stderr.decode().splitlines()[-1] == (
        "cellblock: timeout: the cell ran longer than 0.3 s (--timeout S allows more)"
    )


@pytest.mark.sampled(0)
def test_output_past_the_limit_is_cut_in_the_middle(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", "--output", "1000", stdin=b"print('head' + 'x' * 10**6 + 'tail')")
    assert done.stdout.startswith(b"headxxx")
    assert done.stdout.endswith(b"xxxtail\n")
    assert b"bytes of output cut: the limit is 1000" in done.stdout
    assert len(done.stdout) < 2000


# ------------------------------------------------------------------------------------------- sources


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = '\xe9'\n", "not UTF-8, and no coding line in its first two lines names another encoding"),
        (b"#\n#\n#\nx = '\xe9'\n", "not utf-8: byte 0xe9: invalid continuation byte"),
        (b"# coding: nope\n", "unknown encoding: nope"),
        (b"# coding: rot13\n", "'rot13' is not a text encoding; use codecs.open() to handle arbitrary codecs"),
        (b"x = 1\ny = '\0'\n", "line 2: a NUL character: this is not Python source"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "line 1: a NUL character: this is not Python source"),
    ],
)
def test_bytes_that_are_no_source_are_refused(
    cellblock: Cellblock, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "bad.py").write_bytes(content)
    done = cellblock("run", "bad.py")
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"cellblock: bad.py: {reason}\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["missing.py"], "cellblock: cannot read 'missing.py': No such file or directory"),
        (["."], "cellblock: cannot read '.': Is a directory"),
        (["a\0b"], "cellblock: cannot read 'a\\x00b': embedded null byte"),
        (["/dev/zero"], "cellblock: /dev/zero: more than 33554432 bytes of source"),
        (["-", "--file", "none.csv"], "cellblock: --file 'none.csv': 'none.csv' does not exist"),
        (["-", "--file", "/usr"], "cellblock: --file '/usr': '/usr' is not a file"),
        (["-", "--timeout", "nan"], "argument --timeout: 'nan' is not a number of seconds above 0"),
        (["-", "--memory", "-1"], "argument --memory: '-1' is not a whole number from 1 to 1048576"),
        (["-", "--preload", "a-b"], "argument --preload: 'a-b' is not the name of a package"),
        (["-", "--python", "/nope"], "--python: '/nope' is not a program"),
        ([], "the following arguments are required: FILE"),
    ],
)
def test_what_cannot_be_used_is_named(capsys: pytest.CaptureFixture[str], words: list[str], reason: str) -> None:
    assert main(["run", *words]) == 2
    assert reason in capsys.readouterr().err.splitlines()[-1]


def test_session_that_is_kept_goes_on(cellblock: Cellblock) -> None:
    kept = ("--session", "q3", "--store", "sqlite:///kept.db")
    first = b"import os\nn = globals().get('n', 0) + 1\nopen('f', 'a').write('x')\ng = iter(n for n in [1])\n"
    assert cellblock("run", *kept, "-", stdin=first).returncode == 0
    done = cellblock("run", *kept, "-", stdin=b"n, open('f').read()")
    assert (done.returncode, done.stdout) == (0, b"(1, 'x')\n")
    assert done.stderr == b"cellblock: lost: g: a generator\n"
    other = cellblock("repl", *kept, "--user", "bob", stdin=b"'n' in globals()\n")
    assert other.stdout == b"False\n"
    cleared = cellblock("repl", *kept, stdin=b"n\n:restart\n'n' in globals(), os.path.exists('f')\n")
    assert cleared.stdout.startswith(b"1\n")
    assert b"name 'os' is not defined" in cleared.stderr
    assert cellblock("sessions", "list", "--store", "sqlite:///kept.db", "--all-users").stdout.count(b"q3") == 2


def test_options_of_a_kept_session_need_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--user", "ana", "-"]) == 2
    assert capsys.readouterr().err == "cellblock: --user is for --session NAME\n"


@pytest.mark.sampled(0)
def test_package_that_cannot_be_preloaded_is_a_usage_error(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", "--preload", "no_such_package")
    assert done.returncode == 2
    assert done.stderr.startswith(b"cellblock: cannot preload no_such_package: ModuleNotFoundError")


@pytest.mark.sampled(0)
def test_input_that_would_leave_the_session_is_a_usage_error(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"")
    done = cellblock("run", "-", "--file", "in.csv:../../etc/passwd")
    assert (done.returncode, b"is not among the session's files" in done.stderr) == (2, True)


@pytest.mark.sampled(0)
def test_encoding_line_and_byte_order_mark_are_followed(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n")
    (tmp_path / "marked.py").write_bytes("\ufeffprint('ok')\r\nprint('two')\r\n".encode())
    assert cellblock("run", "latin.py").stdout == b"'\\xe9'\n"
    assert cellblock("run", "marked.py").stdout == b"ok\ntwo\n"


@pytest.mark.sampled(0)
def test_ten_megabytes_of_source_run(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", stdin=b"x = '" + b"a" * 10_000_000 + b"'\nprint(len(x))\n")
    assert (done.returncode, done.stdout) == (0, b"10000000\n")


@pytest.mark.sampled(0)
def test_ten_megabytes_of_statements_fail_as_a_value(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", stdin=b"x = 1\n" * 1_700_000)
    assert done.returncode == 3
    assert done.stderr.endswith(b"cellblock: memory: the cell ran out of memory (--memory MB allows more)\n")


def test_decode_keeps_lone_carriage_returns_as_line_ends() -> None:
    assert decode(b"a = 1\rb = 2\r\n", "x") == "a = 1\nb = 2\n"


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a\n# %% one\nb\n#%%\nc\n", ["a\n", "# %% one\nb\n", "#%%\nc\n"]),
        ("# %%\n\n# %%\nx", ["# %%\nx"]),
        ("", [""]),
    ],
)
def test_split_takes_a_cell_from_each_marker_to_the_next(text: str, cells: list[str]) -> None:
    assert split(text) == cells


@pytest.mark.sampled(0)
def test_cells_run_in_order_and_stop_at_the_first_failure(cellblock: Cellblock) -> None:
    source = b"x = 1\n# %%\nx + 1\n# %%\n1/0\n# %%\nprint('never')\n"
    done = cellblock("run", "-", "--cells", stdin=source)
    assert (done.returncode, done.stdout) == (1, b"2\n")
    assert b'File "<cell 3>", line 2' in done.stderr


# ---------------------------------------------------------------------------------------------- JSON


def test_json_holds_one_object_and_nothing_else(cellblock: Cellblock) -> None:
    source = b"import sys\nprint('a')\nprint('b', file=sys.stderr)\n6 * 7"
    done = cellblock("run", "-", "--json", stdin=source)
    cell = json.loads(done.stdout)
    outputs = cell.pop("outputs")
    usage = cell.pop("usage")
    cell.pop("id")
    assert done.stderr == b""
    assert cell == {
        "number": 1, "state": "completed", "ok": True, "text": "a\nb\n42", "error": None, "lost": [],
        "cut": 0, "rolled_back": False, "undone": False, "timeout_seconds": None,
    }  # fmt: skip
    assert [(output["stream"], output["is_result"], output["data"]["text/plain"]) for output in outputs] == [
        ("stdout", False, "a\n"), ("stderr", False, "b\n"), (None, True, "42"),
    ]  # fmt: skip
    network = {"connections", "connections_refused", "received_bytes", "sent_bytes"}
    assert set(usage) == {"duration_ms", "cpu_ms", "memory_peak_bytes"} | network


@pytest.mark.sampled(0)
def test_json_of_a_failure_has_the_error(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", "--json", stdin=b"{}['k']")
    cell = json.loads(done.stdout)
    assert (done.returncode, cell["state"], cell["ok"]) == (1, "error", False)
    assert (cell["error"]["type"], cell["error"]["kind"]) == ("KeyError", "raised")
    assert cell["error"]["traceback"].startswith('Traceback (most recent call last):\n  File "<cell 1>"')


@pytest.mark.sampled(0)
def test_json_has_a_line_for_each_cell(cellblock: Cellblock) -> None:
    done = cellblock("run", "-", "--json", "--cells", "--timeout", "0.3", stdin=b"1\n# %%\nwhile True: pass\n")
    cells = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, [cell["state"] for cell in cells]) == (3, ["completed", "timeout"])


@pytest.mark.sampled(0)
def test_json_carries_images_in_base64(cellblock: Cellblock, scripts: Path) -> None:
    pytest.importorskip("matplotlib")
    done = cellblock("run", scripts / "matplotlib_figure.py", "--json")
    image = json.loads(done.stdout)["outputs"][-1]
    assert (image["type"], image["uri"].startswith("notebook://cell/")) == ("image", True)
    assert base64.b64decode(image["data"]["image/png"]).startswith(b"\x89PNG\r\n")


# --------------------------------------------------------------------------------------------- files


@pytest.mark.sampled(0)
def test_text_that_looks_like_a_uri_stays_text(cellblock: Cellblock) -> None:
    source = b"class Liar:\n    def _repr_html_(self):\n        return 'notebook://cell/0/image/0'\nLiar()"
    done = cellblock("run", "-", "--json", stdin=source)
    output = json.loads(done.stdout)["outputs"][-1]
    assert (output["uri"], output["data"]["text/html"]) == (None, "notebook://cell/0/image/0")


@pytest.mark.sampled(0)
def test_images_are_saved_under_a_name_of_ours(cellblock: Cellblock, scripts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = cellblock("run", scripts / "matplotlib_figure.py", "--save", "kept", "--json")
    cell = json.loads(done.stdout)
    assert cell["outputs"][-1]["files"] == ["kept/image-1.png"]
    assert (cell["saved"], cell["not_saved"]) == (["kept/image-1.png", "kept/curve.svg"], [])
    assert (tmp_path / "kept/image-1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.sampled(0)
def test_mounts_are_read_inside_and_not_saved(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "a=b.csv").write_text("2\n")
    script = b"print(open('data/a=b.csv').read(), open('one').read(), sep='')\nopen('out', 'w').write('x')\nNone"
    done = cellblock(
        "run", "--mount", "data=sales", "--mount", "one=sales/a=b.csv", "--save", "kept", "-", stdin=script
    )
    assert (done.returncode, done.stdout) == (0, b"2\n2\n\n")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["out"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["data"], "--mount 'data' is not NAME=PATH"),
        (["=x"], "--mount '=x' is not NAME=PATH"),
        (["data=x", "data=y"], "--mount 'data=y': 'data' is given twice"),
        (["data=x"], "/x' cannot be used: No such file or directory (give the path of a directory or a file)"),
        (["../x=."], "mounts['../x']: not a place for a mount"),
        (["data=/proc"], "mounts['data']: '/proc' is the kernel's"),
    ],
)
def test_mount_that_cannot_be_given_is_a_usage_error(cellblock: Cellblock, words: list[str], told: str) -> None:
    done = cellblock("run", *(part for word in words for part in ("--mount", word)), "-", stdin=b"print('ran')")
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()


def test_files_go_in_and_only_what_is_new_comes_out(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"1\n2\n")
    source = b"import os\nos.mkdir('d')\nopen('d/out.txt', 'w').write(open('data.csv').read() * 2)"
    done = cellblock("run", "-", "--file", "in.csv:data.csv", "--save", "kept", stdin=source)
    kept = {str(path.relative_to(tmp_path)): path.read_bytes() for path in (tmp_path / "kept").rglob("*.*")}
    assert (done.returncode, kept) == (0, {"kept/d/out.txt": b"1\n2\n1\n2\n"})
    assert done.stderr == b"cellblock: saved kept/d/out.txt\n"


@pytest.mark.sampled(0)
def test_input_that_the_script_changed_comes_out(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"1\n")
    done = cellblock("run", "-", "--file", "in.csv", "--save", "kept", stdin=b"open('in.csv', 'a').write('2\\n');")
    assert (done.returncode, (tmp_path / "kept/in.csv").read_bytes()) == (0, b"1\n2\n")


@pytest.mark.sampled(0)
def test_saving_overwrites_nothing(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "precious.py").write_text("mine")
    (tmp_path / "link.txt").symlink_to("target.txt")
    source = b"for name in ('precious.py', 'link.txt'): print('theirs', file=open(name, 'w'))"
    done = cellblock("run", "-", "--save", ".", stdin=source)
    assert (done.returncode, (tmp_path / "precious.py").read_text()) == (0, "mine")
    assert (tmp_path / "precious-2.py").read_text() == "theirs\n"
    assert not (tmp_path / "target.txt").exists()


@pytest.mark.sampled(0)
def test_names_from_inside_are_made_harmless(cellblock: Cellblock, tmp_path: Path) -> None:
    source = rb"""
import os
os.makedirs('.git/hooks')
for name in ('.git/hooks/pre-commit', '-rf', 'a\x1b[2Jb', 'c\\..\\d', 'x\nsaved y', b'\xff\xfe'):
    open(name, 'w').close()
os.symlink('/etc/passwd', 'passwd')
"""
    done = cellblock("run", "-", "--save", "kept", stdin=source)
    names = sorted(str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*"))
    assert (done.returncode, names) == (0, ["__", "_rf", "a_[2Jb", "c_.._d", "x_saved y"])


@pytest.mark.sampled(0)
def test_a_file_that_lies_too_deep_is_named_and_the_others_are_saved(cellblock: Cellblock, tmp_path: Path) -> None:
    source = (
        b"import os\nfor _ in range(1200): os.mkdir('a'); os.chdir('a')\nopen('f', 'w').close()\n"
        b"open('/workspace/last', 'w').close()"
    )
    done = cellblock("run", "-", "--save", "kept", stdin=source)
    assert (done.returncode, [path.name for path in (tmp_path / "kept").iterdir()]) == (1, ["last"])
    assert done.stderr.decode() == (
        f"cellblock: saved kept/last\ncellblock: not saved: {'a/' * 60}…: below more than 100 directories\n"
    )


@pytest.mark.threat("W8")
def test_names_that_become_one_cost_a_try_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    really = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: (tried.append(path), really(path, *rest))[1])
    shelf = Shelf(tmp_path)
    for number in range(300):
        shelf.put(f"x{':*?|<>'[number % 6]}", b"")
    assert (len(tried), len(shelf.saved), shelf.failed) == (300, 300, [])
    assert {path.name for path in tmp_path.iterdir()} == {"x_", *(f"x_-{number}" for number in range(2, 301))}


SPARSE = "for n in range(9):\n    with open(f'f{n}', 'wb') as file: file.truncate(2**18)"
LINKED = "import os\nopen('f0', 'wb').write(b'x' * 2**19)\nfor n in range(1, 9): os.link('f0', f'f{n}')"


@pytest.mark.anyio
@pytest.mark.threat("W6")
@pytest.mark.parametrize(("code", "saved"), [(SPARSE, 4), (LINKED, 9)], ids=["with holes", "of one file"])
async def test_files_that_are_saved_take_no_more_than_there_is_room_for(tmp_path: Path, code: str, saved: int) -> None:
    shelf = Shelf(tmp_path, max_mb=1)
    async with AsyncSession(limits=ExecutionLimits(max_disk_mb=1)) as session:
        assert (await session.run(code)).ok
        await shelf.put_new(session, {})
    assert shelf.saved == [str(tmp_path / f"f{n}") for n in range(saved)]
    assert shelf.failed == [f"f{n}: no room, since at most 1 MB are saved" for n in range(saved, 9)]
    taken = {path.stat().st_ino: path.stat().st_size for path in tmp_path.iterdir()}
    assert sum(taken.values()) <= 2**20


@pytest.mark.slow  # it writes half a gigabyte
@pytest.mark.threat("W6")
def test_a_run_saves_as_much_as_its_session_may_hold(cellblock: Cellblock, tmp_path: Path) -> None:
    done = cellblock("run", "-", "--save", "kept", stdin=SPARSE.replace("2**18", "2**28").encode())
    assert sum(path.stat().st_size for path in (tmp_path / "kept").iterdir()) <= 512 * 2**20
    assert "not saved: f8: no room, since at most 512 MB are saved" in done.stderr.decode()


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("a/./b//c", "a/b/c"),
        (".bashrc", "_bashrc"),
        ("..", "_"),
        ("", "_"),
        ("\u202egnp.exe", "_gnp.exe"),
        ("C:\\x", "C__x"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
        ("\u4e2d" * 100 + ".csv", "\u4e2d" * 38 + ".csv"),
        ("x." + "\u4e2d" * 100, "x." + "\u4e2d" * 6),
        ("a\ud800.png", "a_.png"),
    ],
)
def test_safe_stays_below_the_directory(hostile: str, harmless: str) -> None:
    assert safe(hostile) == harmless


# ------------------------------------------------------------------------------------------ terminal


@pytest.mark.threat("W8")
def test_escape_sequences_do_not_reach_a_terminal() -> None:
    source = (
        r"print('a\x1b[2J\x1b]0;owned\x07b\x1b]52;c;eA==\x1b\\c\x9b31md\x00\x08e\x7f')"
        "\nimport sys\nsys.stdout.write('f\\x1b['); sys.stdout.flush()\nsys.stdout.write('31mg\\n')\n"
        r"raise ValueError('\x1b[31mh')"
    )
    shown = _on_a_terminal(source, NO_COLOR="1")
    assert b"\x1b" not in shown
    assert shown.startswith(b"abcde\r\nfg\r\nTraceback")
    assert shown.endswith(b"ValueError: h\r\n")


@pytest.mark.sampled(0)
def test_exceptions_stand_out_on_a_terminal_in_our_colours_alone() -> None:
    shown = _on_a_terminal(r"raise ValueError('\x1b[31mh')", TERM="xterm", NO_COLOR="")
    assert re.findall(rb"\x1b[^\x1b]*", shown) == [b"\x1b[31mValueError: h", b"\x1b[0m\r\n"]


@pytest.mark.sampled(0)
@pytest.mark.threat("W8")
def test_sequence_that_does_not_end_hides_nothing_that_we_say() -> None:
    shown = _on_a_terminal(r"import sys; sys.stderr.write('a\x1b]0;'); sys.stderr.flush(); 1/0", NO_COLOR="1")
    assert shown.startswith(b"a\r\nTraceback (most recent call last):\r\n")
    assert shown.endswith(b"ZeroDivisionError: division by zero\r\n")


def test_piped_data_that_no_script_reads_is_told(cellblock: Cellblock, tmp_path: Path) -> None:
    (tmp_path / "in.py").write_text("import sys\nprint(repr(sys.stdin.read()))")
    note = b"cellblock: what is piped in does not reach the script: give it as a file (--file PATH)\n"
    for stdin, told in ((b"Bob\n", note), (b"", b"")):
        done = cellblock("run", "in.py", stdin=stdin)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"''\n", told)


@pytest.mark.sampled(0)
def test_a_program_that_reads_us_gets_the_text_as_it_is(cellblock: Cellblock) -> None:
    assert cellblock("run", "-", stdin=rb"print('\x1b[31mred\x07')").stdout == b"\x1b[31mred\x07\n"


def _on_a_terminal(source: str, **environment: str) -> bytes:
    """The text that `cellblock run -` writes to a terminal that both its streams are."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cellblock", "run", "-"],
        stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env={**os.environ, **environment},
    ) as process:  # fmt: skip
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(source.encode())
        process.stdin.close()
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            shown += chunk
    os.close(ours)
    return shown


# ----------------------------------------------------------------------------------------- interrupt


def _interrupted(source: bytes, *, times: int = 1) -> tuple[int, bytes, bytes]:
    """Run a script that prints a line when it is ready, and send Ctrl-C to the command, once or more."""
    with subprocess.Popen(
        [sys.executable, "-m", "cellblock", "run", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        assert process.stdout is not None
        process.stdin.write(source)
        process.stdin.close()
        assert process.stdout.readline() == b"ready\n"
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            select.select([process.stdout], [], [], 0.5)
        out, err = process.stdout.read(), process.stderr.read()
    return process.returncode, out, err


def test_ctrl_c_interrupts_the_cell_and_says_so() -> None:
    status, out, err = _interrupted(
        b"import time\ntry:\n    print('ready')\n    time.sleep(60)\nfinally:\n    print('tidied')\n"
    )
    assert (status, out) == (130, b"tidied\n")
    assert b"KeyboardInterrupt" in err
    assert err.splitlines()[-1].startswith(b"cellblock: interrupted after ")


@pytest.mark.sampled(0)
def test_second_ctrl_c_ends_a_cell_that_ignores_the_first() -> None:
    source = b"import signal\nsignal.signal(2, signal.SIG_IGN)\nprint('ready')\nwhile True: pass\n"
    status, _, err = _interrupted(source, times=2)
    assert (status, err.splitlines()[-1].startswith(b"cellblock: interrupted after ")) == (130, True)


# -------------------------------------------------------------------------------------------- import


@pytest.mark.sampled(2)
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"]])
def test_help_imports_no_event_loop(words: list[str]) -> None:
    code = (
        f"import sys\nfrom cellblock.cli import main\nmain({words!r})\n"
        "assert not {'anyio', 'asyncio'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "usage", "reason"),
    [
        ([], "usage: cellblock [-h]", "cellblock: error: no COMMAND was given"),
        (["--nope", "run", "x"], "usage: cellblock [-h]", "cellblock: error: unrecognized arguments: --nope"),
        (["--nope"], "usage: cellblock [-h]", "cellblock: error: the following arguments are required: COMMAND"),
        (
            ["script.py"], "usage: cellblock [-h]",
            "cellblock: error: no command 'script.py': there are run, agent, repl, notebook, sessions, mcp, image, "
            "doctor, demo (cellblock run FILE runs a script)",
        ),
        (
            ["run", "script.py", "--verbose"], "usage: cellblock run [options] FILE|- [-- ARGUMENT ...]",
            "cellblock run: error: unrecognized arguments: --verbose (what is for the script stands after --)",
        ),
        (
            ["run", "script.py", "--timout", "3"], "usage: cellblock run [options] FILE|- [-- ARGUMENT ...]",
            "cellblock run: error: unrecognized arguments: --timout 3 (did you mean --timeout?)",
        ),
        (
            ["run", "-c", "print(1)"], "usage: cellblock run [options] FILE|- [-- ARGUMENT ...]",
            "cellblock run: error: unrecognized arguments: -c (code comes on stdin: cellblock run -)",
        ),
        (["repl", "x"], "usage: cellblock repl [options]", "cellblock repl: error: unrecognized arguments: x"),
    ],
)  # fmt: skip
def test_usage_error_shows_how_the_command_is_used(
    capsys: pytest.CaptureFixture[str], words: list[str], usage: str, reason: str
) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.startswith(usage), told.err.splitlines()[-1]) == ("", True, reason)


def test_a_notebook_is_led_to_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sales.ipynb"]) == 2
    assert capsys.readouterr().err == "cellblock: sales.ipynb is a notebook (cellblock notebook run sales.ipynb)\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", ["taken", "taken/below", "dangling"])
def test_directory_that_cannot_be_made_is_told_before_anything_runs(
    cellblock: Cellblock, tmp_path: Path, place: str
) -> None:
    (tmp_path / "taken").write_text("theirs")
    (tmp_path / "dangling").symlink_to("nothing")
    done = cellblock("run", "-", "--save", place, stdin=b"print('ran')")
    assert (done.returncode, done.stdout) == (2, b"")
    known = tmp_path / "taken" if "/" in place else place
    assert done.stderr.decode() == f"cellblock: --save {place!r}: {str(known)!r} is no directory\n"
    assert (tmp_path / "taken").read_text() == "theirs"


# ------------------------------------------------------------------------------------------- scripts


PRINTED = {
    "arguments": "arguments.py one two arguments.py __main__\n",
    "asyncio_server": "HELLO\nchild\n6\n",
    "multiprocessing_pools": (
        "fork [0, 1, 4, 9]\nspawn [0, 1, 4, 9]\nforkserver [0, 1, 4, 9]\n"
        "manager {'k': 1}\nshared memory 7\nexecutor [1, 2]\n"
    ),
    "sqlite_wal": "wal\n45\n",
    "subprocesses": "42\nfrom a shell\n3\n",
    "threads_and_queues": "10 328350\n",
    "matplotlib_figure": "drawn\n",
    "numpy_sums": "499999500000 40\n",
    "pandas_groups": "{'a': 4, 'b': 2}\n",
}
NEEDS = {"matplotlib_figure": "matplotlib", "numpy_sums": "numpy", "pandas_groups": "pandas"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", sorted(PRINTED))
def test_script_prints_what_it_prints_outside(cellblock: Cellblock, scripts: Path, name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    done = cellblock("run", scripts / f"{name}.py", "--", "one", "two")
    assert (done.returncode, done.stdout.decode(), done.stderr.decode().replace(_image(done), "")) == (
        0, PRINTED[name], "",
    )  # fmt: skip


def test_every_sample_script_is_run(scripts: Path) -> None:
    assert sorted(path.stem for path in scripts.glob("*.py")) == sorted(PRINTED)


def _image(done: subprocess.CompletedProcess[bytes]) -> str:
    """The note about a figure that nobody asked to keep."""
    return next((line for line in done.stderr.decode().splitlines(keepends=True) if "an image of" in line), "\0")
