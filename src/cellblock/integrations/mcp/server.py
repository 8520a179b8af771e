"""The server: the caller of a request, the session that it means, and the border of requests and answers."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import (
    MCPServerError,
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, Resource
from pydantic import AnyUrl, ValidationError

import cellblock
from cellblock.errors import CellblockError
from cellblock.integrations.mcp.resources import add_resources
from cellblock.integrations.mcp.results import MOST_SENT, notebook_uri
from cellblock.integrations.mcp.tools import MOST_SOURCE, add_tools
from cellblock.pool import SessionPool
from cellblock.session.shown import mime_type
from cellblock.text import bounded, line, misfits, type_name, valid

_INSTRUCTIONS = """\
Runs Python and shell commands behind kernel walls: no network but what was listed, no files but the session's own
and what is mounted.
A session keeps its names and files from call to call. Which one is meant is the argument `session`: the same name goes
on where it was, another name is another session.{default} Every step is a commit, which undo, checkout and branch
go back to. A failed call leaves the session usable; its text says what to do."""

_MOST_NAME = 10_000
"""Characters of an argument that the SDK reads as JSON, on the loop."""
_log = logging.getLogger("cellblock")
_MOST_CHARS = {"code": MOST_SOURCE, "command": MOST_SOURCE, "content": sys.maxsize, "data": sys.maxsize}


class SessionServer(MCPServer[Any]):
    """An MCP server over the sessions of its callers. `user` is the caller where the transport names none."""

    def __init__(
        self, pool: SessionPool, *, user: str, default: str | None, tools: Collection[str] | None
    ) -> None:
        said = f" Without it the session is {default!r}." if default is not None else ""
        with _root_logger_kept():
            super().__init__(
                "cellblock",
                title="cellblock",
                version=cellblock.__version__,
                instructions=_INSTRUCTIONS.format(default=said),
                middleware=[self._border],
            )
        self.pool = pool
        self._user = user
        self._default = default
        add_tools(self, tools)
        add_resources(self)

    @property
    def user(self) -> str:
        """Security border: the caller, of an HTTP request by its token and never by an argument."""
        token = get_access_token()
        return self._user if token is None else token.client_id

    def named(self, session: str | None) -> str:
        """Name of the session that a call means."""
        name = self._default if session is None else session
        if name is None:
            raise CellblockError(
                "the call does not name a session",
                hint="give session=…: any name, and the same name again to continue that session",
            )
        return name

    async def _border(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Security border: every request and its answer, on every transport.

        A request counts as a call of its user; answers and errors are valid text of a bounded size.
        """
        if ctx.request_id is None:  # a notification, which has no answer
            return await call_next(ctx)
        try:
            with self.pool.calling(self.user):
                sent = await call_next(ctx)
        except MCPError as error:
            data = bounded(error.data) if _size(error.data) <= _MOST_NAME else None
            raise MCPError(error.code, line(error.message, 2000), data) from None
        except ValidationError:  # of parameters that the method does not take
            raise
        except Exception as error:
            raise MCPError(INTERNAL_ERROR, line(_error_text(error, ctx.method), 2000)) from None
        if (size := _size(sent)) > MOST_SENT:
            raise MCPError(INTERNAL_ERROR, f"the answer has {size} characters, more than {MOST_SENT}: ask for less")
        return bounded(sent)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Carry out a call, with arguments of valid text. `ToolError` for arguments that the tool does not take."""
        known = {tool.name: list(tool.input_schema["properties"]) for tool in await self.list_tools()}
        if name not in known:
            raise ToolError(f"there is no tool {line(name, 80)}: there are {', '.join(known)}")
        given = {key: valid(value) if isinstance(value, str) else value for key, value in arguments.items()}
        unknown = [line(key, 80) for key in given if key not in known[name]]
        if unknown:
            raise ToolError(f"{name} has no argument {unknown[0]!r}: it takes {', '.join(known[name])}")
        for key, value in given.items():
            if isinstance(value, str) and len(value) > (most := _MOST_CHARS.get(key, _MOST_NAME)):
                raise ToolError(f"{line(key, 80)} has more than {most} characters")
        try:
            return await super().call_tool(name, given, context)
        except ToolError as error:
            match error.__cause__:
                case ValidationError() as wrong if not isinstance(error, UnexpectedToolError):
                    raise ToolError(f"{name} got wrong arguments: {misfits(wrong).lower()}") from None
                case None:
                    raise
                case failed:
                    raise ToolError(_error_text(failed, name)) from None

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Refuse: there are no prompts."""
        raise MCPError(INVALID_PARAMS, f"there is no prompt {line(name, 80)!r}: this server has none")

    async def list_resources(self) -> list[Resource]:
        """The notebooks of the caller's sessions."""
        return [
            Resource(
                uri=notebook_uri(row.name), name=row.name, mime_type="application/x-ipynb+json",
                description=f"the notebook of session {row.name!r}",
            )
            for row in await self.pool.list(self.user)
        ]  # fmt: skip

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource. The type of an image is that of its bytes."""
        if len(text := str(uri)) > _MOST_NAME:
            raise ResourceNotFoundError(f"the URI has more than {_MOST_NAME} characters")
        try:
            found = await super().read_resource(valid(text), context)
        except UnexpectedResourceError as error:
            raise ResourceError(_error_text(error.__cause__ or error, "resources/read")) from None
        if isinstance(found, InputRequiredResult):
            return found
        return [
            replace(one, mime_type=mime_type(one.content)) if isinstance(one.content, bytes) else one for one in found
        ]


@asynccontextmanager
async def open_server(
    url: str | None = None,
    *,
    user: str = "default",
    session: str | None = None,
    most_open: int = 16,
    idle_seconds: float = 600.0,
    tools: Collection[str] | None = None,
    **options: Any,
) -> AsyncIterator[SessionServer]:
    """A server over the sessions of a store, which are closed with it.

    `url` names the store, None the default one; `user` is whose sessions are meant where the transport tells nobody;
    `session` is the one that is meant where a call names none. At most `most_open` are open at once, and one that was
    not used for `idle_seconds` ends its processes. `tools` are those that are offered; None is all. What else is given
    goes to each `AsyncSession`: limits, mounts, network, private, preload, python, walls.
    """
    pool = SessionPool(url, max_sessions=most_open, idle_seconds=idle_seconds, wait_seconds=0, **options)
    del url  # no frame of an error holds it
    async with pool:
        yield SessionServer(pool, user=user, default=session, tools=tools)


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Keep the program's root logger: the SDK gives it a handler that renders a traceback for a second, on the loop."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _error_text(error: BaseException, what: str) -> str:
    """Text of an error for a client. An unforeseen one is a line of the log, and the client gets its type alone."""
    if isinstance(error, CellblockError | MCPServerError) and not isinstance(error, UnexpectedResourceError):
        return str(error)
    *_, (frame, number) = traceback.walk_tb(error.__traceback__)
    place = f"{os.path.basename(frame.f_code.co_filename)}:{number}"
    _log.error("%s failed: %s (%s)", what, line(error), place)
    return f"{what} failed for a reason of the server's own, {type_name(error)} (see the line of the server's log)"


def _size(value: object) -> int:
    """Characters of all texts of an answer."""
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if isinstance(value, list):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str) else 1
