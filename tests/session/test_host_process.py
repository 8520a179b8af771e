"""Sessions are the same in hosts whose own process is set otherwise: umask, signals, streams, priority, soft limits."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from accounts import Account, ordinary, own, why_no_other_user
from host_states import STATES

from cellblock import Session

_PROGRAM = Path(__file__).parents[1] / "support" / "host_states.py"
_SEEN = (3, 200_000, "0o100644", "0o100644", "0o22", [], True)


@pytest.fixture(scope="module")
def somebody() -> Iterator[Account]:
    if reason := why_no_other_user():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield ordinary(Path(folder), _PROGRAM)


def _result(account: Account, python: str, state: str, walls: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        target = Path(folder) / "told"
        program = Path(account.path.split(":")[0]) / _PROGRAM.name
        process = account.start(str(program), state, walls, python, str(target))
        _, said = process.communicate(timeout=100)
        assert process.returncode == 0, said
        return target.read_text().splitlines()


_GOOD = ["None", str(_SEEN), "timeout", "['big', 'd']"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("walls", "state"),
    [*(("full", state) for state in STATES), *(("reduced", state) for state in ("umask 0777", "signals", "nice"))],
)
def test_session_is_the_same_whatever_its_host_is_set_to(state: str, walls: str, readable_python: str) -> None:
    python = sys.executable if walls == "full" else readable_python
    assert _result(own(_PROGRAM.parent), python, state, walls) == _GOOD


@pytest.mark.sampled(0)
@pytest.mark.parametrize("walls", ["full", "reduced"])
@pytest.mark.parametrize("state", ["umask 077", "umask 0777", "nice"])
def test_session_of_an_ordinary_user_is_the_same_too(state: str, walls: str, somebody: Account) -> None:
    assert _result(somebody, somebody.python, state, walls) == _GOOD


@pytest.mark.hostile
@pytest.mark.threat("W4")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a process other groups")
def test_session_is_in_none_of_the_groups_of_a_host_that_is_root() -> None:
    program = "import cellblock\nwith cellblock.Session() as one: print(one.run('import os; os.getgroups()').value)"
    told = subprocess.run([sys.executable, "-c", program], extra_groups=[42, 1234], capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("[]\n", "")


def test_request_that_the_first_process_cannot_carry_out_ends_nothing(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    session.run("x = 1\nopen('f', 'w').close()")
    shell = cast("Any", session)._session._kernel._shell
    for what in ("no such request", "capture", "export", "adopt", "keep", "hold back"):
        shell.tell(what)
    with caplog.at_level(logging.WARNING, "cellblock"):
        assert session.run("import os\nx, os.listdir()").value == (1, ["f"])
        shell.kept().close()
        shell._hear()
    assert "the first process of a session could not capture: KeyError: 'number'" in caplog.text


def test_request_that_a_keeper_cannot_carry_out_ends_nothing(
    readable_python: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Session(walls="reduced", python=readable_python) as session, caplog.at_level(logging.WARNING, "cellblock"):
        session.run("x = 1\nopen('f', 'w').close()")
        keeper = cast("Any", session)._session._kernel._keeper
        keeper.tell("hold back")
        assert session.run("import os\nx, os.listdir()").value == (1, ["f"])
    assert "the keeper of a session could not hold back: KeyError: 'since'" in caplog.text


_ANOTHER_ROOT = """
import os, sys
from cellblock import CellblockError, Session
session = Session()
os.chroot(sys.argv[1])
try:
    session.run("while True: pass", timeout=1)
except CellblockError as error:
    print(error)
session.close()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="another root directory needs root")
def test_program_that_changes_its_root_directory_is_told_what_is_gone(tmp_path: Path) -> None:
    given = [sys.executable, "-c", _ANOTHER_ROOT, str(tmp_path)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=60)
    assert "the system refuses what it gave when the session was opened" in done.stdout
    assert "its root directory" in done.stdout
