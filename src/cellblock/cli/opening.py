"""The session that a command line asks for: its processes start while the rest of us is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cellblock.hosting.threads import in_thread

if TYPE_CHECKING:
    from cellblock.limits import ExecutionLimits
    from cellblock.session.session import AsyncSession

_QUIET_SECONDS = 0.5


class Start:
    """Processes that are being started in a thread. `doing` is what is waited for, "" at first."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        self.doing = ""
        self.ended = in_thread(partial(work, partial(setattr, self, "doing")), "cellblock starts")


def start_early(
    python: str | None = None,
    preload: tuple[str, ...] = (),
    place: Mapping[str, Any] | None = None,
    limits: ExecutionLimits | None = None,
) -> Start:
    """Start the processes that sessions come from, while the rest of us is still being imported.

    `place` is where they are to run, as `options.place` says: a container starts when its session is opened. With
    `limits` a session without mounts is expected, and made with them.
    """
    from cellblock.executors.choose import prepare

    where = place or {}

    def work(progress: Callable[[str], None]) -> None:
        if where.get("trust_level") != "sandboxed":
            prepare(python, preload, where.get("walls", "full"), progress, limits)

    return Start(work)


async def open_session(session: AsyncSession, start: Start, stream: TextIO | None = None) -> None:
    """Open a session once its processes have started; what failed there is raised here. Can be cancelled.

    On `stream`, where it is a terminal, a line tells what takes longer than half a second.
    """
    import asyncio

    from cellblock.cli.progress import redrawn

    def told(seconds: float) -> str:
        return "opening a session" + (f": {start.doing}" if start.doing else "") + f" ({seconds:.1f} s)"

    async with redrawn(stream, told, after=_QUIET_SECONDS) if stream and stream.isatty() else nullcontext():
        await asyncio.wrap_future(start.ended)  # not in a thread, which would hold up the interpreter as it leaves
        await session.open()


@dataclass(frozen=True, slots=True)
class Setup:
    """The arguments of a session, as `options.session` gives them, and local files by their names inside."""

    options: Mapping[str, Any]
    inputs: Mapping[str, Path]

    def start(self) -> Start:
        """Start the processes that the session comes from, while the rest of us is still being imported."""
        asked = self.options
        expected = None if asked["mounts"] or asked["network"] else asked["limits"]
        return start_early(asked["python"], asked["preload"], asked, expected)

    def session(self) -> AsyncSession:
        """The session, which is not open yet."""
        from cellblock.session.session import AsyncSession

        return AsyncSession(**self.options)

    async def open(self, session: AsyncSession, start: Start, stream: TextIO | None = None) -> None:
        """Open the session, as `open_session` does, and copy the input files into it."""
        from cellblock.cli.source import put

        await open_session(session, start, stream)
        for name, local in self.inputs.items():
            await put(session, name, local)
