"""Parts of a session's state that its commits lack, and who was told of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import anyio

from cellblock.cell import Lost
from cellblock.errors import CellblockError
from cellblock.hosting import to_thread
from cellblock.hosting.loops import OfLoop
from cellblock.labels import LAST, called
from cellblock.snapshots import Row, Snapshot, held_of_lost
from cellblock.worker.saving.losses import PART, REMEDIES

_MOST_HELD = 16 << 20
"""Bytes of what older commits lack, by name."""
_MOST_TOLD = 50_000


@dataclass(frozen=True, slots=True)
class Lacks:
    """Parts of a state that its commit lacks: names that could not be saved; names that cannot be loaded, with their
    groups; or all of it, as the cells `since` one of this number do, and the `failure` to save it, if that was tried.
    """

    missing: tuple[Lost, ...] = ()
    unloadable: dict[str, tuple[Row, Lost]] = field(default_factory=dict)
    since: int | None = None
    failure: CellblockError | None = None

    @property
    def can_have_state(self) -> bool:
        """True if the state is not in the store as steps came fast."""
        return self.since is not None and self.failure is None

    def without_state(self, number: int, failure: CellblockError | None = None) -> Lacks:
        """The lacks of the step after, of this number, whose state is not in the store."""
        return replace(self, since=number if self.since is None else self.since, failure=failure)

    def lost(self) -> tuple[Lost, ...]:
        """They, as losses."""
        return (*self.missing, *(one for _, one in self.unloadable.values()), *self.everything())

    def everything(self) -> tuple[Lost, ...]:
        """The loss that threatens where states cannot be saved."""
        if self.failure is None:
            return ()
        why, what = str(self.failure.args[0]), f"everything since cell {self.since}"
        remedy = f"these cells are run again when the session is opened, since {why}"
        return (Lost(name=what, type="", reason=why, remedy=remedy, alive=True),)


class Losses:
    """The lacks of a session's commits. A loss is told once, in the answer to whatever is done next."""

    noting = OfLoop(anyio.Lock)
    """Held while it is found out what a new snapshot lacks, which takes a thread some time."""

    def __init__(self) -> None:
        self.now = Lacks()
        """The lacks of the newest commit that this kernel led to."""
        self.strict = False
        """True if each name that a cell binds has to be saved."""
        self.newly: tuple[Lost, ...] = ()
        """Names that the newest commit could not save, and that were not among the lost of the one before."""
        self._of: dict[str, Lacks] = {}
        self._named: deque[tuple[str, int]] = deque()
        """The commits of which the names are known that they lack, oldest first, and the bytes that each takes."""
        self._told: set[str] = set()
        self._to_tell: tuple[Lost, ...] = ()
        self._is_back = False
        """True once the session went back since the newest snapshot was made."""

    def of(self, commit: str | None) -> Lacks:
        """The lacks of a commit; of one that is not in the store yet there are none."""
        return self._of.get(commit or "", Lacks())

    def forget(self) -> None:
        """Nothing is known of what commits lack: the session is made again."""
        self.now, self._of, self._named = Lacks(), {}, deque()

    @contextmanager
    def as_they_were(self) -> Iterator[None]:
        """Nothing is known within, and what was known is known again where that fails."""
        known = self.now, self._of, self._named
        self.forget()
        try:
            yield
        except BaseException:
            self.now, self._of, self._named = known
            raise

    # ------------------------------------------------------------------------- of commits

    def note(self, commit: str, now: Lacks) -> None:
        """Note the lacks of a commit at which the session stands."""
        self._keep(commit, now)
        self.now = now

    def _keep(self, commit: str, lacks: Lacks) -> None:
        """Keep the lacks of a commit. Of old ones some names are forgotten: the next commit finds them again."""
        self._of[commit] = lacks
        if not lacks.missing or lacks.missing is self.now.missing:
            return
        self._named.append((commit, sum(map(held_of_lost, lacks.missing))))
        while len(self._named) > 1 and sum(size for _, size in self._named) > _MOST_HELD:
            oldest = self._named.popleft()[0]
            missing = self._of[oldest].missing
            for one in [one for one, its in self._of.items() if its.missing is missing]:
                self._of[one] = replace(self._of[one], missing=())

    async def compared(self, snapshot: Snapshot) -> Compared:
        """A snapshot beside the one before: what it lacks, and what of that is new."""
        return await to_thread.run_sync(_compared, snapshot, self.now)

    def take_up(self, commit: str, found: Compared, *, is_here: bool) -> None:
        """Take up the lacks of a commit; unless `is_here` the session has left it meanwhile."""
        self._keep(commit, found.lacks)
        if is_here:
            self.now, self._is_back = found.lacks, False
        self.newly = tuple(one for one in found.newly if not one.type.startswith(PART))
        self._tell(found.newly)
        if len(self._told) > _MOST_TOLD:
            self._told.clear()
        self._told.update(one.name for one in found.lacks.missing)

    async def take_unloadable(
        self, commit: str, lost: Sequence[Lost], held: Mapping[str, Row], newest: Snapshot | None
    ) -> None:
        """Names of a commit cannot be loaded, nor of the `newest` snapshot if they are those still.

        `held` are the commit's groups, by names.
        """
        lost = [replace(one, alive=True) for one in lost]
        its, now = self.of(commit), self.now
        snapshot = None if self._is_back else newest
        failed = lost if its is now else await to_thread.run_sync(_still_failed, lost, held, snapshot)
        fresh = tuple(one for one in failed if one.name not in now.unloadable)
        for lacks, names in ((now, fresh), (its, lost)):
            lacks.unloadable.update((one.name, (held[one.name], one)) for one in names)
        self.newly += fresh
        self._tell(fresh)

    def went_back(self, commit: str) -> None:
        """The session stands at a commit from before: what is lost only since then is told no more."""
        left, self.now = self.now, self.of(commit)
        gone = {one.name for one in left.lost()} - {one.name for one in self.now.lost()}
        self._to_tell = tuple(one for one in self._to_tell if one.name not in gone)
        self._is_back = True

    # --------------------------------------------------------------------------- telling

    def at_once(self, unsaved: Mapping[str, str]) -> tuple[Lost, ...]:
        """Losses to tell in the cell that has just ended: names that it bound to what cannot be saved, by the types
        that tell why, and what commits have found out meanwhile.
        """
        found = tuple(
            Lost(name=name, type=kind.removeprefix("builtins."), reason=told[0], remedy=told[1], alive=True)
            for name, kind in unsaved.items()
            if (told := REMEDIES.get(kind)) is not None
        )
        self._told.update(one.name for one in found)
        return found + self.found_out()

    def found_out(self) -> tuple[Lost, ...]:
        """Losses that nobody was told of yet."""
        told, self._to_tell = self._to_tell, ()
        return told

    def tell(self, *lost: Lost) -> None:
        """Have losses told with the next answer."""
        self._to_tell += lost

    def _tell(self, lost: Sequence[Lost]) -> None:
        if not self.strict:
            self.tell(*(one for one in lost if one.name not in self._told))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A snapshot beside the one before: groups by names, what it lacks, and what of that is new."""

    held: Mapping[str, Row]
    lacks: Lacks
    newly: tuple[Lost, ...]


def _compared(snapshot: Snapshot, before: Lacks) -> Compared:
    held = snapshot.groups_of_names()
    missing = tuple(replace(one, alive=True) for one in snapshot.lost if one.name not in held)
    if missing == before.missing:
        missing = before.missing
    known = {one.name for one in before.lost()}
    unloadable = {name: one for name, one in before.unloadable.items() if held.get(name) == one[0]}
    known.add(called(LAST))  # which no cell has bound: it is told once it is gone
    newly = tuple(one for one in missing if one.name not in known)
    return Compared(held=held, lacks=Lacks(missing, unloadable), newly=newly)


def _still_failed(lost: Sequence[Lost], held: Mapping[str, Row], snapshot: Snapshot | None) -> Sequence[Lost]:
    """Of names that could not be loaded, those of which a snapshot holds the same."""
    now = {} if snapshot is None else snapshot.groups_of_names()
    return [one for one in lost if one.name in now and now[one.name] == held.get(one.name)]
