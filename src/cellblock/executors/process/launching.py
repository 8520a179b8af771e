"""The first process of a family. A command starts it before it imports the rest of us, which takes longer.

So this module imports next to nothing: each millisecond before the start is one of every `cellblock run`.
"""

from __future__ import annotations

import os
import socket
import subprocess

_BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "worker", "__main__.py")
_INHERITED = ("LD_LIBRARY_PATH", "TZ")
"""The only variables of the host's environment that a family sees."""


class Launched:
    """A process that has been started, and our end of its channel."""

    __slots__ = ("channel", "process", "python")

    def __init__(self, python: str) -> None:
        """OSError where the interpreter cannot be started."""
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment |= {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
        self.python = python
        self.channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with end:
                self.process = subprocess.Popen(
                    [python, "-s", "-P", "-S", os.path.normpath(_BOOT), "launch", str(end.fileno())],
                    pass_fds=[end.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                )
        except BaseException:
            self.channel.close()
            raise


_early: Launched | None = None


def launch(python: str) -> Launched:
    """Start the process, or take the one that was started early. OSError where the interpreter cannot be started."""
    global _early
    early = _early
    if early is not None and early.python == python and early.process.poll() is None:
        _early = None
        return early
    return Launched(python)


def launch_early(python: str) -> None:
    """Start a process that a family will soon ask for. What keeps it from starting is met again, and told, then."""
    global _early
    try:
        _early = Launched(python)
    except OSError:
        return


def let_go() -> None:
    """End the process that was started early, if nobody asked for it."""
    global _early
    if _early is not None:
        _early.channel.close()
        _early.process.kill()  # it would see that by itself, once it has started
        _early.process.wait()
        _early = None
