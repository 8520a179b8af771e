"""The first process of a family. A command starts it before it imports the rest of us, which takes longer.

So this module imports next to nothing: each millisecond before the start is one of every `cellblock run`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from cellblock.errors import IsolationUnavailable
from cellblock.hosting.conditions import BOOT, interpreter, packed, require
from cellblock.hosting.sockets import pair
from cellblock.hosting.waiting import ready

_PACKAGE = os.path.normpath(os.path.join(os.path.dirname(BOOT), ".."))
IDLE_SECONDS = 600.0
"""A family that no session has used for so long ends."""
_ENDING_SECONDS = 10
_INHERITED = ("LD_LIBRARY_PATH", "TZ")
"""The only variables of the host's environment that a family sees."""


class Launched:
    """One that this process has executed."""

    __slots__ = ("channel", "process", "python", "zygote")

    def __init__(self, python: str) -> None:
        """OSError where the interpreter cannot be started."""
        self.python = python
        self.channel, end = pair()
        self.zygote, zygote_end = pair()
        try:
            with end, zygote_end:
                self.process = start(python, "launch", [end, zygote_end], str(IDLE_SECONDS), _PACKAGE)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def await_end(self) -> None:
        await_end(self.process)

    def close(self) -> None:
        """Close our ends, which ends the process."""
        self.channel.close()
        self.zygote.close()


def start(python: str, role: str, ends: Sequence[socket.socket], *words: str) -> subprocess.Popen[bytes]:
    """Execute the worker's program in a role, with ends of channels; OSError where the interpreter cannot be started.

    Environment and directory are the same for every host; `hosting.inherited` sees to what else it has from this one.
    """
    import fcntl  # there is none on Windows, where commands import this module too

    require(packed)
    python = interpreter(python)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    with contextlib.ExitStack() as copies:
        passed = []
        for end in ends:  # under numbers that are no standard stream's: a host may have closed those
            passed.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))
            copies.callback(os.close, passed[-1])
        return subprocess.Popen(
            [python, "-s", "-P", "-S", BOOT, role, *map(str, passed), *words],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )


def await_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that is ending; it is roused where somebody has stopped it, and killed after ten seconds."""
    from cellblock.executors.process.stopped import go_on

    with contextlib.suppress(ProcessLookupError):  # it was collected, by another thread perhaps
        if process.poll() is not None:
            return
        end = os.pidfd_open(process.pid)  # `Popen.wait` looks every few milliseconds; this wakes at once
        for _ in range(_ENDING_SECONDS):
            go_on(process.pid, "a process that ends", generations=2)
            if ready(end, seconds=1.0):
                break
        else:
            process.kill()
        os.close(end)
    process.wait()


_early: Launched | None = None


def launch(python: str) -> Launched:
    """Start the process, or take the one that was started early. OSError where the interpreter cannot be started."""
    global _early
    early = _early
    if early is not None and early.python == python and early.alive:
        _early = None
        return early
    return Launched(python)


def launch_early(python: str | None = None) -> None:
    """Start a process that a family will soon ask for. What keeps it from starting is met again, and told, then."""
    global _early
    if sys.platform != "linux":
        return
    try:
        _early = Launched(interpreter(python))
    except (IsolationUnavailable, OSError):
        return


def let_go() -> None:
    """End the process that was started early, if nobody asked for it."""
    global _early
    if _early is not None:
        _early.close()
        _early.process.kill()  # it would see that by itself, once it has started
        _early.process.wait()
        _early = None
