"""Landlock: files outside the rules stay secret, inside them work goes on; TCP and signals are walled."""

import errno
import os
import select
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from child import in_child

from cellblock.walls import Applied, Unavailable
from cellblock.worker.confine import landlock, syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS

CANARY = "canary-4f1c"
ABI = syscalls.landlock_abi() if syscalls.MACHINE in NUMBERS else 0

pytestmark = pytest.mark.skipif(ABI == 0, reason="this kernel does not offer Landlock")


def from_abi(abi: int, what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(abi > ABI, reason=f"{what} needs Landlock ABI {abi}, this kernel has {ABI}")


@dataclass(frozen=True)
class Places:
    """Directories that file permissions leave open to everyone, so that only Landlock can refuse."""

    read_only: Path
    read_write: Path
    outside: Path

    @property
    def secret(self) -> Path:
        return self.outside / "secret"


@pytest.fixture
def places() -> Iterator[Places]:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        top = Path(directory)
        made = Places(read_only=top / "ro", read_write=top / "rw", outside=top / "outside")
        for place in (made.read_only, made.read_write, made.outside):
            place.mkdir()
            place.chmod(0o777)
        (made.read_only / "book").write_text("text")
        made.secret.write_text(CANARY)
        for file in (made.read_only / "book", made.secret):
            file.chmod(0o666)
        yield made


def restrict(places: Places, *, files: tuple[str, ...] = (), connect_ports: tuple[int, ...] = ()) -> Applied:
    wall = landlock.apply(
        read_only=[str(places.read_only)],
        read_write=[str(places.read_write)],
        files=files,
        connect_ports=connect_ports,
    )
    assert isinstance(wall, Applied)
    return wall


def errno_of(call: Callable[..., object], *arguments: object) -> int:
    try:
        call(*arguments)
    except OSError as error:
        return error.errno or -1
    return 0


def attempt(call: Callable[[], object]) -> object:
    try:
        return call()
    except OSError as error:
        return error.errno


def test_apply_names_the_abi(places: Places) -> None:
    def action() -> object:
        wall = restrict(places)
        return [wall.mechanism, wall.detail.split(";")[0], syscalls.prctl(syscalls.PR_GET_NO_NEW_PRIVS)]

    assert in_child(action) == ["landlock", f"ABI {ABI}", 1]


def test_detail_says_what_an_older_abi_leaves_open(monkeypatch: pytest.MonkeyPatch, places: Places) -> None:
    monkeypatch.setattr(syscalls, "landlock_abi", lambda: 1)
    assert in_child(lambda: restrict(places).detail) == (
        "ABI 1; renames and links across directories are all denied; truncate is not restricted; "
        "TCP is not restricted; device ioctls are not restricted; "
        "abstract unix sockets and signals are not scoped; unix sockets that have a path are not restricted"
    )


@pytest.mark.parametrize(("abi", "right"), [(8, 0), (9, landlock.RESOLVE_UNIX), (10, landlock.RESOLVE_UNIX)])
def test_sockets_by_path_are_asked_of_a_kernel_that_knows_them_and_allowed_nowhere(
    monkeypatch: pytest.MonkeyPatch, places: Places, abi: int, right: int
) -> None:
    handled, allowed = [], []

    def create_ruleset(*, filesystem: int, network: int, scopes: int) -> int:
        handled.append(filesystem & landlock.RESOLVE_UNIX)
        return os.open(places.outside, os.O_PATH)

    monkeypatch.setattr(syscalls, "landlock_abi", lambda: abi)
    monkeypatch.setattr(syscalls, "landlock_create_ruleset", create_ruleset)
    monkeypatch.setattr(syscalls, "landlock_add_path", lambda ruleset, parent, access: allowed.append(access))
    monkeypatch.setattr(syscalls, "landlock_add_port", lambda ruleset, port, access: None)
    monkeypatch.setattr(syscalls, "landlock_restrict_self", lambda ruleset, flags: None)
    monkeypatch.setattr(syscalls, "prctl", lambda op, a=0: 0)
    restrict(places)
    assert handled == [right]
    assert len(allowed) == 2
    assert not any(access & landlock.RESOLVE_UNIX for access in allowed)


@pytest.mark.parametrize("abi", range(1, ABI + 1))
def test_every_older_abi_still_walls_the_files(monkeypatch: pytest.MonkeyPatch, places: Places, abi: int) -> None:
    monkeypatch.setattr(syscalls, "landlock_abi", lambda: abi)

    def action() -> object:
        restrict(places)
        (places.read_write / "made").write_text("mine")
        return [attempt(places.secret.read_text), (places.read_only / "book").read_text()]

    assert in_child(action) == [errno.EACCES, "text"]


def test_missing_landlock_is_unavailable_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls, "landlock_abi", lambda: 0)
    assert landlock.apply(read_only=[], read_write=[]) == Unavailable(
        mechanism="landlock",
        reason="the kernel does not offer Landlock",
        remedy='use Linux >= 5.13 built with CONFIG_SECURITY_LANDLOCK and booted with "landlock" in lsm=',
    )


def test_a_missing_path_raises_and_nothing_is_in_force(places: Places) -> None:
    def action() -> object:
        try:
            landlock.apply(read_only=["/no/such/place"], read_write=[])
        except FileNotFoundError as error:
            return [error.filename, places.secret.read_text()]
        return "applied"

    assert in_child(action) == ["/no/such/place", CANARY]


def test_files_outside_stay_secret_by_every_route(places: Places, uid: int | None) -> None:
    link = places.read_write / "link"
    link.symlink_to(places.secret)
    hard = places.read_write / "hard"

    def action() -> object:
        restrict(places, files=("/proc",))
        os.chdir(places.read_write)
        return [
            attempt(places.secret.read_text),
            attempt(Path("../outside/secret").read_text),
            attempt(link.read_text),
            attempt(Path(f"/proc/self/root{places.secret}").read_text),
            errno_of(os.listdir, places.outside),
            errno_of(os.truncate, places.secret, 0) if ABI >= 3 else errno.EACCES,
            errno_of(os.open, places.secret, os.O_WRONLY),
            errno_of(os.unlink, places.secret),
            errno_of(os.rename, places.secret, "moved") in (errno.EACCES, errno.EXDEV),
            errno_of(os.link, places.secret, hard) in (errno.EACCES, errno.EXDEV, errno.EPERM),
        ]

    assert in_child(action, uid=uid) == [errno.EACCES] * 8 + [True, True]
    assert places.secret.read_text() == CANARY
    assert not hard.exists()


def test_a_child_is_walled_as_its_parent(places: Places) -> None:
    def action() -> object:
        restrict(places)
        return in_child(lambda: attempt(places.secret.read_text))

    assert in_child(action) == errno.EACCES


def test_read_only_trees_are_read_and_not_written(places: Places, uid: int | None) -> None:
    book = places.read_only / "book"

    def action() -> object:
        restrict(places)
        return [
            book.read_text(),
            os.listdir(places.read_only),
            errno_of(os.open, book, os.O_WRONLY),
            errno_of(os.open, book, os.O_RDWR | os.O_APPEND),
            errno_of(book.write_text, "changed"),
            errno_of((places.read_only / "new").touch),
            errno_of(os.unlink, book),
            errno_of(os.mkdir, places.read_only / "directory"),
        ]

    assert in_child(action, uid=uid) == ["text", ["book"], *[errno.EACCES] * 6]
    assert book.read_text() == "text"


def test_everything_but_devices_works_in_the_workspace(places: Places, uid: int | None) -> None:
    workspace = places.read_write

    def action() -> object:
        restrict(places)
        os.chdir(workspace)
        os.makedirs("a/b")
        Path("a/file").write_text("one")
        os.truncate("a/file", 2)
        os.symlink("file", "a/link")
        os.link("a/file", "a/hard")
        os.mkfifo("fifo")
        if ABI >= 2:
            os.rename("a/file", "a/b/file")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
        os.unlink("a/hard")
        return errno_of(os.mknod, "device", stat.S_IFCHR | 0o600, os.makedev(1, 3)) in (
            errno.EACCES,
            errno.EPERM,
        )

    assert in_child(action, uid=uid) is True
    assert sorted(entry.name for entry in workspace.iterdir()) == ["a", "fifo", "socket"]


def test_single_files_are_read_and_written_with_nothing_created_beside_them(places: Places) -> None:
    places.secret.chmod(0o777)

    def action() -> object:
        restrict(places, files=("/dev/null", str(places.secret)))
        with open("/dev/null", "r+b", buffering=0) as null:
            null.write(b"x")
        return [
            places.secret.read_text(),
            places.secret.write_text("new"),
            errno_of((places.outside / "beside").touch),
            errno_of(os.unlink, places.secret),
            errno_of(os.execv, places.secret, ["secret"]),
        ]

    assert in_child(action) == [CANARY, 3, *[errno.EACCES] * 3]
    assert places.secret.read_text() == "new"


def test_programs_run_from_read_only_trees_and_nowhere_else(places: Places) -> None:
    script = places.outside / "script"
    script.write_text("#!/bin/sh\nexit 7\n")
    script.chmod(0o755)
    system = [path for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path)]

    def action() -> object:
        wall = landlock.apply(read_only=system, read_write=[str(places.read_write)])
        assert isinstance(wall, Applied)
        code = os.waitstatus_to_exitcode(os.system("exit 7"))  # a shell is what is being tried
        return [code, errno_of(os.execv, script, ["script"])]

    assert in_child(action) == [7, errno.EACCES]


# --- network ------------------------------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def accepted(listener: socket.socket) -> bool:
    """Whether a connection waits to be accepted."""
    return bool(select.select([listener], [], [], 0)[0])


def connect_to(listener: socket.socket) -> int:
    with socket.socket() as client:
        return client.connect_ex(listener.getsockname())


@from_abi(4, "walling TCP")
def test_tcp_to_a_listening_port_is_refused(places: Places, listener: socket.socket, uid: int | None) -> None:
    def action() -> object:
        before = connect_to(listener)
        restrict(places)
        return [before, connect_to(listener)]

    assert in_child(action, uid=uid) == [0, errno.EACCES]
    listener.accept()[0].close()
    assert not accepted(listener)


@from_abi(4, "walling TCP")
def test_only_the_listed_port_may_be_connected_to(places: Places, listener: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def action() -> object:
            restrict(places, connect_ports=(listener.getsockname()[1],))
            return [connect_to(listener), connect_to(other)]

        assert in_child(action) == [0, errno.EACCES]
        assert (accepted(listener), accepted(other)) == (True, False)


@from_abi(4, "walling TCP")
def test_no_tcp_port_may_be_bound(places: Places) -> None:
    def action() -> object:
        restrict(places)
        with socket.socket() as server:
            return errno_of(server.bind, ("127.0.0.1", 0))

    assert in_child(action) == errno.EACCES


@from_abi(4, "walling TCP")
def test_the_filter_closes_the_ways_around_the_tcp_rules(places: Places, listener: socket.socket) -> None:
    from cellblock.worker.confine import seccomp

    address = listener.getsockname()

    def action() -> object:
        restrict(places)
        assert isinstance(seccomp.apply(seccomp.build()), Applied)
        with socket.socket() as client:
            fast_open = errno_of(client.sendto, b"x", 0x20000000, address)
        return [fast_open, errno_of(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 262)]

    assert in_child(action) == [errno.EOPNOTSUPP, errno.EPROTONOSUPPORT]
    assert not accepted(listener)


# --- scopes -------------------------------------------------------------------------------------------------


@from_abi(6, "scoping abstract sockets")
def test_abstract_unix_sockets_outside_are_out_of_reach(places: Places) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + os.urandom(8).hex())
        server.listen()

        def action() -> object:
            restrict(places)
            with socket.socket(socket.AF_UNIX) as client:
                return client.connect_ex(server.getsockname())

        assert in_child(action) == errno.EPERM
        assert not accepted(server)


@from_abi(9, "restricting sockets by path")
def test_unix_sockets_that_others_bound_are_out_of_reach_and_own_ones_are_not(places: Places) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(places.read_write / "theirs"))
        server.listen()

        def action() -> object:
            restrict(places)
            with socket.socket(socket.AF_UNIX) as own, socket.socket(socket.AF_UNIX) as client:
                own.bind(str(places.read_write / "own"))
                own.listen()
                return [client.connect_ex(server.getsockname()), client.connect_ex(own.getsockname())]

        assert in_child(action) == [errno.EACCES, 0]
        assert not accepted(server)


@from_abi(6, "scoping signals")
def test_only_processes_of_the_domain_can_be_signalled(places: Places) -> None:
    def action() -> object:
        restrict(places)
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        outside = errno_of(os.kill, os.getppid(), 0)
        by_descriptor = errno_of(signal.pidfd_send_signal, os.pidfd_open(os.getppid()), 0)
        os.kill(child, signal.SIGTERM)
        return [outside, by_descriptor, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]

    assert in_child(action) == [errno.EPERM, errno.EPERM, -signal.SIGTERM]
