"""`cellblock notebook run`: the cells of a Jupyter document, run in a session, and the document with their outputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli import options, source
from cellblock.cli.exits import DONE, EPILOG, FAILED, INTERRUPTED, Unusable, status_of
from cellblock.cli.export import write_document
from cellblock.cli.interrupts import CtrlC
from cellblock.cli.show import JsonLines, Screen
from cellblock.cli.terminal import say
from cellblock.session.jupyter import Piece, UnreadableNotebook, in_order, pieces, with_outputs
from cellblock.session.shown import Prose
from cellblock.text import BadJson, read_json, write_json

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "notebook",
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
    run_parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    document = _read(arguments.file)
    try:
        parts = tuple(pieces(document))
    except UnreadableNotebook as error:
        raise Unusable(str(error)) from None
    target = None if arguments.save is None else options.target(arguments.save)
    setup = options.setup(arguments)
    import anyio

    async def run() -> int:
        session = setup.session()
        try:
            await setup.open(session, sys.stderr)
            return await _run(session, document, parts, target, arguments)
        finally:
            await session.close()

    return anyio.run(run)


async def _run(
    session: AsyncSession,
    document: Mapping[str, object],
    parts: Sequence[Piece],
    target: Path | None,
    arguments: argparse.Namespace,
) -> int:
    """Run the cells, show and save them; the exit status, which is that of the worst cell."""
    option = "" if arguments.save else "--save OUT.ipynb"
    view = JsonLines(session, None) if arguments.json else Screen(session, None, option=option)
    ran: dict[int, str] = {}
    failed: list[int] = []
    worst = DONE
    with CtrlC(session) as ctrl_c:
        for piece in parts:
            cell = await view.run(piece.source, piece.kind)
            ran[piece.place] = cell.id
            if not cell.ok and not piece.may_fail:
                failed.append(cell.number)
                worst = max(worst, status_of(cell) or FAILED)
                if ctrl_c.count or not arguments.keep_going:
                    break
    await view.end({})
    if target is not None:
        write_document(target, _made(session, document, target, ran))
    if not arguments.json:
        which = f", failed: {', '.join(map(str, failed))}" if failed else ""
        say(f"{len(ran)} of {len(parts)} cells ran{which}" + ("" if target is None else f"; saved {target}"))
    return INTERRUPTED if ctrl_c.count and worst else worst


def _made(session: AsyncSession, document: Mapping[str, object], target: Path, ran: Mapping[int, str]) -> str:
    """The document with its outputs, or its page. `ran` are the ids of cells by their places in the document."""
    by_id = {one.cell.id: one for one in session.notebook.shown()}
    shown = {place: by_id[one] for place, one in ran.items()}
    if target.suffix == ".ipynb":
        return write_json(with_outputs(document, shown, private=session.private), indent=1) + "\n"
    from cellblock.session.page import page
    from cellblock.session.rich import renders_markdown

    parts = in_order(document, shown)
    if not renders_markdown() and any(isinstance(one, Prose) and one.is_markdown for one in parts):
        hint = 'pip install "cellblock[pages]" has it shown as it is meant'
        say(f"Markdown is shown as it is written ({hint})")
    return page(parts, private=session.private)


def _read(path: str) -> dict[str, object]:
    data = source.read(path)
    try:
        document = read_json(data)
    except BadJson as error:
        raise Unusable(f"{path!r} is not a Jupyter document: {error}") from None
    if not isinstance(document, dict):
        raise Unusable(f"{path!r} is not a Jupyter document: it holds a {type(document).__name__}")
    return document
