"""The tools of a model for its sessions, each with the schema of its answer and hints on what it may change."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextResourceContents, ToolAnnotations
from pydantic import Field

from cellblock.cell import Cell
from cellblock.errors import CellblockError
from cellblock.events import Done, ToolCall
from cellblock.hosting import clock
from cellblock.integrations.mcp.resources import HTML, IPYNB, exported
from cellblock.integrations.mcp.results import (
    CellResult,
    Difference,
    Exported,
    FileList,
    FileRead,
    FileWritten,
    History,
    SessionBrief,
    SessionList,
    Standing,
    answer,
    commit_row,
    difference,
    notebook_uri,
    ran,
)
from cellblock.session.files import listing
from cellblock.session.session import AsyncSession
from cellblock.session.unbroken import unbroken
from cellblock.text import name, valid

if TYPE_CHECKING:
    from cellblock.integrations.mcp.server import SessionServer

_MOST_SESSIONS = 100
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes that text does not have; JSON writes each as six."""
MOST_SOURCE = 2**20
"""Bytes of a file that is run, and characters of code in a call."""
_MOST_READ = 250_000
"""Bytes of one part of a file: it is in the answer twice, for models and for programs."""
_MOST_EMBEDDED = 200_000
"""Bytes of an exported notebook that is in the answer itself; a larger one is linked to."""

SessionName = Annotated[
    str | None, Field(description="the session's name: the same goes on where it was, another is another session")
]
Path = Annotated[str, Field(description="a path in the session: relative to its workspace, or below /tmp")]
Revision = Annotated[str, Field(description="HEAD, HEAD~3, a tag, or the beginning of a commit's id")]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_REPLACES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

Function = Callable[..., Awaitable[CallToolResult]]


def add_tools(server: SessionServer, chosen: Collection[str] | None) -> None:
    """Add the tools of these names, or all; ValueError for one that there is not."""
    tools = Tools(server)
    rows = {function.__name__: (function, hints) for function, hints in tools.rows()}
    if chosen is not None and (unknown := sorted(set(chosen) - rows.keys())):
        raise ValueError(f"there is no tool {', '.join(unknown)}: there are {', '.join(rows)}")
    for tool, (function, hints) in rows.items():
        if chosen is None or tool in chosen:
            server.add_tool(function, annotations=hints)


class Tools:
    """The tools of one server; their docstrings are what models are told."""

    def __init__(self, server: SessionServer) -> None:
        self._server = server

    def rows(self) -> list[tuple[Function, ToolAnnotations]]:
        """Every tool with its hints."""
        return [
            (self.run_python, _RUNS),
            (self.run_file, _RUNS),
            (self.shell, _RUNS),
            (self.list_files, _READS),
            (self.read_file, _READS),
            (self.write_file, _REPLACES),
            (self.upload_file, _REPLACES),
            (self.undo, _RUNS),
            (self.branch, _ADDS),
            (self.merge, _RUNS),
            (self.log, _READS),
            (self.diff, _READS),
            (self.checkout, _REPLACES),
            (self.reset, _REPLACES),
            (self.export, _READS),
            (self.list_sessions, _READS),
        ]

    # ---------------------------------------------------------------------------------- cells

    async def run_python(
        self,
        ctx: Context[Any, Any],
        code: Annotated[str, Field(description="Python source; the last expression's value is shown")],
        session: SessionName = None,
    ) -> Annotated[CallToolResult, CellResult]:
        """Run Python in a session. Names, imports and files stay for the next call; print and figures are shown."""
        return await self._run(ctx, session, code, "python")

    async def run_file(
        self, ctx: Context[Any, Any], path: Path, session: SessionName = None
    ) -> Annotated[CallToolResult, CellResult]:
        """Run a Python file of the session as a cell, among the session's names."""
        async with self._using(session) as one:
            source = await one.files.read(path, max_bytes=MOST_SOURCE)
            try:
                code = source.decode()
            except UnicodeDecodeError as error:
                where = f"byte {error.start} of {name(path)}"
                raise ToolError(f"{where} is not UTF-8 (write it as UTF-8, or run it by shell)") from None
            return await self._follow(ctx, one, code, "python")

    async def shell(
        self,
        ctx: Context[Any, Any],
        command: Annotated[str, Field(description="for /bin/sh, in the workspace")],
        session: SessionName = None,
    ) -> Annotated[CallToolResult, CellResult]:
        """Run a shell command in a session's workspace. A status other than 0 is an error."""
        return await self._run(ctx, session, command, "shell")

    async def _run(
        self, ctx: Context[Any, Any], session: str | None, source: str, kind: Literal["python", "shell"]
    ) -> CallToolResult:
        async with self._using(session) as one:
            return await self._follow(ctx, one, source, kind)

    async def _follow(
        self, ctx: Context[Any, Any], one: AsyncSession, source: str, kind: Literal["python", "shell"]
    ) -> CallToolResult:
        cell: Cell = await follow(one, source, kind, ctx.report_progress)
        _, parts = one.notebook.kept(cell.id) or (cell, {})
        return await ran(str(one.name), cell, parts)

    # ---------------------------------------------------------------------------------- files

    async def list_files(self, session: SessionName = None) -> Annotated[CallToolResult, FileList]:
        """List the files of a session's workspace."""
        async with self._using(session) as one:
            found = listing(await one.files.list())
        return answer(FileList(session=str(one.name), files=list(found.names), more=found.more), str(found))

    async def read_file(
        self,
        path: Path,
        session: SessionName = None,
        offset: Annotated[int, Field(ge=0, description="the first byte")] = 0,
        max_bytes: Annotated[int, Field(ge=4, le=_MOST_READ, description="4, a character's, or more")] = 50_000,
    ) -> Annotated[CallToolResult, FileRead]:
        """Read a file of a session: as text, or in base64 where it is none."""
        async with self._using(session) as one:
            part = await one.files.read(path, max_bytes=max_bytes, offset=offset)
            size = await one.files.size(path)
        text = _text(part, more=offset + len(part) < size)
        if text is None:
            encoding, data = "base64", base64.b64encode(part).decode()
        else:
            encoding, data = "text", text
            part = text.encode()
        read = FileRead(
            session=str(one.name), path=path, size=size, offset=offset, encoding=encoding, data=data,
            truncated=offset + len(part) < size,
        )  # fmt: skip
        more = f"\n[{size} bytes in all; go on with offset={offset + len(part)}]" if read.truncated else ""
        return answer(read, data + more)

    async def write_file(
        self, path: Path, content: str, session: SessionName = None
    ) -> Annotated[CallToolResult, FileWritten]:
        """Create or replace a text file of a session, with the directories it needs."""
        return await self._write(session, path, content.encode())

    async def upload_file(
        self,
        path: Path,
        data: Annotated[str, Field(description="the bytes, in base64")],
        session: SessionName = None,
    ) -> Annotated[CallToolResult, FileWritten]:
        """Create or replace a file of a session from base64."""
        try:
            raw = base64.b64decode(data, validate=True)
        except ValueError as error:  # of text that is not ASCII, too
            raise ToolError(f"data is not base64: {error} (write_file takes text as it is)") from None
        return await self._write(session, path, raw)

    async def _write(self, session: str | None, path: str, data: bytes) -> CallToolResult:
        async with self._using(session) as one:
            await one.files.write(path, data)
            written = FileWritten(session=str(one.name), path=path, size=len(data))
        return answer(written, f"{name(path)}: {len(data)} bytes")

    # -------------------------------------------------------------------------------- history

    async def undo(
        self, session: SessionName = None, steps: Annotated[int, Field(ge=1, le=100_000)] = 1
    ) -> Annotated[CallToolResult, Standing]:
        """Go back by so many steps, each a cell, a command or a written file: names, objects and files."""
        async with self._using(session, create=False) as one:
            await one.undo(steps)
            return await _standing(one)

    async def branch(
        self,
        name: Annotated[str, Field(description="of the new session")],
        session: SessionName = None,
    ) -> Annotated[CallToolResult, Standing]:
        """Make another session with the same names, objects and files, from which on the two go apart."""
        async with self._using(session, create=False) as one:
            return await unbroken(partial(self._adopted, await one.branch(name)))

    async def _adopted(self, made: AsyncSession) -> CallToolResult:
        try:
            return await _standing(made)
        finally:
            await self._server.pool.adopt(made)

    async def merge(
        self,
        other: Annotated[str, Field(description="a session that branched off this one, or a revision")],
        session: SessionName = None,
        prefer: Annotated[
            Literal["ours", "theirs"] | None, Field(description="where both changed the same; else nothing is merged")
        ] = None,
    ) -> Annotated[CallToolResult, Standing]:
        """Take over what another branch has changed since the two parted: names and files."""
        async with self._using(session, create=False) as one:
            if self._server.pool.found(other, user=one.user) is not None:  # the store may lack what it did last
                async with self._using(other) as theirs:
                    await one.merge(theirs, prefer=prefer)
            else:
                await one.merge(other, prefer=prefer)
            return await _standing(one)

    async def log(
        self, session: SessionName = None, limit: Annotated[int, Field(ge=1, le=500)] = 20, revision: Revision = "HEAD"
    ) -> Annotated[CallToolResult, History]:
        """List the newest steps that lead to a revision, newest first."""
        async with self._using(session, create=False) as one:
            commits = [commit_row(commit) for commit in await one.log(revision, limit=limit)]
            found = History(session=str(one.name), commits=commits)
        lines = [f"{commit.commit} {commit.kind} [{commit.number}] {commit.message}".rstrip() for commit in commits]
        return answer(found, "\n".join(lines) or "no steps yet")

    async def diff(
        self, session: SessionName = None, before: Revision = "HEAD~1", after: Revision = "HEAD"
    ) -> Annotated[CallToolResult, Difference]:
        """Tell what lies between two revisions: steps, names with previews, files with sizes."""
        async with self._using(session, create=False) as one:
            found = difference(str(one.name), await one.diff(before, after))
        return answer(found, found.text)

    async def checkout(self, revision: Revision, session: SessionName = None) -> Annotated[CallToolResult, Standing]:
        """Go to the state of a commit. What comes next follows from there; nothing is removed from the history."""
        async with self._using(session, create=False) as one:
            await one.checkout(revision)
            return await _standing(one)

    async def reset(
        self,
        session: SessionName = None,
        files: Annotated[bool, Field(description="remove the workspace's files as well")] = False,
    ) -> Annotated[CallToolResult, Standing]:
        """Unbind every name and empty the notebook. The history keeps what was."""
        async with self._using(session) as one:
            await one.clear(files=files)
            return await _standing(one)

    async def export(
        self, session: SessionName = None, format: Literal["ipynb", "html"] = "ipynb"
    ) -> Annotated[CallToolResult, Exported]:
        """Give a session's notebook as a Jupyter document or as a page, a large one as a link to its resource."""
        named = self._server.named(session)
        text, cells = await self._server.pool.read(named, partial(exported, format), user=self._server.user)
        uri, mime = notebook_uri(named) + ("" if format == "ipynb" else "/page"), IPYNB if format == "ipynb" else HTML
        size = len(text.encode())
        found = Exported(session=named, uri=uri, mime_type=mime, cells=cells, size=size)
        said = f"{cells} cells, {size} bytes, at {uri}"
        if size <= _MOST_EMBEDDED:
            return answer(
                found, said, EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime, text=text))
            )
        return answer(found, said, ResourceLink(uri=uri, name=named, mime_type=mime, size=size))

    async def list_sessions(
        self, after: Annotated[str | None, Field(description="list those whose names come after it")] = None
    ) -> Annotated[CallToolResult, SessionList]:
        """List your sessions by name, open or not."""
        rows = await self._server.pool.list(self._server.user, after=after, limit=_MOST_SESSIONS + 1)
        briefs = [
            SessionBrief(session=row.name, commits=row.depth, used=row.used, open_in=str(row.holder or "") or None)
            for row in rows[:_MOST_SESSIONS]
        ]
        found = SessionList(sessions=briefs, more=len(rows) > len(briefs))
        lines = [f"{name(one.session)} ({one.commits} commits)" for one in briefs] + ["and more"] * found.more
        return answer(found, "\n".join(lines) or "no sessions: run_python with a session's name makes one")

    def _using(self, session: str | None, *, create: bool = True) -> AbstractAsyncContextManager[AsyncSession]:
        return self._server.pool.session(self._server.named(session), user=self._server.user, create=create)


async def _standing(one: AsyncSession) -> CallToolResult:
    (commit,) = await one.log(limit=1)
    row = commit_row(commit)
    said = f"{one.name} is at {row.commit}: {row.kind} [{row.number}] {row.message}".rstrip()
    return answer(Standing(session=str(one.name), at=row), said)


def _text(data: bytes, *, more: bool) -> str | None:
    """Bytes as text, without a character that is cut in two at the end; None where they are none."""
    if _CONTROL.search(data):
        return None
    for cut in range(4 if more else 1):
        try:
            return data[: len(data) - cut].decode()
        except UnicodeDecodeError as error:
            if error.start < len(data) - 4:
                return None
    return None


Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Report of progress: seconds since the cell began, None for the total, and the text shown since the last report."""

_FIRST_SECONDS = 0.5
_SILENT_SECONDS = 5.0
"""Seconds between reports of a cell that shows nothing, so that clients see that it is alive."""
_MOST_SAID = 500


async def follow(session: AsyncSession, source: str, kind: Literal["python", "shell"], report: Report) -> Cell:
    """Run a cell, and report what it shows every half second. A caller who is cancelled interrupts it."""
    shown, cell, failure = "", None, None

    async def tell() -> None:
        nonlocal shown
        began = told = clock.now()
        while True:
            await anyio.sleep(_FIRST_SECONDS)
            text, shown, now = shown, "", clock.now()
            if text or now - told >= _SILENT_SECONDS:
                told = now
                await report(now - began, None, text or None)

    async with anyio.create_task_group() as beside:
        beside.start_soon(tell)
        try:
            async with aclosing(session.stream(source, kind=kind)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        cell = event.cell
                    else:
                        said = f"{event.name}()\n" if isinstance(event, ToolCall) else event.text
                        shown = valid((shown + said)[-_MOST_SAID:])
        except CellblockError as error:  # raised outside the task group, as it is
            failure = error
        beside.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # its traceback leads to this frame
    assert cell is not None  # the last event of every stream
    return cell
