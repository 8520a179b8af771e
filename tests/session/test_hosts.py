"""Sessions work in hosts that are not as the tests' own, or the error names what is in the way and what helps."""

from __future__ import annotations

import copy
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipapp
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from accounts import Account, ordinary, own, why_no_other_user
from hosts import SET, USES

import cellblock
from cellblock import AsyncSession, CellblockError, IsolationUnavailable, MountRefused, Session, Versioned
from cellblock.errors import StoreError
from cellblock.hosting import forks
from cellblock.hosting.threads import Pool
from cellblock.hosting.unique import unique_bytes, unique_word
from cellblock.patience import tries

_PROGRAM = Path(__file__).parents[1] / "support" / "hosts.py"
_PACKAGE = Path(cellblock.__file__).parent
_AS_IN_NAMESPACE = ["unshare", "-m", "sh", "-c"]
_HIDDEN = 'mount -t proc -o hidepid=2 proc /proc || exit 9; exec setpriv --reuid $0 --regid $0 --clear-groups "$@"'
_CHROOT = """
mount --make-rprivate / && for name in /*; do
  case $name in /proc|/sys|/lost+found) continue;; esac
  if [ -L $name ]; then cp -a $name "$0"
  elif [ -d $name ]; then mkdir "$0$name" && mount --rbind $name "$0$name" || exit 9; fi
done && mkdir "$0/proc" && mount -t proc proc "$0/proc" || exit 9
exec chroot "$0" "$@"
"""
_UNUSED = ("/sys", "/mnt", "/media", "/srv", "/opt")
_BARE = f"""
mount --make-rprivate / && mount -t tmpfs none "$0" && cd "$0" && for name in /*; do
  case $name in {"|".join(_UNUSED)}|/lost+found) continue;; esac
  if [ -L $name ]; then cp -a $name .
  elif [ -d $name ]; then mkdir ".$name" && mount --rbind $name ".$name" || exit 9; fi
done && mkdir old && pivot_root . old && cd / && umount -l old && rmdir old || exit 9
exec "$@"
"""
"""A root with nothing in it but what is used, as bwrap makes it."""
_MISSING = "/dev/zero, /dev/full, /dev/random, /dev/urandom"
_DEVICES = {
    "empty /dev": ("", (), f"there is no /dev/null, {_MISSING} (have the container"),
    "/dev of one device": ("", ("null c 1 3",), f"there is no {_MISSING} (have the container"),
    "/dev with another device": (
        "",
        ("null c 1 5", "zero c 1 5", "full c 1 7", "random c 1 8", "urandom c 1 9"),
        "/dev/null is not the kernel's device, which mknod -m 666 /dev/null c 1 3 makes (have the container",
    ),
    "/dev without devices": (
        "-o nodev",
        ("null c 1 3", "zero c 1 5", "full c 1 7", "random c 1 8", "urandom c 1 9"),
        "/dev/null cannot be opened: Permission denied (have the container",
    ),
}
"""How /dev is mounted in a host that has not all, or may not open them, the devices, and what its error says."""
_needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make this condition")


@dataclass(frozen=True)
class Host:
    """A condition: the words before the program's, and what an error has to name; "" where everything works."""

    named: str = ""
    around: tuple[str, ...] = ()
    path: str = ""
    environment: dict[str, str] = field(default_factory=dict)


_REFUSED = {
    "patched threads": "gevent has replaced this program's threads",
    "patched queue": "gevent has replaced this program's queue, with which",
    "patched subprocess": "gevent has replaced this program's subprocess, with which",
    "patched os": "gevent has replaced this program's os, with which",
    "frozen program": "is a frozen program",
    "embedded Python": "/usr/bin/uwsgi is no Python",
    "no executable": "this program names no Python",
    "other machine": "sessions have no walls on riscv64 (use a CPython for x86_64 or aarch64",
    "locked securebits": "what it starts has (SECBIT_NOROOT) no CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID here",
}
if sys.version_info[:2] == (3, 12):
    _REFUSED["interpreter ends"] = "this Python starts no threads then"
_LIMITS = {
    "ulimit -f 8": "RLIMIT_FSIZE) (raise the limit: ulimit -f",
    "ulimit -f 0": "RLIMIT_FSIZE) (raise the limit: ulimit -f",
    "ulimit -n 32": "raise the limit: as root, ulimit -n",
}
_CAPABILITIES = ("kill", "setuid", "setgid", "chown")
_BUILT = ("zip archive", "closed installation", "installation without compiled files")
_WITHOUT = tuple(f"without {name}" for name in (*_CAPABILITIES, "dac_override", "sys_ptrace"))
_AROUND = {
    "linux32": Host("", ("setarch", "linux32")),
    "unshared pid namespace": Host("this program has unshared its pid namespace", ("unshare", "--pid")),
}
_OF_ROOT = ("chroot", "bare root", "hidepid", "locked securebits", "unshared pid namespace", *_DEVICES, *_WITHOUT)
CONDITIONS = tuple(dict.fromkeys((*SET, *_LIMITS, "interpreter ends", *_BUILT, *_AROUND, *_OF_ROOT)))


@pytest.fixture(scope="module")
def somebody() -> Iterator[Account]:
    if reason := why_no_other_user():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield ordinary(Path(folder), _PROGRAM)


def _host(condition: str, folder: Path, request: pytest.FixtureRequest) -> tuple[Account, Host]:
    if condition in _OF_ROOT and os.getuid() != 0:
        pytest.skip("only root can make this condition")
    account = own(_PROGRAM.parent)
    if condition in (*SET, "interpreter ends", "another user"):
        return account, Host(_REFUSED.get(condition, ""))
    if condition in _LIMITS:
        return account, Host(_LIMITS[condition], ("bash", "-c", f'{condition}; exec "$0" "$@"'))
    if condition in _BUILT:
        return _installed(condition, folder, account)
    if condition in _AROUND:
        return account, _AROUND[condition]
    if condition == "chroot":
        return account, Host("this program is in a chroot", (*_AS_IN_NAMESPACE, _CHROOT, str(folder)))
    if condition == "bare root":
        if sys.base_prefix.startswith(_UNUSED):
            pytest.skip("the interpreter is there")
        return account, Host("", (*_AS_IN_NAMESPACE, _BARE, str(folder)))
    if condition in _DEVICES:
        options, devices, named = _DEVICES[condition]
        made = " && ".join((f"mount -t tmpfs {options} none /dev", *(f"mknod -m 666 /dev/{one}" for one in devices)))
        return account, Host(named, (*_AS_IN_NAMESPACE, f'{{ {made}; }} || exit 9; exec "$0" "$@"'))
    if condition == "hidepid":
        account = request.getfixturevalue("somebody")
        return replace(account, uid=None), Host("", (*_AS_IN_NAMESPACE, _HIDDEN, str(account.uid)))
    name = condition.removeprefix("without ")
    named = f"has no CAP_{name.upper()} here" if name in _CAPABILITIES else ""
    return account, Host(named, ("setpriv", "--bounding-set", f"-{name}", "--inh-caps", f"-{name}"))


def _installed(condition: str, folder: Path, account: Account) -> tuple[Account, Host]:
    copy = folder / "packages" / "cellblock"
    shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path, named = copy.parent, ""
    if condition == "zip archive":
        copy.parent.joinpath("__main__.py").touch()
        path, named = folder / "packages.pyz", "cellblock must lie as files on disk"
        zipapp.create_archive(copy.parent, path)
    elif condition == "closed installation":
        subprocess.run(["chmod", "-R", "go-rwx", str(copy)], check=True)
        named = "cannot be read by the account that sessions run as" if os.getuid() == 0 else ""
    else:
        subprocess.run(["chmod", "-R", "a-w", str(copy)], check=True)
    return replace(account, path=f"{path}:{account.path}"), Host(named)


def _told(condition: str, use: str, folder: Path, request: pytest.FixtureRequest) -> tuple[str, str]:
    account, host = _host(condition, folder, request)
    program = _PROGRAM
    if condition == "hidepid":
        if use == "resumed":
            pytest.skip("the ordinary user has no copy of all that a store needs")
        program = Path(account.path) / _PROGRAM.name
    words = [*host.around, account.python, "-B", str(program), condition, use]
    done = subprocess.run(
        words,
        env={"PYTHONPATH": account.path, "HOME": account.home, "PATH": os.environ["PATH"]},
        cwd=account.home,
        capture_output=True,
        text=True,
        timeout=100,
    )
    if done.returncode == 9:
        pytest.skip("nothing can be mounted here")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip(), host.named


def _is_as_it_should_be(condition: str, use: str, folder: Path, request: pytest.FixtureRequest) -> None:
    told, named = _told(condition, use, folder, request)
    if named:
        assert told.startswith(("IsolationUnavailable: ", "CellblockError: ", "SessionClosed: "))
        assert named in told
    else:
        assert told == repr(USES[use][1])


_TELLING = {
    "stopped clock": "limits",
    "guarded sockets": "branch",
    "little time": "saved",
    "JSON of bytes": "resumed",
    "sockets that are not made": "local",
    "interpreter ends": "resumed",
    "blocked signals": "limits",
    "no directory": "mounts",
}
"""The use that a condition would break first, where that is not undoing."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_session_works_in_the_host_or_names_the_condition(
    condition: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    _is_as_it_should_be(condition, _TELLING.get(condition, "undo"), tmp_path, request)


@pytest.mark.thorough
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_use_works_in_the_host_or_names_the_condition(
    condition: str, use: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    _is_as_it_should_be(condition, use, tmp_path, request)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("condition", ["hidepid"])
@pytest.mark.parametrize("use", ["crash", "branch"])
def test_checkpoints_are_found_where_processes_are_hidden(
    condition: str, use: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    _is_as_it_should_be(condition, use, tmp_path, request)


@pytest.mark.sampled(0)
@_needs_root
def test_session_of_another_user_is_refused_by_that_name(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    told, _ = _told("another user", "user", tmp_path, request)
    assert told == (
        "CellblockError: the session was opened as user 0, and this program is now user 65534 "
        "(open sessions after the change of user)"
    )


@pytest.mark.sampled(0)
@_needs_root
def test_user_who_changes_while_a_cell_runs_ends_the_session(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    told, _ = _told("another user", "user meanwhile", tmp_path, request)
    assert told.startswith(
        "SessionClosed: the session's process ended and no other could be started: the session was opened as user 0, "
        "and this program is now user 65534"
    )


@pytest.mark.sampled(0)
def test_cell_that_reaches_the_program_s_limit_of_time_says_so(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    told, _ = _told("another user", "time", tmp_path, request)
    message = "the session's process was killed by SIGXCPU, at its limit of CPU time (RLIMIT_CPU, ulimit -t)"
    assert told == repr((message, [1]))


@pytest.mark.sampled(0)
def test_copy_forked_while_a_thread_opens_the_first_session_opens_its_own(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert _told("another user", "fork", tmp_path, request)[0] == "7"


_FIRST = """
import sys, tempfile, threading
import anyio
from cellblock import AsyncSession, Versioned

class Seen:
    def find_spec(self, name, *_):
        if threading.current_thread() is threading.main_thread():
            found.append(name)

async def opened(state):
    session = AsyncSession("first", state=state)
    await anyio.sleep(0)
    sys.meta_path.insert(0, Seen())
    await session.open()
    sys.meta_path.pop(0)
    await session.close()

found = []
with tempfile.TemporaryDirectory() as folder:
    anyio.run(opened, Versioned(f"sqlite:///{folder}/cells.db"))
print(found, "cellblock.session.lasting" in sys.modules)
"""


@pytest.mark.sampled(0)
def test_first_session_that_lasts_imports_nothing_on_the_event_loop() -> None:
    done = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "[] True\n"


@pytest.mark.sampled(0)
def test_default_timeout_that_a_cell_sets_is_not_for_the_session_s_own_sockets(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    with Session("kept", state=Versioned(url)) as session:
        session.run("import socket\nsocket.setdefaulttimeout(0.5)\na = [1]")
        session.run("a.append(2)")
        session.run("a.append(3)")
        session.undo()
        with session.branch() as other:
            assert other["a"] == [1, 2]
        session.flush()
        assert (session["a"], session.run("socket.getdefaulttimeout()").value) == ([1, 2], 0.5)
    with Session("kept", state=Versioned(url)) as session:
        assert session["a"] == [1, 2]


def test_relative_mount_without_a_working_directory_is_refused_by_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def getcwd() -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", getcwd)
    message = "mounts['given']: 'data' is relative, and the working directory of this program is gone"
    with pytest.raises(MountRefused, match=re.escape(message)):
        Session(mounts={"given": "data"})


@pytest.mark.parametrize("url", ["sqlite:///cells.db", "sqlite:///{tmp}/cells.db?objects=blobs"])
def test_relative_store_without_a_working_directory_is_refused_by_that_name(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StoreError, match="is relative, and the working directory of this program is gone"):
        Session("a", state=Versioned(url.replace("{tmp}", str(tmp_path))))
    monkeypatch.undo()


_SUB_INTERPRETER = """
try:
    import _xxsubinterpreters as interpreters
except ModuleNotFoundError:
    import _interpreters as interpreters
interpreters.run_string(interpreters.create(), '''
from cellblock import CellblockError, Session
try:
    Session()
except CellblockError as error:
    print(error, flush=True)
''')
"""


def test_blocking_session_in_an_isolated_sub_interpreter_is_refused_by_that_name() -> None:
    done = subprocess.run([sys.executable, "-c", _SUB_INTERPRETER], capture_output=True, text=True, timeout=100)
    told = "this is a sub-interpreter, which allows no daemon threads (use sessions in the main interpreter)\n"
    assert (done.stdout, done.stderr) == (told, "")


def test_copy_finds_a_lock_free_that_another_thread_has() -> None:
    lock, held, done = forks.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(3 if lock.take(0) else 4)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_pool_that_is_closed_cancels_what_no_thread_has_taken_up() -> None:
    pool, begun, going_on = Pool(1, "pool"), threading.Event(), threading.Event()
    first = pool.submit(lambda: begun.set() or going_on.wait(60))
    second = pool.submit(lambda: 2)
    begun.wait(60)
    pool.close(wait=False)
    going_on.set()
    assert (first.result(60), second.cancelled()) == (True, True)


_RAISING_HANDLER = """
import logging

class Raising(logging.Handler):
    def handle(self, record):
        raise SystemError("the log's disk is full")

logging.basicConfig(level=0, handlers=[Raising()])
import cellblock
try:
    cellblock.Session()
except cellblock.CellblockError as error:
    print(error)
"""


def test_logging_handler_that_raises_is_told_as_the_cause() -> None:
    done = subprocess.run([sys.executable, "-c", _RAISING_HANDLER], capture_output=True, text=True, timeout=100)
    assert done.stdout == (
        "no event loop could be started for blocking sessions: SystemError: the log's disk is full "
        "(mend the logging handler that raises)\n"
    )
    assert done.stderr == ""


def test_ids_differ_where_the_random_bytes_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.hosting.unique.urandom", bytes)
    assert len({unique_word(2) for _ in range(1000)} | {unique_bytes(2).hex() for _ in range(1000)}) == 2000


def test_interpreter_that_may_not_be_executed_is_told_with_what_helps(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.touch(0o600)
    with pytest.raises(IsolationUnavailable, match="Permission denied") as told:
        Session(python=str(python))
    assert told.value.hint.startswith("let all users read it")


def test_import_that_the_program_makes_fail_is_told() -> None:
    with pytest.raises(CellblockError, match="cannot import what it needs: No module named 'ssl'"), forks.importing():
        raise ModuleNotFoundError("No module named 'ssl'")


_REFUSING = """
import sys
from cellblock import IsolationUnavailable, Session
def hook(event, arguments):
    if event == "subprocess.Popen":
        raise PermissionError("no programs here")
sys.addaudithook(hook)
try:
    Session()
except IsolationUnavailable as error:
    print(error.hint)
"""


def test_audit_hook_that_refuses_processes_is_told_as_the_cause() -> None:
    done = subprocess.run([sys.executable, "-c", _REFUSING], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == (
        "code of this program refuses it, such as an audit hook: allow subprocess.Popen\n", ""
    )  # fmt: skip


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("around", "told"),
    [
        (["setpriv", "--ruid", "65534"], "acts as root, and its real user is 65534"),
        (["unshare", "--user"], "a user namespace without a map of users"),
    ],
)
def test_users_with_whom_no_walls_can_be_are_told(around: list[str], told: str) -> None:
    if os.getuid() or subprocess.run([*around, "true"], check=False).returncode:
        pytest.skip(f"this user may not call {around[0]}")
    program = "from cellblock import *\ntry: Session()\nexcept IsolationUnavailable as error: print(error)"
    done = subprocess.run([*around, sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert told in done.stdout, done.stderr


def test_import_that_fails_for_a_user_who_may_not_read_the_engine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.hosting.conditions.unreadable", lambda: "/root/lib")
    with pytest.raises(IsolationUnavailable, match="/root/lib cannot be read by user"), forks.importing():
        raise ModuleNotFoundError("No module named 'bisect'")


@pytest.mark.sampled(0)
def test_stored_session_of_a_program_that_never_named_a_python_is_refused_by_that_name(tmp_path: Path) -> None:
    program = (
        "import sys\nsys.executable = None\nfrom cellblock import CellblockError, Session, Versioned\n"
        f"try: Session('kept', state=Versioned('sqlite:///{tmp_path}/cells.db'))\n"
        "except CellblockError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("this program names no Python")
    assert done.stderr == ""


@pytest.mark.parametrize("sent", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [Session, AsyncSession])
def test_session_is_neither_pickled_nor_copied(kind: type, sent: Callable[[object], object]) -> None:
    session = kind(trust_level="local")
    with pytest.raises(CellblockError, match="open one in the other process"):
        sent(session)
    if isinstance(session, Session):
        session.close()


@pytest.mark.sampled(0)
def test_program_that_holds_a_session_to_the_last_ends_in_silence(tmp_path: Path) -> None:
    module = tmp_path / "test_held.py"
    module.write_text(
        "from cellblock import Session\n"
        "def test_held():\n"
        "    global held\n"
        "    held = [Session(), Session(trust_level='local')]\n"
        "    held.append(held[0].branch())\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(module)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.sampled(0)
def test_timers_of_sessions_are_exact_where_those_of_the_program_are_late() -> None:
    program = (
        "import ctypes\nctypes.CDLL(None).prctl(29, 10**9, 0, 0, 0)\nfrom cellblock import Session\n"
        "with Session() as session: print(session.run(\"open('/proc/self/timerslack_ns').read()\").value)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("50000\n\n", "")


def test_first_try_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    several = tries(1)
    next(several)
    assert waited == []
    next(several)
    assert len(waited) == 1
