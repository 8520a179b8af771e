"""Operations of the tools on a thread's session. Each returns text for the model; a failure says what to do.

A graph that ended between a call and its checkpoint makes the call again. It is not carried out twice: each call has a
key, which is the id of its cell, or is in a tag of the commit of its change of files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from itertools import islice
from typing import Any

from cellblock.cell import Cell
from cellblock.errors import CellblockError, FileRefused, UnknownCommit
from cellblock.hosting import to_thread
from cellblock.hosting.to_thread import off_loop
from cellblock.integrations.langgraph.searching import Found, search
from cellblock.outputs import OutputType
from cellblock.session.files import Listing, listing
from cellblock.session.past import was_cut_off
from cellblock.session.record import MOST_NOTE
from cellblock.session.session import AsyncSession
from cellblock.store import Commit
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
_LOOKED_BACK = 16
"""Commits that are looked at first."""
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
    """Content and key of a call, which are not among its arguments, each "" where there is none."""

    content: str = ""
    key: str = ""


def key_of(call_id: str, task: str, name: str, arguments: dict[str, Any]) -> str:
    """Key of a call: its id, the step of the graph that it is made in, its tool and its arguments.

    "" where its id or the step is not known.
    """
    told = write_json([call_id, task, name, arguments])
    return hashlib.sha256(told.encode()).hexdigest()[:24] if call_id and task else ""


# ------------------------------------------------------------------------------------------ code


async def run_prepared(session: AsyncSession, call: Call, *, file_path: str, description: str) -> Told:
    """Keep the content under its name, and run it."""
    if not _has_ended(await _cell_of(session, call.key)):
        await _write(session, file_path, call.content)
    told = await _run_once(session, call.content, call.key)
    return replace(told, created=(name(file_path), *told.created))


async def run(session: AsyncSession, call: Call, *, code: str) -> Told:
    """Run code that was given."""
    return await _run_once(session, code, call.key)


async def run_file(session: AsyncSession, call: Call, *, file_path: str) -> Told:
    """Run a file of the session's."""
    cell = await _cell_of(session, call.key)
    if cell is not None and _has_ended(cell):
        return _told(session, cell)
    data = await session.files.read(file_path, max_bytes=MOST_FILE_BYTES)
    source = await off_loop(len(data), _text, data, name(file_path))
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


async def write(session: AsyncSession, call: Call, *, file_path: str, description: str) -> Told:
    """Write the content to a file, which is replaced."""
    size = await off_loop(len(call.content), _size, call.content)
    await _change_once(session, call.key, partial(_write, session, file_path, call.content))
    return Told(f"Wrote {name(file_path)}: {size} bytes.", (name(file_path),))


async def edit(
    session: AsyncSession, call: Call, *, file_path: str, old_string: str, new_string: str, replace_all: bool
) -> Told:
    """Replace a piece of a file, which is there once unless `replace_all`, by another."""

    async def change() -> None:
        data = await session.files.read(file_path, max_bytes=MOST_FILE_BYTES)
        size = len(data) + len(new_string)
        edited = await off_loop(size, _edited, name(file_path), data, old_string, new_string, replace_all)
        await session.files.write(file_path, edited)

    await _change_once(session, call.key, change)
    return Told(f"Edited {name(file_path)}.")


def _edited(file: str, data: bytes, old: str, new: str, replace_all: bool) -> bytes:
    text = _text(data, file)
    found = text.count(old) if old else 0
    if not old:
        raise CellblockError("old_string is empty", hint="give the piece that is to be replaced, or use file_write")
    if old == new:
        raise CellblockError("old_string and new_string are the same", hint="nothing would change")
    if not found:
        hint = "it must be there to the letter, spaces and lines included: use file_read"
        raise CellblockError(f"old_string is not in {file}", hint=hint)
    if found > 1 and not replace_all:
        hint = "give more of what is around it, so that it is there once"
        raise CellblockError(f"old_string is in {file} {found} times", hint=hint)
    _require_size(len(data) + found * (_size(new) - _size(old)))
    return _encoded(text.replace(old, new))


async def delete(session: AsyncSession, call: Call, *, file_path: str) -> Told:
    """Remove a file."""
    await _change_once(session, call.key, partial(session.files.delete, file_path))
    return Told(f"Deleted {name(file_path)}.")


async def read(session: AsyncSession, call: Call, *, file_path: str, offset: int, limit: int) -> Told:
    """Lines of a file, from `offset` on, counted from 0."""
    data = await session.files.read(file_path, max_bytes=MOST_FILE_BYTES)
    return await off_loop(len(data), _lines, name(file_path), data, offset, limit)


def _lines(file: str, data: bytes, offset: int, limit: int) -> Told:
    text = _text(data, file)
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
        return Told(f"{file} is empty.")
    if offset >= many:
        raise CellblockError(f"{file} has {many} lines", hint="use a smaller offset")
    if at < many:
        shown += f"\n[lines {offset} to {at - 1} of {many}; go on with offset={at}]"
    return Told(shown)


async def list_files(session: AsyncSession, call: Call, *, directory: str) -> Told:
    """The files, with their sizes."""
    return _rows(await search(session, below=directory, sizes=True), "There are no files.")


async def glob(session: AsyncSession, call: Call, *, directory: str, pattern: str) -> Told:
    """The files whose names match."""
    return _rows(await search(session, below=directory, glob=pattern), f"No file matches {pattern!r}.")


async def grep(session: AsyncSession, call: Call, *, directory: str, pattern: str, glob: str) -> Told:
    """The lines that match."""
    found = await search(session, below=directory, glob=glob, regex=pattern)
    return _rows(found, f"No line matches {pattern!r}.")


def _rows(found: Found, nothing: str) -> Told:
    rows: list[str] = []
    size = 0
    for one in map(row, found.rows):
        size += len(one) + 1
        if size > _MOST_READ:
            break
        rows.append(one)
    more = ["[there is more: ask for less]"] if found.more or len(rows) < len(found.rows) else []
    return Told("\n".join([*rows, *more]) or nothing)


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


def _text(data: bytes, file: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CellblockError(f"{file} is not text", hint="read it with code") from None


async def _change_once(session: AsyncSession, key: str, change: Callable[[], Awaitable[None]]) -> None:
    """Change files, unless a call of this key has changed them before, and that was not undone: tags of its commits
    say so."""
    tag, again = f"tool-call-{key}", 0
    while key:
        try:
            (tagged,) = await session.log(tag, limit=1)
        except UnknownCommit:
            break
        if await _leads_here(session, tagged):
            return
        again += 1
        tag = f"tool-call-{key}-{again}"  # a tag stays where it is
    await change()
    if key:
        await session.tag(tag)


async def _leads_here(session: AsyncSession, tagged: Commit) -> bool:
    """True if a commit is among those that lead to where the session stands."""
    limit = _LOOKED_BACK
    while True:
        found = await session.log(limit=limit)
        if any(one.id == tagged.id for one in found):
            return True
        if len(found) < limit or found[-1].depth < tagged.depth:
            return False
        limit *= 4
