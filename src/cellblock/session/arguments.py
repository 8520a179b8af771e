"""Arguments of a session, checked and brought into the form in which they are used."""

from __future__ import annotations

import keyword
import math
import os
import shutil
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from cellblock.container import Container
from cellblock.errors import MountRefused
from cellblock.hosting.paths import absolute
from cellblock.policy import Policy
from cellblock.state import Live, State, Versioned, no_state
from cellblock.tools.tool import about
from cellblock.walls import TrustLevel

T = TypeVar("T")


def python_of(given: object, level: TrustLevel) -> str | None:
    """The interpreter inside, as an absolute path; in a container it is the image's, and not looked for here.

    A link is not followed, since an environment's interpreter is known by its link.
    """
    if given is None:
        return None
    path: str = os.fspath(given) if isinstance(given, os.PathLike) else given  # type: ignore[assignment]
    require_text(python=path)
    if level == "sandboxed":
        return path
    found = absolute(path) if os.sep in path else shutil.which(path)
    if found is None:
        raise ValueError(f"python={path!r:.100} is no program on PATH: give the interpreter's path")
    if os.path.isdir(found):
        raise ValueError(f"python={path!r:.100} is a directory: give the interpreter in it, as in {found}/bin/python")
    return absolute(found)


def state_of(name: str | None, user: object, state: State | type | Literal["default"] | None) -> State | None:
    """The state of a session as given, or its default."""
    if isinstance(state, type):
        raise no_state(state)
    if not isinstance(name, str | None):
        raise TypeError(f"name must be str, not {type(name).__name__}")
    if name is None and isinstance(state, Versioned):
        raise ValueError('a session that lasts needs a name: Session("name", state=…)')
    if name is None and user != "default":
        raise ValueError(f'user={user!r:.100} is for a stored session, which has a name: Session("name", user=…)')
    if name is not None and (state is None or isinstance(state, Live)):
        raise ValueError("only a session that lasts has a name: leave out the name, or state=")
    if state == "default":
        return Live() if name is None else Versioned()
    return state


def as_read(name: object) -> str:
    """A name as Python reads it in source: `ﬁ`, one character, as `fi`."""
    return unicodedata.normalize("NFKC", str(name))


def identifier(name: object, what: str) -> str:
    """A name as Python reads it; ValueError, told as `what`, for what can be none."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(as_read(name)):
        raise ValueError(f"{name!r} {what}")
    if as_read(name) == "__builtins__":
        raise ValueError(f"{name!r} holds Python's own functions, such as len: choose another name")
    return as_read(name)


def require_seconds(name: str, given: object) -> None:
    """ValueError unless an argument is a number of seconds above 0."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
        raise ValueError(f"{name} must be a number of seconds above 0, not {given!a:.80}")


def require_count(name: str, given: object) -> None:
    """ValueError unless an argument is a whole number of 0 or more."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ValueError(f"{name} must be a whole number of 0 or more, not {given!a:.80}")


def path_of(path: object) -> str:
    """A path as text; TypeError for what is none."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise TypeError(f"path must be str or os.PathLike, not {type(path if text is None else text).__name__}")
    return text


def require_text(**given: object) -> None:
    """The one check of text arguments, by their names: TypeError for what is no str, ValueError for half a character.

    No store, file or process takes that. A cell's source may have it: there it is the cell's SyntaxError.
    """
    for name, text in given.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be str, not {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = text[error.start]
            raise ValueError(
                f"{name} has half of a character, {half!a} at {error.start}: leave it out, or give all of it"
            ) from None


def require_kind(session: object, kind: type[T], what: str = "session") -> T:
    """A session that is given as an argument; TypeError for what is none, and for its async or its blocking twin."""
    if isinstance(session, kind):
        return session
    raise TypeError(f"{what} must be {kind.__name__}, not {type(session).__name__}")


def modules_of(preload: Iterable[str]) -> tuple[str, ...]:
    """The names of modules that `preload=` lists."""
    if isinstance(preload, str) or not isinstance(preload, Iterable):
        raise TypeError(f"preload is a list of modules, not {preload!a:.100}")
    names = tuple(preload)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"preload is a list of modules by their names, not of {name!r:.100}")
        require_text(preload=name)
    return names


def mounts_of(mounts: Any) -> tuple[tuple[str, str], ...]:
    """Names and sources; a relative source is one of this process's directory as it is now."""
    if not isinstance(mounts, Mapping):
        raise TypeError(f"mounts must map names to paths, not be a {type(mounts).__name__}")
    found = []
    for name, source in mounts.items():
        path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        if not isinstance(name, str) or not isinstance(path, str):
            raise TypeError(f"mounts must map names to paths, both str, not {name!r:.100} to {source!r:.100}")
        found.append((name, absolute(path, MountRefused, argument=f"mounts[{name!r:.100}]: ")))
    return tuple(found)


def container_of(container: Container | str | None, trust_level: TrustLevel) -> Container | None:
    """The container of a session at the level `sandboxed`; none at the others."""
    if not isinstance(container, Container | str | None):
        raise TypeError(f"container must be a Container or an image's name, not {type(container).__name__}")
    if trust_level != "sandboxed":
        if container is not None:
            raise ValueError('container= is for trust_level="sandboxed"')
        return None
    return Container(image=container) if isinstance(container, str) else container or Container()


def require_undeclared(policy: Policy) -> None:
    """At local cells call what a policy grants directly, and nobody is asked."""
    for grant in policy.functions:
        said = about(grant.function)
        if said.outward or said.private:
            raise ValueError(
                f"{grant.name}() is declared outward or private, which holds at local where it is in tools="
            )
