"""Cells that wait for the running function of the host, which must not wait for one of them."""

from __future__ import annotations

from contextvars import ContextVar


class Caller:
    """A call of a host function by a cell. `owner` stands for the cell's session; `name` says which function."""

    __slots__ = ("ended", "name", "owner")

    def __init__(self, owner: object, name: str) -> None:
        self.owner = owner
        self.name = name
        self.ended = False
        """True if nobody waits for it any more: what the function has left behind may wait for the session then."""


callers: ContextVar[tuple[Caller, ...]] = ContextVar("callers", default=())
"""From the outermost to the innermost: a function may have run a cell, which called another function."""


def waiting_for(owner: object) -> Caller | None:
    """The call by a cell of that owner for which the cell still waits, where this runs on behalf of it."""
    return next((one for one in callers.get() if one.owner is owner and not one.ended), None)
