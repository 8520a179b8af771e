"""`cellblock repl`: Python at the keyboard or from a pipe, in a session behind the walls.

Two threads. The main one reads, since line editing blocks and Ctrl-C comes there; an event loop in the other one drives
the session. While a cell runs the main thread only waits.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import cellblock
from cellblock.cli import options
from cellblock.cli.blocks import Pipe
from cellblock.cli.commands import COMMANDS, Leave, run_command
from cellblock.cli.exits import DONE, FAILED, INTERRUPTED, STOPPED, Unusable, reason_of, status_of
from cellblock.cli.export import Shelf
from cellblock.cli.interrupts import PromptCtrlC
from cellblock.cli.opening import Setup, Width
from cellblock.cli.show import Screen
from cellblock.cli.terminal import Printer, StreamLost, say
from cellblock.errors import CellblockError, SessionClosed
from cellblock.session.hostloop import Run, call, finish
from cellblock.text import message_of, row, type_name, whole_number
from cellblock.walls import Applied

if TYPE_CHECKING:
    from cellblock.cli.keyboard import Keyboard

_log = logging.getLogger("cellblock")
_PICTURES = "cellblock-pictures"
_COMPLETION_SECONDS = 0.5
_WORDS_THAT_LEAVE = frozenset({"exit", "quit", "exit()", "quit()"})


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "repl",
        usage="cellblock repl [options]",
        description=(
            "Python at the keyboard, in a new session or one that is kept: no network but what --network lists, no "
            "files but its own, limits. "
            "A block goes on until it is complete; lines that begin with : are commands (:help lists them), with ! of "
            "the shell. Ctrl-C interrupts a cell and keeps its names. Ctrl-D leaves."
        ),
        epilog=(
            "Where stdin is no terminal, blocks are read from it without prompts, commands that reach your files are "
            "refused, and the exit status is that of the worst: 0 all ended, 1 one failed, 3 a limit or a wall "
            "stopped one."
        ),
    )
    add = parser.add_argument
    add("--pictures", metavar="DIR", help=f"where pictures are saved (at a terminal {_PICTURES}, else they are not)")
    add("--no-history", action="store_true", help="do not read or keep what was typed")
    options.add_session(parser)
    options.add_kept(parser)
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    from cellblock.executors.system import require_linux

    require_linux("cellblock repl")
    setup = options.setup(arguments, more=options.kept(arguments))
    console = Console(setup, arguments.pictures, at_terminal=sys.stdin.isatty())
    with PromptCtrlC() as ctrl_c:
        try:
            return _Prompt(console, ctrl_c, keeps_history=not arguments.no_history).run()
        finally:
            finish(console.session.close)


class _Prompt:
    """Reads blocks in the main thread, and has each carried out on the event loop."""

    def __init__(self, console: Console, ctrl_c: PromptCtrlC, *, keeps_history: bool) -> None:
        self._console = console
        self._ctrl_c = ctrl_c
        self._keeps_history = keeps_history

    def run(self) -> int:
        """Read and run until the end; the exit status, on a pipe that of the worst cell."""
        console = self._console
        call(console.open)
        source = self._source()
        if console.at_terminal:
            self._greet()
        while True:
            try:
                block = source.block()
                if block is None or not self._carry_out(block.strip("\n")):
                    return DONE if console.at_terminal else console.status
            except KeyboardInterrupt:
                if not console.at_terminal:
                    raise
                console.say("")
            if self._ctrl_c.count and not console.at_terminal:
                return INTERRUPTED

    def _carry_out(self, block: str) -> bool:
        """Carry out a block; False to leave. Border: an error is a line, and the session lives on.

        The log has the traceback of an error that is neither cellblock's nor the host's.
        """
        console = self._console
        self._ctrl_c.begin(console.session)
        try:
            call(self._do, block)
        except Leave:
            return False
        except SessionClosed as error:
            console.fail(f"{error}" + ("; :restart opens another" if console.at_terminal else ""), STOPPED)
            return console.at_terminal
        except (CellblockError, Unusable) as error:
            console.fail(str(error), FAILED)
        except OSError as error:
            console.fail(reason_of(error), FAILED)
        except StreamLost:
            raise
        except Exception as error:
            _log.debug("a block of the repl failed", exc_info=True)  # never on the terminal: it may be hostile
            console.fail(f"{type_name(error)}: {message_of(error, 500)}", FAILED)
        finally:
            self._ctrl_c.end()
        return True

    async def _do(self, block: str) -> None:
        console, word = self._console, block.strip()
        if word in _WORDS_THAT_LEAVE and word.removesuffix("()") not in await self._bound():
            raise Leave
        if word.startswith(":"):
            await run_command(console, word)
        elif word.startswith("!"):
            await console.cell(word[1:].strip(), "shell")
        elif word:
            await console.cell(block)

    async def _bound(self) -> Iterable[str]:
        try:
            return await self._console.session.names()
        except SessionClosed:
            return ()

    def _greet(self) -> None:
        """On stderr, as Python does: stdout may be a file that results go to."""
        limits, capabilities = self._console.session.limits, self._console.session.capabilities
        Printer(sys.stderr).line(
            f"cellblock {cellblock.__version__}, Python {capabilities.python}; "
            f"{limits.timeout_seconds:g} s and {limits.max_memory_mb} MB a cell\n"
            f"{self._console.walls_in_a_line()}\n"
            ":help lists the commands; Ctrl-C interrupts a cell, Ctrl-D leaves"
        )

    def _source(self) -> Pipe | Keyboard:
        newer = _version(self._console.session.capabilities.python) > sys.version_info[:2]
        if not self._console.at_terminal:
            return Pipe(sys.stdin.fileno(), newer=newer)
        from cellblock.cli.keyboard import Completer, History, Keyboard, default_path

        history, path = None, default_path() if self._keeps_history else None
        if path is not None:
            try:
                history = History(path)
            except OSError as error:
                self._console.fail(f"no history is kept: {path}: {error.strerror}", DONE)
        completer = Completer(
            COMMANDS,
            lambda: self._in_time(self._console.session.names),
            lambda: self._in_time(self._console.session.files.list),
        )
        return Keyboard(completer, history, newer=newer)

    def _in_time(self, function: Callable[[], Awaitable[Iterable[str]]]) -> Iterable[str]:
        """The session's answer for the Tab key; () where it does not come within half a second, or it is closed.

        A late answer is not cancelled: that would interrupt the session, and end it if it does not heed.
        """
        has_ended = threading.Event()
        answer = Run(function, done=has_ended.set)
        try:
            return answer.result() if has_ended.wait(_COMPLETION_SECONDS) else ()
        except CellblockError:
            return ()


def _version(text: str) -> tuple[int, ...]:
    """Major and minor of `3.13.0`; () for another text: the session says it, and is not trusted."""
    parts = [whole_number(part, 9999) for part in text.split(".")[:2]]
    return () if None in parts else tuple(part for part in parts if part is not None)


class Console:
    """One session at a time, and all that is shown of it. The commands work on this."""

    def __init__(self, setup: Setup, pictures: str | None, *, at_terminal: bool) -> None:
        """`pictures` is the directory where they are saved; with None only those at a terminal are."""
        self.at_terminal = at_terminal
        self.status = DONE
        """The exit status of the worst cell so far."""
        self.saved: set[Path] = set()
        """Files that `:save` wrote, and may write again."""
        self._setup = setup
        pictures = pictures or (_PICTURES if at_terminal else None)
        self._shelf = None if pictures is None else Shelf(Path(pictures))
        self._out = Printer(sys.stdout)
        self._begin()

    def _begin(self) -> None:
        self.session = self._setup.session()
        self._screen = Screen(self.session, self._shelf, option="--pictures DIR", tells=True)
        self._width = Width()

    async def open(self) -> None:
        """Open the session and put into it what the command line names."""
        await self._setup.open(self.session, sys.stderr)

    async def restart(self) -> None:
        """Close the session and open a new one: names, cells and files are gone, also of one that is kept."""
        await self.session.close()
        self._begin()
        await self.open()
        if self.session.name is not None:
            await self.session.clear(files=True)

    async def cell(self, source: str, kind: Literal["python", "shell"] = "python") -> bool:
        """Run a cell and show it; True if it ended without an error."""
        if self.at_terminal:
            await self._width.set(self.session)
        cell = await self._screen.run(source, kind)
        if self.at_terminal:
            self._screen.end_lines()
        if cell.error is not None and cell.error.type == "SystemExit" and self.at_terminal:
            self.say("the cell has ended, the session goes on; :quit leaves")
        if cell.error is not None and cell.error.kind in ("crashed", "timeout"):  # it may have a new process
            self._width.forget()
        self.status = max(self.status, status_of(cell))
        return cell.ok

    async def undo(self, steps: int) -> str:
        """Go back by `steps`; a line that names the cells undone."""
        before = {cell.id for cell in self.session.notebook if cell.undone}
        await self.session.undo(steps)
        undone = [cell for cell in self.session.notebook if cell.undone and cell.id not in before]
        self._width.forget()  # the width may have been set in between
        if not undone:
            return "undone: a change that no cell made"
        return "undone: " + "; ".join(row(cell.source.strip().partition("\n")[0]) for cell in undone)

    def say(self, text: str) -> None:
        """Print a line on stdout."""
        self._out.line(text)

    def fail(self, text: str, status: int) -> None:
        """Print a failure on stderr, and count its exit status."""
        say(text)
        self.status = max(self.status, status)

    def walls_in_a_line(self) -> str:
        """The walls around the session, and those that are missing."""
        walls = self.session.capabilities.walls
        line = "walls: " + ", ".join(wall.mechanism for wall in walls if isinstance(wall, Applied))
        missing = [wall.mechanism for wall in walls if not isinstance(wall, Applied) and wall.needed]
        return line + (f"; MISSING: {', '.join(missing)}" if missing else "")
