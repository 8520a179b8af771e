"""Answers of the tools: structured results with a schema, and the content that models read."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from mcp_types import CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel, Field

from cellblock.advice import for_model
from cellblock.cell import Cell, Lost
from cellblock.differences import Diff, FileChange, NameChange
from cellblock.hosting.to_thread import off_loop
from cellblock.session.offered import told
from cellblock.session.shown import IMAGES, Blob, mime_type
from cellblock.store import Commit
from cellblock.text import cut, name, row, strict_json, write_json
from cellblock.values.room import COST

MOST_SENT = 2 * 2**20
"""Characters of an answer. Encoding a million of them holds the event loop for some 10 ms."""
MOST_IMAGE_BYTES = MOST_SENT * 5 // 8
"""Bytes of images that are sent with a result; further ones are linked to."""
_MOST_IMAGES = 20
_MOST_LOST = 100
_MOST_TEXT = 150_000
_MOST_VALUE = 10_000
_DEEPEST_VALUE = 30
_MOST_VALUE_BYTES = 5 * _MOST_VALUE
"""Encoded size of a value that is decoded: a larger one has more than `_MOST_VALUE` characters as JSON."""
_SHORT = 12
_MESSAGE = 500
_MOST_CHANGES = 200


class Failure(BaseModel):
    """Why a cell failed."""

    kind: str = Field(description="raised, timeout, memory, refused or crashed")
    type: str
    message: str
    hint: str = Field("", description="what to do about it")


class CellResult(BaseModel):
    """A cell or command that ran."""

    session: str = Field(description="the session that it ran in: give it again to go on there")
    cell: str = Field(description="the cell's id, which does not change")
    number: int
    ok: bool
    state: str = Field(description="completed, error or timeout")
    text: str = Field(description="all that it showed, the middle cut where that is too long")
    value: Any = Field(None, description="the last expression's value where it is plain JSON and short, else null")
    images: list[str] = Field(
        default_factory=list, description=f"URIs of the first {_MOST_IMAGES} images, to be read as resources"
    )
    error: Failure | None = None
    lost: list[Lost] = Field(default_factory=list)
    more_lost: int = Field(0, description="lost names that are not listed")
    cut: int = Field(0, description="bytes of printed text that were left out, for being more than the session's limit")
    status: int | None = Field(None, description="a failed command's exit status")
    rolled_back: bool = Field(False, description="the session is as it was before this cell")
    duration_ms: float


class CommitRow(BaseModel):
    """A step of a session's history."""

    commit: str = Field(description="the beginning of its id, which names it as a revision")
    kind: str
    number: int = Field(description="of its cell; 0 where none ran")
    message: str
    created: int = Field(description="milliseconds since 1970")


class Standing(BaseModel):
    """Current position of a session."""

    session: str
    at: CommitRow


class History(BaseModel):
    """The newest steps of a session, newest first."""

    session: str
    commits: list[CommitRow]


class Difference(BaseModel):
    """Difference between two revisions of a session."""

    session: str
    text: str
    exact: bool = Field(description="false: the state of one of the two was not saved, the one before it is compared")
    names: list[NameChange]
    files: list[FileChange]
    more: int = Field(0, description="names and files that are not listed")


class FileList(BaseModel):
    """The files of a session's workspace."""

    session: str
    files: list[str]
    more: int = Field(0, description="files that are not listed")


class FileRead(BaseModel):
    """A file, or a part of it."""

    session: str
    path: str
    size: int
    offset: int
    encoding: str = Field(description="text, or base64 where the bytes are no UTF-8")
    data: str
    truncated: bool = Field(description="there is more after it: ask again with a larger offset")


class FileWritten(BaseModel):
    """A file that was written."""

    session: str
    path: str
    size: int


class SessionBrief(BaseModel):
    """A stored session."""

    session: str
    commits: int
    used: int = Field(description="milliseconds since 1970")
    open_in: str | None = Field(description="the process that has it open, if one has")


class SessionList(BaseModel):
    """The first sessions of a user, by name."""

    sessions: list[SessionBrief]
    more: bool = Field(False, description="there are more: ask again with `after`, the last of these")


class Exported(BaseModel):
    """A notebook, which the resource of that URI is."""

    session: str
    uri: str
    mime_type: str
    cells: int
    size: int


async def ran(session: str, cell: Cell, parts: Mapping[str, Blob]) -> CallToolResult:
    """`cell_result`, without holding up the event loop."""
    size = len(cell.text) + sum(len(part.data) for part in parts.values()) + COST * cell.result.size
    return await off_loop(size, cell_result, session, cell, parts)


def cell_result(session: str, cell: Cell, parts: Mapping[str, Blob]) -> CallToolResult:
    """A cell, with the binary parts of its outputs, as a tool's answer; one that failed is a tool's error."""
    found = (output.uri for output in cell.outputs if output.uri is not None and output.uri in parts)
    uris = list(islice(found, _MOST_IMAGES))
    place = f"notebook://cell/{cell.id}/"
    text = cut(cell.text.replace(place, image_uri(session, place)), _MOST_TEXT)
    error, lost, failure = cell.error, cell.lost[:_MOST_LOST], None
    if error is not None:
        failure = Failure(kind=error.kind, type=error.type, message=error.message, hint=for_model(error.hint))
    result = CellResult(
        session=session, cell=cell.id, number=cell.number, ok=cell.ok, state=cell.state.value, text=text,
        value=_plain(cell) if cell.ok else None, images=[image_uri(session, uri) for uri in uris],
        error=failure, status=None if error is None else error.status,
        lost=list(lost), more_lost=len(cell.lost) - len(lost), cut=cell.cut,
        rolled_back=cell.rolled_back, duration_ms=cell.usage.duration_ms,
    )  # fmt: skip
    said = told(dataclasses.replace(cell, text=text, lost=lost))
    return answer(result, said, *_images(session, {uri: parts[uri] for uri in uris}), is_error=not cell.ok)


def answer(result: BaseModel, text: str, *more: ContentBlock, is_error: bool = False) -> CallToolResult:
    """A structured result, with text for a model."""
    content, structured = [TextContent(text=text), *more], result.model_dump(mode="json")
    return CallToolResult(content=content, structured_content=structured, is_error=is_error)


def image_uri(session: str, uri: str) -> str:
    """An output's URI, with the session that it belongs to."""
    return f"{notebook_uri(session)}/{uri.removeprefix('notebook://')}"


def notebook_uri(session: str) -> str:
    """The URI of a session's notebook."""
    return f"notebook://{quote(session, safe='')}"


def commit_row(commit: Commit) -> CommitRow:
    """A commit as a row of results."""
    return CommitRow(
        commit=commit.id.removeprefix("sha256-")[:_SHORT],
        kind=commit.kind,
        number=commit.number,
        message=row(cut(commit.message, _MESSAGE)),
        created=commit.created,
    )


def difference(session: str, found: Diff) -> Difference:
    """A diff as a result, with the first of its names and files."""
    names, files = found.names[:_MOST_CHANGES], found.files[:_MOST_CHANGES]
    more = len(found.names) - len(names) + len(found.files) - len(files)
    text = str(dataclasses.replace(found, names=names, files=files, steps=found.steps[-_MOST_CHANGES:]))
    text += f"\nand {more} more" if more else ""
    return Difference(
        session=session,
        text=text,
        exact=found.exact,
        names=[dataclasses.replace(one, name=name(one.name)) for one in names],
        files=[dataclasses.replace(one, path=name(one.path)) for one in files],
        more=more,
    )


def _images(session: str, parts: Mapping[str, Blob]) -> list[ContentBlock]:
    found: list[ContentBlock] = []
    left = MOST_IMAGE_BYTES
    for uri, part in parts.items():
        data, mime = part.data, mime_type(part.data)
        if mime in IMAGES and len(data) <= left:
            left -= len(data)
            found.append(ImageContent(data=base64.b64encode(data).decode(), mime_type=mime))
        else:
            short = uri.removeprefix("notebook://")
            found.append(ResourceLink(uri=image_uri(session, uri), name=short, mime_type=mime, size=len(data)))
    return found


def _plain(cell: Cell) -> object:
    """A cell's value where it is short JSON; else None."""
    if cell.result.size > _MOST_VALUE_BYTES or not _is_plain(cell.value, _DEEPEST_VALUE, [_MOST_VALUE]):
        return None
    copied = strict_json(cell.value)  # NaN, the infinities and the longest integers are no JSON
    return copied[0] if copied is not None and len(write_json(copied[0])) <= _MOST_VALUE else None


def _is_plain(value: object, depth: int, left: list[int]) -> bool:
    """True for JSON of at most `left` characters. An object that occurs many times counts each time."""
    left[0] -= 1 + (len(value) if isinstance(value, str) else value.bit_length() // 4 if isinstance(value, int) else 0)
    if not depth or left[0] < 0:
        return False
    if value is None or type(value) in (str, bool, int, float):
        return True
    if type(value) in (list, tuple):
        return all(_is_plain(one, depth - 1, left) for one in value)  # type: ignore[attr-defined]
    if type(value) is dict:
        return all(type(one) is str for one in value) and all(
            _is_plain(one, depth - 1, left) for pair in value.items() for one in pair
        )
    return False
