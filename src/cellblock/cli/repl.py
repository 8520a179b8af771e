"""`cellblock repl`: Python at the keyboard, in a session behind the walls."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cellblock.cli import options

_PICTURES = "cellblock-pictures"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "repl",
        help="type Python into a session",
        usage="cellblock repl [options]",
        description=(
            "Python at the keyboard, in a new session: no network but what --network lists, no files but its own, "
            "limits. "
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
    add(
        "--pictures", metavar="DIR",
        help=f"where pictures are saved (at a terminal {_PICTURES}, else they are not)",
    )  # fmt: skip
    add("--no-history", action="store_true", help="do not read or keep what was typed")
    options.add_session(parser)
    parser.set_defaults(command=repl)


def repl(arguments: argparse.Namespace) -> int:
    """Read what the command line names, then talk."""
    from cellblock.cli.conversation import converse
    from cellblock.cli.history import default_path
    from cellblock.executors.system import require_linux

    require_linux("cellblock repl")

    pictures = arguments.pictures or (_PICTURES if sys.stdin.isatty() else None)
    return converse(
        options.setup(arguments),
        pictures=None if pictures is None else Path(pictures),
        history=None if arguments.no_history else default_path(),
    )
