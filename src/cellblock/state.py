"""State that a session keeps beyond the program that opened it: nothing, nothing outside this process, or every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from cellblock.cell import Cell, Lost
from cellblock.url import shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Live:
    """Names stay from one cell to the next, whatever they hold, in the memory of the session, until it is closed."""


@dataclass(frozen=True, slots=True, init=False)
class Versioned:
    """Every step of the session is a commit in a store, from which it can be resumed, by this program or another.

    `url` names the store: `sqlite:///cells.db`, `postgresql://…`; None is `$CELLBLOCK_STORE`, or else a file in the
    user's data directory. With `strict`, a cell that binds a name to what cannot be saved fails, and is rolled back;
    otherwise such names last as long as the session's process, and are reported as `lost`. A session that is not used
    for `hibernate_after` seconds ends its processes, until it is used again.
    """

    url: str | None
    strict: bool
    hibernate_after: float | None

    def __init__(self, url: str | None = None, strict: bool = False, hibernate_after: float | None = None) -> None:
        object.__setattr__(self, "url", url)
        kind, is_url = type(url).__name__, isinstance(url, str | None)
        del url  # no frame of an error holds it
        object.__setattr__(self, "strict", strict)
        object.__setattr__(self, "hibernate_after", hibernate_after)
        if not is_url:
            raise TypeError(f"url must be str, such as 'sqlite:///cells.db', not {kind}")
        after: object = hibernate_after
        if not isinstance(after, int | float | None) or isinstance(after, bool):
            raise TypeError(f"hibernate_after must be seconds, or None, not {type(after).__name__}")
        if after is not None and not 0 < after < float("inf"):
            raise ValueError(f"hibernate_after must be a number of seconds above 0, or None, not {after}")

    def __repr__(self) -> str:
        url = None if self.url is None else shown(self.url)
        return f"Versioned(url={url!r}, strict={self.strict}, hibernate_after={self.hibernate_after})"


State = Live | Versioned
"""The ways of keeping what cells do."""


def state_or_type(state: T) -> T | type:
    """A state, and the type of anything else: it may be a URL with a password, and frames of errors show arguments.

    To be called in the first line of who is given one.
    """
    return state if state == "default" or isinstance(state, State | type | None) else type(state)


def no_state(kind: type) -> TypeError:
    """The error of what is no state, by its type."""
    return TypeError(f"state must be Versioned(), Live() or None, not {kind.__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Description of a resume, for a session that existed before or whose processes had all ended.

    `commit` is the newest one whose state was saved; `replayed` are the cells that were run again after it, with the
    answers that host functions had given them. `interrupted` is a cell that had not ended when its program did: it is
    recorded as failed and was not run again. `lost` are names that could not be brought back.
    `left_out` are settings of the store that were not taken from it, as "mounts={'data': '/srv/data'}": only the
    arguments of whoever opens the session can give what they give.
    """

    commit: str
    replayed: tuple[Cell, ...] = ()
    interrupted: Cell | None = None
    lost: tuple[Lost, ...] = ()
    left_out: tuple[str, ...] = ()
