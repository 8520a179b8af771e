"""The session's files as callers use them: relative paths start in the workspace."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from functools import partial

from cellblock.errors import FileRefused
from cellblock.executors.protocol import Files
from cellblock.hosting import to_thread
from cellblock.session.arguments import require_text
from cellblock.session.hoststeps import HostStep

MAX_READ_BYTES = 256 * 2**20


Find = Callable[[], Awaitable[Files]]
"""The files, of a session that is awake by then."""
Change = Callable[[HostStep], Awaitable[None]]
"""Carries out a change of a session's files, as a step of that session."""


class AsyncFiles:
    """Files of a session, which its cells see as ordinary files. What leads outside raises `FileRefused`.

    Each change is a step that can be undone. One made while a cell runs belongs to that cell's step.
    """

    def __init__(self, find: Find, change: Change) -> None:
        self._find = find
        self._change = change

    async def write(self, path: str | os.PathLike[str], data: bytes | str) -> None:
        """Create or replace a file, with the directories it needs; text is written as UTF-8."""
        if not isinstance(data, str | bytes | bytearray | memoryview):
            raise TypeError(f"a file is written from bytes or text, not from {type(data).__name__}")
        if isinstance(data, str):
            require_text(data=data)
        raw = data.encode() if isinstance(data, str) else bytes(data)
        await self._change(HostStep("write", os.fspath(path), (raw,)))

    async def read(
        self, path: str | os.PathLike[str], *, max_bytes: int = MAX_READ_BYTES, offset: int | None = None
    ) -> bytes:
        """A file's bytes. A file of more than `max_bytes` is refused; with `offset`, a part of at most that is read."""
        read = partial((await self._find()).read, os.fspath(path), max_bytes=max_bytes, offset=offset)
        return await to_thread.run_sync(read)

    async def size(self, path: str | os.PathLike[str]) -> int:
        """The bytes of a file, which is not read."""
        version = await to_thread.run_sync((await self._find()).version, os.fspath(path))
        if version is None:
            raise FileRefused(f"{os.fspath(path)!r:.300} does not exist", errno=errno.ENOENT)
        return version[3]

    async def list(self) -> list[str]:
        """Every file of the workspace, sorted."""
        return await to_thread.run_sync((await self._find()).list)

    async def delete(self, path: str | os.PathLike[str]) -> None:
        """Remove one file."""
        await self._change(HostStep("delete", os.fspath(path)))
