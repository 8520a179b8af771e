"""The host's hold on one zygote: the report of its start, the workers asked of it, what it tells of them."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Mapping, Sequence

from cellblock.errors import CellblockError, IsolationUnavailable, PreloadFailed
from cellblock.hosting import clock
from cellblock.hosting.account import READABLE, unreadable
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.shortage import short_of
from cellblock.hosting.waiting import ready
from cellblock.worker import control

START_SECONDS = 120.0

Progress = Callable[[str], None]
"""Told what an opening waits for, as a line such as "importing pandas"; called in the thread that opens."""

_OF_MACHINE = (errno.EAGAIN, errno.EFBIG, errno.ENFILE, errno.ENOMEM)
"""Errors that the processes of a family meet as this one would."""
_log = logging.getLogger("cellblock")


class Zygote:
    """Made by a family, which keeps the lock: one thread at a time reads the channel."""

    def __init__(
        self, channel: socket.socket, python: str, preload: Sequence[str], more: Mapping[str, object] | None = None
    ) -> None:
        """Behind `channel`, or about to be. `more` is what else it is told."""
        self.channel = channel
        watch_forks(channel)
        self._python = python
        self.importing = ""
        """The package it was importing when it last said something."""
        with contextlib.suppress(ConnectionError):  # it has ended already, which is told to who waits for it
            control.send(channel, {"preload": list(preload), **(more or {})})

    @property
    def alive(self) -> bool:
        """As of what was read last."""
        return self.channel.fileno() >= 0

    def await_ready(self, progress: Progress | None) -> None:
        """Wait until its packages are imported. Raises what kept it from that; EOFError when it just ended."""
        deadline = clock.now() + START_SECONDS
        self.channel.setblocking(False)
        while True:
            report = self._report(deadline)
            match report:
                case {"ready": True}:
                    return
                case {"importing": str(module)}:
                    self.importing = module
                    _tell(progress, f"importing {module}")
                case _:
                    self.close()
                    raise failure(report, self._python)

    def _report(self, deadline: float) -> dict[str, object]:
        if not ready(self.channel, seconds=deadline - clock.now()):
            return {"failed": "start", "reason": f"no answer in {START_SECONDS:.0f} s", "remedy": ""}
        report = control.heard(self.channel)
        if report is None:
            self.close()
            raise EOFError
        return report

    def close(self) -> None:
        """It is to end, and nothing more is read."""
        self.channel.close()


_REFUSED = "code of this program refuses it, such as an audit hook: allow subprocess.Popen"


def not_started(python: str, error: OSError) -> CellblockError:
    """The error of an interpreter that cannot be executed."""
    reason = f"{python} cannot be started: {error}"
    if error.filename not in (None, python):
        hint = f"let this program open {error.filename}"
    else:
        hint = READABLE if error.errno == errno.EACCES else needed() if error.errno else _REFUSED
    return short_of(error) or IsolationUnavailable(reason, mechanism="python", hint=hint)


def needed() -> str:
    """A hint for an interpreter that did not start, or ended before it was ready."""
    return READABLE if unreadable() else "python= must name CPython 3.11 or newer; what it said is on stderr"


def failure(report: Mapping[str, object], python: str) -> CellblockError:
    """The error that the report of a failure means."""
    if report["failed"] == "preload":
        return PreloadFailed(
            f"cannot preload {report['module']}: {report['reason']}",
            hint=str(
                report.get("remedy")
                or f"install it into the environment of {python}, or leave it out of preload= (--preload)"
            ),
        )
    number = report.get("errno")
    if number in _OF_MACHINE and (short := short_of(OSError(number, ""))) is not None:
        return short
    return IsolationUnavailable(
        f"{report['failed']}: {report['reason']}", mechanism=str(report["failed"]), hint=str(report["remedy"])
    )


def _tell(progress: Progress | None, line: str) -> None:
    _log.info("%s", line)
    if progress is not None:
        progress(line)


DEATH_SECONDS = 5.0
"""In which the parent of a worker that is dead tells how it ended: that is the one source of it, and may be kept
waiting by a busy machine."""


class Deaths:
    """Wait statuses of workers, under the token that each was asked for with.

    A zygote tells which process it made for a token, and how its processes end; the nursery tells how those end
    whose zygote is gone. Both name processes by their pid in the family's pid namespace.
    """

    def __init__(self) -> None:
        self._expected: set[int] = set()
        self._living: dict[int, int] = {}
        self._ended: dict[int, int] = {}

    def expect(self, token: int) -> None:
        """Keep what is told of this worker until it is taken or forgotten."""
        self._expected.add(token)

    def forget(self, token: int) -> None:
        """Nobody will ask for this one."""
        self._expected.discard(token)
        self._ended.pop(token, None)

    def note(self, notice: dict[str, object]) -> None:
        """Take one notice; what is about no expected worker is dropped."""
        match notice:
            case {"attached": int(token), "pid": int(pid)}:
                self._living[pid] = token
            case {"unmade": int(token), "errno": int(number)} if token in self._expected:
                self._ended[token] = -number
            case {"ended": int(pid), "status": int(status)}:
                token = self._living.pop(pid, 0)
                if token in self._expected:
                    self._ended[token] = status

    def take(self, token: int) -> int | None:
        """The wait status of a worker; None while it is not known, below 0 the error number why there is none."""
        return self._ended.get(token)
