"""`notebook://` resources: a session's notebook as a document and as a page, its cells, and the images they showed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity

from cellblock.errors import StoreError, UnknownCell, UnknownSession
from cellblock.integrations.mcp.results import cell_result
from cellblock.session.notebook import Notebook

if TYPE_CHECKING:
    from cellblock.integrations.mcp.server import SessionServer

IPYNB = "application/x-ipynb+json"
HTML = "text/html"
_NAMES = ResourceSecurity(exempt_params=frozenset({"session"}))
"""The name of a session is never part of a path, and may hold what would be wrong in one."""


def add_resources(server: SessionServer) -> None:
    """Add the templates of a server's resources."""

    async def found(session: str) -> Notebook:
        try:
            return await server.sessions.notebook(server.user, session)
        except (UnknownSession, StoreError) as error:
            raise ResourceNotFoundError(str(error)) from None

    @server.resource("notebook://{session}", name="notebook", mime_type=IPYNB, security=_NAMES)
    async def notebook(session: str) -> str:
        """The notebook of a session, as Jupyter reads it."""
        return to_ipynb(await found(session))

    @server.resource("notebook://{session}/page", name="page", mime_type=HTML, security=_NAMES)
    async def page(session: str) -> str:
        """The notebook of a session as one page without scripts."""
        return (await found(session)).to_html()

    @server.resource("notebook://{session}/cell/{cell}", name="cell", mime_type="application/json", security=_NAMES)
    async def cell(session: str, cell: str) -> str:
        """A cell by its id, or by its place counted from 0: its source, and what it showed."""
        notebook = await found(session)
        try:
            one = notebook[int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 10 else cell]
        except UnknownCell as error:
            raise ResourceNotFoundError(str(error)) from None
        shown = cell_result(session, one, notebook).structured_content or {}
        return json.dumps({"source": one.source, "kind": one.kind, **shown})

    @server.resource(
        "notebook://{session}/cell/{cell}/image/{number}", name="image", mime_type="image/png", security=_NAMES
    )
    async def image(session: str, cell: str, number: str) -> bytes:
        """An image that a cell showed."""
        try:
            return (await found(session)).read(f"notebook://cell/{cell}/image/{number}")
        except UnknownCell as error:
            raise ResourceNotFoundError(str(error)) from None


def to_ipynb(notebook: Notebook) -> str:
    """A notebook as the text of a Jupyter document."""
    return json.dumps(notebook.to_ipynb(), indent=1)
