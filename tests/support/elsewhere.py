"""Another system, simulated in a Linux process: what its Python does not have is taken away before cellblock loads.

`python elsewhere.py SYSTEM PROGRAM` runs PROGRAM as on "darwin" or "win32". The names that are absent are those that
typeshed says are; `/proc` and `/sys` answer that there is no such file, sockets that keep packet borders are refused,
and no function of Linux can be looked up by ctypes. What stays Linux's own: the file system, the C library, and what
the standard library has imported for itself, its event loops above all.
"""

from __future__ import annotations

import errno
import os
import sys
import types
from typing import Any

_LINUX = {
    "os": (
        "copy_file_range eventfd eventfd_read eventfd_write fdatasync getrandom getresgid getresuid getxattr "
        "listxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate removexattr sched_getaffinity "
        "sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setparam "
        "sched_setscheduler setns setresgid setresuid setxattr splice timerfd_create timerfd_gettime "
        "timerfd_gettime_ns timerfd_settime timerfd_settime_ns unshare MFD_CLOEXEC MFD_ALLOW_SEALING O_DIRECT "
        "O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE P_PIDFD SCHED_BATCH SCHED_IDLE GRND_NONBLOCK "
        "EFD_CLOEXEC ST_NODEV ST_NOEXEC ST_RELATIME RTLD_DEEPBIND SPLICE_F_MOVE SPLICE_F_NONBLOCK "
        "SPLICE_F_MORE CLONE_NEWUSER CLONE_NEWNS CLONE_NEWPID CLONE_NEWNET CLONE_NEWIPC CLONE_NEWUTS "
        "POSIX_FADV_DONTNEED POSIX_FADV_WILLNEED"
    ),
    "signal": "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    "socket": (
        "AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_ERRQUEUE MSG_FASTOPEN MSG_MORE "
        "SCM_CREDENTIALS SOCK_CLOEXEC SOCK_NONBLOCK SO_DOMAIN SO_MARK SO_PASSCRED SO_PEERCRED SO_PEERSEC "
        "SO_PRIORITY SO_PROTOCOL"
    ),
    "select": "epoll EPOLLIN EPOLLOUT EPOLL_CLOEXEC POLLRDHUP POLLMSG",
    "time": "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid",
    "resource": "prlimit RUSAGE_THREAD RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME",
    "fcntl": "F_ADD_SEALS F_GET_SEALS F_GETPIPE_SZ F_SETPIPE_SZ F_SETSIG F_GETSIG F_SETOWN_EX F_NOTIFY FICLONE",
    "mmap": "MAP_POPULATE MAP_STACK MADV_DONTFORK MADV_HUGEPAGE MADV_REMOVE",
}
"""What Linux alone has, by module."""

_POSIX = {
    "os": (
        "O_ASYNC O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC WNOHANG chown chroot environb "
        "fchdir fchown fork forkpty getegid geteuid getgid getgroups getpgid getpgrp getpriority getsid "
        "getuid killpg lchown mkfifo mknod nice openpty posix_spawn posix_spawnp pread preadv pwrite pwritev "
        "readv register_at_fork sched_yield sendfile setegid seteuid setgid setgroups setpgid setpriority "
        "setregid setreuid setsid setuid sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 "
        "waitid writev fchmod set_blocking get_blocking statvfs fstatvfs getloadavg"
    ),
    "signal": (
        "ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGSYS "
        "SIGTRAP SIGTSTP SIGURG SIGUSR1 SIGUSR2 SIGWINCH SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm getitimer "
        "pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigwait"
    ),
    "socket": (
        "AF_UNIX CMSG_LEN CMSG_SPACE MSG_DONTWAIT MSG_EOR MSG_NOSIGNAL SCM_RIGHTS SO_BINDTODEVICE "
        "SO_REUSEPORT recv_fds send_fds sethostname"
    ),
    "select": "PIPE_BUF POLLERR POLLHUP POLLIN POLLNVAL POLLOUT POLLPRI poll",
    "time": (
        "CLOCK_MONOTONIC CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME CLOCK_THREAD_CPUTIME_ID "
        "clock_getres clock_gettime clock_gettime_ns clock_settime tzset"
    ),
    "mmap": "MAP_ANON MAP_ANONYMOUS MAP_PRIVATE MAP_SHARED PROT_EXEC PROT_READ PROT_WRITE MADV_DONTNEED",
}
"""What Windows does not have besides. A few that it got in Python 3.12 and 3.13 are among them."""

_ABSENT_ON_WINDOWS = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog", "curses")
_BEFORE_WINDOWS = (
    "asyncio", "concurrent.futures", "ctypes.util", "http.client", "http.server", "importlib.metadata",
    "importlib.resources", "json", "logging.config", "multiprocessing.connection", "pathlib", "platform", "selectors",
    "shutil", "socket", "sqlite3", "ssl", "subprocess", "sysconfig", "tempfile", "urllib.request", "uuid", "webbrowser",
    "zipfile", "zoneinfo",
)  # fmt: skip
_CALLS_OF_LINUX = frozenset(("mount", "prctl", "process_vm_readv", "process_vm_writev", "setns", "syscall", "unshare"))
_NAMES = {"darwin": ("Darwin", "23.6.0", "arm64"), "win32": ("Windows", "11", "AMD64")}


def become(system: str) -> None:
    """Make this process look like one of another system, for whoever asks the standard library."""
    import platform
    import zoneinfo  # noqa: F401 - asks for the build of the interpreter, which is Linux's

    if system == "win32":
        for name in _BEFORE_WINDOWS:
            __import__(name)
    _take(_LINUX)
    if system == "win32":
        _take(_POSIX)
        for name in _ABSENT_ON_WINDOWS:
            sys.modules[name] = None  # type: ignore[assignment]
    else:
        proxies: Any = types.ModuleType("_scproxy")
        proxies._get_proxy_settings = proxies._get_proxies = dict
        sys.modules["_scproxy"] = proxies
        kernel = os.uname()
        sys.modules["os"].uname = lambda: os.uname_result(
            ("Darwin", kernel.nodename, "23.6.0", "Darwin Kernel 23.6.0", "arm64")
        )
        sys.modules["resource"].getrusage = _in_bytes(sys.modules["resource"].getrusage)
    name, release, machine = _NAMES[system]
    platform._uname_cache = platform.uname_result(name, "elsewhere", release, release, machine)
    sys.platform = system
    _hide_proc()
    sys.addaudithook(_refuse)


def _take(names: dict[str, str]) -> None:
    """Have whoever imports these modules from now on get ones without these names."""
    for module, absent in names.items():
        had = vars(__import__(module))
        copy = sys.modules[module] = types.ModuleType(module)
        copy.__dict__.update({name: value for name, value in had.items() if name not in absent.split()})


def _in_bytes(getrusage: Any) -> Any:
    """macOS tells the peak of memory in bytes, Linux in kilobytes."""
    return lambda who: types.SimpleNamespace(ru_maxrss=getrusage(who).ru_maxrss * 1024)


def _is_linux(path: object) -> bool:
    return isinstance(path, str | bytes) and os.fsdecode(path).startswith(("/proc", "/sys"))


def _hide_proc() -> None:
    def hiding(function: Any) -> Any:
        def hidden(path: Any = ".", *rest: Any, **options: Any) -> Any:
            if _is_linux(os.fspath(path) if isinstance(path, os.PathLike) else path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return function(path, *rest, **options)

        return hidden

    for name in ("stat", "lstat", "readlink", "access"):
        hidden = hiding(getattr(os, name))
        for module in (os, sys.modules["os"]):
            setattr(module, name, hidden)


def _refuse(event: str, given: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and _is_linux(given[0]):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), given[0])
    if event == "socket.__new__" and given[2] & 0xF == 5:
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")
    if event == "ctypes.dlsym" and given[1] in _CALLS_OF_LINUX:
        raise AttributeError(f"dlsym(RTLD_DEFAULT, {given[1]}): symbol not found")


if __name__ == "__main__":
    become(sys.argv[1])
    exec(compile(sys.argv[2], "elsewhere", "exec"), {"__name__": "__main__"})
