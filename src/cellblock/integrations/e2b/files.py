"""The sandbox's files, by E2B's methods. Relative paths start in the workspace."""

from __future__ import annotations

import errno
import posixpath
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import IO, Literal, overload

from cellblock.errors import FileRefused
from cellblock.integrations.e2b.exceptions import NotFoundException, SandboxException, checked, wrong
from cellblock.session.blocking import Session
from cellblock.text import represent
from cellblock.worker.confine.layout import WORKSPACE

Data = str | bytes | bytearray | IO[str] | IO[bytes]

_LIST = """
def below(path, depth):
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            try:
                is_dir = entry.is_dir(follow_symlinks=False)
                size = 0 if is_dir else entry.stat(follow_symlinks=False).st_size
                yield [entry.name, is_dir, os.path.abspath(entry.path), size]
                if is_dir and depth > 1:
                    yield from below(entry.path, depth - 1)
            except (FileNotFoundError, ProcessLookupError, PermissionError):  # vanished, or closed, as with os.walk
                pass
found = list(below(path, depth))
"""


class FileType(Enum):
    """Kind of an entry: a file or a directory."""

    FILE = "file"
    DIR = "dir"


@dataclass
class WriteInfo:
    """A file that was written."""

    name: str
    type: FileType | None
    path: str


@dataclass
class EntryInfo(WriteInfo):
    """An entry of a directory. `size` in bytes."""

    size: int = 0


class Filesystem:
    """Files that the code sees as ordinary files."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @overload
    def read(self, path: str, format: Literal["text"] = "text") -> str: ...
    @overload
    def read(self, path: str, format: Literal["bytes"]) -> bytearray: ...
    @checked
    def read(self, path: str, format: Literal["text", "bytes"] = "text") -> str | bytearray:
        """A file's text, with U+FFFD for what is not UTF-8, or bytes. NotFoundException where there is none."""
        try:
            data = self._session.files.read(path)
        except FileRefused as error:
            raise _refused(error) from None
        return bytearray(data) if format == "bytes" else data.decode("utf-8", "replace")

    @checked
    def write(self, path: str, data: Data) -> WriteInfo:
        """Create or replace a file, with the directories it needs."""
        whole = data if isinstance(data, str | bytes | bytearray) else data.read()
        if not isinstance(whole, str | bytes | bytearray):
            raise wrong("data", "a file that is read as text or bytes", whole)
        try:
            self._session.files.write(path, bytes(whole) if isinstance(whole, bytearray) else whole)
        except ValueError:
            raise wrong("data", "bytes, or text of whole characters", whole) from None
        except FileRefused as error:
            raise _refused(error) from None
        return WriteInfo(name=path.rpartition("/")[2], type=FileType.FILE, path=path)

    @checked
    def write_files(self, files: Iterable[Mapping[str, Data]]) -> list[WriteInfo]:
        """Write several, each a mapping with `path` and `data`."""
        written = []
        for one in files:
            try:
                path, data = one["path"], one["data"]
            except (TypeError, LookupError):
                raise wrong("files", "mappings with path and data", one) from None
            written.append(self.write(path, data))  # type: ignore[arg-type]  # which looks at them
        return written

    @checked
    def list(self, path: str = ".", depth: int = 1) -> list[EntryInfo]:
        """Entries in a directory, sorted, and below it to that depth."""
        rows = _inside(self._session, _LIST, path=_whole(path), depth=depth)
        if not isinstance(rows, list):
            raise SandboxException("the sandbox answered with something that is not a list of files")
        return [_entry(row) for row in rows]

    @checked
    def exists(self, path: str) -> bool:
        """True if there is such a file or directory."""
        return _inside(self._session, "found = os.path.lexists(path)", path=_whole(path)) is True

    @checked
    def make_dir(self, path: str) -> bool:
        """Make a directory, with those above it; False where there was one."""
        source = "found = not os.path.isdir(path)\nos.makedirs(path, exist_ok=True)"
        return _inside(self._session, source, path=_whole(path)) is True

    @checked
    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        source = (
            "import shutil\n"
            "is_dir = os.path.isdir(path) and not os.path.islink(path)\n"
            "found = shutil.rmtree(path) if is_dir else os.unlink(path)"
        )
        _inside(self._session, source, path=_whole(path))

    @checked
    def rename(self, old_path: str, new_path: str) -> EntryInfo:
        """Move a file or directory."""
        source = (
            "os.rename(old, new)\n"
            "found = [os.path.basename(new), os.path.isdir(new), os.path.abspath(new), os.path.getsize(new)]"
        )
        return _entry(_inside(self._session, source, old=_whole(old_path), new=_whole(new_path)))


def _whole(path: str) -> str:
    """A path from the workspace, wherever code has gone by `chdir`; an empty one names nothing."""
    return path and posixpath.join(WORKSPACE, path)


def _inside(session: Session, source: str, **names: object) -> object:
    """Run code in a scope of its own, with `os` and these names; returns what it binds to `found`, which is hostile."""
    body = "\n".join(f"    {line}" for line in source.strip().splitlines())
    given = "".join(f"    {name} = {represent(value, max_chars=sys.maxsize)}\n" for name, value in names.items())
    program = f"def _cellblock_inside():\n    import os\n{given}{body}\n    return found\n"
    cell = session.run(f"{program}globals().pop('_cellblock_inside')()")
    error = cell.error
    if error is not None and error.type in ("FileNotFoundError", "NotADirectoryError"):
        raise NotFoundException(error.message)
    if error is not None:
        raise SandboxException(f"{error.type}: {error.message}", hint=error.hint)
    return cell.value


def _entry(row: object) -> EntryInfo:
    match row:
        case [str(name), bool(is_dir), str(path), int(size)]:
            return EntryInfo(name=name, type=FileType.DIR if is_dir else FileType.FILE, path=path, size=size)
    raise SandboxException("the sandbox answered with something that is not a directory entry")


def _refused(error: FileRefused) -> SandboxException:
    kind = NotFoundException if error.errno in (errno.ENOENT, errno.ENOTDIR) else SandboxException
    return kind(error.args[0], hint=error.hint)
