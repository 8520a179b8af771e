"""`cellblock notebook run`: the cells of a Jupyter document, run in a session, and the document with their outputs."""

from __future__ import annotations

import argparse

from cellblock.cli import options
from cellblock.cli.exits import EPILOG


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "notebook",
        help="run a Jupyter document behind the walls",
        description="Jupyter documents: run FILE.ipynb runs the cells of one, in order, in a new session.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    run_parser = actions.add_parser(
        "run",
        help="run the cells of a document",
        description=(
            "Runs the code cells of a Jupyter document in a new session: no network but what --network lists, no files "
            "but its own, limits. "
            "Stops at the first cell that fails, unless that is tagged raises-exception."
        ),
        usage="cellblock notebook run [options] FILE.ipynb",
        epilog=EPILOG,
    )
    add = run_parser.add_argument
    add("file", metavar="FILE.ipynb", help="the document (nbformat 4)")
    add("--save", metavar="OUT", help="write the document with its new outputs (.ipynb), or a page to read (.html)")
    add("--keep-going", action="store_true", help="run the cells after one that failed, too")
    add("--json", action="store_true", help="print one JSON object for each cell and nothing else")
    options.add_session(run_parser)
    run_parser.set_defaults(command=options.later("document"))
