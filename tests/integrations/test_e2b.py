"""E2B's interface: what a program written for `e2b_code_interpreter` does, after one changed import."""

from __future__ import annotations

import base64
import inspect
import io
import json
import math
import operator
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from cellblock import CellblockError, ExecutionLimits, SessionClosed, Versioned
from cellblock.integrations.e2b import (
    CommandExitException,
    Execution,
    FileType,
    InvalidArgumentException,
    Logs,
    NotFoundException,
    OutputMessage,
    Result,
    Sandbox,
    SandboxException,
    TimeoutException,
)
from cellblock.integrations.e2b.execution import result
from cellblock.outputs import Output, OutputType
from cellblock.session.notebook import Notebook

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.create(limits=ExecutionLimits(timeout_seconds=20)) as sandbox:
        yield sandbox


def test_names_live_on_and_the_last_expression_is_the_text(sandbox: Sandbox) -> None:
    sandbox.run_code("x = 1")
    execution = sandbox.run_code("x += 1; x")
    assert execution.text == "2"
    assert execution.results == [Result(text="2", is_main_result=True)]
    assert execution.logs == Logs()
    assert (execution.error, execution.execution_count) == (None, 2)
    assert sandbox.run_code("x = 3").text is None


def test_printed_text_errors_and_json(sandbox: Sandbox) -> None:
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 / 0"
    execution = sandbox.run_code(code)
    assert ("".join(execution.logs.stdout), "".join(execution.logs.stderr)) == ("out\n", "err\n")
    assert execution.error is not None
    assert (execution.error.name, execution.error.value) == ("ZeroDivisionError", "division by zero")
    assert execution.error.traceback.startswith("Traceback (most recent call last):")
    told = json.loads(execution.to_json())
    assert told["results"] == []
    assert json.loads(told["error"])["name"] == "ZeroDivisionError"


def test_views_of_what_is_shown(sandbox: Sandbox) -> None:
    code = f"""
class Shown:
    def __repr__(self): return 'shown'
    def _repr_html_(self): return '<b>shown</b>'
    def _repr_png_(self): return {_PNG!r}
Shown()
"""
    (result,) = sandbox.run_code(code).results
    assert (result.text, result.html, result.is_main_result) == ("shown", "<b>shown</b>", True)
    assert base64.b64decode(result.png or "") == _PNG
    assert result.formats() == ["text", "html", "png"]
    assert str(result) == "Result(shown)"


@pytest.mark.threat("W8")
def test_what_a_result_shows_itself_as_holds_no_script(sandbox: Sandbox) -> None:
    code = """
class Shown:
    def __repr__(self): return 'shown\\x1b]0;title\\x07'
    def _repr_html_(self): return '<b onclick=run()>shown</b><script>run()</script>'
    def _repr_svg_(self): return '<svg onload="run()"/>'
    def _repr_markdown_(self): return '<script>run()</script>'
    def _repr_latex_(self): return r'$\\href{javascript:run()}{x}$'
    def _repr_mimebundle_(self, **_): return {'application/javascript': 'run()'}
Shown()
"""
    (result,) = sandbox.run_code(code).results
    assert (result.javascript, result.svg) == ("run()", '<svg onload="run()"/>')  # for programs, as the code gave it
    assert repr(result) == str(result) == "Result(shown)"
    html = result._repr_html_()
    element = r'<div class="cb-shown-\w+" style="contain:content;overflow:auto"><b>shown</b></div>'
    assert re.fullmatch(element, str(html))
    assert (result._repr_svg_(), result._repr_markdown_()) == (None, None)
    note = "[left out, since a display might run or load it: text/latex, application/javascript]"
    bundle = result._repr_mimebundle_()
    assert bundle == {"text/plain": f"shown\x1b]0;title\x07\n{note}", "text/html": html}


def test_an_image_reaches_a_callback_with_its_bytes(sandbox: Sandbox) -> None:
    results: list[Result] = []
    code = f"import time\nclass P:\n    def _repr_png_(self): return {_PNG!r}\ndisplay(P())\ntime.sleep(0.3)"
    sandbox.run_code(code, on_result=results.append)
    assert [base64.b64decode(one.png or "") for one in results] == [_PNG]
    assert results[0]._repr_png_() == results[0].png


@pytest.mark.sampled(0)
def test_callbacks_are_called_as_it_happens(sandbox: Sandbox) -> None:
    heard: list[tuple[str, float]] = []

    def hear(message: OutputMessage) -> None:
        heard.append((message.line, time.monotonic()))

    errors: list[str] = []
    results: list[str | None] = []
    sandbox.run_code(
        "import time\nprint('first', flush=True)\ntime.sleep(1)\nprint('second')\n7",
        on_stdout=hear, on_result=lambda one: results.append(one.text),
    )  # fmt: skip
    assert [line for line, _ in heard] == ["first\n", "second\n"]
    assert heard[1][1] - heard[0][1] > 0.5
    assert results == ["7"]
    sandbox.run_code("nothing", on_error=lambda error: errors.append(error.name))
    assert errors == ["NameError"]


def test_a_callback_that_fails_interrupts_the_code(sandbox: Sandbox) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("enough")

    began = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        sandbox.run_code("import time\nprint('x', flush=True)\ntime.sleep(15)", on_stdout=fail)
    assert time.monotonic() - began < 10
    assert sandbox.run_code("1").text == "1"


@pytest.mark.sampled(0)
def test_a_time_limit_of_the_call_and_one_of_the_session(sandbox: Sandbox) -> None:
    sandbox.run_code("x = 1")
    with pytest.raises(TimeoutException, match=r"the code ran longer than 0\.5 s"):
        sandbox.run_code("x = 2\nwhile True: pass", timeout=0.5)
    assert sandbox.run_code("x").text in ("1", "2")
    with Sandbox.create(limits=ExecutionLimits(timeout_seconds=0.5)) as hasty:
        with pytest.raises(TimeoutException, match=r"the code ran longer than 0\.5 s"):
            hasty.run_code("while True: pass")
        assert hasty.run_code("1").text == "1"


def test_files(sandbox: Sandbox) -> None:
    written = sandbox.files.write("data/in.csv", "a,b\n1,2\n")
    assert (written.name, written.path) == ("in.csv", "data/in.csv")
    sandbox.files.write_files([{"path": "/tmp/raw", "data": b"\xff\0"}])
    assert sandbox.run_code("open('data/in.csv').read()").text == "'a,b\\n1,2\\n'"
    assert sandbox.files.read("data/in.csv") == "a,b\n1,2\n"
    assert sandbox.files.read("/tmp/raw", format="bytes") == bytearray(b"\xff\0")
    assert sandbox.files.make_dir("made/deep") is True
    assert sandbox.files.make_dir("made/deep") is False
    assert [(one.name, one.type, one.size) for one in sandbox.files.list()] == [
        ("data", FileType.DIR, 0), ("made", FileType.DIR, 0),
    ]  # fmt: skip
    assert [one.name for one in sandbox.files.list(".", depth=2)] == ["data", "in.csv", "made", "deep"]
    moved = sandbox.files.rename("data/in.csv", "made/out.csv")
    assert moved.name == "out.csv"
    assert (sandbox.files.exists("data/in.csv"), sandbox.files.exists("made/out.csv")) == (False, True)
    sandbox.files.remove("made")
    assert not sandbox.files.exists("made")
    assert sandbox.run_code("[name for name in dir() if 'cellblock' in name or name == 'found']").text == "[]"


def test_relative_paths_start_in_the_workspace_wherever_the_code_has_gone(sandbox: Sandbox) -> None:
    for name in ("gone", "moved", "kept/in"):
        sandbox.files.write(name, "workspace")
    sandbox.run_code(
        "import os\nos.makedirs('/tmp/w/kept')\nos.chdir('/tmp/w')\n"
        "for name in ('gone', 'moved', 'decoy', 'kept/decoy'): open(name, 'w').close()\nos.mkdir('made')"
    )
    files = sandbox.files
    assert files.read("gone") == "workspace"
    assert [one.path for one in files.list("kept")] == ["/session/workspace/kept/in"]
    assert [one.name for one in files.list()] == ["gone", "kept", "moved"]
    assert (files.exists("decoy"), files.exists("kept/in"), files.exists("")) == (False, True, False)
    assert (files.make_dir("made"), files.make_dir("made")) == (True, False)
    assert files.rename("moved", "made/new").path == "/session/workspace/made/new"
    assert files.read("made/new") == "workspace"
    files.remove("gone")
    with pytest.raises(NotFoundException):
        files.remove("")
    files.write_files([{"path": "written", "data": "x"}])
    assert [one.name for one in files.list(depth=2)] == ["kept", "in", "made", "new", "written"]
    assert sandbox.commands.run("pwd", cwd="made").stdout == "/session/workspace/made\n"
    left = "sorted(os.listdir()), os.listdir('kept'), os.listdir('made')"
    assert sandbox.run_code(left).text == "(['decoy', 'gone', 'kept', 'made', 'moved'], ['decoy'], [])"


def test_files_that_are_not_there_or_are_not_the_sandboxs(sandbox: Sandbox) -> None:
    for read in (sandbox.files.read, sandbox.files.list, sandbox.files.remove):
        with pytest.raises(NotFoundException):
            read("missing")
    for path in ("../../etc/passwd", "/etc/passwd"):
        with pytest.raises(SandboxException, match="is not among the session's files"):
            sandbox.files.read(path)
    with pytest.raises(SandboxException):
        sandbox.files.remove("/etc/passwd")


def test_text_of_a_file_that_is_not_utf8_has_replacement_characters(sandbox: Sandbox) -> None:
    sandbox.files.write("half", b"a\xffb")
    assert sandbox.files.read("half") == "a\ufffdb"
    assert sandbox.files.read("half", format="bytes") == bytearray(b"a\xffb")


_VANISHING = """
import contextlib, os
for name in ("gone", "kept", "sub/deep"):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").close()
os.makedirs("leaving")
os.makedirs("closed")
os.chmod("closed", 0)
scandir = os.scandir
@contextlib.contextmanager
def vanishing(path):
    with scandir(path) as entries:
        found = list(entries)
    if os.path.exists("gone"):
        os.unlink("gone")
        os.rmdir("leaving")
    yield found
os.scandir = vanishing
"""


def test_what_vanishes_or_is_closed_while_it_is_listed_stops_no_listing(sandbox: Sandbox) -> None:
    sandbox.run_code(_VANISHING)
    assert [one.name for one in sandbox.files.list(depth=10**6)] == ["closed", "kept", "leaving", "sub", "deep"]


def test_directory_of_a_command_is_no_option_and_no_earlier_one(sandbox: Sandbox) -> None:
    sandbox.run_code("import os\nos.mkdir('-')\nos.mkdir('-P')\nos.mkdir('d')")
    found = [sandbox.commands.run("pwd", cwd=directory).stdout for directory in ("-", "-P", "d", "/tmp", ".")]
    assert found == [f"/session/workspace/{name}\n" for name in ("-", "-P", "d")] + ["/tmp\n", "/session/workspace\n"]


def test_a_sandbox_whose_builtins_were_changed_answers_with_errors_alone(sandbox: Sandbox) -> None:
    sandbox.run_code("import os\nos.scandir = lambda path: 1 / 0\nos.path.lexists = lambda path: ['yes']")
    with pytest.raises(SandboxException, match="ZeroDivisionError"):
        sandbox.files.list()
    assert sandbox.files.exists("x") is False


def test_commands(sandbox: Sandbox) -> None:
    heard: list[str] = []
    result = sandbox.commands.run(
        "echo $WHO; pwd; echo err >&2", envs={"WHO": "it's"}, cwd="/tmp", on_stdout=heard.append
    )
    assert (result.stdout, result.stderr, result.exit_code) == ("it's\n/tmp\n", "err\n", 0)
    assert "".join(heard) == result.stdout
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.run("echo out; exit 3")
    assert (raised.value.exit_code, raised.value.stdout) == (3, "out\n")
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.run("kill -9 $$")
    assert (raised.value.exit_code, raised.value.error) == (137, "killed by SIGKILL")
    with pytest.raises(TimeoutException, match=r"the command ran longer than 0\.5 s"):
        sandbox.commands.run("sleep 15", timeout=0.5)
    assert sandbox.run_code("echo bash", language="bash").logs.stdout == ["bash\n"]


def test_variables_of_the_environment(sandbox: Sandbox) -> None:
    with Sandbox.create(envs={"KEPT": "1"}) as other:
        assert (
            other.run_code("import os; os.environ['KEPT'], os.environ['ONCE']", envs={"ONCE": "2"}).text == "('1', '2')"
        )
        assert other.run_code("os.environ.get('ONCE')").text is None
        assert other.commands.run("echo $KEPT").stdout == "1\n"


@pytest.mark.sampled(0)
def test_variables_of_one_run_are_in_no_cell_and_end_with_it(sandbox: Sandbox) -> None:
    sandbox.run_code("import os; os.environ['SET'] = 'before'; x = 1")
    once = {"SET": "value-1", "UNSET": "value-2"}
    read = "os.environ['SET'], os.environ.get('UNSET')"
    assert sandbox.run_code(f"x = 2; {read}", envs=once).text == "('value-1', 'value-2')"
    assert sandbox.commands.run("echo $SET $UNSET", envs=once).stdout == "value-1 value-2\n"
    notebook = sandbox.session.notebook
    assert [cell.source for cell in notebook.cells][1:] == [f"x = 2; {read}", "echo $SET $UNSET"]
    assert sandbox.run_code(read).text == "('before', None)"
    with pytest.raises(InvalidArgumentException):
        sandbox.run_code("1", envs={"UNSET": "x", "A=B": "x"})
    assert sandbox.run_code(read).text == "('before', None)"
    with Sandbox.create(envs={"KEPT": "value-3"}) as other:
        assert other.run_code("1", envs=once).execution_count == 1
        assert "value-" not in other.session.notebook.to_html()


@pytest.mark.sampled(0)
@pytest.mark.parametrize("after", ["run_code", "commands"])
def test_a_run_is_undone_with_its_variables_in_one_step(sandbox: Sandbox, after: str) -> None:
    sandbox.run_code("import os; os.environ['SET'] = 'before'; x = 1")
    sandbox.run_code("x = 2", envs={"SET": "once", "UNSET": "once"})
    sandbox.session.undo()
    if after == "commands":
        assert sandbox.commands.run("echo $SET $UNSET").stdout == "before\n"
    assert sandbox.run_code("x, os.environ['SET'], os.environ.get('UNSET')").text == "(1, 'before', None)"
    with pytest.raises(TimeoutException):
        sandbox.run_code("while True: pass", envs={"UNSET": "once"}, timeout=0.5)
    assert sandbox.run_code("os.environ.get('UNSET')").text is None


@pytest.mark.sampled(0)
def test_a_run_that_was_undone_leaves_no_variables_to_a_sandbox_that_is_opened_again(tmp_path: Path) -> None:
    def opened() -> Sandbox:
        return Sandbox.create(name="lasting", state=Versioned(f"sqlite:///{tmp_path}/store.db"))

    with opened() as sandbox:
        sandbox.run_code("x = 1")
        sandbox.run_code("x = 2", envs={"ONCE": "1"})
        sandbox.session.undo()
    with opened() as sandbox:
        assert sandbox.run_code("import os; x, os.environ.get('ONCE')").text == "(1, None)"


@pytest.mark.sampled(0)
def test_it_ends_once_and_by_itself() -> None:
    sandbox = Sandbox.create(timeout=0.5)
    deadline = time.monotonic() + 20
    while sandbox.is_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not sandbox.is_running()
    assert sandbox.kill() is False
    for call in (sandbox.run_code, sandbox.commands.run, sandbox.files.read):
        with pytest.raises(SandboxException) as raised:
            call("1")
        assert isinstance(raised.value, SessionClosed)


@pytest.mark.parametrize(
    "arguments", [{"template": "base"}, {"allow_internet_access": True}], ids=lambda arguments: next(iter(arguments))
)
def test_what_cannot_be_had_is_an_error(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentException) as raised:
        Sandbox.create(**arguments)  # type: ignore[arg-type]
    assert raised.value.hint


_ODD: tuple[object, ...] = (
    *(None, True, math.nan, math.inf, -math.inf, -1, 0, 2**70, 1e300, b"\xff", bytearray(b"x"), "", "a\0b", "\ud800"),
    *("x" * 5000, "../x", "-x", object(), str, [], {}, [5], [{}], ["ab"], {1: 2}, {"A": 5}, {5: "A"}, {"A=B": "x"}),
    *({"\ud800": "x"}, {"A": "\ud800"}, {"A": "\0"}, [{"path": 5, "data": "x"}], [{"path": "x", "data": 5}]),
    *([{"path": "x", "data": "\ud800"}], (one for one in "ab"), io.StringIO("\ud800"), SimpleNamespace(read=lambda: 5)),
)
_ARGUMENTS: dict[str, dict[str, object]] = {
    "run_code": {"code": "print(1)\n1"},
    "set_timeout": {"timeout": 1000},
    "commands.run": {"cmd": "echo x; exit 3"},
    "files.read": {"path": "f"},
    "files.write": {"path": "f", "data": "x"},
    "files.write_files": {"files": []},
    "files.list": {"path": "."},
    "files.exists": {"path": "."},
    "files.make_dir": {"path": "d"},
    "files.remove": {"path": "f"},
    "files.rename": {"old_path": "f", "new_path": "g"},
}


def test_every_method_with_arguments_is_tried_with_odd_ones(sandbox: Sandbox) -> None:
    faces = {"": sandbox, "commands.": sandbox.commands, "files.": sandbox.files}
    methods = {
        before + name: getattr(face, name)
        for before, face in faces.items()
        for name in dir(face)
        if not name.startswith("_") and inspect.ismethod(getattr(face, name))
    }
    assert {name for name, one in methods.items() if inspect.signature(one).parameters} == {*_ARGUMENTS, "create"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", _ARGUMENTS)
def test_a_wrong_argument_is_told_as_such(sandbox: Sandbox, name: str) -> None:
    call, usual = operator.attrgetter(name)(sandbox), _ARGUMENTS[name]
    sandbox.files.write("f", "x")
    for parameter in inspect.signature(call).parameters:
        for odd in _ODD:
            if name == "set_timeout" and odd == 0:  # which ends it
                continue
            with suppress(CellblockError):  # any other fails the test
                call(**{**usual, parameter: odd})
    assert sandbox.run_code("1 + 1").text == "2"


@pytest.mark.parametrize("parameter", [*inspect.signature(Sandbox).parameters, "mounts", "limits", "unknown"])
def test_a_wrong_argument_of_a_sandbox_is_told_as_such(parameter: str) -> None:
    for odd in _ODD:
        with suppress(CellblockError):
            Sandbox(**{parameter: odd}).kill()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (
            "run_code",
            {"code": "1", "timeout": math.nan},
            "timeout must be a number of seconds from 0 to 9223372036, not nan",
        ),
        ("set_timeout", {"timeout": -1}, "timeout must be a number of seconds from 0 to 9223372036, not -1"),
        (
            "commands.run",
            {"cmd": "x", "envs": {"A": 5}},
            "envs must be names and values, all of them text, not {'A': 5}",
        ),
        ("files.write", {"path": "f", "data": 5}, "data must be text, bytes or an open file, not 5"),
        ("files.list", {"depth": 0}, "depth must be a whole number above 0, not 0"),
        ("files.exists", {"path": None}, "path must be text, not None"),
    ],
)
def test_a_wrong_argument_is_named_with_what_it_must_be(
    sandbox: Sandbox, name: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidArgumentException) as raised:
        operator.attrgetter(name)(sandbox)(**arguments)
    assert str(raised.value) == said


def test_a_file_is_written_as_it_is_read(sandbox: Sandbox) -> None:
    sandbox.files.write("f", b"\xff")
    sandbox.files.write("g", sandbox.files.read("f", format="bytes"))
    assert sandbox.files.read("g", format="bytes") == b"\xff"


def test_what_says_how_the_service_is_reached_is_left_aside() -> None:
    with Sandbox.create(api_key="e2b_…", request_timeout=5) as sandbox:
        assert isinstance(sandbox.run_code("1"), Execution)
        with pytest.raises(InvalidArgumentException):
            sandbox.run_code("1", language="javascript")
        sandbox.session.undo()


def test_text_that_only_looks_like_the_uri_of_an_image_stays_text() -> None:
    forged = Output(type=OutputType.IMAGE, data={"image/png": "notebook://cell/c9/image/0", "text/plain": "x"})
    given = result(forged, Notebook().read)
    assert given == Result(text="x", png="notebook://cell/c9/image/0")
    assert given._repr_png_() is None
