"""Lines typed before, kept in a file of the user's: one JSON string a line, so that a block of many lines is one
entry."""

from __future__ import annotations

import os
from pathlib import Path

from cellblock.private import open_private, private_directory
from cellblock.text import BadJson, read_json, write_json

MAX_ENTRIES = 5000
_MAX_ENTRY_CHARS = 100_000
_MAX_READ_BYTES = 8 * 2**20


def default_path() -> Path | None:
    """`cellblock/history` in the directory that XDG_STATE_HOME names, else in `~/.local/state`; None without a home."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.expanduser("~/.local/state")
    return Path(state, "cellblock", "history") if os.path.isabs(state) else None


class History:
    """The entries, oldest first. Each is in the file as soon as it is added; OSError where that cannot be.

    The file is readable by its owner alone, and a link is not followed.
    """

    def __init__(self, path: Path) -> None:
        private_directory(path.parent)
        self._file = open_private(path, "a")
        self.entries = self._read()

    def add(self, entry: str) -> bool:
        """Append an entry; False for one that repeats the last, or is too long to be kept."""
        if not entry.strip() or len(entry) > _MAX_ENTRY_CHARS or self.entries[-1:] == [entry]:
            return False
        self.entries.append(entry)
        os.write(self._file, _line(entry))
        return True

    def _read(self) -> list[str]:
        """The newest entries. A file that has grown to twice what is kept is cut down to that."""
        size = os.fstat(self._file).st_size
        data = os.pread(self._file, _MAX_READ_BYTES, max(size - _MAX_READ_BYTES, 0))
        lines = data.splitlines()
        found = [entry for entry in map(_entry, lines) if entry]
        if len(lines) > 2 * MAX_ENTRIES or size > _MAX_READ_BYTES:
            os.ftruncate(self._file, 0)
            os.write(self._file, b"".join(map(_line, found[-MAX_ENTRIES:])))
        return found[-MAX_ENTRIES:]


def _line(entry: str) -> bytes:
    return write_json(entry).encode("ascii") + b"\n"


def _entry(line: bytes) -> str:
    """One line's entry; "" for a line that is none, such as the half of one where a disk was full."""
    try:
        entry = read_json(line)
    except BadJson:
        return ""
    return entry if isinstance(entry, str) and "\0" not in entry else ""
