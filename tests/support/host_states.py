"""A host whose own process is set otherwise than usual: puts itself into a state, then uses a session, and writes what
that gave to a file. Arguments: the state, the walls, the interpreter of the session, the file."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable


def _signals() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _no_directory() -> None:
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    os.rmdir(gone)


def _soft_limits() -> None:
    for limit, soft in (
        (resource.RLIMIT_FSIZE, 100_000),
        (resource.RLIMIT_NOFILE, 100),
        (resource.RLIMIT_STACK, 1 << 20),
    ):
        resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))


STATES: dict[str, Callable[[], object]] = {
    "umask 027": lambda: os.umask(0o027),
    "umask 077": lambda: os.umask(0o077),
    "umask 0777": lambda: os.umask(0o777),
    "signals": _signals,
    "no streams": lambda: os.closerange(0, 3),
    "no directory": _no_directory,
    "soft limits": _soft_limits,
    "nice": lambda: os.nice(15),
    "idle": lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
    "batch": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
}

CELL = """import os, resource, signal, subprocess
open("big", "wb").write(bytes(200_000))
(
    subprocess.run(["sh", "-c", "exit 3"]).returncode,
    os.path.getsize("big"),
    oct(os.stat("big").st_mode),
    oct(os.stat("d/from_host").st_mode),
    oct(os.umask(0o022)),
    sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL,
)"""
LATE = "import subprocess\nsubprocess.Popen(['sleep', '30'])\nwhile True: pass"


def _used(walls: str, python: str) -> list[object]:
    from cellblock import ExecutionLimits, Session

    with Session(walls=walls, python=python, limits=ExecutionLimits(timeout_seconds=0.3)) as session:  # type: ignore[arg-type]
        session.files.write("d/from_host", b"1")
        seen = session.run(CELL)
        late = session.run(LATE)
        after = session.run("x = 1\nsorted(os.listdir())")
        if walls == "full":
            session.undo()
        return [seen.error and str(seen.error), seen.value, late.state.value, after.value]


if __name__ == "__main__":
    state, walls, python, target = sys.argv[1:]
    with open(target, "w", encoding="utf-8") as out:
        STATES[state]()
        try:
            print(*_used(walls, python), sep="\n", file=out)
        except BaseException as error:
            print(repr(error), file=out)
            raise
