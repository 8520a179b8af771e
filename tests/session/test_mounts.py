"""Directories and files of the host inside a session: where they appear, what they are there, and which are refused."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import AsyncSession, FileRefused, MountRefused, Session
from cellblock.executors.process import mounts, porter
from cellblock.walls import Applied

ROOT = os.getuid() == 0
_CAP_SYS_ADMIN = 1 << 21
_EFFECTIVE = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
MAY_MOUNT = bool(int(_EFFECTIVE.split()[1], 16) & _CAP_SYS_ADMIN)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that the account which sessions run as can read: what `tmp_path` is in is the tests' own."""
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o755)
    (place / "sales.csv").write_text("month,sold\nMay,2\n")
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "er" / "note").write_text("deep")
    return place


def refusal(**named: object) -> str:
    with pytest.raises(MountRefused) as caught:
        Session(mounts=named)  # type: ignore[arg-type]
    assert caught.value.hint
    return str(caught.value)


# --- where, and what ---


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("data", "/workspace/data"),
        ("in/of/data", "/workspace/in/of/data"),
        ("/workspace/data", "/workspace/data"),
        ("/data", "/data"),
        ("/data/sales", "/data/sales"),
        ("/data/of/sales", "/data/of/sales"),
        ("spaces and é😀", "/workspace/spaces and é😀"),
        ("-rf", "/workspace/-rf"),
    ],
)
def test_directory_appears_at_its_name(
    open_session: Callable[..., Session], shared: Path, name: str, inside: str
) -> None:
    session = open_session(mounts={name: str(shared)})
    session["inside"] = inside
    assert session.run("import os\nsorted(os.listdir(inside))").value == ["deep", "sales.csv"]
    assert session.run("open(f'{inside}/deep/er/note').read()").value == "deep"
    if inside.startswith("/workspace/"):
        session["name"] = inside.removeprefix("/workspace/")
        assert session.run("open(f'{name}/sales.csv').readline()").value == "month,sold\n"


def test_single_file_can_be_mounted(open_session: Callable[..., Session], shared: Path) -> None:
    session = open_session(mounts={"in/s.csv": shared / "sales.csv", "/data/s": shared / "sales.csv"})
    assert session.run("open('in/s.csv').read() == open('/data/s').read()").value is True
    assert session.run("import os\nos.listdir('in'), os.listdir('/data')").value == (["s.csv"], ["s"])


def test_relative_source_and_links_are_resolved_when_it_opens(
    open_session: Callable[..., Session], shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared.parent / "link").symlink_to("shared/deep")
    monkeypatch.chdir(shared.parent)
    session = open_session(mounts={"data": "link"})
    (shared.parent / "link").unlink()
    (shared.parent / "link").symlink_to("/etc")
    assert session.run("import os\nos.listdir('data')").value == ["er"]
    session.kill()
    session.run("pass")
    assert session.run("import os\nos.listdir('data')").value == ["er"]


def test_what_changes_on_the_host_is_seen_at_once(open_session: Callable[..., Session], shared: Path) -> None:
    session = open_session(mounts={"data": shared})
    assert session.run("import os\nos.path.exists('data/late'), open('data/sales.csv').read()[:5]").value == (
        False,
        "month",
    )
    (shared / "late").write_text("late")
    (shared / "new").write_text("other")
    (shared / "new").rename(shared / "sales.csv")
    assert session.run("open('data/late').read(), open('data/sales.csv').read()").value == ("late", "other")


def test_programs_and_modules_of_a_mount_run(open_session: Callable[..., Session], shared: Path) -> None:
    (shared / "tool").write_text("#!/bin/sh\necho ran $1\n")
    (shared / "tool").chmod(0o755)
    (shared / "mine.py").write_text("answer = 42\n")
    session = open_session(mounts={"data": shared})
    assert session.shell("data/tool well").text == "ran well"
    assert session.run("import sys\nsys.path.append('data')\nimport mine\nmine.answer").value == 42


def test_links_in_a_mount_lead_where_they_lead_inside(open_session: Callable[..., Session], shared: Path) -> None:
    (shared.parent / "secret").write_text("canary")
    (shared / "near").symlink_to("sales.csv")
    (shared / "above").symlink_to("../secret")
    (shared / "whole").symlink_to(shared.parent / "secret")
    session = open_session(mounts={"data": shared})
    assert session.run("open('data/near').readline()").value == "month,sold\n"
    for name in ("above", "whole"):
        assert session.run(f"open('data/{name}')").error.type == "FileNotFoundError"
    session.files.write("secret", "the session's own")
    assert session.run("open('data/above').read()").value == "the session's own"


# --- whose ---


def test_sessions_see_their_own_mounts_and_no_others(open_session: Callable[..., Session], shared: Path) -> None:
    one = open_session(mounts={"one": shared})
    two = open_session(mounts={"two": shared / "deep", "/data/two": shared / "deep"})
    none = open_session()
    look = "import os\nsorted(os.listdir()), sorted(os.listdir('/data')), open('/proc/self/mountinfo').read()"
    seen = [session.run(look).value for session in (one, two, none)]
    assert [(names, below) for names, below, _ in seen] == [(["one"], []), (["two"], ["two"]), ([], [])]
    assert [str(shared) in table for *_, table in seen] == [True, True, False]


def test_packages_are_not_imported_again_for_other_mounts(open_session: Callable[..., Session], shared: Path) -> None:
    where = "import decimal\nid(decimal)"  # forks of one process have one layout
    plain = open_session(preload=["decimal"]).run(where).value
    assert open_session(preload=["decimal"], mounts={"data": shared}).run(where).value == plain
    assert open_session(preload=["decimal"], mounts={"data": shared / "deep"}).run(where).value == plain


def test_mounts_outlive_names_and_workers(open_session: Callable[..., Session], shared: Path) -> None:
    session = open_session(mounts={"in/data": shared, "/data": shared})
    look = "import os\nsorted(os.listdir('in/data')), sorted(os.listdir('/data'))"
    expected = (["deep", "sales.csv"], ["deep", "sales.csv"])
    session.clear()
    assert session.run(look).value == expected
    for end in ("import os\nos._exit(1)", "import ctypes\nctypes.string_at(0)"):
        assert session.run(end).error.kind == "crashed"
        assert session.run(look).value == expected
    session.run("import os\nfor path in ('in', '/session/workspace', '/session'): os.chmod(path, 0)")
    session.kill()
    session.run("os.chmod('in', 0o755)")
    session.run("import os\nos.chmod('in', 0o755)")
    assert session.run(look).value == expected


# --- read-only ---


def test_nothing_of_a_mount_can_be_changed(open_session: Callable[..., Session], shared: Path) -> None:
    for path in (shared, shared / "deep", shared / "sales.csv"):
        path.chmod(0o777)
    session = open_session(mounts={"data": shared, "/data/x": shared})
    before = sorted(str(path) for path in shared.rglob("*"))
    for place in ("data", "/data/x"):
        for attempt in (
            "open('{}/new', 'w')",
            "open('{}/sales.csv', 'a')",
            "os.mkdir('{}/d')",
            "os.remove('{}/deep/er')",
        ):
            error = session.run("import os\n" + attempt.format(place)).error
            assert error.type in ("OSError", "PermissionError"), error
    assert sorted(str(path) for path in shared.rglob("*")) == before
    assert (shared / "sales.csv").read_text() == "month,sold\nMay,2\n"


def test_reading_leaves_no_time_of_access(open_session: Callable[..., Session], shared: Path) -> None:
    session = open_session(mounts={"data": shared})  # which looks through it for sockets
    os.utime(shared / "sales.csv", (1000, 2000))
    os.utime(shared, (1000, 2000))
    session.run("import os\nopen('data/sales.csv').read(), os.listdir('data')")
    assert [int(path.stat().st_atime) for path in (shared, shared / "sales.csv")] == [1000, 1000]


def test_capabilities_name_the_mounts(open_session: Callable[..., Session], shared: Path, session: Session) -> None:
    told = open_session(mounts={"in/data": shared, "/data": shared}).capabilities.walls
    (wall,) = [wall for wall in told if wall.mechanism == "mounts"]
    assert isinstance(wall, Applied)
    assert wall.detail.startswith("read-only, nosuid, nodev: in/data, /data")
    assert "mounts" not in {wall.mechanism for wall in session.capabilities.walls}


# --- from the host ---


def test_host_reads_through_a_mount_and_lists_and_changes_nothing_of_it(
    open_session: Callable[..., Session], shared: Path
) -> None:
    session = open_session(mounts={"data": shared, "in/one.csv": shared / "sales.csv"})
    session.files.write("own/x", b"x")
    session.run("import os\nos.symlink('data', 'link')\nos.symlink('data/sales.csv', 'leaf')")
    assert session.files.list() == ["own/x"]
    assert session.files.read("data/deep/er/note") == b"deep"
    assert session.files.read("/workspace/in/one.csv") == b"month,sold\nMay,2\n"
    for path in ("data/new", "data/deep/er/note", "data/new/deep", "in/one.csv", "data"):
        for call in (lambda: session.files.write(path, b"x"), lambda: session.files.delete(path)):  # noqa: B023
            with pytest.raises(FileRefused) as caught:
                call()
            assert str(caught.value) == f"{path!r} is mounted from the host, read-only (change it there)"
    for path in ("link/new", "leaf"):
        with pytest.raises(FileRefused):
            session.files.write(path, b"x")
    assert sorted(path.name for path in shared.iterdir()) == ["deep", "sales.csv"]


def test_host_reads_no_link_of_a_mount_that_leads_out(open_session: Callable[..., Session], shared: Path) -> None:
    (shared.parent / "secret").write_text("canary")
    (shared / "whole").symlink_to(shared.parent / "secret")
    (shared / "far").symlink_to("../" * 20 + "etc/passwd")
    session = open_session(mounts={"data": shared})
    for name in ("whole", "far"):
        with pytest.raises(FileRefused, match="leads outside the session's files"):
            session.files.read(f"data/{name}")


def test_large_tree_is_neither_walked_nor_listed(
    open_session: Callable[..., Session], shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (shared / f"{number}").touch()
    monkeypatch.setattr(mounts, "SCANNED_ENTRIES", 100)
    session = open_session(mounts={"data": shared})
    assert session.files.list() == []
    assert session.run("import os\nlen(os.listdir('data'))").value == 302


# --- refused ---


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/../b", "a/./b", "a//b", "a//", "/", "/workspace", "/workspace/", "/etc", "/tmp/x",
     "/data//", "/data/../etc", "/session/workspace/x", "//data", "a\0b", "a\nb", "a\u202eb", "a\u200bb",
     "\ud800", "x" * 256, "a/" * 300 + "b"],
)  # fmt: skip
def test_name_that_is_no_place_is_refused(shared: Path, name: str) -> None:
    with pytest.raises(MountRefused, match="not a place for a mount") as caught:
        Session(mounts={name: str(shared)})
    assert caught.value.hint == "use a name in the workspace, like 'data' or 'in/sales', or a path below /data"


@pytest.mark.parametrize(("name", "place"), [("a/", "a"), ("/data/", "/data"), ("/workspace/a/", "a")])
def test_a_slash_at_the_end_of_a_place_changes_nothing(
    open_session: Callable[..., Session], shared: Path, name: str, place: str
) -> None:
    (shared / "x").write_text("1")
    session = open_session(mounts={name: shared})
    assert session.run(f"open('{place}/x').read()").value == "1"
    assert session.files.read(f"{place}/x") == b"1"
    with pytest.raises(FileRefused, match="is mounted from the host"):
        session.files.write(f"{place}/x", b"")


@pytest.mark.parametrize(
    ("one", "two"),
    [("a", "a/b"), ("a/b", "a"), ("a/", "a"), ("a", "/workspace/a"), ("/data", "/data/x"), ("a/b", "/workspace/a")],
)
def test_mounts_that_clash_are_refused(shared: Path, one: str, two: str) -> None:
    with pytest.raises(MountRefused, match="clashes with") as caught:
        Session(mounts={one: str(shared), two: str(shared)})
    assert caught.value.hint == "give each a place of its own"


def test_names_that_only_look_alike_do_not_clash(open_session: Callable[..., Session], shared: Path) -> None:
    session = open_session(mounts={"a": shared, "ab": shared, "a-b": shared, "\uff0e\uff0e": shared})
    assert session.run("import os\nsorted(os.listdir())").value == ["a", "a-b", "ab", "\uff0e\uff0e"]


def test_more_mounts_than_one_message_takes_are_refused(shared: Path) -> None:
    with pytest.raises(MountRefused, match=f"{mounts.MAX_MOUNTS + 1} mounts are more than {mounts.MAX_MOUNTS}"):
        Session(mounts={f"m{number}": shared for number in range(mounts.MAX_MOUNTS + 1)})


def test_as_many_mounts_as_are_allowed_open(open_session: Callable[..., Session], shared: Path) -> None:
    session = open_session(mounts={f"m{number}": shared for number in range(mounts.MAX_MOUNTS)})
    assert session.run("import os\nlen([name for name in os.listdir() if os.listdir(name)])").value == mounts.MAX_MOUNTS


def test_source_that_is_missing_says_so(shared: Path) -> None:
    assert refusal(data=shared / "none") == (
        f"mounts['data']: '{shared}/none' cannot be used: No such file or directory "
        "(give the path of a directory or a file)"
    )
    assert "~ is not expanded here" in refusal(data="~/data")
    assert "embedded null byte" in refusal(data="/srv/\0")


@pytest.mark.parametrize("source", ["/proc", "/proc/self", "/sys", "/sys/kernel", "/dev", "/dev/shm/../pts"])
def test_what_is_the_kernels_is_refused(source: str) -> None:
    assert "the kernel's" in refusal(data=source)


@pytest.mark.parametrize("source", ["/", "/tmp", "/var/tmp", "/var", "/dev/shm", "/home", "~", "~/.."])
def test_what_holds_everything_is_refused(source: str) -> None:
    assert "holds everything in" in refusal(data=os.path.expanduser(source))


def test_home_of_who_runs_this_is_refused_and_what_is_in_it_is_not(
    open_session: Callable[..., Session], shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(shared))
    assert f"holds everything in {shared}" in refusal(data=shared)
    assert f"holds everything in {shared}" in refusal(data=shared.parent)
    assert open_session(mounts={"data": shared / "deep"}).run("import os\nos.listdir('data')").value == ["er"]


def test_memory_of_the_host_may_hold_data(open_session: Callable[..., Session]) -> None:
    place = Path(f"/dev/shm/cellblock-test-{os.getpid()}")
    place.mkdir(mode=0o755)
    try:
        (place / "x").write_text("fast")
        assert open_session(mounts={"data": place}).run("open('data/x').read()").value == "fast"
    finally:
        (place / "x").unlink()
        place.rmdir()


def test_sockets_pipes_and_devices_are_refused_wherever_they_are(shared: Path) -> None:
    os.mkfifo(shared / "deep" / "fifo")
    assert "is neither a directory nor a regular file" in refusal(data=shared / "deep" / "fifo")
    assert f"holds a socket or a pipe, '{shared}/deep/fifo'" in refusal(data=shared)
    (shared / "deep" / "fifo").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(shared / "deep" / "er" / "s"))
        assert "is neither a directory nor a regular file" in refusal(data=shared / "deep" / "er" / "s")
        assert f"holds a socket or a pipe, '{shared}/deep/er/s'" in refusal(data=shared)
    assert "is neither a directory nor a regular file" in refusal(data="/dev/null")


@pytest.mark.parametrize("what", [".", "sales.csv"])
def test_source_that_cells_could_not_read_is_refused(shared: Path, what: str) -> None:
    (shared / what).chmod(0o000)
    try:
        message = refusal(data=shared / what)
    finally:
        (shared / what).chmod(0o755)
    assert "Permission denied" in message
    assert ("as the account 61000" in message) is ROOT


@pytest.mark.skipif(not ROOT, reason="an ordinary user's sessions run as that user")
def test_root_may_mount_what_lies_where_only_root_may_go(open_session: Callable[..., Session], shared: Path) -> None:
    shared.parent.chmod(0o700)
    session = open_session(mounts={"data": shared, "one": shared / "sales.csv"})
    assert session.run("open('data/sales.csv').read() == open('one').read()").value is True
    (shared / "deep").chmod(0o700)
    assert session.run("import os\nos.listdir('data/deep')").error.message.startswith("[Errno 13] Permission denied")


@pytest.mark.parametrize("given", [{1: "/srv"}, {"data": 3}, {"data": b"/srv"}, ["data"]])
def test_mounts_of_another_type_are_a_type_error(given: object) -> None:
    with pytest.raises(TypeError):
        Session(mounts=given)  # type: ignore[arg-type]


def test_refused_mount_leaves_others_alone(session: Session, shared: Path) -> None:
    refusal(data=shared / "none")
    assert session.run("1").value == 1


# --- the way there ---


def test_source_replaced_while_the_session_opens_is_refused(shared: Path) -> None:
    (mount,) = mounts.check([("data", str(shared))])
    shared.rename(shared.parent / "moved")
    fetch = porter.porter_of(sys.executable).fetch
    with pytest.raises(MountRefused, match="No such file or directory"):
        fetch(mount)
    shared.mkdir()
    with pytest.raises(MountRefused, match="it was replaced meanwhile"):
        fetch(mount)
    shared.rmdir()
    shared.symlink_to(shared.parent / "moved")
    with pytest.raises(MountRefused, match="Too many levels of symbolic links"):
        fetch(mount)


def test_porter_that_was_killed_is_replaced(open_session: Callable[..., Session], shared: Path) -> None:
    look = "import os\nsorted(os.listdir('data'))"
    first = open_session(mounts={"data": shared})
    porter._porters[sys.executable]._process.kill()
    porter._porters[sys.executable]._process.wait()
    assert open_session(mounts={"data": shared}).run(look).value == ["deep", "sales.csv"]
    assert first.run(look).value == ["deep", "sales.csv"]


@pytest.mark.sampled(0)
def test_porter_ends_with_the_host_however_that_ends(shared: Path) -> None:
    program = f"""
import os
from cellblock import Session
from cellblock.executors.process import porter
session = Session(mounts={{"data": {str(shared)!r}}})
print([one._process.pid for one in porter._porters.values()][0], flush=True)
input()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as host:
        assert host.stdout is not None
        ended = select.poll()
        ended.register(os.pidfd_open(int(host.stdout.readline())), select.POLLIN)
        assert ended.poll(0) == []
        host.kill()
        ((descriptor, _),) = ended.poll(20_000)
        os.close(descriptor)


@pytest.mark.sampled(0)
@pytest.mark.skipif(os.getuid() != 0, reason="only root's has a process that holds a user namespace for mounts")
def test_porter_leaves_no_process_behind_where_none_may_be_killed(shared: Path) -> None:
    """By a filter around the program; it has no process but that of a request that is answered."""
    program = f"""
import os, struct, sys
from pathlib import Path
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS
kill = NUMBERS[syscalls.MACHINE]["kill"]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, kill), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.seccomp_install(b"".join(struct.pack("=HBBI", *step) for step in steps))
from family_tree import soon
from cellblock import Session
from cellblock.executors.process import porter
with Session(mounts={{"data": {str(shared)!r}}}) as session:
    print(session.run("import os; len(os.listdir('data'))").value)
    (process,) = [one._process.pid for one in porter._porters.values()]
    children = Path(f"/proc/{{process}}/task/{{process}}/children")
    print(repr(soon(children.read_text, "")))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=100
    )
    assert done.stdout.splitlines() == ["2", "''"], done.stderr


def test_another_interpreter_sees_mounts_too(open_session: Callable[..., Session], shared: Path) -> None:
    other = "/usr/bin/python3"
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    if not Path(other).exists() or subprocess.run([other, "-c", check]).returncode:
        pytest.skip(f"{other} is missing or older than 3.11")
    session = open_session(python=other, preload=["decimal"], mounts={"data": shared, "/data": shared})
    look = "import os, sys\nsys.executable, 'decimal' in sys.modules, os.listdir('/data') == os.listdir('data')"
    assert session.run(look).value == (other, True, True)


def test_closing_gives_back_what_mounts_took(shared: Path) -> None:
    def held() -> tuple[int, list[str]]:
        return len(os.listdir("/proc/self/fd")), Path("/proc/self/mountinfo").read_text().splitlines()

    Session(mounts={"data": shared}).close()
    before = held()
    for _ in range(5):
        Session(mounts={"data": shared, "/data/x": shared}).close()
    assert held() == before


@pytest.mark.anyio
async def test_many_sessions_with_mounts_open_at_once(shared: Path) -> None:
    import anyio

    found: list[object] = []

    async def look(name: str) -> None:
        async with AsyncSession(mounts={name: shared}) as session:
            found.append((await session.run("import os\nos.listdir(), len(os.listdir(os.listdir()[0]))")).value)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(look, f"d{number}")
    assert sorted(found) == [([f"d{number}"], 2) for number in range(6)]


# --- file systems below a source ---


def in_a_mount_namespace(source: str, place: Path) -> str:
    """What a program prints that runs with mounts of its own, shared as those of most machines are."""
    prelude = """
        import os, sys
        from cellblock import MountRefused, Session
        from cellblock.worker.confine.syscalls import *
        from pathlib import Path
        unshare(CLONE_NEWNS)
        mount("", "/", "", MS_PRIVATE | MS_REC, "")
        mount("", "/", "", (1 << 20) | MS_REC, "")
        place = Path(sys.argv[1])
        (place / "below").mkdir()
        (place / "later").mkdir()
    """
    program = textwrap.dedent(prelude) + textwrap.dedent(source)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(place)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sampled(0)
@pytest.mark.skipif(not MAY_MOUNT, reason="mounting takes root with CAP_SYS_ADMIN")
def test_file_systems_below_a_source_are_there_read_only_and_later_ones_are_not(shared: Path) -> None:
    told = in_a_mount_namespace(
        """
        mount("tmpfs", place / "below", "tmpfs", 0, "mode=777")
        (place / "below/x").write_text("in another file system")
        with Session(mounts={"data": place}) as session:
            print(session.run("open('data/below/x').read()").value)
            print(session.run("open('data/below/y', 'w')").error.message)
            mount("tmpfs", place / "later", "tmpfs", 0, "mode=777")
            (place / "later/x").write_text("x")
            print(session.run("import os; os.listdir('data/later')").value)
            umount(place / "below", MNT_DETACH)
            print(session.run("os.listdir('data/below')").value)
        """,
        shared,
    )
    assert told.splitlines() == [
        "in another file system",
        "[Errno 30] Read-only file system: 'data/below/y'",
        "[]",
        "['x']",
    ]


@pytest.mark.sampled(1)
@pytest.mark.skipif(not MAY_MOUNT, reason="mounting takes root with CAP_SYS_ADMIN")
@pytest.mark.parametrize("system", ["proc", "sysfs"])
def test_file_systems_of_the_kernel_are_refused_under_any_name(shared: Path, system: str) -> None:
    told = in_a_mount_namespace(
        f"""
        mount("x", place / "below", "{system}", 0, "")
        for source in (place, place / "below", place / "below/fs"):
            try:
                Session(mounts={{"data": source}})
            except MountRefused as error:
                print(error)
        """,
        shared,
    )
    assert [f"holds a file system of the kernel's, {system} (" in line for line in told.splitlines()] == [True] * 3


@pytest.mark.sampled(0)
@pytest.mark.skipif(not MAY_MOUNT, reason="mounting takes root with CAP_SYS_ADMIN")
def test_file_system_that_cannot_map_owners_is_mounted_and_said_to_be_open(shared: Path) -> None:
    told = in_a_mount_namespace(
        """
        mount("x", place / "below", "ramfs", 0, "mode=755")
        (place / "below/x").write_text("read")
        for source in (place / "below", place, place / "later"):
            with Session(mounts={"data": source}) as session:
                print(next(wall.detail for wall in session.capabilities.walls if wall.mechanism == "mounts"))
                session.run("import os")
                print(session.run("[open(at).read() for at in ('data/x', 'data/below/x') if os.path.exists(at)]").value)
        """,
        shared,
    )
    open_ = "read-only, nosuid, nodev: data; not walled: sockets and pipes that appear in data later"
    assert told.splitlines() == [open_, "['read']", open_, "['read']", "read-only, nosuid, nodev: data", "[]"]


@pytest.mark.sampled(0)
@pytest.mark.skipif(not MAY_MOUNT, reason="mounting takes root with CAP_SYS_ADMIN")
@pytest.mark.parametrize(
    ("at", "names", "why"),
    [
        ("/data", ("/data", "/data/x", "/data/env"), "the interpreter lies there"),
        ("/workspace", ("env",), "File exists"),
    ],
)
def test_mount_does_not_cover_the_interpreter(shared: Path, at: str, names: tuple[str, ...], why: str) -> None:
    told = in_a_mount_namespace(
        f"""
        import atexit, venv
        if not os.path.isdir("{at}"):
            os.mkdir("{at}")
            atexit.register(os.rmdir, "{at}")
        mount("tmpfs", "{at}", "tmpfs", 0, "mode=755")
        atexit.register(umount, "{at}", MNT_DETACH)
        os.symlink("/usr/bin/python3", "{at}/python3")
        venv.create("{at}/env", with_pip=False)
        for name in {names!r}:
            try:
                Session(python="{at}/env/bin/python", mounts={{name: place}})
            except MountRefused as error:
                print(error)
        with Session(python="{at}/env/bin/python", mounts={{"data": place}}) as session:
            print(session.run("import os, sys; sys.prefix, sorted(os.listdir('data'))").value)
        """,
        shared,
    )
    assert told.splitlines() == [
        *[f"mounts[{name!r}]: '{shared}' cannot be mounted: {why} (give it another name)" for name in names],
        f"('{at}/env', ['below', 'deep', 'later', 'sales.csv'])",
    ]
