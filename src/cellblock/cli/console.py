"""A session and what is shown of it to the one who types: the commands work on this."""

from __future__ import annotations

import sys
from contextlib import aclosing
from pathlib import Path
from typing import Literal

from cellblock.cli.exits import DONE
from cellblock.cli.export import Shelf
from cellblock.cli.inside import Width
from cellblock.cli.opening import Setup, Start
from cellblock.cli.script import status_of
from cellblock.cli.show import Screen
from cellblock.cli.terminal import Printer
from cellblock.text import row
from cellblock.walls import Applied


class Console:
    """One session at a time. `status` is what the worst of its cells means as an exit status."""

    def __init__(self, setup: Setup, start: Start, *, pictures: Path | None, at_terminal: bool) -> None:
        """`pictures` is where they are saved; None keeps none."""
        self.at_terminal = at_terminal
        self.status = DONE
        self.saved: set[Path] = set()
        """Files that `:save` wrote, and may write again."""
        self._setup, self._start = setup, start
        self._shelf = None if pictures is None else Shelf(pictures)
        self._out = Printer(sys.stdout)
        self._err = Printer(sys.stderr)
        self._begin()

    def _begin(self) -> None:
        self.session = self._setup.session()
        self._screen = Screen(self.session, self._shelf, option="--pictures DIR", tells=True)
        self._width = Width()

    async def open(self) -> None:
        """Open the session and put into it what the command line names."""
        await self._setup.open(self.session, self._start, sys.stderr)

    async def restart(self) -> None:
        """Close the session and open a new one: names, cells and files are gone."""
        await self.session.close()
        self._begin()
        await self.open()

    async def cell(self, source: str, kind: Literal["python", "shell"] = "python") -> bool:
        """Run a cell and show it; whether it ended well."""
        if self.at_terminal:
            await self._width.tell(self.session)
        async with aclosing(self.session.stream(source, kind=kind)) as events:
            cell = await self._screen.show(events)
        if self.at_terminal:
            self._screen.end_lines()
        if cell.error is not None and cell.error.type == "SystemExit" and self.at_terminal:
            self.say("the cell has ended, the session goes on; :quit leaves")
        if cell.error is not None and cell.error.kind in ("crashed", "timeout"):  # it may have a new process
            self._width.forget()
        self.status = max(self.status, status_of(cell))
        return cell.ok

    async def undo(self, steps: int) -> str:
        """Go back by so many steps; which cells that undid, in a line."""
        before = {cell.id for cell in self.session.notebook if cell.undone}
        await self.session.undo(steps)
        undone = [cell for cell in self.session.notebook if cell.undone and cell.id not in before]
        self._width.forget()  # it may have been told the width in between
        if not undone:
            return "undone: a change that no cell made"
        return "undone: " + "; ".join(cell.source.strip().partition("\n")[0] for cell in undone)

    def say(self, text: str) -> None:
        """A line of ours, on stdout."""
        self._out.line(text)

    def fail(self, text: str, status: int) -> None:
        """Say what went wrong, and remember its exit status."""
        self._err.line(f"cellblock: {row(text)}")
        self.status = max(self.status, status)

    def walls_in_a_line(self) -> str:
        """One line on the walls that stand around the session, and those that do not."""
        walls = self.session.capabilities.walls
        line = "walls: " + ", ".join(wall.mechanism for wall in walls if isinstance(wall, Applied))
        missing = [wall.mechanism for wall in walls if not isinstance(wall, Applied) and wall.needed]
        return line + (f"; MISSING: {', '.join(missing)}" if missing else "")
