"""A machine that lacks a mechanism: sessions are refused, and the refusal names the mechanism and a remedy."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

OPEN = """
from cellblock import IsolationUnavailable, Session
try:
    with Session() as session:
        print("opened", session.run("1 + 1").value)
except IsolationUnavailable as error:
    print("refused", error.mechanism, "hint" if error.hint else "no hint")
"""

WITHOUT_A_CALL = """
import struct, sys
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS
number, answer = NUMBERS[syscalls.MACHINE][sys.argv[1]], int(sys.argv[2])
program = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | answer), (0x06, 0, 0, 0x7FFF0000)]
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.seccomp_install(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
"""

EPERM, ENOSYS = 1, 38
OF_EVERY_PROCESS = (
    *("umask", "epoll_create1", "clone", "setsockopt", "poll", "sched_getscheduler"),
    *(("setgroups", "setresgid", "setresuid") if os.getuid() == 0 else ()),
)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("call", "answer", "mechanism"),
    [
        ("landlock_create_ruleset", ENOSYS, "landlock"),
        ("seccomp", ENOSYS, "seccomp"),
        ("unshare", EPERM, "namespaces"),
        ("mount_setattr", ENOSYS, "root"),
        ("pivot_root", EPERM, "root"),
        ("capset", EPERM, "capabilities"),
    ],
)
def test_a_missing_mechanism_is_named_with_a_remedy(call: str, answer: int, mechanism: str) -> None:
    assert run(sys.executable, "-c", WITHOUT_A_CALL + OPEN, call, str(answer)) == f"refused {mechanism} hint"


_TELLS = """
import cellblock
try:
    cellblock.Session(**{})
except cellblock.IsolationUnavailable as error:
    print(error.mechanism, error.args[0], "cellblock doctor --profile seccomp" in error.hint)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("call", "answer", "options"),
    [
        *(
            (call, answer, {})
            for answer, calls in {
                EPERM: (
                    *("prlimit64", "memfd_create", "prctl", "waitid", "pidfd_open", "setns", "clone3"),
                    *("rt_sigtimedwait", "socketpair", "ioctl", "chdir", "readlink", "getrusage"),
                    *("sched_getaffinity", *OF_EVERY_PROCESS),
                ),
                ENOSYS: ("pidfd_open", "pidfd_send_signal", "openat2", "umask", "clone"),
            }.items()
            for call in calls
        ),
        *((call, EPERM, {"walls": "reduced"}) for call in ("prlimit64", "prctl", "pidfd_open", *OF_EVERY_PROCESS)),
    ],
)
def test_a_filter_around_the_program_is_told_by_the_call_that_it_refuses(
    call: str, answer: int, options: dict[str, str]
) -> None:
    program = WITHOUT_A_CALL + _TELLS.replace("{}", repr(options))
    told = f"calls this program may not make the system call {call}: {os.strerror(answer)} True"
    assert run(sys.executable, "-c", program, call, str(answer)) == told


@pytest.mark.sampled(0)
def test_filter_that_refuses_timers_keeps_no_copy_from_waking() -> None:
    program = """
import cellblock
with cellblock.Session() as session:
    session.run("a = [1]")
    session.run("a.append(2)")
    session.undo()
    with session.branch() as other:
        print(session["a"], other["a"])
    print(session.run("import os; os._exit(3)").lost, session["a"])
"""
    assert run(sys.executable, "-c", WITHOUT_A_CALL + program, "setitimer", str(EPERM)) == "[1] [1]\n() [1]"


UNIX_ALONE = """
import socket, struct, sys
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS
number = NUMBERS[syscalls.MACHINE]["socket"]
program = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 1, 0, socket.AF_UNIX),
           (0x06, 0, 0, 0x00050000 | 97), (0x06, 0, 0, 0x7FFF0000)]
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.seccomp_install(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
"""


@pytest.mark.sampled(0)
def test_program_that_may_have_local_sockets_alone_is_told_so_by_the_opening_and_by_doctor() -> None:
    said = "this program may open no sockets of the family AF_INET: Address family not supported by protocol"
    told = """
import cellblock
try:
    cellblock.Session()
except cellblock.IsolationUnavailable as error:
    print(error.mechanism, error, sep="\\n")
"""
    mechanism, error = run(sys.executable, "-c", UNIX_ALONE + told).splitlines()
    assert mechanism == "network"
    assert error.startswith(f"{said} (have RestrictAddressFamilies= of its service name AF_UNIX and AF_INET")
    doctor = "from cellblock.cli import main\nprint(main(['doctor']))"
    shown = run(sys.executable, "-c", UNIX_ALONE + doctor)
    assert f"network: {said}" in shown
    assert "RestrictAddressFamilies=" in shown
    assert "Landlock: " in shown


REDUCED = """
import os, sys
from cellblock import IsolationUnavailable, Session
try:
    Session()
except IsolationUnavailable as error:
    print("full refused", error.mechanism, 'walls="reduced"' in error.hint)
with Session(walls="reduced", python=sys.argv[3]) as session:
    print("reduced opened", session.run("1 + 1").value, session.run("open('/etc/shadow')").error.type)
"""


def test_without_namespaces_full_walls_are_refused_and_reduced_ones_work(readable_python: str) -> None:
    shown = run(sys.executable, "-c", WITHOUT_A_CALL + REDUCED, "unshare", str(EPERM), readable_python)
    assert shown == "full refused namespaces True\nreduced opened 2 PermissionError"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("call", "mechanism"),
    [
        ("seccomp", "seccomp"),
        ("openat2", "metadata"),
        ("capset", "identity" if os.getuid() == 0 else "capabilities"),
        ("landlock_restrict_self", "landlock"),
    ],
)
def test_reduced_walls_that_cannot_be_put_up_are_refused_too(call: str, mechanism: str, readable_python: str) -> None:
    program = OPEN.replace("Session()", f"Session(walls='reduced', python={readable_python!r})")
    assert run(sys.executable, "-c", WITHOUT_A_CALL + program, call, str(EPERM)) == f"refused {mechanism} hint"


needs_unshare = pytest.mark.skipif(shutil.which("unshare") is None, reason="needs util-linux's unshare")


@pytest.mark.sampled(0)
@needs_unshare
@pytest.mark.parametrize("kind", ["user", "mnt", "pid", "net", "ipc", "uts"])
def test_no_namespaces_of_a_kind_left_is_refused_by_the_limit_that_is_reached(kind: str) -> None:
    limit = f"user.max_{kind}_namespaces"
    command = f'echo 0 > /proc/sys/{limit.replace(".", "/")} && exec "$0" -c "$1"'
    told = OPEN.replace('"hint" if error.hint else "no hint"', f'"sysctl" in error.hint and "{limit}" in error.hint')
    assert run("unshare", "-Ur", "sh", "-c", command, sys.executable, told) == "refused namespaces True"


@pytest.mark.sampled(0)
@needs_unshare
def test_root_of_a_container_with_one_user_gets_full_walls() -> None:
    assert run("unshare", "-Ur", sys.executable, "-c", OPEN) == "opened 2"


@pytest.mark.sampled(0)
@needs_unshare
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mask /proc")
def test_a_masked_proc_is_done_without() -> None:
    mask = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"
    look = textwrap.dedent(
        """
        from cellblock import Session
        with Session() as session:
            cell = session.run("import os; os.listdir('/proc')")
            print(cell.value, session.capabilities.walls[1].detail)
        """
    )
    shown = run("unshare", "-m", "sh", "-c", f'{mask} && exec "$0" -c "$1"', sys.executable, look)
    assert shown == "[] read-only tree, 512 MB of files of its own, without /proc (masked on this host)"


def test_another_system_is_told_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    import zoneinfo  # noqa: F401 - opening imports it, and its module asks for the system

    from cellblock import IsolationUnavailable, Session

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("cellblock.executors.process.families._families", {})
    with pytest.raises(IsolationUnavailable, match="needs Linux, this is darwin"):
        Session()
