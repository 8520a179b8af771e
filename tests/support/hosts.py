"""A host that is not as the tests' own: `hosts.py CONDITION USE` puts itself into a condition and uses a session.

It prints what that gave, or the error of cellblock's that it met. Any other error leaves a traceback and status 1.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellblock import Session

_HERE = os.path.dirname(os.path.abspath(__file__))
"""Known beforehand: a program that has ended has no `__file__`."""


def _stopped_clock() -> None:
    stands = time.monotonic()
    time.monotonic = lambda: stands


def _guarded_sockets() -> None:
    class Guarded(socket.socket):
        def __new__(cls, family: int = -1, *more: Any, **options: Any) -> Guarded:
            if family != socket.AF_UNIX:
                raise RuntimeError("a test tried to use the network")
            return super().__new__(cls, family, *more, **options)

    socket.socket = Guarded  # type: ignore[misc]


def _sockets_that_refuse() -> None:
    class Refusing(socket.socket):
        def send(self, *_: Any) -> int:
            raise OSError("the proxy is down")

    socket.socket = Refusing  # type: ignore[misc]


def _sockets_that_are_not_made() -> None:
    class Unmade(socket.socket):
        def __new__(cls, *_: Any, **options: Any) -> Unmade:
            raise RuntimeError("a test tried to use a socket")

    socket.socket = Unmade  # type: ignore[misc]


def _repeated_random() -> None:
    import secrets

    secrets.token_hex = lambda _=None: "abc123"
    secrets.token_bytes = lambda count=32: bytes(count)
    secrets.randbits = lambda _: 1
    os.urandom = bytes


def _json_of_bytes() -> None:
    import json

    json.dumps = lambda value, **_: repr(value).encode()  # type: ignore[assignment]


def _patched(module: str, name: str) -> None:
    __import__(module)
    setattr(sys.modules[module], name, type(name, (), {"__module__": f"gevent.{module}"}))


def _policy_without_loops() -> None:
    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            raise RuntimeError("no loop can be made")

    asyncio.set_event_loop_policy(Policy())


def _patched_threads() -> None:
    def get_ident() -> int:
        return 1

    import _thread

    get_ident.__module__ = "gevent.thread"
    _thread.get_ident = get_ident


def _blocked_signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])


def _frozen_program() -> None:
    sys.frozen = True  # type: ignore[attr-defined]


def _embedded_python() -> None:
    sys.executable = "/usr/bin/uwsgi"


def _no_executable() -> None:
    sys.executable = None  # type: ignore[assignment]


def _other_machine() -> None:
    own = sys.implementation._multiarch
    sys.implementation._multiarch = "riscv64-linux-gnu"
    import cellblock.hosting.machine  # noqa: F401

    sys.implementation._multiarch = own  # the standard library looks for files of its own by it


def _locked_securebits() -> None:
    """What root starts from now on is given no capability."""
    assert ctypes.CDLL(None).prctl(28, 0x2F, 0, 0, 0) == 0


def _little_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))


SET: dict[str, Callable[[], object]] = {
    "default timeout": lambda: socket.setdefaulttimeout(5),
    "stopped clock": _stopped_clock,
    "small stacks": lambda: threading.stack_size(65_536),
    "guarded sockets": _guarded_sockets,
    "sockets that refuse": _sockets_that_refuse,
    "sockets that are not made": _sockets_that_are_not_made,
    "repeated random": _repeated_random,
    "JSON of bytes": _json_of_bytes,
    "policy without loops": _policy_without_loops,
    "patched threads": _patched_threads,
    "patched queue": lambda: _patched("queue", "SimpleQueue"),
    "patched subprocess": lambda: _patched("subprocess", "Popen"),
    "patched os": lambda: _patched("os", "waitpid"),
    "blocked signals": _blocked_signals,
    "frozen program": _frozen_program,
    "embedded Python": _embedded_python,
    "no executable": _no_executable,
    "other machine": _other_machine,
    "locked securebits": _locked_securebits,
    "umask 077": lambda: os.umask(0o077),
    "no directory": lambda: _no_directory(),
    "no streams": lambda: (os.close(0), os.close(2)),
    "little time": _little_time,
}
"""Changes that a host makes to itself; other conditions are made around it."""


def _undo(session: Session) -> object:
    session.run("a = [1]")
    session.run("a.append(2)")
    session.undo()
    return session["a"]


def _crash(session: Session) -> object:
    session.run("a = [1]")
    return session.run("import os; os._exit(3)").error.kind, session["a"]  # type: ignore[union-attr]


def _branch(session: Session) -> object:
    session.run("a = [1]")
    with session.branch() as other:
        return other["a"]


def _files(session: Session) -> object:
    session.files.write("f", b"x" * 20_000)
    return session.run("import os\nos.path.getsize('f')").value, len(session.files.read("f"))


def _limits(session: Session) -> object:
    session.run("a = [1]")
    ended = [session.run(cell).error.kind for cell in ("while True: pass", _STUBBORN)]  # type: ignore[union-attr]
    return ended, session["a"]


def _mounts(_: Session) -> object:
    from cellblock import Session

    with Session(mounts={"given": _HERE}) as other:
        return other.run("import os\n'hosts.py' in os.listdir('given')").value


def _user() -> object:
    from cellblock import Session

    with Session() as session:
        session.run("a = [1]")
        os.setresuid(65_534, 65_534, 65_534)
        return session.run("a").text


def _user_meanwhile() -> object:
    """The program becomes another user while a cell runs that has to be killed."""
    from cellblock import ExecutionLimits, Session

    def become() -> None:
        os.setresuid(65_534, 65_534, 65_534)

    limits = ExecutionLimits(timeout_seconds=1, interrupt_grace_seconds=0.2)
    with Session(limits=limits, tools=[become]) as session:
        return session.run("become()\n" + _STUBBORN).state


def _time() -> object:
    from cellblock import ExecutionLimits, Session

    resource.setrlimit(resource.RLIMIT_CPU, (3, 3))
    with Session(limits=ExecutionLimits(timeout_seconds=60)) as session:
        session.run("a = [1]")
        return session.run("while True: pass").error.message, session["a"]  # type: ignore[union-attr]


def _fork() -> object:
    """The result of a session in a copy that was forked while another thread opened the program's first one."""
    from cellblock import Session

    opening = threading.Event()

    class SlowDisk:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "cellblock.executors.process.launcher" and not opening.is_set():
                opening.set()
                time.sleep(0.5)

    sys.meta_path.insert(0, SlowDisk())  # type: ignore[arg-type]
    thread = threading.Thread(target=lambda: Session().close())
    thread.start()
    opening.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(40)
        with Session() as session:
            os._exit(session.run("7").value)  # type: ignore[arg-type]
    thread.join()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _no_directory() -> None:
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    os.rmdir(gone)


def _resumed(_: Session) -> object:
    from cellblock import Session, Versioned

    with tempfile.TemporaryDirectory() as folder:
        state = Versioned(f"sqlite:///{folder}/cells.db")
        for _step in range(2):
            with Session("kept", state=state) as session:
                session.run("a = [*globals().get('a', ()), 1]")
                told = session["a"]
    return told


def _saved(_: Session) -> object:
    from cellblock import Session, Versioned

    with tempfile.TemporaryDirectory() as folder:
        with Session("kept", state=Versioned(f"sqlite:///{folder}/cells.db")) as session:
            session.run("a = [1]")
            session.flush()
            return session.unsaved


def _local(_: Session) -> object:
    from cellblock import Session

    async def told() -> int:
        return 7

    with Session(trust_level="local", tools=[told]) as session:
        return session.run("await told()").value


_STUBBORN = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
USES: dict[str, tuple[Callable[[Session], object], object]] = {
    "open": (lambda session: session.run("1 + 1").value, 2),
    "undo": (_undo, [1]),
    "crash": (_crash, ("crashed", [1])),
    "branch": (_branch, [1]),
    "files": (_files, (20_000, 20_000)),
    "shell": (lambda session: session.shell("echo said").text.strip(), "said"),
    "limits": (_limits, (["timeout", "timeout"], [1])),
    "mounts": (_mounts, True),
    "resumed": (_resumed, [1, 1]),
    "saved": (_saved, ()),
    "local": (_local, 7),
}
"""Uses of a session, each with its result."""
ALONE = {"user": _user, "user meanwhile": _user_meanwhile, "time": _time, "fork": _fork}
"""Uses that open their sessions themselves."""


BEFORE = (
    "guarded sockets", "sockets that refuse", "sockets that are not made", "repeated random", "JSON of bytes",
    "other machine",
)  # fmt: skip
"""Those that are there before the import."""


def _used(use: str, before: Callable[[], object]) -> None:
    from cellblock import CellblockError, ExecutionLimits, Session

    before()
    try:
        if use in ALONE:
            print(repr(ALONE[use]()), flush=True)
            return
        with Session(limits=ExecutionLimits(timeout_seconds=1)) as session:
            print(repr(USES[use][0](session)), flush=True)
    except CellblockError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    condition, wanted = sys.argv[1:]
    if condition == "interpreter ends":
        atexit.register(_used, wanted, lambda: None)
        import cellblock  # noqa: F401
    elif condition in BEFORE:
        SET[condition]()  # before the import
        _used(wanted, lambda: None)
    else:
        _used(wanted, SET.get(condition, lambda: None))
