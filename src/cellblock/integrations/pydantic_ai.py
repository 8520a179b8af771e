"""pydantic-ai: a session as a workspace backend for commands."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Self

import anyio

from cellblock.errors import LeaseLost, SessionClosed, needing
from cellblock.hosting.unique import unique_word
from cellblock.integrations.commands import command_end, export_lines, time_limit, timed_out
from cellblock.limits import ExecutionLimits
from cellblock.session.session import AsyncSession

with needing("pydantic-ai", "the workspace for pydantic-ai needs pydantic-ai-slim, 2.68 or newer"):
    from pydantic_ai.workspaces import (
        CommandResult,
        WorkspaceOutputLimitError,
        WorkspaceRef,
        WorkspaceTimeoutError,
        WorkspaceUnavailableError,
    )

__all__ = ["CellblockWorkspace"]

LIMITS = ExecutionLimits(timeout_seconds=120, max_output_bytes=4_000_000)
"""Default limits: files are read through a command's output, which has to be whole."""


class CellblockWorkspace:
    """A workspace of pydantic-ai: commands run in a session, which is opened by the first of them.

    Options are those of `AsyncSession`. Whoever made it ends it: `async with`, or `close`.
    """

    def __init__(self, **options: Any) -> None:
        self._options = {"limits": LIMITS, **options}
        self._opening = anyio.Lock()
        self._session: AsyncSession | None = None
        self._closed = False
        self.ref: WorkspaceRef | None = None
        """Reference to the session, once there is one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session and everything it started, also one that is being opened; none is opened any more."""
        async with self._opening:
            self._closed = True
            if self._session is not None:
                await self._session.close()

    async def session(self) -> AsyncSession:
        """The session beneath, opened if it is not."""
        async with self._opening:
            if self._closed:
                raise WorkspaceUnavailableError("the workspace is closed")
            if self._session is None:
                session = AsyncSession(**self._options)
                await session.open()
                self._session = session
                self.ref = WorkspaceRef(provider="cellblock", id=session.name or unique_word(10))
            return self._session

    async def working_dir(self) -> str:
        """Directory in which commands begin."""
        await self.session()
        return "/session/workspace"

    async def run(
        self,
        command: str | Sequence[str],
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command to its end: words, or a line for /bin/sh. The session's own limit of time holds as well."""
        if isinstance(command, str) is not shell:
            raise TypeError("a line takes shell=True, and words take shell=False")
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise ValueError("timeout must be a positive finite number or None")
        line = command if isinstance(command, str) else shlex.join(command)
        if not line:
            raise ValueError("there is no command")
        line = export_lines(env) + line
        session = await self.session()
        limits = session.limits
        seconds = time_limit(limits, timeout)
        try:
            cell = await session.shell(line, timeout=seconds)
        except (SessionClosed, LeaseLost) as error:
            raise WorkspaceUnavailableError(str(error)) from error
        is_late = timed_out(cell.error)
        end = command_end(None if is_late else cell.error, cell.outputs)
        printed = {"stdout": end.stdout, "stderr": end.stderr}
        if is_late:
            raise WorkspaceTimeoutError(f"the command ran longer than {seconds:g} s", **printed)
        if cell.cut:
            raise WorkspaceOutputLimitError("the command printed too much", limit=limits.max_output_bytes, **printed)
        return CommandResult(exit_code=end.status, **printed)
