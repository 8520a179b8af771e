"""Sessions without namespaces: asked for by name, labelled, private directories that go with them."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cellblock import (
    CellblockError,
    ExecutionLimits,
    IsolationUnavailable,
    MountRefused,
    PreloadFailed,
    Session,
    SessionClosed,
    keep_ready,
)
from cellblock.executors.reduced import family, homes, identity
from cellblock.hosting import conditions
from cellblock.walls import Applied, Unavailable
from cellblock.worker.reduced.walls import SCOPED_ABI


def test_session_says_that_its_walls_are_reduced(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python) as session:
        assert repr(session) == "<Session isolated, reduced walls, open>"
        assert session.capabilities.trust_level == "reduced"
        walls = [wall for wall in session.capabilities.walls if wall.mechanism != "cgroup"]  # as the machine gives
        lacking = [wall.mechanism for wall in walls if isinstance(wall, Unavailable)]
        applied = [wall.mechanism for wall in walls if isinstance(wall, Applied)]
        assert lacking == ["namespaces", "root", "mounts"]
        assert applied == ["files", "identity", "rlimits", "capabilities", "landlock", "seccomp", "metadata"]
    assert repr(session) == "<Session isolated, reduced walls, closed>"


def test_walls_are_full_unless_asked_otherwise() -> None:
    with Session() as session:
        assert repr(session) == "<Session isolated, open>"
        assert session.capabilities.trust_level == "isolated"
    with pytest.raises(ValueError, match="walls must be 'full' or 'reduced', not 'none'"):
        Session(walls="none")  # type: ignore[arg-type]


def test_mounts_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(MountRefused, match='walls="reduced" gives none'):
        Session(walls="reduced", mounts={"data": tmp_path})


def test_control_group_holds_the_worker_and_not_its_keeper(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python) as session:
        (wall,) = [wall for wall in session.capabilities.walls if wall.mechanism == "cgroup"]
        if isinstance(wall, Unavailable):
            pytest.skip(wall.reason)
        worker, keeper = session.run("import os; os.getpid(), os.getppid()").value
        assert "/cellblock-" in Path(f"/proc/{worker}/cgroup").read_text()
        assert "/cellblock-" not in Path(f"/proc/{keeper}/cgroup").read_text()


def test_nothing_can_be_undone_and_a_death_takes_the_names(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python) as session:
        session.run("x = 1\nopen('kept', 'w').close()")
        with pytest.raises(CellblockError, match="nothing can be undone") as refused:
            session.undo()
        assert "no checkpoints" in refused.value.hint
        cell = session.run("import os\nos._exit(3)")
        assert (cell.rolled_back, [loss.name for loss in cell.lost]) == (False, ["x"])
        assert session.files.list() == ["kept"]


@pytest.mark.sampled(0)
def test_death_that_is_told_late_is_told_as_it_was(readable_python: str) -> None:
    """By the keeper alone, which has no time for a second here."""
    keeper = 0

    def hold_up() -> None:
        os.kill(keeper, signal.SIGSTOP)
        going_on.start()

    with Session(walls="reduced", python=readable_python, tools=[hold_up]) as session:
        keeper = int(str(session.run("import os; os.getppid()").value))
        going_on = threading.Timer(1.5, os.kill, (keeper, signal.SIGCONT))
        cell = session.run("hold_up()\nos._exit(7)")
        going_on.join()
        assert cell.error is not None
        assert cell.error.message == "the session's process left with status 7"


def test_none_are_kept_ready() -> None:
    keep_ready(0, walls="reduced")
    with pytest.raises(CellblockError, match='walls="reduced" keeps no sessions ready'):
        keep_ready(1, walls="reduced")


def test_files_are_in_a_private_directory_that_goes_with_the_session(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python) as session:
        place = Path(str(session.run("import os; os.getcwd()").value))
        session.files.write("kept", b"x")
        assert (place / "kept").read_bytes() == b"x"
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        assert place.parent.parent == Path(homes.base())
        assert session.run("import tempfile; tempfile.gettempdir()").value == str(place.parent / "tmp")
    assert not place.parent.exists()


def test_directory_that_nobody_holds_is_removed_when_a_family_starts() -> None:
    base = homes.base()
    left, lock = homes.make(base, None, "workspace")
    held, other = homes.make(base, None, "workspace")
    os.close(lock)
    (Path(left) / "workspace" / "file").write_text("x")
    homes.remove_stale(base)
    assert (Path(left).exists(), Path(held).exists()) == (False, True)
    os.close(other)
    homes.discard(held)


def test_lock_is_held_by_the_keeper_and_not_by_the_host(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python) as session:
        place = Path(str(session.run("import os; os.getcwd()").value)).parent
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)


def test_directory_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"cellblock-{os.getuid()}").symlink_to("/etc")
    with pytest.raises(IsolationUnavailable, match="it is not a directory of this user's") as caught:
        homes.base()
    assert (caught.value.mechanism, "TMPDIR" in caught.value.hint) == ("files", True)


@pytest.mark.skipif(os.getuid() != 0, reason="accounts of their own are root's to give")
def test_root_gives_each_session_an_account_that_no_other_has(readable_python: str) -> None:
    with (
        Session(walls="reduced", python=readable_python) as one,
        Session(walls="reduced", python=readable_python) as two,
    ):
        users = [
            session.run("import os; os.getresuid(), os.getresgid(), os.getgroups()").value for session in (one, two)
        ]
        (first, _, groups), (second, _, _) = users
        assert groups == []
        assert len(set(first)) == len(set(second)) == 1
        assert first[0] != second[0]
        assert {first[0], second[0]} <= set(range(60_578, 61_184))


@pytest.mark.skipif(os.getuid() != 0, reason="accounts of their own are root's to give")
def test_account_is_free_again_after_its_session(readable_python: str) -> None:
    for _ in range(3):
        with Session(walls="reduced", python=readable_python):
            taken = identity.take()
            taken.hold.close()
    again = identity.take()
    again.hold.close()
    assert again.account == taken.account or again.account.keeper < taken.account.keeper


def test_user_without_a_scope_for_signals_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(identity.syscalls, "landlock_abi", lambda: SCOPED_ABI - 1)
    with pytest.raises(IsolationUnavailable, match="need Landlock ABI 6 to keep their signals in; this is 5"):
        identity.require()


def test_root_without_the_right_to_change_users_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(conditions, "missing_capabilities", lambda: ["CAP_SETUID"])
    with pytest.raises(IsolationUnavailable, match="root runs sessions as the account 61000, and has no CAP_SETUID"):
        identity.require()


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user's sessions read what that user can")
def test_interpreter_that_only_root_may_read_is_refused(tmp_path: Path) -> None:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    environment = tmp_path / "shut" / "environment"
    environment.parent.mkdir()
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", environment], check=True)
    environment.parent.chmod(0o700)
    with pytest.raises(IsolationUnavailable, match="cannot be read by the account that sessions run as"):
        Session(walls="reduced", python=str(environment / "bin" / "python"))


@pytest.mark.sampled(0)
def test_packages_are_imported_before_the_session_starts(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python, preload=["fractions"]) as session:
        assert session.run("import sys; 'fractions' in sys.modules").value is True
    with pytest.raises(PreloadFailed, match="cannot preload no_such_package"):
        Session(walls="reduced", python=readable_python, preload=["no_such_package"])


def test_session_outlives_the_zygote(readable_python: str) -> None:
    with Session(walls="reduced", python=readable_python) as session:
        for one in family._families.values():
            one.close()
        assert session.run("1 + 1").value == 2
        assert session.run("import os; os._exit(3)").error is not None
        assert session.run("2 + 1").value == 3
        with Session(walls="reduced", python=readable_python) as other:
            assert other.run("3 + 1").value == 4


@pytest.mark.sampled(0)
def test_command_line_asks_for_them_by_name(readable_python: str) -> None:
    words = [sys.executable, "-m", "cellblock", "run", "--walls", "reduced", "--python", readable_python, "-"]
    script = "import os\nprint(os.getcwd())\nprint(open('/etc/hostname').read())"
    done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith(homes.base())
    assert done.stderr.splitlines()[-1] == "PermissionError: [Errno 13] Permission denied: '/etc/hostname'"


# --- files: what is past the quota is written no more, and the session lives on ---

QUOTA = ExecutionLimits(timeout_seconds=60, max_disk_mb=16, max_files=500)
WRITE = """
import errno, os
def write(files, megabytes):
    for file in files:
        for _ in range(megabytes):
            try:
                os.write(file, bytes(2**20))
            except OSError as error:
                return errno.errorcode[error.errno]
def removed(count):
    files = [os.open(f"removed-{number}", os.O_CREAT | os.O_RDWR) for number in range(count)]
    for number in range(count):
        os.unlink(f"removed-{number}")
    return files
"""


@pytest.fixture
def quota(readable_python: str) -> Iterator[Session]:
    """A session that can have its keeper stand still, as on a machine that has no time for it."""
    keeper = 0

    def stop_keeper() -> None:
        os.kill(keeper, signal.SIGSTOP)

    def continue_keeper() -> None:
        os.kill(keeper, signal.SIGCONT)

    tools = [stop_keeper, continue_keeper]
    with Session(walls="reduced", python=readable_python, limits=QUOTA, tools=tools) as session:
        keeper = int(str(session.run("import os; os.getppid()").value))
        session.run(WRITE)
        yield session


@pytest.mark.sampled(0)
@pytest.mark.parametrize("place", ["removed(40)", "[os.open(str(n), os.O_CREAT | os.O_RDWR) for n in range(40)]"])
def test_cell_that_wrote_far_past_the_quota_before_it_was_counted_is_stopped_and_lives(
    quota: Session, place: str
) -> None:
    """More than twice the quota at once: what counts has had no time."""
    cell = quota.run(f"""
files = {place}
stop_keeper()
before = write(files, 15)
continue_keeper()
before, write(files, 10**6)
""")
    assert cell.error is None, cell.text
    assert cell.value == (None, "EFBIG")
    quota.run("for file in files: os.close(file)\nfor name in os.listdir(): os.unlink(name)")
    assert quota.run("import time\nwhile write([os.open('new', os.O_CREAT | os.O_RDWR)], 1): time.sleep(0.01)").ok


@pytest.mark.sampled(0)
def test_process_that_goes_on_filling_removed_files_is_ended_and_the_session_lives(quota: Session) -> None:
    """Through mappings, which no limit stops. With the process goes all that it held."""
    cell = quota.run("""
import mmap, time
def mapped(file):
    os.truncate(file, 15 * 2**20)
    return mmap.mmap(file, 15 * 2**20)
pieces = list(map(mapped, removed(40)))
stop_keeper()
for number, piece in enumerate(pieces):
    if number == 25:
        continue_keeper()
    for at in range(0, len(piece), 2**20):
        piece[at : at + 2**20] = bytes([1]) * 2**20
        if number >= 25: time.sleep(0.01)
""")
    assert cell.error is not None
    assert cell.error.message.startswith(
        "the session's process was ended: its files grew past max_disk_mb or max_files"
    )
    assert quota.run("import os; open('new', 'w').write('x'); os.listdir()").value == ["new"]


@pytest.mark.sampled(0)
def test_session_whose_files_stay_far_past_the_quota_is_ended(quota: Session) -> None:
    cell = """
import itertools
for number in itertools.count():
    if number in (1, 12_000): (stop_keeper if number == 1 else continue_keeper)()
    os.close(os.open(str(number), os.O_CREAT))
"""
    with pytest.raises(SessionClosed, match="its files took more than twice what max_disk_mb and max_files allow"):
        quota.run(cell)
