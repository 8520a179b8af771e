"""Frozen values that the store takes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cellblock.store.address import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version of a session. `id` is the address of its canonical JSON.

    `depth` is 1 more than the largest of its parents', 1 for a first one. `trees` holds for each kind of thing (names,
    groups, files) the root of its map, None for an empty one. `snapshot` tells whether the trees are of this very
    moment; without it they are its parent's, and the state is rebuilt by replay. `created` is in milliseconds.
    `number` and `message` are the cell's, `detail` what else belongs to it; both hold no meaning for the store.
    """

    id: str
    parents: tuple[str, ...]
    created: int
    depth: int
    kind: str
    message: str
    number: int
    snapshot: bool
    trees: Mapping[str, str | None]
    detail: Mapping[str, JSON]

    def __repr__(self) -> str:
        return f"<Commit {self.id.rpartition('-')[2][:12]} {self.kind} {self.number} {self.message!r}>"


@dataclass(frozen=True, slots=True)
class Head:
    """Position of a session: on a branch, or on a commit alone. `commit` is None before the first."""

    branch: str | None
    commit: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the journal. Numbers grow, also past what was trimmed."""

    number: int
    value: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a session: where it runs, what tells it from another of its pid, and a word of its own."""

    host: str
    boot: str
    pids: str
    pid: int
    started: int
    nonce: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A stored session: times in milliseconds, the newest commit of where it stands, who holds it (None: nobody).

    `private` is why it holds private data, "" where nobody has said that it does. `damaged` tells what of the row
    cannot be read, "" for one that is whole.
    """

    user: str
    name: str
    created: int
    used: int
    branch: str | None
    commit: str | None
    depth: int
    pending: int
    holder: Holder | None
    private: str = ""
    damaged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Quota of one user: sessions, and bytes of objects as they lie in the store."""

    sessions: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUsage:
    """Usage and quota of one user."""

    sessions: int
    objects: int
    bytes: int
    quota: Quota


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one key of a tree: `old` is None where it came, `new` where it went."""

    key: str
    old: JSON
    new: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One object that cannot be had, and what needs it: a session, its commit ("" for the journal), what in that. Or a
    row of a session that is damaged: then `address` is "".
    """

    user: str
    session: str
    commit: str
    path: str
    address: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """Counts of things checked, and the damage. `unreferenced` counts damaged objects that nothing refers to.

    `tables`: what the database says is wrong with its own structure.
    """

    objects: int
    bytes: int
    sessions: int
    commits: int
    unreferenced: int
    damage: tuple[Damage, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the tables are whole, and everything that is referred to can be had."""
        return not self.damage and not self.tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """Result of a collection: objects kept, newly condemned and deleted, and the bytes that freed.

    `strays`: bodies outside of the database that were nobody's.
    """

    kept: int
    condemned: int
    deleted: int
    bytes: int
    strays: int
