"""Operations of the tools on a thread's session. Each returns text for the model; a failure says what to do.

A graph that ended between a call and its checkpoint makes the call again. It is not carried out twice: each call has a
key, which is the id of its cell, or is in a tag of the commit of its change of files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice
from typing import Any

from cellblock.cell import Cell
from cellblock.errors import CellblockError, FileRefused, UnknownCommit
from cellblock.hosting import to_thread
from cellblock.hosting.to_thread import off_loop
from cellblock.integrations.langgraph.searching import Search, search
from cellblock.outputs import OutputType
from cellblock.session.files import Listing, listing
from cellblock.session.past import was_cut_off
from cellblock.session.record import MOST_NOTE
from cellblock.session.session import AsyncSession
from cellblock.text import cut, name, row, valid, write_json

MOST_FILE_BYTES = 20 * 2**20
"""Bytes of a file that a tool may write or edit."""
_MOST_READ = 50_000
"""Characters of a file that are shown at once."""
_MOST_TOLD = 60_000
"""Characters of an answer, besides those that the session's limits allow a cell."""
_MOST_LINES = 2_000
_MOST_NEW = 100
_ROW_BYTES = 100
"""Bytes of a path in a list of files, about."""
_MOST_IMAGES = 4
_MOST_IMAGE_BYTES = 200_000
"""Bytes of an image in a message, which checkpoints keep; a larger one is named by its URI alone."""
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Told:
    """Result of a call, as text for the model. `created` are the files it made, `images` are PNG.

    Security border: messages and checkpoints get valid text of at most 60,000 characters, and those that a cell may
    show, `most_of_cell`; the middle is cut. Files stand there as `name` has them.
    """

    text: str
    created: tuple[str, ...] = ()
    failed: bool = False
    images: tuple[bytes, ...] = ()
    most_of_cell: int = 0

    def __post_init__(self) -> None:
        most = _MOST_TOLD + self.most_of_cell
        bounded = self.text if len(self.text) <= most else cut(self.text, most - MOST_NOTE)
        object.__setattr__(self, "text", valid(bounded))


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its arguments, its content and its key, each "" where there is none."""

    arguments: dict[str, Any]
    content: str = ""
    key: str = ""

    def __getitem__(self, name: str) -> str:
        """An argument that is text by the schema of its tool."""
        given = self.arguments[name]
        assert isinstance(given, str)
        return given

    def number(self, name: str) -> int:
        """An argument that is a whole number by the schema of its tool."""
        given = self.arguments[name]
        assert isinstance(given, int)
        return given


def key_of(call_id: str, task: str, name: str, arguments: dict[str, Any]) -> str:
    """Key of a call: its id, the step of the graph that it is made in, its tool and its arguments.

    "" where its id or the step is not known.
    """
    told = write_json([call_id, task, name, arguments])
    return hashlib.sha256(told.encode()).hexdigest()[:24] if call_id and task else ""


# ------------------------------------------------------------------------------------------ code


async def run_prepared(session: AsyncSession, call: Call) -> Told:
    """Keep the content under its name, and run it."""
    path = call["file_path"]
    if not _has_ended(await _cell_of(session, call.key)):
        await _write(session, path, call.content)
    told = await _run_once(session, call.content, call.key)
    return replace(told, created=(name(path), *told.created))


async def run(session: AsyncSession, call: Call) -> Told:
    """Run code that was given."""
    return await _run_once(session, call["code"], call.key)


async def run_file(session: AsyncSession, call: Call) -> Told:
    """Run a file of the session's."""
    cell = await _cell_of(session, call.key)
    if cell is not None and _has_ended(cell):
        return _told(session, cell)
    data = await session.files.read(call["file_path"], max_bytes=MOST_FILE_BYTES)
    source = await off_loop(len(data), _text, data, call["file_path"])
    return await _run_once(session, source, call.key)


async def _run_once(session: AsyncSession, source: str, key: str) -> Told:
    """Run the cell of a call. One that has run gives its result; one that its program's end cut off runs again."""
    cell = await _cell_of(session, key)
    if cell is not None and _has_ended(cell):
        return _told(session, cell)
    before = await session.files.list()
    cell = await (session.run(source, call_id=key or None) if cell is None else session.rerun(cell.id))
    after = await session.files.list()
    new = await off_loop(_ROW_BYTES * (len(before) + len(after)), _new, before, after)
    return _told(session, cell, new.names, new.more)


def _new(before: Sequence[str], after: Sequence[str]) -> Listing:
    known = set(before)
    return listing([path for path in after if path not in known], most=_MOST_NEW, max_bytes=_MOST_READ)


async def _cell_of(session: AsyncSession, key: str) -> Cell | None:
    """The cell of a call that was made before, unless it was undone."""
    cell = await to_thread.run_sync(session.notebook.find, key) if key else None
    return None if cell is None or cell.undone else cell


def _has_ended(cell: Cell | None) -> bool:
    return cell is not None and not was_cut_off(cell)


def _told(session: AsyncSession, cell: Cell, created: tuple[str, ...] = (), more: int = 0) -> Told:
    parts = [cell.text.rstrip() or ("Done. It printed nothing." if cell.ok else "It failed.")]
    if cell.error is not None and cell.error.kind != "raised" and cell.error.message not in cell.text:
        parts.append(cell.error.message)
    if created:
        parts.append(f"New files: {', '.join(created)}" + (f" and {more} more" if more else ""))
    images, most = _images(session, cell), session.limits.max_output_bytes
    return Told("\n".join(parts), created, failed=not cell.ok, images=images, most_of_cell=most)


def _images(session: AsyncSession, cell: Cell) -> tuple[bytes, ...]:
    """The first small images of a cell that are PNG by their bytes."""
    uris = [output.uri for output in cell.outputs if output.type is OutputType.IMAGE and output.uri is not None]
    shown = (session.notebook.read(uri) for uri in uris)
    small = (data for data in shown if data.startswith(_PNG) and len(data) <= _MOST_IMAGE_BYTES)
    return tuple(islice(small, _MOST_IMAGES))


# ------------------------------------------------------------------------------------------ files


async def write(session: AsyncSession, call: Call) -> Told:
    """Write the content to a file, which is replaced."""
    path = call["file_path"]
    size = await off_loop(len(call.content), _size, call.content)
    if not await _was_changed(session, call.key):
        await _write(session, path, call.content)
        await _note(session, call.key)
    return Told(f"Wrote {name(path)}: {size} bytes.", (name(path),))


async def edit(session: AsyncSession, call: Call) -> Told:
    """Replace a piece of a file, which is there once, by another."""
    path = call["file_path"]
    if not await _was_changed(session, call.key):
        data = await session.files.read(path, max_bytes=MOST_FILE_BYTES)
        size = len(data) + len(call["new_string"])
        await session.files.write(path, await off_loop(size, _edited, data, call))
        await _note(session, call.key)
    return Told(f"Edited {name(path)}.")


def _edited(data: bytes, call: Call) -> bytes:
    path, old, new = call["file_path"], call["old_string"], call["new_string"]
    text = _text(data, path)
    found = text.count(old) if old else 0
    if not old:
        raise CellblockError("old_string is empty", hint="give the piece that is to be replaced, or use file_write")
    if old == new:
        raise CellblockError("old_string and new_string are the same", hint="nothing would change")
    if not found:
        raise CellblockError(
            f"old_string is not in {name(path)}",
            hint="it must be there to the letter, spaces and lines included: use file_read",
        )
    if found > 1 and not call.arguments.get("replace_all"):
        raise CellblockError(
            f"old_string is in {name(path)} {found} times",
            hint="give more of what is around it, so that it is there once",
        )
    _require_size(len(data) + found * (_size(new) - _size(old)))
    return _encoded(text.replace(old, new))


async def delete(session: AsyncSession, call: Call) -> Told:
    """Remove a file."""
    path = call["file_path"]
    if not await _was_changed(session, call.key):
        await session.files.delete(path)
        await _note(session, call.key)
    return Told(f"Deleted {name(path)}.")


async def read(session: AsyncSession, call: Call) -> Told:
    """Lines of a file, from `offset` on, counted from 0."""
    data = await session.files.read(call["file_path"], max_bytes=MOST_FILE_BYTES)
    return await off_loop(len(data), _lines, data, call)


def _lines(data: bytes, call: Call) -> Told:
    path, offset, limit = call["file_path"], call.number("offset"), call.number("limit")
    text = _text(data, path)
    many = text.count("\n") + (not text.endswith("\n"))
    wanted = islice(StringIO(text, newline="\n"), offset, offset + min(limit, _MOST_LINES))
    shown, at = "", offset
    for line in wanted:
        if shown and len(shown) + len(line) > _MOST_READ:
            break
        shown, at = shown + cut(line, _MOST_READ), at + 1
        if len(line) > _MOST_READ:
            shown += f"\n[the middle of line {at - 1} is cut: read it with code]"
    if not text:
        return Told(f"{name(path)} is empty.")
    if offset >= many:
        raise CellblockError(f"{name(path)} has {many} lines", hint="use a smaller offset")
    if at < many:
        shown += f"\n[lines {offset} to {at - 1} of {many}; go on with offset={at}]"
    return Told(shown)


async def list_files(session: AsyncSession, call: Call) -> Told:
    """The files, with their sizes."""
    return await _searched(session, Search(below=call["directory"], sizes=True), "There are no files.")


async def glob(session: AsyncSession, call: Call) -> Told:
    """The files whose names match."""
    wanted = Search(below=call["directory"], glob=call["pattern"])
    return await _searched(session, wanted, f"No file matches {call['pattern']!r}.")


async def grep(session: AsyncSession, call: Call) -> Told:
    """The lines that match."""
    wanted = Search(below=call["directory"], glob=call["glob"], regex=call["pattern"])
    return await _searched(session, wanted, f"No line matches {call['pattern']!r}.")


async def _searched(session: AsyncSession, wanted: Search, nothing: str) -> Told:
    found = await search(session, wanted)
    rows: list[str] = []
    size = 0
    for one in map(row, found.rows):
        size += len(one) + 1
        if size > _MOST_READ:
            break
        rows.append(one)
    cut = found.more or len(rows) < len(found.rows)
    return Told("\n".join([*rows, *(["[there is more: ask for less]"] if cut else [])]) or nothing)


async def _write(session: AsyncSession, path: str, text: str) -> None:
    await session.files.write(path, await off_loop(len(text), _encoded, text))


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise CellblockError(
            f"the content has half of a character, at {error.start}", hint="write it again without it"
        ) from None
    _require_size(len(data))
    return data


def _require_size(size: int) -> None:
    if size > MOST_FILE_BYTES:
        raise FileRefused(
            f"the content has {size} bytes, and a file may have {MOST_FILE_BYTES}",
            hint="write it in parts, or have code make it",
        )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CellblockError(f"{name(path)} is not text", hint="read it with code") from None


async def _was_changed(session: AsyncSession, key: str) -> bool:
    """True if the change of files that a call makes was made before, in a session that was opened anew since."""
    if not key:
        return False
    try:
        await session.log(_tag(key), limit=1)
    except UnknownCommit:
        return False
    return True


async def _note(session: AsyncSession, key: str) -> None:
    if key:
        await session.tag(_tag(key))


def _tag(key: str) -> str:
    return f"tool-call-{key}"
