"""Opening a session: its processes start while the rest of us is imported, and what takes long is told."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TextIO

from cellblock.text import plain

if TYPE_CHECKING:
    from cellblock.limits import ExecutionLimits
    from cellblock.session.session import AsyncSession

_QUIET_SECONDS = 0.5
_TICK = 0.1


class Start:
    """Processes that are being started in a thread. `doing` is what is waited for, "" at first."""

    def __init__(self) -> None:
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()  # who stops waiting for it does not call it off
        self.doing = ""

    def tell(self, doing: str) -> None:
        """Note what is waited for now."""
        self.doing = doing


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

    start, where = Start(), place or {}

    def run() -> None:
        try:
            if where.get("trust_level") != "sandboxed":
                prepare(python, preload, where.get("walls", "full"), start.tell, limits)
        except BaseException as error:
            start.ended.set_exception(error)
        else:
            start.ended.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    return start


async def open_session(session: AsyncSession, start: Start, stream: TextIO | None = None) -> None:
    """Open a session once its processes have started; what failed there is raised here. Can be cancelled.

    On `stream`, where it is a terminal, a line tells what takes longer than half a second.
    """
    import asyncio

    async def opening() -> None:
        await asyncio.wrap_future(start.ended)  # not in a thread, which would hold up the interpreter as it leaves
        await session.open()

    def what() -> str:
        return "opening a session" + (f": {start.doing}" if start.doing else "")

    if stream is not None and stream.isatty():
        await with_elapsed(opening, what, stream)
    else:
        await opening()


async def with_elapsed(work: Callable[[], Awaitable[None]], what: Callable[[], str], stream: TextIO) -> None:
    """Do some work, and while it goes on write what it is and how long it has taken."""
    import anyio

    began = time.monotonic()
    failure: Exception | None = None

    async def tick() -> None:
        await anyio.sleep(_QUIET_SECONDS)
        try:
            while True:
                line = plain(f"{what()} ({time.monotonic() - began:.1f} s)")
                _write(stream, "\r\x1b[2K" + line[: shutil.get_terminal_size().columns - 1])
                await anyio.sleep(_TICK)
        finally:
            _write(stream, "\r\x1b[2K")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        try:
            await work()
        except Exception as error:  # carried out of the task group as it is
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
