"""Exit statuses: what a program that called us can tell from the number alone."""

from __future__ import annotations

from cellblock.text import line


class Unusable(Exception):
    """Something that the command line names cannot be used; the message says why."""


MOST_STEPS = 999_999
"""That a command goes back at once."""

DONE = 0
FAILED = 1
"""The code that ran failed."""

USAGE = 2
"""The command line or a file it names cannot be used; nothing ran."""

STOPPED = 3
"""A wall or a limit stopped the code, or this machine cannot give a wall."""

INTERRUPTED = 130
"""Ctrl-C, as shells number it: 128 + SIGINT."""

EPILOG = "exit status: 0 done, 1 the code failed, 2 usage or an unreadable file, 3 a wall or limit stopped it"


def reason_of(error: OSError) -> str:
    """An error of the host as a line: the file that it names, and the reason."""
    return f"{line(error.filename or '')}: {error.strerror or line(error)}".removeprefix(": ")
