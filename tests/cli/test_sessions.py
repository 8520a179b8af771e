"""`cellblock sessions`: what a store keeps, as tables and as JSON; no process of a session is started."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cellblock import Session, Versioned
from cellblock.store import open_store

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/cells.db"


@pytest.fixture
def stored(cellblock: Run, url: str) -> Iterator[Run]:
    """Runs `cellblock sessions` on a store with one session of three cells."""
    with Session("report", state=Versioned(url)) as session:
        session.run("a = 1\nprint('first')")
        session.run("b = [a]; open('out.txt', 'w').write('text')")
        session.run("a = 2")
    return lambda *words: cellblock("sessions", *words, environment={"CELLBLOCK_STORE": url})


def _json(done: subprocess.CompletedProcess[bytes]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_list(stored: Run, url: str, cellblock: Run) -> None:
    (row,) = _json(stored("list", "--json"))
    assert (row["user"], row["name"], row["depth"], row["holder"]) == ("default", "report", 4, None)
    lines = stored("list").stdout.decode().splitlines()
    assert lines[0].split() == ["SESSION", "COMMITS", "LAST", "USED", "OPEN", "IN"]
    assert lines[1].split()[:2] == ["report", "4"]
    done = stored("list", "--user", "nobody")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == (
        f"cellblock: no sessions of 'nobody' in {url}; other users have some: --user NAME, or --all-users\n"
    )


@pytest.mark.sampled(0)
def test_a_commit_says_where_a_state_is_that_it_does_not_hold(stored: Run, url: str) -> None:
    details: list[dict[str, Any]] = [{}, {"deleted": ["c0"]}]
    with open_store(url) as store, store.hold("default", "report") as held, held.batch() as batch:
        for detail in details:
            trees = held.resolve("HEAD").trees
            batch.commit(kind="aside", number=3, snapshot=False, trees=trees, detail=detail)
    assert "\n(the state is that of the commit before)\n" in stored("show", "report").stdout.decode()
    before = stored("show", "report", "HEAD~1").stdout.decode()
    assert "\n(the state was not saved: it is made again by running the cell)\n" in before
    assert "state" not in stored("show", "report", "HEAD~2").stdout.decode()


@pytest.mark.sampled(0)
def test_who_has_a_session_open_is_listed_and_nobody_else_moves_it(program: Run, url: str) -> None:
    environment = {"CELLBLOCK_STORE": url}
    with Session("report", state=Versioned(url)):
        (row,) = _json(program("sessions", "list", "--json", environment=environment))
        assert row["holder"].startswith("process ")
        done = program("sessions", "undo", "report", environment=environment)
        assert (done.returncode, done.stdout) == (1, b"")
        assert row["holder"].encode() in done.stderr


@pytest.mark.sampled(0)
def test_steps_that_a_killed_program_left_in_the_journal_are_told(cellblock: Run, url: str) -> None:
    source = f"""
import os
from cellblock import Session, Versioned
from cellblock.store import open_store
session = Session("report", state=Versioned({url!r}))
session.run("a = 1")
session.flush()
session.run("import time\\nclass Slow:\\n    def __reduce__(self): time.sleep(9)\\nslow = Slow()")
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == -9
    environment = {"CELLBLOCK_STORE": url}
    done = cellblock("sessions", "list", "--json", environment=environment)
    (row,) = _json(done)
    assert row["holder"] is None
    told = b"the last step is kept, and not in the log yet (open the session once"
    for words in (["log", "report"], ["show", "report"], ["diff", "report"], ["branch", "report", "other"]):
        done = cellblock("sessions", *words, environment=environment)
        assert (done.returncode, told in done.stderr) == (0, True), done.stderr
    done = cellblock("sessions", "undo", "report", environment=environment)
    assert (done.returncode, told in done.stderr) == (1, True)


@pytest.mark.sampled(0)
def test_log_and_show(stored: Run) -> None:
    commits = _json(stored("log", "report", "--json"))
    assert [(commit["number"], commit["message"]) for commit in commits] == [
        (3, "a = 2"),
        (2, "b = [a]; open('out.txt', 'w').write('text')"),
        (1, "a = 1"),
        (0, ""),
    ]
    assert commits[0]["refs"] == ["HEAD", "main"]
    assert len(_json(stored("log", "report", "HEAD~1", "--limit", "2", "--json"))) == 2
    shown = _json(stored("show", "report", "HEAD~2", "--json"))
    assert shown["cell"] == {"source": "a = 1\nprint('first')", "state": "completed", "text": "first"}
    assert shown["names"] == {"a": {"type": "int", "size": shown["names"]["a"]["size"], "preview": "1"}}
    text = stored("show", "report").stdout.decode()
    assert "    a = 2" in text
    assert "[1]" in text


@pytest.mark.sampled(0)
def test_log_gives_the_revision_of_each_commit_that_first_parents_lead_to(cellblock: Run, url: str) -> None:
    with Session("main", state=Versioned(url)) as session:
        session.run("base = 1")
        with session.branch("side") as side:
            side.run("theirs = 2")
            session.run("ours = 3")
            session.merge(side)
        session.run("after = 4")

    def revisions(*words: str) -> list[list[str]]:
        shown = cellblock("sessions", "log", "main", *words, "--store", url).stdout.decode().splitlines()
        return [row.split()[:2] for row in shown]

    title, *rows = revisions()
    assert title == ["COMMIT", "REVISION"]
    assert [name for _, name in rows] == ["HEAD", "HEAD~1", "HEAD~2", "-", "HEAD~3", "HEAD~4"]
    assert [name for _, name in revisions("HEAD~1", "--limit", "4")[1:]] == ["HEAD~1", "HEAD~1~1", "-", "HEAD~1~2"]
    for commit, name in rows:
        told = _json(cellblock("sessions", "show", "main", commit if name == "-" else name, "--json", "--store", url))
        assert told["id"].startswith(f"sha256-{commit}")


@pytest.mark.sampled(0)
def test_imports_and_definitions_of_a_session_are_shown_as_source(cellblock: Run, url: str) -> None:
    with Session("defs", state=Versioned(url)) as session:
        session.run("import math\ndef area(r): return r")
        session.run("import math, os\ndef area(r):\n    return math.pi * r ** 2\nclass Gone: pass")
        session.run("def never(): pass\nos._exit(1)")
        session.run("class Undone: pass")
        session.undo()
    done = cellblock("sessions", "show", "defs", "HEAD", "--declarations", "--store", url)
    assert done.stdout == b"import math\nimport math, os\ndef area(r):\n    return math.pi * r ** 2\nclass Gone: pass\n"
    first = _json(cellblock("sessions", "show", "defs", "HEAD~2", "--declarations", "--json", "--store", url))
    assert first == ["import math", "def area(r): return r"]


@pytest.mark.sampled(0)
def test_diff(stored: Run) -> None:
    diff = _json(stored("diff", "report", "HEAD~2", "--json"))
    assert [(one["name"], one["after"]["preview"]) for one in diff["names"]] == [("a", "2"), ("b", "[1]")]
    assert [one["path"] for one in diff["files"]] == ["workspace/out.txt"]
    assert "~ a: 1 (int) → 2 (int)" in stored("diff", "report", "HEAD~2").stdout.decode()


@pytest.mark.sampled(0)
def test_undo_counts_no_cell_that_was_rolled_back(stored: Run, url: str) -> None:
    with Session("report", state=Versioned(url)) as session:
        assert session.run("import os; os._exit(3)").rolled_back
    assert _json(stored("undo", "report", "--json"))["number"] == 2
    assert b"undoing 9 steps goes past the first commit" in stored("undo", "report", "9").stderr


def test_undo_checkout_tag_branch_and_merge(stored: Run, url: str) -> None:
    assert _json(stored("tag", "report", "good", "--json"))["number"] == 3
    assert _json(stored("undo", "report", "--json"))["number"] == 2
    with Session("report", state=Versioned(url)) as session:
        assert session.run("a").value == 1
    assert _json(stored("checkout", "report", "good", "--json"))["number"] == 3
    assert _json(stored("branch", "report", "idea", "--json"))["session"] == "idea"
    with Session("idea", state=Versioned(url)) as session:
        assert session.run("new = a").ok
    assert b"merged" in stored("merge", "report", "idea").stderr
    with Session("report", state=Versioned(url)) as session:
        assert session.run("new, a, b").value == (2, 2, [1])
        session.run("a = 'ours'")
    with Session("idea", state=Versioned(url)) as session:
        session.run("a = 'theirs'")
    done = stored("merge", "report", "idea")
    assert (done.returncode, b"both changed names: a" in done.stderr) == (1, True)
    assert b"(make one of them as the other is, or give --prefer ours or --prefer theirs)" in done.stderr
    assert stored("merge", "report", "idea", "--prefer", "theirs").returncode == 0
    with Session("report", state=Versioned(url)) as session:
        assert session.run("a").value == "theirs"


def test_log_marks_cells_that_failed(stored: Run, url: str) -> None:
    with Session("report", state=Versioned(url)) as session:
        session.run("1 / 0")
        session.run("raise type('A\\nB', (Exception,), {})")
        session.run("import os; os._exit(3)")
    commits = _json(stored("log", "report", "--json"))
    assert [one["error"] for one in commits[:4]] == ["ProcessDied", "A B", "ZeroDivisionError", ""]
    lines = stored("log", "report").stdout.decode().splitlines()
    kinds = [line[lines[0].index("KIND") : lines[0].index("WHEN")].strip() for line in lines[1:5]]
    assert kinds == ["python, failed", "python, failed", "python, failed", "python"]


def test_rename(stored: Run) -> None:
    done = stored("rename", "report", "q3")
    assert (done.returncode, done.stderr) == (0, b"cellblock: 'report' is 'q3' now\n")
    assert [row["name"] for row in _json(stored("list", "--json"))] == ["q3"]
    assert stored("rename", "report", "q4").returncode == 2
    assert stored("rename", "q3", "").returncode == 2


def test_export(stored: Run, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    assert stored("export", "report", "out.ipynb").returncode == 0
    document = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    nbformat.validate(document)
    assert [cell.execution_count for cell in document.cells] == [1, 2, 3]
    assert stored("export", "report", "out.html").returncode == 0
    assert "first" in (tmp_path / "out.html").read_text()
    assert stored("export", "report", "out.py").returncode == 0
    assert (tmp_path / "out.py").read_text().startswith("# %%\na = 1\nprint('first')\n\n# %%\nb = [a]; open(")
    assert b"ends neither in .ipynb nor in .html nor in .py" in stored("export", "report", "out.txt").stderr


def test_verify_gc_and_delete(stored: Run) -> None:
    report = _json(stored("verify", "--json"))
    assert (report["ok"], report["sessions"], report["commits"]) == (True, 1, 4)
    assert b"all sound" in stored("verify").stderr
    assert _json(stored("gc", "--json"))["deleted"] == 0
    assert _json(stored("delete", "report", "--json")) == {"deleted": "report"}
    assert _json(stored("list", "--json")) == []


def _at_a_terminal(url: str, words: tuple[str, ...], answer: bytes) -> tuple[int, str]:
    """The exit status of `cellblock sessions` whose stdin is a terminal, and what it says."""
    ours, theirs = pty.openpty()
    with open(ours, "wb", buffering=0) as keyboard:
        keyboard.write(answer)
        done = subprocess.run(
            [sys.executable, "-m", "cellblock", "sessions", *words],
            stdin=theirs, stderr=subprocess.PIPE, timeout=60, env={**os.environ, "CELLBLOCK_STORE": url},
        )  # fmt: skip
        os.close(theirs)
    return done.returncode, done.stderr.decode()


DELETE = "cellblock: delete session 'report' of 'default', with all its commits? [y/N] "


def test_a_person_is_asked_before_a_session_is_deleted(stored: Run, url: str) -> None:
    kept = DELETE + "cellblock: nothing was changed\n"
    for answer in (b"\n", b"n\n", b"\x04"):
        assert _at_a_terminal(url, ("delete", "report"), answer) == (1, kept)
    assert len(_json(stored("list", "--json"))) == 1
    done = _at_a_terminal(url, ("delete", "nosuch"), b"y\n")
    assert (done[0], "[y/N]" in done[1]) == (2, False)
    assert _at_a_terminal(url, ("delete", "report"), b"y\n") == (0, DELETE + "cellblock: deleted session 'report'\n")
    assert _json(stored("list", "--json")) == []


def test_a_person_is_asked_before_a_file_is_overwritten(stored: Run, url: str, tmp_path: Path) -> None:
    path = tmp_path / "own.html"
    wrote = f"cellblock: wrote 3 cells to {path}\n"
    assert _at_a_terminal(url, ("export", "report", str(path)), b"") == (0, wrote)
    path.write_text("mine")
    question = f"cellblock: overwrite {path}? [y/N] "
    kept = question + "cellblock: nothing was changed\n"
    assert (_at_a_terminal(url, ("export", "report", str(path)), b"n\n"), path.read_text()) == ((1, kept), "mine")
    assert _at_a_terminal(url, ("export", "report", str(path)), b"yes\n") == (0, question + wrote)
    assert _at_a_terminal(url, ("export", "report", str(path), "--yes"), b"") == (0, wrote)
    assert stored("export", "report", str(path)).returncode == 0


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["log", "other"], 2, b"has no session 'other'"),
        (["log", "report", "HEAD~9"], 2, b"HEAD~9"),
        (["show", "report", "nothing"], 2, b"nothing"),
        (["undo", "report", "-1"], 2, b""),
        (["undo", "report", "many"], 2, b"'many' is not a number"),
        (["checkout", "report"], 2, b"REVISION"),
        (["merge", "report", "other"], 2, b"other"),
        (["list", "--store", "mysql://x"], 2, b"this is not the URL of a store"),
        (["list", "--store", "sqlite:///x.db?objects="], 2, b"names no place for objects"),
        (["list", "--store", "sqlite:////proc/none/x.db"], 2, b"there is no store at sqlite:////proc/none/x.db"),
    ],
)
def test_what_cannot_be_done_is_a_line(stored: Run, words: list[str], status: int, said: bytes) -> None:
    done = stored(*words)
    assert (done.returncode, done.stdout) == (status, b"")
    assert said in done.stderr
    assert b"Traceback" not in done.stderr


def test_store_that_is_not_there_is_not_made(cellblock: Run, tmp_path: Path) -> None:
    slip = f"sqlite:///{tmp_path}/cels.db"
    done = cellblock("sessions", "list", environment={"CELLBLOCK_STORE": slip})
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"there is no store at {slip}".encode() in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(0)
def test_place_of_objects_that_is_not_there_is_not_made(stored: Run, url: str, tmp_path: Path) -> None:
    for place in (f"{tmp_path}/slip", f"file://{tmp_path}/slip/of"):
        done = stored("list", "--store", f"{url}?objects={place}")
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"there is no store at sqlite:///" in done.stderr
    assert not (tmp_path / "slip").exists()
    (tmp_path / "objects").mkdir()
    assert stored("list", "--store", f"{url}?objects={tmp_path}/objects").returncode == 0


_FORGED = """\
class Odd:
    def __repr__(self): return 'a\\nb  str  5 B  forged\\x1b[2J'
Odd.__name__ = Odd.__qualname__ = 'T\\nc  int\\x1b['
globals()['n\\nforged  int'] = Odd()
globals()['x\\x1b['] = 1
print('NAME  TYPE  SIZE  VALUE\\nsecret  str  5  mine')
"""


@pytest.mark.threat("W8")
def test_nothing_in_a_session_forges_a_mark_or_a_row(cellblock: Run, url: str) -> None:
    with Session("a", state=Versioned(url)) as session:
        session.run(f"['HEAD', 'main']\n{_FORGED}")
        session.run("2")
    log = cellblock("sessions", "log", "a", "--store", url).stdout.decode().splitlines()
    titles, (newest, older, *_) = log[0], log[1:]
    at = titles.index("REFS")
    assert newest[at:].split() == ["HEAD,", "main", "2"]
    assert older[at:].split() == ["-", "['HEAD',", "'main']"]
    shown = cellblock("sessions", "show", "a", "HEAD~1", "--store", url).stdout.decode()
    assert "\x1b" not in shown
    table = shown[shown.index("\nNAME") + 1 :].splitlines()
    assert len(table) == 4
    assert sorted(row.split("  ")[0] for row in table[1:]) == ["'n\\nforged int'", "'x\\x1b['", "Odd"]
    assert "  | secret  str  5  mine" in shown.splitlines()


@pytest.mark.threat("W8")
@pytest.mark.parametrize("action", ["show", "log"])
def test_code_that_ran_is_shown_whole_at_a_terminal(repl: Callable[..., Any], url: str, action: str) -> None:
    with Session("a", state=Versioned(url)) as session:
        session.run('a = "\x1b]0;"; print("EVIL"); b = "\x07"')
    repl(action, "a", "--store", url, command="sessions").expect(r'print\("EVIL"\); b')
