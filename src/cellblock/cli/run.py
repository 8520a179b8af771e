"""`cellblock run`: one script, in a session of its own, shown as a notebook shows it."""

from __future__ import annotations

import argparse

from cellblock.cli import options
from cellblock.cli.exits import EPILOG
from cellblock.limits import ExecutionLimits

JSON_BYTES = ExecutionLimits().max_output_bytes


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a script behind the walls",
        description="Runs a Python script in a new session: no network but what --network lists, no files but its own, "
        "limits.",
        usage="cellblock run [options] FILE|- [-- ARGUMENT ...]",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the script, or - for stdin; arguments after -- are its sys.argv")
    add("--json", action="store_true", help="print one JSON object for each cell and nothing else")
    add("--cells", action="store_true", help="run the parts between `# %%%%` lines as cells; stop at a failure")
    add("--save", metavar="DIR", help="copy images and files that the script made to this directory")
    options.add_session(parser, f"{options.SHOWN_BYTES}; with --json {JSON_BYTES}")
    parser.set_defaults(command=options.later("script"))
