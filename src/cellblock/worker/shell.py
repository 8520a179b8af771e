"""Commands: /bin/sh in the workspace, its output on the cell's own stdout and stderr."""

from __future__ import annotations

import os
import signal
import subprocess

from cellblock.worker.confine import layout


class CommandFailed(Exception):
    """A command ended with a status other than 0, which a shell numbers as `status` says."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


_place = [layout.WORKSPACE]


def settle(workspace: str) -> None:
    """Set the directory in which commands start; a worker that lives elsewhere does so as it moves in."""
    _place[0] = workspace


def run(command: str) -> int:
    """Run a command to its end and return 0; any other status raises `CommandFailed`.

    The command and what it starts in the foreground form one process group, which ends with an interrupt.
    """
    process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, cwd=_place[0], process_group=0)
    try:
        status = process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if status < 0:
        raise CommandFailed(f"killed by {signal.Signals(-status).name}", 128 - status)
    if status:
        raise CommandFailed(f"exit status {status}", status)
    return status
