"""The session's files from the host: what is inside is read and written, what leads outside is refused and says why."""

from __future__ import annotations

import errno
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from cellblock import AsyncSession, ExecutionLimits, FileRefused, Session


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("in.csv", "in.csv"),
        ("a/b/c/in.csv", "a/b/c/in.csv"),
        ("./a//b/../in.csv", "a/in.csv"),
        ("/workspace/in.csv", "/workspace/in.csv"),
        ("/tmp/in.csv", "/tmp/in.csv"),
        ("/tmp/a/b/in.csv", "/tmp/a/b/in.csv"),
        ("/data/in.csv", "/data/in.csv"),
        ("/session/data/a/in.csv", "/data/a/in.csv"),
        ("spaces and é😀\n", "spaces and é😀\n"),
        ("-rf", "-rf"),
        ("~", "~"),
    ],
)
def test_file_written_by_the_host_is_read_by_cells_at_the_same_path(session: Session, path: str, inside: str) -> None:
    session.files.write(path, b"a\n1\n")
    assert session.run(f"open({inside!r}).read()").value == "a\n1\n"
    assert session.files.read(path) == b"a\n1\n"


def test_file_written_by_a_cell_is_read_by_the_host(session: Session) -> None:
    session.run(
        "import os\nos.makedirs('out')\nopen('out/r.bin', 'wb').write(b'\\0\\xff')\nopen('/tmp/t', 'w').write('t')"
    )
    assert session.files.read("out/r.bin") == b"\0\xff"
    assert session.files.read("/tmp/t") == b"t"


def test_file_that_is_moved_again_and_again_is_refused_and_said_so(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.files.write("f", b"1" * 10_000_000)

    def moved(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "a name on the way was moved")

    with monkeypatch.context() as patched:
        patched.setattr("cellblock.executors.process.files.openat2", moved)
        for use in (session.files.read, session.files.delete, lambda path: session.files.write(path, b"2")):
            with pytest.raises(FileRefused) as caught:
                use("f")
            assert (caught.value.args[0], caught.value.hint) == ("'f' was moved while it was opened", "try again")
    assert session.files.read("f", max_bytes=1, offset=0) == b"1"


def test_data_is_the_session_s_own_and_is_set_back_and_branched_with_the_rest(session: Session) -> None:
    session.run("open('/data/a', 'w').write('1')")
    with session.branch() as branch:
        branch.run("open('/data/a', 'a').write('2')")
        assert branch.files.read("/data/a") == b"12"
    session.run("import os, shutil\nopen('/data/a', 'w').write('3')\nos.mkdir('/data/d')")
    session.undo()
    assert session.run("import os\nopen('/data/a').read(), os.listdir('/data')").value == ("1", ["a"])
    for attack in ("os.rmdir('/data')", "os.rename('/session/data', '/session/d')", "os.mkdir('/session/e')"):
        error = session.run(f"import os\nos.remove('/data/a') if os.path.exists('/data/a') else None\n{attack}").error
        assert error is not None
        assert error.type in ("PermissionError", "NotADirectoryError", "OSError")


def test_data_belongs_to_the_mounts_where_there_are_any(open_session: Callable[..., Session], tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "a").write_text("theirs")
    for place, inside in (("/data", "/data/a"), ("/data/x", "/data/x/a")):
        session = open_session(mounts={place: shared})
        assert session.files.read(inside) == b"theirs"
        with pytest.raises(FileRefused, match="is mounted from the host, read-only"):
            session.files.write("/data/b", b"")
        assert session.run("open('/data/b', 'w')").error.message == "[Errno 30] Read-only file system: '/data/b'"


def test_path_may_be_a_path_and_what_is_no_data_is_refused(session: Session) -> None:
    session.files.write(PurePosixPath("in") / "x.txt", bytearray(b"x"))
    assert session.files.read(PurePosixPath("in/x.txt")) == b"x"
    session.files.delete(PurePosixPath("in/x.txt"))
    with pytest.raises(TypeError, match="a file is written from bytes or text, not from int"):
        session.files.write("in/x.txt", 3)  # type: ignore[arg-type]
    assert session.files.list() == []


def test_text_is_written_as_utf8(session: Session) -> None:
    session.files.write("a", "é")
    assert session.files.read("a") == b"\xc3\xa9"


def test_writing_replaces_the_whole_file(session: Session) -> None:
    session.files.write("a", b"long content")
    session.files.write("a", b"s")
    assert session.files.read("a") == b"s"


def test_cell_may_change_and_delete_what_the_host_wrote(session: Session) -> None:
    session.files.write("d/a", b"1")
    assert session.run("open('d/a', 'a').write('2')\nopen('d/b', 'w').close()\nimport os\nos.remove('d/b')").ok
    assert session.files.read("d/a") == b"12"


def test_fifty_megabytes_go_in_and_out(session: Session) -> None:
    data = b"0123456789abcdef" * (50 * 2**16)
    session.files.write("big", data)
    assert session.run("import os\nos.path.getsize('big')").value == len(data)
    assert session.files.read("big") == data


def test_reading_more_than_asked_for_is_refused(session: Session) -> None:
    session.files.write("a", b"12345")
    assert session.files.read("a", max_bytes=5) == b"12345"
    with pytest.raises(FileRefused) as caught:
        session.files.read("a", max_bytes=4)
    assert str(caught.value) == "'a' is larger than 4 bytes (ask for more with max_bytes=)"


def test_a_part_of_a_file_is_read_alone_and_its_size_is_told_without_reading_it(session: Session) -> None:
    session.run("import os\nos.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 400 * 2**20)")
    assert session.files.size("sparse") == 400 * 2**20
    session.files.write("a", b"0123456789")
    parts = [session.files.read("a", offset=offset, max_bytes=4) for offset in (0, 4, 8, 10, 2**63)]
    assert parts == [b"0123", b"4567", b"89", b"", b""]
    grown = _grown(lambda: session.files.read("sparse", offset=399 * 2**20, max_bytes=1))
    assert grown < 20 * 2**20
    for missing in (session.files.size, lambda path: session.files.read(path, offset=0)):
        with pytest.raises(FileRefused, match="'b' does not exist"):
            missing("b")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(session: Session) -> None:
    session.run("import os\nos.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 400 * 2**20)")

    def refused() -> None:
        with pytest.raises(FileRefused, match="larger than"):
            session.files.read("sparse", max_bytes=200 * 2**20)

    assert _grown(refused) < 20 * 2**20


def _grown(work: Callable[[], object]) -> int:
    """Bytes that Python holds at most while it does something."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_endless_sparse_file_is_refused_before_it_fills_the_host(session: Session) -> None:
    session.run("import os\nos.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 400 * 2**20)")
    with pytest.raises(FileRefused, match="'sparse' is larger than 268435456 bytes"):
        session.files.read("sparse")


OUTSIDE = "is not among the session's files"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x", OUTSIDE),
        ("../../../../etc/passwd", OUTSIDE),
        ("a/../../x", OUTSIDE),
        ("/etc/passwd", OUTSIDE),
        ("/workspace/../etc/passwd", OUTSIDE),
        ("/workspaces/x", OUTSIDE),
        ("/", OUTSIDE),
        ("/workspace", OUTSIDE),
        ("/tmp", OUTSIDE),
        (".", OUTSIDE),
        ("/proc/self/root/etc/passwd", OUTSIDE),
        ("/dev/null", OUTSIDE),
        ("", "is not a usable path"),
        ("a\0b", "is not a usable path"),
        ("\ud800", "is not a usable path"),
        ("x" * 5000, "is not a usable path"),
        ("x" * 300, "is too long a name"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_path_that_is_not_the_sessions_is_refused(session: Session, path: str, reason: str) -> None:
    for call in (
        lambda: session.files.read(path),
        lambda: session.files.write(path, b""),
        lambda: session.files.delete(path),
    ):
        with pytest.raises(FileRefused) as caught:
            call()
        assert reason in str(caught.value)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/etc/passwd", "link"),
        ("../../../../../etc/passwd", "link"),
        ("/proc/self/environ", "link"),
        ("/", "link/etc/passwd"),
        ("link", "link"),
        ("/nowhere", "link"),
    ],
)
def test_link_that_leads_outside_is_not_followed(session: Session, target: str, name: str) -> None:
    session.run(f"import os\nos.symlink({target!r}, 'link')")
    with pytest.raises(FileRefused):
        session.files.read(name)
    with pytest.raises(FileRefused):
        session.files.write(name, b"written")
    assert session.files.list() == []


def test_link_that_stays_inside_is_followed(session: Session) -> None:
    session.run("import os\nopen('real', 'w').write('1')\nos.symlink('real', 'link')")
    assert session.files.read("link") == b"1"


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("os.mkfifo('thing')", "thing"),
        ("os.mkdir('thing')", "thing"),
        ("import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('thing')", "thing"),
        ("open('thing', 'w').close()", "thing/below"),
        ("os.symlink('/dev/zero', 'thing')", "thing"),
    ],
)
def test_what_is_no_regular_file_is_refused_at_once(session: Session, source: str, path: str) -> None:
    assert session.run("import os\n" + source).ok
    for call in (lambda: session.files.read(path), lambda: session.files.write(path, b"1")):
        with pytest.raises(FileRefused):
            call()


def test_missing_file_says_that_it_does_not_exist(session: Session) -> None:
    for call in (session.files.read, session.files.delete):
        with pytest.raises(FileRefused) as caught:
            call("nothing")
        assert str(caught.value) == "'nothing' does not exist"


def test_what_its_mode_closes_to_its_owner_is_closed_to_the_host_at_once(session: Session) -> None:
    """To remember what is in it, init opens it up for a moment, file by file."""
    cell = session.run("""
import os
os.mkdir("locked")
for number in range(300):
    open(f"locked/{number}", "w").close()
os.chmod("locked", 0)
""")
    assert cell.error is None
    for _ in range(20):
        with pytest.raises(FileRefused, match="Permission denied"):
            session.files.read("locked/0")


def test_writing_past_the_disk_limit_is_refused_with_a_hint(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_disk_mb=4))
    with pytest.raises(FileRefused) as caught:
        session.files.write("big", bytes(8 * 2**20))
    assert str(caught.value) == (
        "'big' does not fit: the session's files are at their limit (raise ExecutionLimits(max_disk_mb=…))"
    )
    assert session.run(
        "try:\n    open('more', 'wb').write(bytes(8 * 2**20))\nexcept OSError as e: got = e.errno\ngot"
    ).value in (27, 28)
    session.run("import os\nif os.path.exists('more'): os.remove('more')")
    session.files.write("fits", bytes(2**20))


@pytest.mark.parametrize("unnamed", [True, False], ids=["tmpfs", "a file system without files that have no name"])
def test_write_that_does_not_fit_leaves_the_file_and_its_other_names_as_they_were(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch, unnamed: bool
) -> None:
    if not unnamed:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)  # answered as by such a one
    session = open_session(limits=ExecutionLimits(max_disk_mb=4))
    session.run("import os\nopen('a', 'w').write('precious')\nos.link('a', 'b')\nos.symlink('a', 'c')")
    for path in ("a", "b", "c", "new", "d/e/new", "/tmp/d/new"):
        with pytest.raises(FileRefused, match="max_disk_mb"):
            session.files.write(path, bytes(8 * 2**20))
    assert session.run("open('a').read(), sorted(os.listdir()), os.listdir('/tmp')").value == (
        "precious",
        ["a", "b", "c"],
        [],
    )
    session.files.write("a", bytes(3 * 2**20))
    session.files.write("a", bytes(range(256)) * (3 * 2**12))  # there is no room for both
    assert session.run("open('b', 'rb').read() == bytes(range(256)) * (3 * 2**12)").value is True
    session.files.write("d/new", "fits")
    assert session.run("open('d/new').read(), oct(os.stat('d/new').st_mode)").value == ("fits", "0o100644")


def test_one_file_too_many_is_refused_with_the_name_of_that_limit(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_files=20))
    refused = []
    for number in range(100):
        try:
            session.files.write(f"new/{number}/{number}", b"")
        except FileRefused as error:
            refused.append((number, str(error)))
    first, message = refused[0]
    assert message == (
        f"'new/{first}/{first}' is one too many: the number of the session's files is at its limit"
        " (raise ExecutionLimits(max_files=…))"
    )
    assert session.run("import os\nsorted(map(int, os.listdir('new')))").value == list(range(first))


def test_list_names_regular_files_only_sorted(session: Session) -> None:
    session.files.write("b", b"")
    session.files.write("a/c", b"")
    session.files.write("/tmp/not-here", b"")
    session.run("import os\nos.mkfifo('fifo')\nos.mkdir('empty')\nos.symlink('/etc', 'etc')")
    assert session.files.list() == ["a/c", "b"]


def test_list_of_a_directory_names_what_read_takes(session: Session) -> None:
    for path in ("b", "a/c", "a/d/e", "/tmp/f", "/tmp/g/h", "/data/i"):
        session.files.write(path, path)
    session.run("import os\nos.symlink('/etc', 'etc')\nos.symlink('a', 'link')\nos.symlink('/', '/tmp/root')")
    wanted = {
        "a": ["a/c", "a/d/e"], "a/": ["a/c", "a/d/e"], "./a/../a/d": ["a/d/e"], "link/d": ["link/d/e"],
        "/workspace": ["a/c", "a/d/e", "b"], "/tmp": ["/tmp/f", "/tmp/g/h"], "/tmp/g": ["/tmp/g/h"],
        "/data/": ["/data/i"],
    }  # fmt: skip
    for directory, paths in wanted.items():
        assert session.files.list(directory) == paths
        for path in paths:
            assert session.files.read(path).decode() == path.replace("link", "a")


@pytest.mark.parametrize(
    ("directory", "said"),
    [
        ("nosuch", "'nosuch' does not exist"),
        ("b", "'b' leads through something that is not a directory"),
        ("etc", "'etc' leads through something that is not a directory"),
        ("etc/cron.d", "'etc/cron.d' leads outside the session's files"),
        ("..", "'..' is not among the session's files (use a path relative to"),
        ("/etc", "'/etc' is not among the session's files (use a path relative to"),
        ("in", "'in' is mounted from the host, and not listed (list it there)"),
    ],
)
def test_list_refuses_what_is_no_directory_of_the_session(
    open_session: Callable[..., Session], directory: str, said: str
) -> None:
    session = open_session(mounts={"in": "/usr/bin"})
    session.files.write("b", b"")
    session.run("import os\nos.symlink('/etc', 'etc')")
    with pytest.raises(FileRefused) as caught:
        session.files.list(directory)
    assert str(caught.value).startswith(said)


def test_exists_is_true_for_files_and_directories_and_false_outside(open_session: Callable[..., Session]) -> None:
    session = open_session(mounts={"in": "/usr/bin"})
    session.files.write("a/b", b"")
    session.run("import os\nos.symlink('/etc', 'etc')")
    inside = ("a", "a/b", "/tmp", "/workspace/a", "in", "in/env", Path("a"))
    assert [session.files.exists(path) for path in inside] == [True] * len(inside)
    outside = ("nosuch", "a/b/c", "/etc/passwd", "etc/passwd", "in/nosuch", "../root", "")
    assert [session.files.exists(path) for path in outside] == [False] * len(outside)
    assert session.files.size("in/env") == Path("/usr/bin/env").stat().st_size


def test_delete_removes_one_file_and_no_directory(session: Session) -> None:
    session.files.write("d/a", b"")
    session.files.delete("d/a")
    assert session.files.list() == []
    with pytest.raises(FileRefused):
        session.files.delete("d")


def test_delete_of_a_link_removes_the_link(session: Session) -> None:
    session.run("import os\nopen('real', 'w').close()\nos.symlink('real', 'link')")
    session.files.delete("link")
    assert session.files.list() == ["real"]


def test_files_are_the_sessions_own(open_session: Callable[..., Session]) -> None:
    one, two = open_session(), open_session()
    one.files.write("a", b"1")
    one.files.write("/tmp/a", b"1")
    assert two.files.list() == []
    with pytest.raises(FileRefused):
        two.files.read("/tmp/a")


def test_writes_of_several_threads_do_not_mix(session: Session) -> None:
    threads = [threading.Thread(target=session.files.write, args=(f"d/{n}", bytes([n]) * 300_000)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [session.files.read(f"d/{n}") == bytes([n]) * 300_000 for n in range(8)] == [True] * 8


@pytest.mark.anyio
async def test_async_files() -> None:
    async with AsyncSession() as session:
        await session.files.write("a/b", "1")
        assert await session.files.read("a/b") == b"1"
        assert await session.files.list() == ["a/b"]
        await session.files.delete("a/b")
        assert await session.files.list() == []


LARGE = ExecutionLimits(timeout_seconds=60, max_disk_mb=800, max_checkpoint_mb=1000, max_checkpoints=40)
CHANGES = [
    "open('large', 'wb').write(os.urandom(12 * 2**20))",
    "open('large', 'ab').write(b'end')",
    "with open('large', 'r+b') as file: file.seek(6 * 2**20); file.write(b'middle')",
    "kept = open('large', 'r+b'); kept.write(b'open'); kept.flush()",
    "kept.write(b'still open'); kept.flush()",
    "kept.close(); mapped = mmap.mmap(os.open('large', os.O_RDWR), 0); mapped[5] = 1",
    "mapped[2**20] = 2",
    "del mapped; gc.collect(); os.truncate('large', 9 * 2**20)",
    "os.link('large', 'other')",
    "open('other', 'ab').write(b'by its other name')",
    "open('new', 'wb').write(os.urandom(9 * 2**20)); os.replace('new', 'large')",
    "os.rename('large', 'moved'); os.chmod('moved', 0o400)",
    "os.unlink('moved')",
]
DIGESTS = "{name: hashlib.sha256(open(name, 'rb').read()).hexdigest() for name in sorted(os.listdir())}"


@pytest.mark.sampled(0)
def test_every_version_of_a_large_file_comes_back(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=LARGE)
    session.run("import gc, hashlib, mmap, os")
    seen = []
    for change in CHANGES:
        seen.append((session.aside(DIGESTS), session.checkpoint()))
        assert session.run(change).ok
    for before, state in reversed(seen):
        session.undo(to=state)
        assert session.aside(DIGESTS) == before


@pytest.mark.sampled(0)
def test_large_file_is_remembered_while_the_next_cell_runs(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=LARGE)
    session.run("import os\nopen('large', 'wb').write(os.urandom(150 * 2**20))")
    locks = session.run("open('/proc/locks').read()").value
    assert "LEASE  ACTIVE    READ" in str(locks)  # the kernel holds whoever would write to it until it is copied
    assert session.run("open('large', 'r+b').write(b'first')").ok
    session.undo()
    assert session.run("open('large', 'rb').read(5) != b'first'").value is True


def test_why_a_path_is_refused_is_a_field_whatever_the_file_is_named(session: Session) -> None:
    name = "is larger than 5 bytes, is not a regular file"
    session.run(f"import os; os.mkfifo('fifo'); os.mkdir('folder'); open({name!r}, 'w').write('x' * 100)")
    wanted = {name: errno.EFBIG, "fifo": errno.ENXIO, "folder": errno.EISDIR, "none " + name: errno.ENOENT}
    wanted |= {"../../etc/passwd": 0, "fifo/x": errno.ENOTDIR}
    for path, number in wanted.items():
        with pytest.raises(FileRefused) as refused:
            session.files.read(path, max_bytes=10)
        assert (path, refused.value.errno) == (path, number)
