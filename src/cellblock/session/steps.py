"""A step on its way into the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from cellblock.cell import Cell
from cellblock.errors import CellblockError
from cellblock.executors.protocol import Capture, Kernel
from cellblock.executors.suspects import Suspects
from cellblock.session.account import Share
from cellblock.session.hoststeps import HostStep
from cellblock.session.notebook import Changes
from cellblock.session.shown import Blob
from cellblock.store import JSON


@dataclass(slots=True, kw_only=True)
class Step:
    """A step that waits for its commit.

    `parent` is the step that it came after, `state` the number of the state of `kernel` that it led to; without a
    kernel the state is that of its parent, and its commit stands for that of its parent. `entries` are
    the numbers of what the journal holds of it; `logged` says whether that is enough to take the step again.
    """

    id: str
    parent: str
    kind: str
    message: str
    number: int
    kernel: Kernel | None
    state: int
    logged: bool
    entries: list[int] = field(default_factory=list)
    cell: Cell | None = None
    stopped: bool = False
    parts: Mapping[str, Blob] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    answers: Sequence[JSON] = field(default_factory=list)
    host: HostStep | None = None
    during: str = ""
    overwritten: bool = False
    share: Share | None = None
    read_share: Share | None = None
    """Of the snapshot that was read of `capture`."""
    capture: Capture | None = None
    has_slot: bool = False
    is_read: bool = False
    """The host has read what it led to: its state is saved even where steps come fast."""
    commit: str | None = None
    """The id of its commit, once that is in the store."""
    amends: str | None = None
    """The id of the commit of its parent, which has no state, where it is no step: it has that commit made with one."""
    place: int = 0
    """Number of times the session had gone elsewhere: once it has again, its commit is not amended any more."""
    was_let_go: bool = False
    failed: bool = False
    tried: bool = False
    """Its commit has been begun, and may be in the store."""
    unsaved: str = "steps came faster than they could be saved"
    failure: CellblockError | None = None
    """The error that kept its state from being saved, where that was tried."""
    suspects: Suspects = field(default_factory=Suspects)
    forked: anyio.Event = field(default_factory=anyio.Event)

    @property
    def stands_in(self) -> bool:
        """True if it is no step: its commit takes the place of that of its parent."""
        return self.kernel is None or self.amends is not None

    @property
    def is_same(self) -> bool:
        """True if its state is that of its parent."""
        return self.kernel is None or (self.cell is not None and self.cell.rolled_back)

    def __str__(self) -> str:
        return f"cell {self.number}" if self.cell is not None else self.message or self.kind
