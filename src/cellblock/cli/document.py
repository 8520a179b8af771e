"""A Jupyter document's run: its cells one after the other, and what is written when they have ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli.exits import DONE, FAILED, INTERRUPTED
from cellblock.cli.export import write_document
from cellblock.cli.opening import open_session
from cellblock.cli.script import CtrlC, status_of
from cellblock.cli.setup import Setup
from cellblock.cli.show import JsonLines, Screen
from cellblock.cli.terminal import say
from cellblock.session.jupyter import Piece, in_order, with_outputs
from cellblock.session.shown import Prose, Shown
from cellblock.text import write_json

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the command line asks for."""

    setup: Setup
    document: Mapping[str, object]
    pieces: tuple[Piece, ...]
    keep_going: bool = False
    as_json: bool = False
    save: Path | None = None


def execute(job: Job) -> int:
    """Run a job; its exit status, which is that of the worst cell."""
    start = job.setup.start()
    import anyio

    async def run() -> int:
        session = job.setup.session()
        try:
            await open_session(session, start, sys.stderr)
            await job.setup.put_inputs(session)
            return await _run(session, job)
        finally:
            await session.close()

    return anyio.run(run)


async def _run(session: AsyncSession, job: Job) -> int:
    view = (
        JsonLines(session, None)
        if job.as_json
        else Screen(session, None, option="" if job.save else "--save OUT.ipynb")
    )
    ran: dict[int, str] = {}
    failed: list[int] = []
    worst = DONE
    with CtrlC(session) as ctrl_c:
        for piece in job.pieces:
            async with aclosing(session.stream(piece.source, kind=piece.kind)) as events:
                cell = await view.show(events)
            ran[piece.place] = cell.id
            if not cell.ok and not piece.may_fail:
                failed.append(cell.number)
                worst = max(worst, status_of(cell) or FAILED)
                if ctrl_c.count or not job.keep_going:
                    break
    await view.end({})
    if job.save is not None:
        write_document(job.save, _made(session, job, ran))
    if not job.as_json:
        say(_summary(job, len(ran), failed))
    return INTERRUPTED if ctrl_c.count and worst else worst


def _made(session: AsyncSession, job: Job, ran: Mapping[int, str]) -> str:
    """The document with its outputs, or its page."""
    by_id = {one.cell.id: one for one in session.notebook.shown()}
    shown = {place: by_id[one] for place, one in ran.items()}
    if job.save is not None and job.save.suffix == ".html":
        return _page(job, shown, session.private)
    return write_json(with_outputs(job.document, shown, private=session.private), indent=1) + "\n"


def _page(job: Job, shown: Mapping[int, Shown], private: str) -> str:
    from cellblock.session.page import page
    from cellblock.session.rich import renders_markdown

    parts = in_order(job.document, shown)
    if not renders_markdown() and any(isinstance(one, Prose) and one.is_markdown for one in parts):
        hint = 'pip install "cellblock[pages]" has it shown as it is meant'
        say(f"Markdown is shown as it is written ({hint})")
    return page(parts, private=private)


def _summary(job: Job, ran: int, failed: list[int]) -> str:
    which = f", failed: {', '.join(map(str, failed))}" if failed else ""
    return f"{ran} of {len(job.pieces)} cells ran{which}" + ("" if job.save is None else f"; saved {job.save}")
