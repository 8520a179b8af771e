"""Private data: mounts and files that are declared so, or whose paths match a pattern.

What the session itself writes is not asked: it can only hold what came in, and that came in by these ways.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from posixpath import normpath

from cellblock.session.arguments import require_text
from cellblock.text import half_made

_MOST_ENTRIES = 100_000
_MOST_LINKS = 40
"""As many as Linux follows."""


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
    """Patterns of paths that `private=` gives beside yes or no."""
    if isinstance(private, bool):
        return ()
    if isinstance(private, str) or not isinstance(private, Iterable):
        raise TypeError(f"private must be True or a list of patterns of paths, not {private!r:.100}")
    found = tuple(private)
    for one in found:
        if not isinstance(one, str):
            raise TypeError(f"private must list patterns of paths, not {one!r:.100}")
        require_text(private=one)
        path = _canonical(one)
        if not one.strip() or not path.name or ".." in path.parts:
            raise ValueError(f"the pattern {one!r:.100} in private= can match no path: name a file or directory")
    return found


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Match a path, and the directories on the way to it, with patterns; from the end, as `PurePath.match` does.

    An absolute pattern may name the workspace as cells see it, or begin there: `/workspace/hr/*`, `/hr/*`.
    """
    on_the_way = [one for whole in _written(path) for one in (whole, *whole.parents) if one.name]
    return any(one.match(pattern) for pattern in map(_pattern, patterns) for one in on_the_way)


def _written(path: str) -> set[PurePosixPath]:
    return {PurePosixPath(normpath(path)), _canonical(path)}


def _canonical(path: str) -> PurePosixPath:
    """A path without `.`, `..` and links of the session's own; one in the workspace is absolute from there."""
    absolute = "/" + normpath(path).lstrip("/")
    for own in ("/session", "/workspace"):
        if absolute == own or absolute.startswith(own + "/"):
            absolute = absolute.removeprefix(own) or "/*"
    return PurePosixPath(absolute)


def _pattern(pattern: str) -> str:
    return str(_canonical(pattern)) if pattern.startswith("/") else normpath(pattern)


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
    left, normal = _MOST_ENTRIES, tuple(map(_pattern, patterns))
    for name, source in mounts:
        unseen: list[OSError] = []
        ways = (name, *_led_through(source))
        if any(matches(one, patterns) for one in ways):
            return f"mount {name}"
        roots = {root for one in ways for root in _written(one)}
        for folder, folders, files in os.walk(ways[-1], onerror=unseen.append):
            left -= len(folders) + len(files)
            if unseen or left < 0:
                return f"mount {name}, of which not all could be looked at"
            for one in (*folders, *files):
                inside = os.path.relpath(os.path.join(folder, one), ways[-1])
                if any((root / inside).match(pattern) for root in roots for pattern in normal):
                    return f"{name}/{inside}"
        if unseen and os.path.isdir(ways[-1]):  # a file has nothing in it
            return f"mount {name}, of which not all could be looked at"
    return ""


def _led_through(source: str) -> Iterator[str]:
    """A source as it is given, each path that it is a link to, and last the one that is mounted, which has no links."""
    yield source
    path = source
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):
            break
        yield (path := os.path.join(os.path.dirname(path), os.readlink(path)))
    yield os.path.realpath(source)
