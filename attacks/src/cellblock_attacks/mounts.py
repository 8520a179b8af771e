"""W1, W3, W4, W5, W6: directories of the host inside a session are to be read, and nothing else."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from cellblock import Session
from cellblock_attacks.attack import Attack, host_later, one_of, prelude, subset_of
from cellblock_attacks.host import LIMITS, Host, outcome_of, refusal_of

_READ_ONLY = "a read-only mount"
_SECCOMP = "seccomp"
_ANSWERS = "EROFS EACCES EPERM"


@contextlib.contextmanager
def _shared(host: Host) -> Iterator[Path]:
    """A directory of the host that everyone may write to, beside one with a secret: modes refuse nothing."""
    top = Path(tempfile.mkdtemp(prefix="mounted-"))
    top.chmod(0o755)
    place = top / "data"
    try:
        for path in (place, place / "sub"):
            path.mkdir()
            path.chmod(0o777)
        for path, text in (
            (place / "file", "unharmed"),
            (place / "sub" / "file", "unharmed"),
            (top / "s", host.canary),
        ):
            path.write_text(text)
            path.chmod(0o666)
        yield place
    finally:
        shutil.rmtree(top)


def _state(place: Path) -> list[object]:
    paths = [place, *sorted(place.rglob("*"))]
    return [
        (
            str(path),
            *[getattr(path.lstat(), f"st_{name}") for name in ("mode", "uid", "gid", "nlink", "mtime_ns", "atime_ns")],
        )
        for path in paths
    ]


@host_later
def _inside(host: Host, source: str) -> object:
    """The answer to a cell for a mount in the workspace and for one below /data, and whether the host's is unharmed."""
    with _shared(host) as place, _opened(place) as session:
        before = _state(place)
        answers = [_cell(session, host, f"at = {at!r}\n{source}") for at in ("/workspace/data", "/data/x")]
        assert _state(place) == before, "the host's directory was changed"
        return answers[0] if answers[0] == answers[1] else answers


def _opened(place: Path) -> Session:
    return Session(limits=LIMITS, mounts={"data": place, "/data/x": place})


def _cell(session: Session, host: Host, source: str) -> object:
    return outcome_of(session, prelude(host.facts) + source)


def _attack(
    name: str, threat: str, wall: str, expect: object, host: Callable[[Host], object], hole: str = ""
) -> Attack:
    return Attack(name=f"mounts-{name}", threat=threat, wall=wall, expect=expect, host=host, hole=hole)


def _row(name: str, threat: str, wall: str, expect: object, source: str) -> Attack:
    return _attack(name, threat, wall, expect, _inside(source))


def _moves_a_directory_out(host: Host) -> object:
    """A cell stands in a directory that the host then moves out of the mount: `..` is now the host's."""
    with _shared(host) as place, Session(limits=LIMITS, mounts={"data": place}) as session:
        _cell(session, host, "os.chdir('data/sub'); held = os.open('.', os.O_RDONLY)")
        (place / "sub").rename(place.parent / "sub")
        return _cell(
            session,
            host,
            "[attempt(os.listdir, '..'), attempt(os.open, '../s', os.O_RDONLY),"
            " attempt(os.open, '..', os.O_RDONLY, dir_fd=held)]",
        )


def _devices(host: Host) -> object:
    """A mount with a node for the null device, which must not open, and one for the disk."""
    with _shared(host) as place:
        try:
            os.mknod(place / "null", 0o020666, os.makedev(1, 3))
            os.mknod(place / "disk", 0o060666, os.makedev(254, 0))
        except PermissionError:
            return "this user makes no devices"
        for name in ("null", "disk"):
            (place / name).chmod(0o666)
        with Session(limits=LIMITS, mounts={"data": place}) as session:
            return _cell(session, host, "sorted({attempt(os.open, 'data/' + name, mode) for name in ('null', 'disk')"
                         " for mode in (os.O_RDONLY, os.O_WRONLY)})")  # fmt: skip


def _setuid_program(host: Host) -> object:
    """A program that belongs to who runs the host, and runs as that user wherever the bit counts."""
    with _shared(host) as place:
        shutil.copy(shutil.which("id") or "/usr/bin/id", place / "id")
        (place / "id").chmod(0o6755)
        with Session(limits=LIMITS, mounts={"data": place}) as session:
            return session.shell("data/id -u; data/id -g; grep -c nosuid /proc/self/mountinfo >/dev/null").text.split()


def _serve(place: Path, canary: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "service"))
    os.chmod(place / "service", 0o777)
    listener.listen()

    def answer() -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as peer:
                    peer.sendall(canary.encode())

    threading.Thread(target=answer, daemon=True).start()
    return listener


def _socket_that_is_there(host: Host) -> object:
    with _shared(host) as place, _serve(place / "sub", host.canary):
        refused = str(refusal_of(_opened, place)).replace(str(place), "")
        return refused.split(", through")[0]


@host_later
def _later(
    host: Host, mount: str, make: Callable[[Path, str], contextlib.AbstractContextManager[object]], use: str
) -> object:
    """A session's access to a thing that the host makes in a mount later, and the note on it at opening."""
    with _shared(host) as place, Session(limits=LIMITS, mounts={mount: place}) as session:
        details = {wall.mechanism: str(wall) for wall in session.capabilities.walls}
        said = "not walled: sockets and pipes" in details["mounts"]
        if use is _CONNECT:
            said &= "unix sockets that have a path are not restricted" in details["landlock"]
        with make(place, host.canary):
            return [_cell(session, host, use.format(mount)), "said so" if said else "not said"]


@contextlib.contextmanager
def _reader(place: Path, _canary: str) -> Iterator[None]:
    os.mkfifo(place / "pipe")
    os.chmod(place / "pipe", 0o666)
    reader = os.open(place / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield
    finally:
        os.close(reader)


@contextlib.contextmanager
def _writer(place: Path, _canary: str) -> Iterator[None]:
    with _reader(place, ""):
        writer = os.open(place / "pipe", os.O_WRONLY)
        os.write(writer, b"for another")
        try:
            yield
        finally:
            os.close(writer)


_TAKE = """
number = attempt(os.open, "{}/pipe", os.O_RDONLY | os.O_NONBLOCK)
number if isinstance(number, str) else os.read(number, 100)
"""
_CONNECT = """
import socket
attempt(socket.socket(socket.AF_UNIX).connect, "{}/service") or "connected"
"""
_SEND = """
number = attempt(os.open, "{}/pipe", os.O_WRONLY | os.O_NONBLOCK)
number if isinstance(number, str) else "opened"
"""


def _locks(host: Host) -> object:
    """Tell if the host can lock its own file while a session that may only read it holds a lock."""
    import fcntl

    with _shared(host) as place, Session(limits=LIMITS, mounts={"data": place}) as session:
        _cell(session, host, "import fcntl\nheld = open('data/file')\nfcntl.flock(held, fcntl.LOCK_EX)")
        with open(place / "file") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return "locked out"
        return "free"


def _leases(host: Host) -> object:
    with _shared(host) as place, Session(limits=LIMITS, mounts={"data": place}) as session:
        return _cell(
            session,
            host,
            "import fcntl\nheld = open('data/file')\n"
            "[attempt(fcntl.fcntl, held, kind, fcntl.F_RDLCK) for kind in (fcntl.F_SETLEASE, 1040)]",
        )


def _neighbours(host: Host) -> object:
    """Results of two sessions looking at of each other's mounts, and a third that has none."""
    with _shared(host) as place, Session(limits=LIMITS, mounts={"data": place}):
        with Session(limits=LIMITS, mounts={"data": place / "sub"}) as other:
            look = f"""
import glob
def found(root):
    return [path for path, _, names in os.walk(root) if "file" in names]
sorted(found("/workspace/")), attempt(os.listdir, {str(place)!r}), attempt(os.listdir, "data/../data/sub"),
"""
            return [_cell(other, host, look), _cell(host.session, host, look)]


def _covers(host: Host) -> object:
    """Names that would put a mount over a part of the session that is not its own; those that were taken, and where."""
    names = [
        "/session",
        "/usr",
        "/proc/1",
        "/etc/passwd",
        "../tmp",
        "/workspace/../etc",
        "/data/../usr",
        "a/../../../usr",
    ]
    names += ["/workspace", "/data/..", "/dev/shm", "a\0b", "\u2025/x", "\uff0e\uff0e\uff0fusr"]
    with _shared(host) as place:
        found = {name: str(refusal_of(_open_one, name, place)) for name in names}
    return sorted(where for where in found.values() if not where.startswith("MountRefused: mounts["))


def _open_one(name: str, place: Path) -> object:
    look = "import os\n[path for path, _, names in os.walk('/workspace/') if 'sub' in os.listdir(path)]"
    with Session(limits=LIMITS, mounts={name: place}) as session:
        return outcome_of(session, look)


ATTACKS: tuple[Attack, ...] = (
    _row(
        "write-in-every-way",
        "W1",
        _READ_ONLY,
        [],
        f"""
import shutil
calls = [
    (open, at + "/file", "w"), (open, at + "/file", "a"), (open, at + "/file", "r+"), (open, at + "/new", "x"),
    (os.open, at, os.O_TMPFILE | os.O_RDWR), (os.open, at + "/file", os.O_RDONLY | os.O_TRUNC),
    (os.truncate, at + "/file", 0), (os.unlink, at + "/file"), (os.mkdir, at + "/new"), (os.rmdir, at + "/sub"),
    (os.symlink, "x", at + "/new"), (os.mkfifo, at + "/new"), (os.link, at + "/file", at + "/new"),
    (os.rename, at + "/file", at + "/new"), (os.replace, at + "/file", at + "/sub/file"),
    (os.chmod, at + "/file", 0o777), (os.chmod, at, 0o700), (os.chown, at + "/file", 1000, 1000),
    (os.utime, at + "/file"), (os.utime, at), (os.setxattr, at + "/file", "user.x", b"x"),
    (open, f"/proc/self/fd/{{os.open(at + '/file', os.O_RDONLY)}}", "r+"),
    (open, f"/proc/self/fd/{{os.open(at + '/file', os.O_PATH)}}", "w"),
    (open, f"/proc/self/cwd/{{os.path.relpath(at + '/file')}}", "w"),
    (open, f"/proc/self/root{{at}}/file", "w"),
]
[(call[0].__name__, *call[1:], answer) for call in calls if (answer := attempt(*call)) not in {_ANSWERS.split()!r}]
""",
    ),
    _row(
        "write-through-a-descriptor",
        "W1",
        "a descriptor for reading writes nothing, whatever it is asked",
        subset_of("EBADF", "EINVAL", "EACCES", "EROFS", "EPERM"),
        """
import fcntl, mmap
number = os.open(at + "/file", os.O_RDONLY)
sorted({attempt(os.write, number, b"x"), attempt(os.ftruncate, number, 0), attempt(os.posix_fallocate, number, 0, 9),
        attempt(mmap.mmap, number, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        attempt(fcntl.ioctl, number, 0x40086602, bytes(8))})  # FS_IOC_SETFLAGS
""",
    ),
    _row(
        "links-and-renames-out",
        "W1",
        "neither crosses mounts",
        ["EXDEV"],
        """
number = os.open(at + "/file", os.O_RDONLY)
sorted({attempt(os.link, at + "/file", "taken"), attempt(os.rename, at + "/file", "taken"),
        attempt(os.link, f"/proc/self/fd/{number}", "taken", follow_symlinks=True),
        attempt(os.rename, "kept", at + "/kept") if not open("kept", "w").close() else ""})
""",
    ),
    _row(
        "the-mount-point-itself",
        "W1",
        "a directory on which something is mounted is busy; /data is read-only",
        [],
        """
os.makedirs("/workspace/own", exist_ok=True)
answers = {attempt(os.rmdir, at), attempt(os.unlink, at), attempt(os.rename, at, "/workspace/moved"),
           attempt(os.rename, "/workspace/own", at), call("renameat2", -100, b"/workspace/own", -100, at.encode(), 2)}
sorted(answers - {"EBUSY", "EROFS", "EISDIR", "EXDEV", "EACCES"})
""",
    ),
    _row(
        "more-mounts",
        "W4",
        _SECCOMP,
        ["EPERM"],
        """
path = at.encode()
sorted({call("mount", None, path, None, 0x20 | 0x1000, None), call("mount", b"/usr", path, None, 0x1000, None),
        call("umount2", path, 2), call("mount_setattr", -100, path, 0, bytes(32), 32),
        call("move_mount", -100, path, -100, b"/workspace/own", 0), call("open_tree", -100, path, 1),
        call("mount", None, path, None, 1 << 20, None)})
""",
    ),
    _row(
        "above-the-mount",
        "W1",
        "`..` of a mount is the directory it stands in; links lead where they lead inside",
        ["ENOENT"],
        """
sorted({attempt(read, at + "/../s"), attempt(read, at + "/sub/../../s"), attempt(read, f"/proc/self/cwd/{at}/../s")})
""",
    ),
    _attack("a-directory-moved-out", "W1", "the kernel walks up to what is below the mount only",
            ["ENOENT", "ENOENT", "ENOENT"], _moves_a_directory_out),
    _attack("devices", "W1", "nodev mounts", one_of(["EACCES"], "this user makes no devices"), _devices),
    _attack("setuid-program", "W4", "nosuid mounts, and no_new_privs", ["1000", "1000"], _setuid_program),
    _attack("a-socket-that-is-there", "W3", "a look through the directory before it is mounted",
            "MountRefused: mounts['data']: '' holds a socket or a pipe, '/sub/service'", _socket_that_is_there),
    _attack(
        "a-socket-that-comes-later",
        "W3",
        "as root a mount whose files have no owner, or Landlock from ABI 9 on; elsewhere none, and the session says so",
        one_of(["EACCES", "not said"], ["connected", "said so"]),
        _later("data", _serve, _CONNECT),
    ),
    _attack(
        "a-pipe-that-comes-later",
        "W3",
        "as root a mount whose files have no owner; elsewhere none, and the session says so",
        one_of(["EACCES", "not said"], ["opened", "said so"]),
        _later("data", _reader, _SEND),
    ),
    _attack(
        "a-pipe-that-comes-later-below-data",
        "W3",
        "Landlock: writing is for what lies in the workspace",
        one_of(["EACCES", "not said"], ["EACCES", "said so"]),
        _later("/data", _reader, _SEND),
    ),
    _attack(
        "reading-a-pipe-that-comes-later",
        "W1",
        "none",
        ["EACCES", "not said"],
        _later("data", _writer, _TAKE),
        hole="who may read a pipe takes what is in it from its reader",
    ),
    _attack("leases", "W6", _SECCOMP, ["EPERM", "EPERM"], _leases),
    _attack("locks", "W6", "none", "free", _locks,
            hole="who may read a file may lock it: a program of the host that locks the file too must wait"),
    _attack(
        "the-neighbours",
        "W5",
        "mount namespaces",
        [[["/workspace/data"], "ENOENT", "ENOENT"], [[], "ENOENT", "ENOENT"]],
        _neighbours,
    ),
    _attack("names-that-cover", "W1", "a table of places",
            ["['/workspace/\u2025/x']", "['/workspace/\uff0e\uff0e\uff0fusr']"],
            _covers),
)  # fmt: skip
