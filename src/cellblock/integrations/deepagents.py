"""deepagents: a session as a sandbox backend for commands and files."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from cellblock.cell import Cell
from cellblock.errors import FileRefused, needing
from cellblock.hosting.unique import unique_word
from cellblock.integrations.commands import time_limit, timed_out
from cellblock.limits import ExecutionLimits
from cellblock.session.arguments import require_kind
from cellblock.session.blocking import Session
from cellblock.session.hostloop import our_loop

with needing("deepagents", "the backend for deepagents needs that package"):
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox

__all__ = ["CellblockSandbox"]

LIMITS = ExecutionLimits(timeout_seconds=120, max_output_bytes=1_000_000)
"""Default limits: deepagents reads whole files through a command's output, and cuts it for the model itself."""

_TIMED_OUT = 124
_CRASHED = 1
_BY_SIGNAL = 128
"""Added to a signal's number, in the status of a command that it ended."""
_ERRORS = {
    errno.ENOENT: "file_not_found",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EISDIR: "is_directory",
    errno.ENXIO: "is_directory",  # nor is what is no regular file
}


class CellblockSandbox(BaseSandbox):  # type: ignore[misc]  # mypy does not look into the package
    """A sandbox of deepagents: `create_deep_agent(model, backend=CellblockSandbox())`.

    Files are written below `/workspace`, where commands begin, and below `/tmp`. Options are those of `Session`; with a
    name it lasts. `session` is the session itself: `backend.session.undo()` takes back what an agent did last.
    """

    def __init__(self, session: Session | None = None, **options: Any) -> None:
        """Take a session that is open, which `close` leaves open, or options for a new one."""
        if session is not None and options:
            raise ValueError("a session that is open takes no options")
        self._own = session is None
        self.session = Session(**{"limits": LIMITS, **options}) if session is None else require_kind(session, Session)
        self._id = self.session.name or f"cellblock-{unique_word()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session, where this backend opened it."""
        if self._own:
            self.session.close()

    @property
    def id(self) -> str:
        """The session's name where it has one."""
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command with /bin/sh; the session's own limit of time holds besides `timeout` (seconds, 0 for none)."""
        limits = self.session.limits
        return _response(self.session.shell(command, timeout=time_limit(limits, timeout)), timeout, limits)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """The same; a caller who is cancelled interrupts the command."""
        limits = self.session.limits
        running = self.session._session.shell(command, timeout=time_limit(limits, timeout))
        cell = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(running, our_loop()))
        return _response(cell, timeout, limits)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files; the answer has the error of each that is refused."""
        return [
            FileUploadResponse(path=path, error=_try(path, partial(self.session.files.write, path, data))[1])
            for path, data in files
        ]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files; the answer has the error of each that is refused."""
        read = [(path, _try(path, partial(self.session.files.read, path))) for path in paths]
        return [FileDownloadResponse(path=path, content=data, error=error) for path, (data, error) in read]


def _response(cell: Cell, timeout: int | None, limits: ExecutionLimits) -> ExecuteResponse:
    """Output of a command and its exit status as a shell numbers it, with a line on why something else ended it."""
    text = "".join(output.text for output in cell.outputs if output.stream is not None)
    error = cell.error
    status, note = 0, ""
    if timed_out(error) and timeout and timeout < limits.timeout_seconds:
        status, note = _TIMED_OUT, f"interrupted after {timeout} s"
    elif error is not None and error.status is not None:
        status, note = error.status, error.message if error.status > _BY_SIGNAL else ""
    elif error is not None:
        status = _TIMED_OUT if timed_out(error) else _CRASHED
        note = f"{error.type}: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return ExecuteResponse(text + (f"\n[{note}]" if note else ""), exit_code=status, truncated=cell.cut > 0)


def _try(path: str, action: Callable[[], bytes | None]) -> tuple[bytes | None, str | None]:
    """Result of an action on a file, and the protocol's code for a failure. Paths are absolute there."""
    if not path.startswith("/"):
        return None, "invalid_path"
    try:
        return action(), None
    except FileRefused as error:
        return None, _ERRORS.get(error.errno, "invalid_path")
