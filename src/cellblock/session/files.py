"""The session's files as callers use them: relative paths start in the workspace."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cellblock.errors import FileRefused
from cellblock.executors.protocol import Files, FileVersion
from cellblock.hosting.shortage import each_named
from cellblock.session.arguments import path_of, require_count, require_text
from cellblock.session.hoststeps import HostStep
from cellblock.text import name

MAX_READ_BYTES = 256 * 2**20
_MOST_LISTED = 1000
_LONGEST_NAME = 4096

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """The first files of a list, as `name` has them, and the number of the others; its `str` is text for a reader."""

    names: tuple[str, ...]
    more: int

    def __str__(self) -> str:
        return "\n".join([*self.names, *([f"and {self.more} more"] if self.more else [])]) or "no files"


def listing(paths: Sequence[str], *, most: int = _MOST_LISTED, max_bytes: int = 200_000) -> Listing:
    """The first of these files: at most so many, and as many as have so many bytes in a line each."""
    names: list[str] = []
    for shown in (name(path, _LONGEST_NAME) for path in paths[:most]):
        max_bytes -= len(shown.encode()) + 1
        if max_bytes < 0:
            break
        names.append(shown)
    return Listing(tuple(names), len(paths) - len(names))


class Look(Protocol):
    """Reads files of a session that is awake by then, and returns once the store has the step that they are of."""

    async def __call__(self, at: Callable[[Files], T], /) -> T: ...


Change = Callable[[HostStep], Awaitable[None]]
"""Carries out a change of a session's files, as a step of that session."""


@each_named
class AsyncFiles:
    """Files of a session, which its cells see as ordinary files. What leads outside raises `FileRefused`.

    Each change is a step that can be undone. One made while a cell runs belongs to that cell's step.
    """

    def __init__(self, look: Look, change: Change) -> None:
        self._look = look
        self._change = change

    async def write(self, path: str | os.PathLike[str], data: bytes | str) -> None:
        """Create or replace a file, with the directories it needs; text is written as UTF-8.

        A new file appears with all its bytes. One that exists is written in place: its links and open descriptors stay,
        and a cell that reads it meanwhile may find a part.
        """
        if not isinstance(data, str | bytes | bytearray | memoryview):
            raise TypeError(f"a file is written from bytes or text, not from {type(data).__name__}")
        if isinstance(data, str):
            require_text(data=data)
        raw = data.encode() if isinstance(data, str) else bytes(data)
        await self._change(HostStep("write", path_of(path), (raw,)))

    async def read(
        self, path: str | os.PathLike[str], *, max_bytes: int = MAX_READ_BYTES, offset: int | None = None
    ) -> bytes:
        """A file's bytes. A file of more than `max_bytes` is refused; with `offset`, a part of at most that is read."""
        name = path_of(path)
        for what, number in (("max_bytes", max_bytes), ("offset", offset or 0)):
            require_count(what, number)
        return await self._look(lambda files: files.read(name, max_bytes=max_bytes, offset=offset))

    async def size(self, path: str | os.PathLike[str]) -> int:
        """The bytes of a file, which is not read."""
        if (version := await self._version(path)) is None:
            raise FileRefused(f"{path_of(path)!r:.300} does not exist", errno=errno.ENOENT)
        return version[3]

    async def _version(self, path: str | os.PathLike[str]) -> FileVersion | None:
        """The device, inode, time of change in nanoseconds and size of a file; None where there is none."""
        name = path_of(path)
        return await self._look(lambda files: files.version(name))

    async def exists(self, path: str | os.PathLike[str]) -> bool:
        """True if a path is a file or a directory of the session's; False for what leads outside."""
        return await self._version(path) is not None

    async def list(self, directory: str | os.PathLike[str] = "") -> list[str]:
        """Every file below a directory, sorted; without one, of the workspace.

        Those below `/tmp` and `/data` are listed by themselves: `list("/tmp")`. Mounts are left out.
        """
        below = path_of(directory)
        return await self._look(lambda files: files.list(below))

    async def delete(self, path: str | os.PathLike[str]) -> None:
        """Remove one file."""
        await self._change(HostStep("delete", path_of(path)))
