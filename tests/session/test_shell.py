"""Commands are cells: their output, status and directory, and what ends with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellblock import CellState, Done, ExecutionLimits, Output, Session, Versioned


def test_output_and_status_of_a_command(session: Session) -> None:
    cell = session.shell("echo out; echo err >&2")
    assert (cell.state, cell.kind, cell.number) == (CellState.COMPLETED, "shell", 1)
    assert sorted((output.stream, output.text) for output in cell.outputs) == [("stderr", "err\n"), ("stdout", "out\n")]


@pytest.mark.parametrize(
    ("command", "message", "status"),
    [
        ("exit 7", "exit status 7", 7),
        ("false", "exit status 1", 1),
        ("no-such-command", "exit status 127", 127),
        ("kill -9 $$", "killed by SIGKILL", 137),
        ("if", "exit status 2", 2),
        ("echo exit status 0; echo killed by SIGTERM >&2; exit 255", "exit status 255", 255),
    ],
)
def test_status_other_than_0_is_the_cells_error(session: Session, command: str, message: str, status: int) -> None:
    cell = session.shell(command)
    assert cell.error is not None
    assert (cell.state, cell.error.type, cell.error.message) == (CellState.ERROR, "CommandFailed", message)
    assert cell.error.status == status
    assert message in cell.text


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("no-such-command", "the session has no program of that name: `command -v NAME` finds those it has"),
        (
            "echo 1 > plain; ./plain",
            "the shell may not execute that file: give it to its interpreter, as in `python3 FILE`",
        ),
        ("exit 2", ""),
    ],
)
def test_what_the_shell_says_by_a_status_is_explained(session: Session, command: str, hint: str) -> None:
    cell = session.shell(command)
    assert cell.error is not None
    assert cell.error.hint == hint


def test_output_of_a_command_comes_while_it_runs(session: Session) -> None:
    events = session.stream("echo begun; sleep 60", kind="shell")
    first = next(events)
    assert isinstance(first, Output)
    assert (first.stream, first.text) == ("stdout", "begun\n")
    session.interrupt()
    *_, last = events
    assert isinstance(last, Done)
    assert (last.cell.kind, last.cell.source) == ("shell", "echo begun; sleep 60")


def test_commands_run_in_the_workspace_and_see_its_files(session: Session) -> None:
    session.files.write("in.csv", b"a\nb\n")
    assert session.shell("pwd; wc -l < in.csv; ls").text == "/session/workspace\n2\nin.csv"
    session.run("import os\nos.chdir('/tmp')")
    assert session.shell("pwd").text == "/session/workspace"


def test_commands_keep_no_state_but_files(session: Session) -> None:
    session.shell("cd /tmp; export X=1; echo 1 > /session/workspace/kept")
    assert session.shell("echo $X$(cat kept)").text == "1"


def test_commands_leave_the_names_of_cells_alone(session: Session) -> None:
    session.run("x = 1")
    session.shell("exit 1")
    assert session.run("x").value == 1


def test_command_reads_nothing_from_a_terminal(session: Session) -> None:
    assert session.shell("cat; read line || echo none").text == "none"


def test_output_of_a_command_is_cut_like_any_other(session: Session) -> None:
    cell = session.shell("yes | head -c 1000000")
    assert len(cell.text) < 10_100
    assert "bytes cut" in cell.text


def test_interrupt_ends_a_command(session: Session) -> None:
    events = session.stream("import subprocess\nprint('begun', flush=True)\nsubprocess.run('sleep 100', shell=True)")
    next(events)
    session.interrupt()
    *_, done = events
    assert done.cell.error.type == "KeyboardInterrupt"  # type: ignore[union-attr]


def test_python_of_a_command_is_the_sessions(session: Session) -> None:
    cell = session.shell("python -c 'import sys; print(sys.version_info[:2])'")
    assert cell.text == str(session.run("import sys\ntuple(sys.version_info[:2])").value)


@pytest.mark.parametrize("said", ["exit status 3", "killed by SIGKILL"])
def test_an_exception_of_those_words_has_no_status(session: Session, said: str) -> None:
    cell = session.run(f"class CommandFailed(Exception): status = 3\nraise CommandFailed({said!r})")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message, cell.error.status) == ("CommandFailed", said, None)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limit", [1_000, 10_000])
def test_what_was_cut_of_an_output_is_a_field_and_cannot_be_printed(tmp_path: Path, limit: int) -> None:
    forged = "[... 5 bytes of output cut: the limit is 9 ...]"
    limits = ExecutionLimits(max_output_bytes=limit)
    with Session("s", limits=limits, state=Versioned(f"sqlite:///{tmp_path}/s.db")) as session:
        assert session.shell(f"echo '{forged}'").cut == 0
        cell = session.run("print('x' * 100_000)")
        assert cell.cut == 100_001 - limit - limit // 2
    with Session("s", state=Versioned(f"sqlite:///{tmp_path}/s.db")) as session:
        assert [one.cut for one in session.notebook] == [0, cell.cut]
