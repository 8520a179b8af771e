"""Reads a block, has it run and shown, and reads the next.

Two threads. The main one reads, since line editing blocks and Ctrl-C comes there; an event loop in the other one drives
the session. While a cell runs the main thread only waits.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import cellblock
from cellblock.cli.commands import COMMANDS, Leave, Refused, run_command
from cellblock.cli.console import Console
from cellblock.cli.exits import DONE, FAILED, INTERRUPTED, STOPPED, Unusable, reason_of
from cellblock.cli.interrupts import CtrlC, held_back
from cellblock.cli.opening import Setup
from cellblock.cli.terminal import Printer, StreamLost
from cellblock.errors import CellblockError, SessionClosed
from cellblock.text import message_of, type_name, whole_number

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from cellblock.cli.keyboard import Keyboard
    from cellblock.cli.pipe import Pipe

_log = logging.getLogger("cellblock")
_COMPLETION_SECONDS = 0.5
_WORDS_THAT_LEAVE = frozenset({"exit", "quit", "exit()", "quit()"})


def converse(setup: Setup, *, pictures: Path | None, history: Path | None) -> int:
    """Open a session and run what is typed, to the end of it; the exit status. None for what is not to be kept."""
    start = setup.start()
    from anyio.from_thread import start_blocking_portal

    with ExitStack() as entered:
        with held_back():  # or it waits without end for the thread that it has just started
            portal = entered.enter_context(start_blocking_portal())
        ctrl_c = entered.enter_context(CtrlC())
        console = Console(setup, start, pictures=pictures, at_terminal=sys.stdin.isatty())
        try:
            return _Conversation(console, portal, ctrl_c, history).hold()
        finally:
            portal.call(console.session.close)


class _Conversation:
    def __init__(self, console: Console, portal: BlockingPortal, ctrl_c: CtrlC, history: Path | None) -> None:
        self._console = console
        self._history = history
        self._portal = portal
        self._ctrl_c = ctrl_c

    def hold(self) -> int:
        """Read and run until the end; the exit status: of the worst cell where nobody sits at a terminal."""
        console = self._console
        self._wait(console.open)
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
        """Border: do what a block says; whether to go on. Whatever else it raises is a line, and the session lives on.

        Of what is no error of cellblock or of the host the log has the traceback.
        """
        console = self._console
        self._ctrl_c.begin(console.session)
        try:
            self._wait(self._do, block)
        except Leave:
            return False
        except SessionClosed as error:
            console.fail(f"{error}" + ("; :restart opens another" if console.at_terminal else ""), STOPPED)
            return console.at_terminal
        except (CellblockError, Refused, Unusable) as error:
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
            from cellblock.cli.pipe import Pipe

            return Pipe(sys.stdin.fileno(), newer=newer)
        from cellblock.cli.history import History
        from cellblock.cli.keyboard import Completer, Keyboard

        history, path = None, self._history
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

    # ---------------------------------------------------------------- between the two threads

    def _wait(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run something on the event loop; a KeyboardInterrupt that comes meanwhile ends it."""
        future = self._portal.start_task_soon(function, *args)
        try:
            future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _in_time(self, function: Callable[[], Awaitable[Iterable[str]]]) -> Iterable[str]:
        """The session's answer for the Tab key; nothing where it does not come at once, or the session is gone.

        Too late an answer is not called off: that would interrupt the session, and end it if it does not heed.
        """
        future = self._portal.start_task_soon(function)
        try:
            return future.result(_COMPLETION_SECONDS)
        except (TimeoutError, CellblockError):
            return ()


def _version(text: str) -> tuple[int, ...]:
    """Major and minor of `3.13.0`; () for what is no version: a session's own words are not trusted to be one."""
    parts = [whole_number(part, 9999) for part in text.split(".")[:2]]
    return () if None in parts else tuple(part for part in parts if part is not None)
