"""A script's run: a session opened for it, its cells one after the other, what they show, what is kept."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cell import Cell
from cellblock.cli import options, source
from cellblock.cli.exits import DONE, FAILED, INTERRUPTED, STOPPED
from cellblock.cli.export import Shelf, contents
from cellblock.cli.inside import Width, tell_script
from cellblock.cli.opening import Setup, Start
from cellblock.cli.run import JSON_BYTES
from cellblock.cli.show import JsonLines, Screen
from cellblock.cli.terminal import say

if TYPE_CHECKING:
    from types import FrameType

    from cellblock.session.session import AsyncSession


def execute(arguments: argparse.Namespace) -> int:
    """Run the script that the command line names; the exit status."""
    save = None if arguments.save is None else options.directory(arguments.save)
    name: str = arguments.file  # of stdin, which is read while a session opens: -
    code = None if name == "-" else source.decode(source.read(name), name)
    setup = options.setup(arguments, JSON_BYTES if arguments.json else options.SHOWN_BYTES)
    start = setup.start()
    import anyio

    return anyio.run(_run, arguments, save, setup, start, code)


async def _run(arguments: argparse.Namespace, save: Path | None, setup: Setup, start: Start, script: str | None) -> int:
    session = setup.session()
    try:
        code = await _opened(setup, session, start, script)
        await _prepare(session, arguments, code)
        before = {} if save is None else await contents(session)
        shelf = None if save is None else Shelf(save, session.limits.max_disk_mb)
        view = JsonLines(session, shelf) if arguments.json else Screen(session, shelf, option="--save DIR")
        with CtrlC(session) as ctrl_c:
            for part in source.split(code) if arguments.cells else [code]:
                async with aclosing(session.stream(part)) as events:
                    cell = await view.show(events)
                if not cell.ok:
                    break
        await view.end(before)
    finally:
        await session.close()
    if ctrl_c.count and not cell.ok:
        say(f"interrupted after {ctrl_c.seconds:.1f} s")
        return INTERRUPTED
    return status_of(cell)


def status_of(cell: Cell) -> int:
    """The exit status that a cell's end means."""
    if cell.error is None:
        return DONE
    return FAILED if cell.error.kind == "raised" else STOPPED


async def _opened(setup: Setup, session: AsyncSession, start: Start, code: str | None) -> str:
    """Open a session, after its processes have started, and meanwhile read stdin where there is no script; the script.
    """
    import asyncio

    async def read() -> str:
        return source.decode(await source.read_stdin(), "stdin") if code is None else code

    typed = code is None and sys.stdin.isatty()  # a line of ours would stand in what is being typed
    opening = setup.open(session, start, None if typed else sys.stderr)
    script, failure = await asyncio.gather(read(), opening, return_exceptions=True)
    if isinstance(script, BaseException):
        raise script
    if failure is not None:
        raise failure
    return script


async def _prepare(session: AsyncSession, arguments: argparse.Namespace, code: str) -> None:
    """Put the script itself and its arguments where it expects them.

    The script is a file inside because a process that it spawns imports it again, by `__file__`.
    """
    named: str = arguments.file
    path = "/tmp/stdin.py" if named == "-" else f"/workspace/{Path(named).name}"  # inside the session
    await session.files.write(path, code.encode("utf-8", "surrogatepass"))
    await tell_script(session, path, (Path(named).name, *arguments.passed))
    if sys.stdout.isatty():
        await Width().tell(session)


class CtrlC:
    """While a script runs: the first Ctrl-C interrupts the cell, the second ends its process."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._began = time.monotonic()
        self.count = 0
        self.seconds = 0.0

    def __enter__(self) -> CtrlC:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.seconds = time.monotonic() - self._began
        if self.count == 1:
            self._session.interrupt()
        else:
            self._session.kill()
