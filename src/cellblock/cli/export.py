"""Files that leave a session for a directory of the host: names from inside are hostile, nothing is overwritten."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli.exits import Unusable
from cellblock.errors import FileRefused
from cellblock.private import open_private, private_directory, write_private
from cellblock.session.shown import mime_type
from cellblock.text import line, write_json

if TYPE_CHECKING:
    from cellblock.cell import Cell
    from cellblock.session.notebook import Notebook
    from cellblock.session.session import AsyncSession

_FORBIDDEN = frozenset('\\:*?"<>|')
_LONGEST = 120
"""Bytes of a name; most file systems take 255."""
_DEEPEST = 100


def safe(path: str) -> str:
    """A relative path that stays below the directory it is joined to, made of a path from inside.

    No `..`, no empty or absolute part, no leading dot (programs obey a `.git`), no character that a terminal, a shell
    or another file system takes for more than a letter.
    """
    parts = [_safe_part(part) for part in path.split("/") if part not in ("", ".", "..")]
    return "/".join(parts) or "_"


def _safe_part(part: str) -> str:
    clean = "".join(c if c.isprintable() and c not in _FORBIDDEN else "_" for c in part)
    if clean[0] in ".-~ ":
        clean = "_" + clean[1:]
    stem, suffix = os.path.splitext(clean)
    suffix = _cut(suffix, 20)
    return _cut(stem, _LONGEST - len(suffix.encode())) + suffix


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def write_document(target: Path, document: Notebook | str) -> None:
    """Write a notebook as a page, a script or a Jupyter document, by the name's ending, or a text as it is."""
    if not isinstance(document, str):
        if target.suffix == ".py":
            document = "\n".join(_as_script(cell) for cell, _ in document.every())
        elif target.suffix == ".html":
            document = document.to_html()
        else:
            document = write_json(document.to_ipynb(), indent=1) + "\n"
    try:
        write_private(os.path.realpath(target), document)  # a link stays, as with other programs
    except OSError as error:
        raise Unusable(f"cannot write {str(target)!r}: {error.strerror}") from None


def _as_script(cell: Cell) -> str:
    """A cell as a part of a script for `:load` and `cellblock run --cells`: what they would stop at is a comment."""
    text, title = cell.source.rstrip(), "# %%"
    if cell.error is not None:
        title += f" {cell.error.kind}: {line(cell.error.type)}"
    if cell.undone:
        title += " undone"
    if cell.undone or cell.error is not None or cell.kind != "python":
        mark = "" if cell.kind == "python" else "!"
        text = "\n".join(f"# {mark}{one}" for one in text.splitlines())
    return f"{title}\n{text}\n"


class Shelf:
    """A directory for the files of one run, `max_mb` in all. A name that is taken gets a number."""

    def __init__(self, directory: Path, max_mb: int = 512) -> None:
        self._directory = directory
        self._max_mb, self._left = max_mb, max_mb * 2**20
        self._images = 0
        self._numbers: dict[Path, int] = {}
        self.saved: list[str] = []
        self.failed: list[str] = []

    def put_image(self, data: bytes, name: str = "") -> str | None:
        """Save an image, under a number where it has no name; its path, None where it is not saved."""
        self._images += 1
        known = mime_type(data).partition("/")[2]  # by its first bytes, and not by the type that the cell named
        suffix = {"jpeg": "jpg", "octet-stream": "bin"}.get(known, known)
        return self.put(f"{name or f'image-{self._images}'}.{suffix}", data)

    def put(self, name: str, data: bytes) -> str | None:
        """Save a file under its safe name; its path, None where it is not saved: `failed` says why."""
        return self._put(name, partial(self._write, data)) if self._has_room(name, len(data)) else None

    def _has_room(self, name: str, size: int) -> bool:
        if size > self._left:
            self.failed.append(f"{safe(name)}: no room, since at most {self._max_mb} MB are saved")
        return size <= self._left

    def _put(self, name: str, make: Callable[[Path], None]) -> str | None:
        """Have `make` create a file under the name, or the name with a number."""
        name = safe(name)
        if name.count("/") > _DEEPEST:
            self.failed.append(f"{name[:_LONGEST]}…: below more than {_DEEPEST} directories")
            return None
        target = self._directory / name
        try:
            private_directory(target.parent)
            while True:
                number = self._numbers[target] = self._numbers.get(target, 0) + 1
                path = target if number == 1 else target.with_name(f"{target.stem}-{number}{target.suffix}")
                with suppress(FileExistsError):
                    make(path)
                    break
        except OSError as error:
            self.failed.append(f"{name}: {error.strerror}")
            return None
        self.saved.append(str(path))
        return str(path)

    def _write(self, data: bytes, path: Path) -> None:
        """Write a file, never through a link."""
        with os.fdopen(open_private(path, "x"), "wb") as out:
            self._left -= len(data)
            out.write(data)

    async def put_new(self, session: AsyncSession, before: Mapping[str, bytes]) -> None:
        """Save the files of the workspace that are not in `before`, the digests of `contents`; caches are left out.

        Hard links stay hard links. No file is read that there is no room for.
        """
        first: dict[tuple[int, int], str] = {}
        for name in await session.files.list():
            if any(part.startswith(".") or part == "__pycache__" for part in name.split("/")):
                continue
            version = await session.files._version(name)
            device, inode, _, size = version or (0, 0, 0, 0)
            if (saved := first.get((device, inode))) is not None:
                self._put(name, partial(os.link, saved))
            elif self._has_room(name, size):
                try:
                    data = await session.files.read(name)
                except FileRefused as error:
                    self.failed.append(f"{safe(name)}: {type(error).__name__}")
                    continue
                if before.get(name) != _digest(data) and (path := self.put(name, data)) is not None and version:
                    first[device, inode] = path


async def contents(session: AsyncSession) -> dict[str, bytes]:
    """Digests of the workspace's files, by name."""
    return {name: _digest(await session.files.read(name)) for name in await session.files.list()}


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
