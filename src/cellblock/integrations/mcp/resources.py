"""`notebook://` resources: a session's notebook as a document and as a page, its cells, and the images they showed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity

from cellblock.errors import CellblockError, UnknownCell
from cellblock.integrations.mcp.results import MOST_IMAGE_BYTES, MOST_SENT, cell_result
from cellblock.session.account import Account
from cellblock.session.notebook import Kept, Notebook
from cellblock.text import write_json

if TYPE_CHECKING:
    from cellblock.integrations.mcp.server import SessionServer

IPYNB = "application/x-ipynb+json"
HTML = "text/html"
_NAMES = ResourceSecurity(exempt_params=frozenset({"session"}))
"""The name of a session is never part of a path, and may have characters that are wrong in one."""

T = TypeVar("T")


def add_resources(server: SessionServer) -> None:
    """Add the templates of a server's resources."""

    async def read(session: str, take: Callable[[Iterable[Kept], str], T]) -> T:
        try:
            return await server.pool.read(session, take, user=server.user)
        except CellblockError as error:
            raise ResourceNotFoundError(str(error)) from None

    @server.resource("notebook://{session}", name="notebook", mime_type=IPYNB, security=_NAMES)
    async def notebook(session: str) -> str:
        """The notebook of a session, as Jupyter reads it."""
        return (await read(session, partial(exported, "ipynb")))[0]

    @server.resource("notebook://{session}/page", name="page", mime_type=HTML, security=_NAMES)
    async def page(session: str) -> str:
        """The notebook of a session as one page without scripts."""
        return (await read(session, partial(exported, "html")))[0]

    @server.resource("notebook://{session}/cell/{cell}", name="cell", mime_type="application/json", security=_NAMES)
    async def cell(session: str, cell: str) -> str:
        """A cell by its id, or by its place counted from 0: its source, and what it showed."""

        def written(cells: Iterable[Kept], private: str) -> str:
            one, parts = _found(cells, cell)
            shown = cell_result(session, one, parts).structured_content or {}
            return write_json({"source": one.source, "kind": one.kind, **shown})

        return await read(session, written)

    @server.resource(
        "notebook://{session}/cell/{cell}/image/{number}", name="image", mime_type="image/png", security=_NAMES
    )
    async def image(session: str, cell: str, number: str) -> bytes:
        """An image that a cell showed."""

        def shown(cells: Iterable[Kept], private: str) -> bytes:
            one, parts = _found(cells, cell)
            part = parts.get(f"notebook://cell/{one.id}/image/{number}")
            if part is None:
                raise UnknownCell(f"cell {one.id} has no image {number!a:.80}")
            _require_small(len(part.data), MOST_IMAGE_BYTES, "have the cell save it, and read parts by read_file")
            return part.data

        return await read(session, shown)


def exported(form: Literal["ipynb", "html"], cells: Iterable[Kept], private: str) -> tuple[str, int]:
    """A notebook as a document, and how many cells it has. Outputs of the oldest are left out where it is too large."""
    notebook, size = Notebook(account=Account(MOST_SENT // 2, "one MCP answer")), 0
    notebook.private = private
    for cell, parts in cells:
        notebook.record(cell, parts)
        size += len(cell.source)
        _require_small(size, MOST_SENT // 2, _ONE_BY_ONE)
    notebook.let_go(0)
    text = write_json(notebook.to_ipynb(), indent=1) if form == "ipynb" else notebook.to_html()
    _require_small(len(text), MOST_SENT, _ONE_BY_ONE)
    return text, len(notebook)


_ONE_BY_ONE = "read its cells one by one: notebook://SESSION/cell/0"


def _require_small(size: int, most: int, hint: str) -> None:
    if size > most:
        raise CellblockError(f"an answer holds at most {most} bytes of this, and it has {size} or more", hint=hint)


def _found(cells: Iterable[Kept], wanted: str) -> Kept:
    for place, kept in enumerate(cells):
        if wanted in (kept[0].id, str(place)):
            return kept
    raise UnknownCell(f"no cell {wanted!a:.80}")
