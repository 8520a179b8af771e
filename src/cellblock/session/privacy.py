"""Which data are private: mounts and files that are declared so, or whose paths match a pattern.

What the session itself writes is not asked: it can only hold what came in, and that came in by these ways.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from cellblock.session.arguments import require_text
from cellblock.text import half_made

_MOST_ENTRIES = 100_000


class Private(os.PathLike[str]):
    """A source of a mount whose data are private: `mounts={"pay": Private("payroll")}`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def __fspath__(self) -> str:
        return self._path

    @half_made
    def __repr__(self) -> str:
        return f"Private({self._path!r})"


def patterns_of(private: object) -> tuple[str, ...]:
    """What `private=` says beside yes or no: patterns of paths."""
    if isinstance(private, bool):
        return ()
    if isinstance(private, str) or not isinstance(private, Iterable):
        raise TypeError(f"private must be True or a list of patterns of paths, not {private!r:.100}")
    found = tuple(private)
    for one in found:
        if not isinstance(one, str) or not one:
            raise TypeError(f"private must list patterns of paths, not {one!r:.100}")
        require_text(private=one)
    return found


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path, or a directory on the way to it, matches a pattern; from its end, as in `PurePath.match`."""
    whole = PurePosixPath(os.path.normpath(path))
    on_the_way = [one for one in (whole, *whole.parents) if one.name]
    return any(one.match(pattern) for pattern in patterns for one in on_the_way)


def declared(mounts: Mapping[str, object]) -> str:
    """Why a session with these mounts is private; "" where nobody has said so."""
    for name, source in mounts.items():
        if isinstance(source, Private):
            return f"mount {name}"
    return ""


def matched(mounts: Iterable[tuple[str, str]], patterns: tuple[str, ...]) -> str:
    """The same by patterns: of the mounts' names and sources, and of what lies in them now.

    A mount that holds too much to look at, or cannot be looked at, counts as private.
    """
    left = _MOST_ENTRIES
    for name, source in mounts:
        unseen: list[OSError] = []
        if matches(name, patterns) or matches(source, patterns):
            return f"mount {name}"
        for folder, folders, files in os.walk(source, onerror=unseen.append):
            left -= len(folders) + len(files)
            if unseen or left < 0:
                return f"mount {name}, of which not all could be looked at"
            for one in (*folders, *files):
                inside = os.path.relpath(os.path.join(folder, one), source)
                if matches(inside, patterns):
                    return f"{name}/{inside}"
        if unseen and os.path.isdir(source):  # a file has nothing in it
            return f"mount {name}, of which not all could be looked at"
    return ""
