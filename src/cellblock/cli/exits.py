"""Exit statuses of the commands, and the errors that have one."""

from __future__ import annotations

from cellblock.text import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.cell import Cell

DONE = 0
FAILED = 1
"""The code that ran failed, or what it made was not saved where that was asked for."""

USAGE = 2
"""The command line or a file it names cannot be used; nothing ran."""

STOPPED = 3
"""A wall or a limit stopped the code, or this machine cannot give a wall."""

INTERRUPTED = 130
"""Ctrl-C, as shells number it: 128 + SIGINT."""

EPILOG = "exit status: 0 done, 1 the code or a save failed, 2 usage or an unreadable file, 3 a wall or limit stopped it"


class Unusable(Exception):
    """Something that the command line names cannot be used (status 2); the message says why."""


def status_of(cell: Cell) -> int:
    """The exit status for the end of a cell."""
    if cell.error is None:
        return DONE
    return FAILED if cell.error.kind == "raised" else STOPPED


def reason_of(error: OSError) -> str:
    """An error of the host as a line: the file that it names, and the reason."""
    return f"{line(error.filename or '')}: {error.strerror or line(error)}".removeprefix(": ")
