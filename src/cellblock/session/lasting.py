"""The lasting side of a session: what happens is logged before it runs, and every step becomes a commit afterwards.

Every step has one id, under which the journal, the commit and the plan of a replay know it. A cell is written into the
store's journal before it starts, and again when it has ended, before its caller is told. The commit follows in the
background: a scribe of the state's frozen copy hands over what changed, and the commit takes the step's own entries
from the journal, and no others. A step whose state could not be had is a commit of its source alone: it is run again
when the session is resumed from there. Commits are made in the order of the steps; one that fails is tried again first.
"""

from __future__ import annotations

import _thread
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Literal

import anyio

from cellblock.cell import Cell, Lost
from cellblock.differences import Diff
from cellblock.documents import reading
from cellblock.errors import CaptureFailed, CellblockError, LeaseLost, SessionClosed, StoreError
from cellblock.executors.protocol import Capture, Kernel, too_large
from cellblock.executors.suspects import Known, Suspects
from cellblock.hosting import to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.hosting.loops import OfLoop
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.hosting.unique import unique_word
from cellblock.patience import LOCK_SECONDS, Deadline
from cellblock.session.account import Account, Share
from cellblock.session.ahead import Ahead
from cellblock.session.background import Background
from cellblock.session.commits import (
    Written,
    of_state,
    put_cell,
    put_cells,
    put_snapshot,
    read_written,
)
from cellblock.session.earlier import Earlier, Source
from cellblock.session.hoststeps import ASIDE, FORGET, HostStep
from cellblock.session.merging import merge
from cellblock.session.notebook import Changes, Notebook
from cellblock.session.past import (
    DELETES,
    Past,
    Planned,
    Replay,
    answered,
    digest_of,
    followed_by,
    host_entries,
    host_entry,
    leading_to,
    step_of,
)
from cellblock.session.record import at_risk
from cellblock.session.shown import Blob
from cellblock.session.timeline import adopted, before, deleted_since, difference, find, led_to, why_private
from cellblock.session.tools import Asked
from cellblock.session.unbroken import unbroken
from cellblock.snapshots import Row, Snapshot
from cellblock.state import Versioned
from cellblock.store import JSON, Batch, Commit, HeldSession, Store, blobs, open_store, records
from cellblock.values.room import held
from cellblock.wire.messages import ToolReply
from cellblock.worker.saving.losses import PART, REMEDIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.turns import Turns

_log = logging.getLogger("cellblock.store")

_MESSAGE = 200
_MOST_TOLD = 5
_COPIES = 3
"""Copies held of what waits for a commit while that is written: as it is, as JSON and as the bytes of that."""
_SLOTS, _SLOT_SECONDS = 3, 0.25
"""States that are held to be saved at a time, and how long the next step waits for that: then it goes on, and the one
before it is committed by its source alone."""
_READ_SECONDS = LOCK_SECONDS
"""Seconds that a caller who has read something waits for the commit of what it read from."""
_WITHOUT_STATE = ("unsaved", "stopped", "overwritten", "host")
"""Mark in the detail of a commit that has no state."""
_NEWEST_SECONDS = 10.0
"""Seconds that the newest step waits for its state when its commit is made. No step waits for it meanwhile."""


@dataclass(slots=True, kw_only=True)
class _Step:
    """A step on its way into the store.

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


class Lasting:
    """One session's place in a store, held by this program until `close`."""

    _noting = OfLoop(anyio.Lock)
    """Held while it is found out what a new snapshot lacks, which takes a thread some time."""
    _logging = OfLoop(anyio.Lock)
    """Held while deletions are logged."""

    def __init__(self, state: Versioned, store: Store, held: HeldSession) -> None:
        self._state = state
        self._store = store
        self._held = held
        self.user: Callable[[], Turns | None] | None = None
        """The session that goes on with this, while there is one."""
        held.watch(partial(_is_left, weakref.ref(self)))
        _open[self._place_of(held.name)] = self
        self.by_source = False
        """True if no state is to be saved."""
        self.strict = False
        """True if each name that a cell binds has to be saved."""
        self.otherwise = "open the session without strict=True"
        """Remedy for its opener to keep others."""
        self.lacks_settings: tuple[Lost, ...] = ()
        """The loss of its settings, where they are damaged in the store."""
        self._newly_lost: tuple[Lost, ...] = ()
        self._told: set[str] = set()
        self._to_tell: tuple[Lost, ...] = ()
        self._lacks, self._lacked = _Lacks(), dict[str, _Lacks]()
        """The lacks of commits that this kernel led to: of the newest, and of each by its id."""
        self._is_back = False
        """True once the session went back since the newest snapshot was made."""
        self._place = 0
        """Number of times it has gone back, or elsewhere."""
        self._trials: list[_Step] = []
        """Steps whose commits are made, and of which what is new is being loaded once."""
        self._known_suspects: Known = {}
        self._tried = anyio.Event()
        self.deadline = Deadline()
        """By it all that is begun here is over, once the session is being closed."""
        self._background = Background(self.deadline)
        self._queue: deque[_Step] = deque()
        self._writing = threading.Lock()
        """Held over the writing of a commit, which goes on in its thread where the event loop ends."""
        self._working = False
        self._is_dropped = False
        self._left = threading.Lock()
        """Held from when a session that was dropped is left."""
        self._progress = anyio.Event()
        """Set, and another put in its place, with each commit that was made, and once no more are tried."""
        self._slots = anyio.Semaphore(_SLOTS)
        self._failure: CellblockError | None = None
        self._written = Written()
        self._basis: str | None = None
        """The commit that `_written` is of."""
        self._snapshot: Snapshot | None = None
        self._ahead: Ahead | None = None
        self.source = Source(store, held)
        """Source from which earlier cells of the notebook are read."""
        self._notebook = Notebook()
        self._tip = ""
        """The step that the next one comes after."""
        self._commits: dict[str, str] = {}
        """Commits of steps, by the steps' ids."""
        self._moving: str | None = None
        """The commit that the session stands at, where the store could not be told. The next commit tells it, too."""
        self._unset: dict[str, JSON] = {}
        """Settings that the store could not be told."""
        self.is_closed = False
        """Nothing is taken up any more: whoever still does something is told so."""
        self._cell = ""
        self._cell_logged = True
        """The step of the cell that runs, or of the host, and whether the journal has all of it so far."""
        self._entries: list[int] = []
        self._deleted: list[str] = []
        """Cells that were deleted, which the journal does not say yet: nothing is logged before that."""
        self._deletions: list[int] = []
        """Its entries of deletions that no commit holds. The next one does."""
        self._answers: list[dict[str, JSON]] = []
        self.account = Account()
        """Account on which everything counts that waits to be written."""
        self._answers_share = self.account.share()
        self._snapshot_share = self.account.share()

    @classmethod
    async def open(cls, state: Versioned, user: str, name: str) -> Lasting:
        """Take a session's lease; `SessionBusy` names who has it, `StoreError` says what the store lacks.

        A session that is new has no settings until it has begun.
        """

        def opened() -> Lasting:
            store = open_store(state.url)
            try:
                return cls(state, store, store.hold(user, name))
            except BaseException:
                store.close()
                raise

        return await to_thread.run_sync(opened)

    @property
    def is_lost(self) -> bool:
        """True if another program has taken the session over, as far as this one knows."""
        return not self._held.held

    @property
    def settings(self) -> Mapping[str, JSON]:
        """Settings that the session was last opened with. Where they are damaged it is a private one."""
        try:
            return self._held.settings
        except StoreError as damage:
            _log.warning("%s; it goes on without them", damage.args[0])
            self._held.go_on_with({"private": str(damage.args[0])})
            remedy = "give them as arguments; cells that are run again may draw other random numbers"
            self.lacks_settings = (Lost(name="settings", type="", reason=str(damage.args[0]), remedy=remedy),)
            return self._held.settings

    @property
    def epoch(self) -> int:
        """Number of times the session has been opened, this time included."""
        return self._held.epoch

    @property
    def is_writing(self) -> bool:
        """True while commits are being made, or tried, in the background."""
        return self._working or bool(self._trials)

    @property
    def rereads(self) -> bool:
        """True if what is not read of the store can be read once the session is closed."""
        return self._store.lasts

    async def configure(self, settings: Mapping[str, JSON]) -> None:
        """Change some of what the session is opened with from now on: now, or before the next step."""
        self._unset |= settings
        try:
            await to_thread.run_sync(self._held.configure, settings)
        except SessionClosed:
            if self._unset.keys() & settings.keys():  # else `finish` has told the store, before the session was closed
                raise
        for name in settings:
            self._unset.pop(name, None)

    async def finish(self) -> None:
        """Until the commits of all steps were made or tried. StoreError for what the journal does not have either."""
        await self._try_commits()
        if any(not step.logged for step in self._queue):
            self._raise_failure()
        while self._deleted or self._owes:
            await self._log_deletions()
            await self._settle()

    def _require_open(self) -> None:
        if self.is_closed:
            raise SessionClosed("the session was closed", hint="open a new one")

    async def close(self) -> None:
        """Let others have the session."""
        self.is_closed = True
        self._background.cancel()
        self._let_go(self._queue)
        self._let_go(self._trials)  # of which some were not begun
        await to_thread.run_sync(self._close)

    def drop(self) -> None:
        """Dropped without `close`: let others have the session once what waits for the store is written.

        Takes no lock: a collector calls it anywhere.
        """
        self._is_dropped = True
        if self._held.is_here:
            self._held.leave_soon()
            if not self._working:
                self._leave()

    @finalizer
    def __del__(self) -> None:
        """Leave the session, also where its event loop has ended and the last commits are not written."""
        self._leave()

    def _leave(self) -> None:
        """Let others have the session, of this process at once. The store is told by a thread of its own."""
        if self._held.is_here and self._left.acquire(blocking=False):
            self._held.leave()
            with suppress(RuntimeError):  # the interpreter is about to end, and starts no threads any more
                _thread.start_new_thread(self._close_dropped, ())

    def _close_dropped(self) -> None:
        try:
            self._close()
        except StoreError as error:
            _log.warning("session %r was dropped, and its store could not be told: %s", self._held.name, error)

    def _close(self) -> None:
        try:
            self.end_reading(wait=True)
            self.source.close()
            self._held.release()
        finally:
            self._store.close()

    # ------------------------------------------------------------------------------ journal

    async def begin(self, step: str, draft: Cell) -> None:
        """Log a cell that is about to run. `StoreError`, and it must not, where what it rests on could be lost."""
        await self._durable()
        self._await_answers(step, logged=True)
        entry: dict[str, JSON] = {
            "do": "begin",
            "step": step,
            "id": draft.id,
            "number": draft.number,
            "kind": draft.kind,
            "source": draft.source,
        }
        try:
            await self._log_cell(entry)
        except BaseException:
            entries, self._entries = self._entries, []
            await unbroken(partial(self._withdraw, entries))
            raise

    async def _withdraw(self, entries: Sequence[int]) -> None:
        """Have the journal hold nothing of what was not done, or not logged whole."""
        await to_thread.run_sync(self._held.withdraw, entries)

    def begin_host(self, step: str) -> None:
        """A step of the host's begins: what functions give it is logged with it."""
        self._await_answers(step, logged=False)

    def _await_answers(self, step: str, *, logged: bool) -> None:
        self._cell, self._cell_logged, self._answers = step, logged, []
        self._answers_share.close()
        self._answers_share = self.account.share()

    async def answered(self, call: Asked, reply: ToolReply) -> None:
        """Log what a host function gave a cell, before the cell gets it; of a step of the host's, with that."""
        if not (step := self._cell):  # which changes nothing
            return
        entry = await off_loop(sum(map(len, reply.buffers)), lambda: answered(call, reply).entry(step))
        if self._cell != step:  # the cell has ended meanwhile
            return
        self._answers.append(entry)
        self._answers_share.add(_COPIES * held(entry))
        if self._cell_logged:
            with self._risking():
                await self._log_cell(entry)

    async def ended(self, kernel: Kernel, state: int, cell: Cell, parts: Mapping[str, Blob], *, stopped: bool) -> str:
        """A cell has ended: log that, and have it committed. Why the store did not take it; "" where it did."""
        if self._cell_logged:
            with self._risking():
                await self._log_cell(
                    {
                        "do": "end",
                        "step": self._cell,
                        "number": cell.number,
                        "rolled_back": cell.rolled_back,
                        "stopped": stopped,
                        "ok": cell.ok,
                        "shown": digest_of(cell),
                    }
                )
        logged, step = self._cell_logged, self._cell
        self.commit(kernel, state, step, cell, parts, stopped=stopped, logged=logged)
        return "" if logged else str(self._failure or "it is out of reach")

    async def let_go(self, entries: tuple[int, ...]) -> None:
        """Entries of the journal are needed no more: what they hold is in a commit."""
        await to_thread.run_sync(self._held.trim, entries)

    async def log_host(self, id: str, step: HostStep, during: str = "") -> tuple[int, ...]:
        """Log what the host did, maybe during another step, and what functions gave it; the numbers of the entries."""
        if not during:  # else its beginning has seen to that
            await self._durable()
        numbers: list[int] = []
        try:
            for entry in chain(self._answers if id == self._cell else (), host_entries(id, step, during)):
                await self._append(entry, numbers.append)
        except BaseException:
            await unbroken(partial(self._withdraw, numbers))
            raise
        return (*numbers,)

    def delete_cell(self, cell_id: str) -> None:
        """Delete a cell from the notebook, and log that: at once, or, where that has to wait, before anything else."""
        self._require_open()
        cell_id = self._notebook[cell_id].id
        self._notebook.forget(cell_id)
        self._deleted.append(cell_id)
        with suppress(StoreError):  # whoever takes the next step is told
            if len(self._deleted) == 1 and (number := self._held.append_at_once(_deletion(self._deleted))) is not None:
                self._note_deletions(number, 1)

    def delete_again(self, deletion: HostStep, entries: Iterable[int]) -> None:
        """Delete the cells of a deletion that the journal holds, in these entries."""
        self._notebook.forget(*(bytes(one).decode() for one in deletion.buffers))
        self._deletions += entries

    async def _log_deletions(self) -> None:
        if not self._deleted:
            return
        async with self._logging:
            if count := len(self._deleted):
                self._note_deletions(await self._in_thread(_deletion(self._deleted[:count])), count)

    def _note_deletions(self, entry: int, count: int) -> None:
        self._deletions.append(entry)
        del self._deleted[:count]

    async def log_overwritten(self, id: str) -> int:
        """Log that a step has changed the file that the host changed during it; the number of the entry."""
        return await self._logged({"do": "overwritten", "step": id})

    async def _logged(self, entry: dict[str, JSON]) -> int:
        numbers: list[int] = []
        await self._append(entry, numbers.append)
        return numbers[0]

    @contextmanager
    def _risking(self) -> Iterator[None]:
        """The cell that runs goes on where the journal does not take an entry, and is told to be at risk."""
        try:
            yield
        except LeaseLost:
            raise
        except StoreError as error:
            self._cell_logged, self._failure = False, error

    async def _log_cell(self, entry: dict[str, JSON]) -> None:
        await self._append(entry, lambda number: self._entries.append(number))

    async def _append(self, entry: dict[str, JSON], note: Callable[[int], None]) -> None:
        """Log an entry, after the deletions before it, and note its number, also for a caller who leaves meanwhile."""

        async def appended() -> None:
            await self._log_deletions()
            note(await self._in_thread(entry))

        if self._deleted or _size(entry) >= LARGE or (number := self._held.append_at_once(entry)) is None:
            await unbroken(appended)
        else:
            note(number)

    async def _in_thread(self, entry: dict[str, JSON]) -> int:
        return await to_thread.run_sync(self._held.append, entry, limiter=anyio.CapacityLimiter(1))

    async def _durable(self) -> None:
        """Until all that the session's state rests on is in a commit or in the journal; what keeps it out is raised."""
        if any(not step.logged for step in self._queue):
            await self.committed()
        await self._settle()

    @property
    def _owes(self) -> bool:
        """True if there is something that the store could not be told."""
        return bool(self._unset) or self._moving is not None

    async def _settle(self) -> None:
        """Have the store hold that the session stands where it does, and its settings."""
        if self._unset:
            await self.configure(self._unset.copy())
        if self._moving is not None:
            await self.move(self._moving)

    # ------------------------------------------------------------------------------ commits

    def follow(self, notebook: Notebook) -> None:
        """Commit what changes of a notebook from now on; what it holds is in the store."""
        notebook.note_changes()
        self._notebook = notebook

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Follow what is followed now, and stand where the session stands, unless what is done within succeeds."""
        followed = self._notebook, self._tip, self._lacks, self._lacked
        self._lacks, self._lacked = _Lacks(), {}
        self._place += 1
        try:
            yield
        except BaseException:
            self._notebook, self._tip, self._lacks, self._lacked = followed
            raise

    def commit(
        self, kernel: Kernel, state: int, id: str, cell: Cell, parts: Mapping[str, Blob], *,
        again: Planned | None = None, stopped: bool = False, logged: bool = True,
    ) -> None:  # fmt: skip
        """Have a cell committed, by the id of its step, or as it was planned to be run `again`, unless it is."""
        if self._stands_again(id, again, cell.number):
            return
        first = cell.source.strip().partition("\n")[0]
        own, self._entries = self._entries, []
        step = self._step(id, cell.kind, first, cell.number, kernel, state, logged=logged, entries=own, again=again)
        step.cell, step.parts, step.stopped = cell, parts, stopped
        self._enqueue(step)

    def step(
        self, kernel: Kernel, state: int, id: str, host: HostStep, number: int, *,
        entries: Sequence[int] = (), during: str = "", overwritten: bool = False, again: Planned | None = None,
    ) -> None:  # fmt: skip
        """The host did something to the session: have it committed, unless it is. `committed` tells when it is."""
        if self._stands_again(id, again, number):
            return
        logged = bool(entries or again)
        step = self._step(
            id, host.kind, host.message, number, kernel, state, logged=logged, entries=entries, again=again
        )
        step.host, step.during, step.overwritten = host, during, overwritten
        self._enqueue(step)

    def _stands_again(self, step: str, again: Planned | None, number: int) -> bool:
        """Stand after a step that was taken again, if it is in a commit: one that holds no state."""
        if again is None or again.commit is None:
            return False
        if not (isinstance(again.do, Replay) and again.do.rolled_back):  # else the state is that of before
            self._lacks = self._lacks.without_state(number)
        self._lacked[again.commit] = self._lacks
        self.stands(step, again.commit)
        return True

    async def start(self, kernel: Kernel) -> None:
        """The first commit of a session: nothing is there."""
        step = self._step("open", "open", "", 0, kernel, kernel.states[-1], logged=False)

        def written() -> str:
            with self._held.batch() as batch:
                return self._write(batch, step, Snapshot()).id

        self._commits[step.id] = await to_thread.run_sync(written)
        self._tip = step.id

    def _step(
        self, id: str, kind: str, message: str, number: int, kernel: Kernel | None, state: int, *,
        logged: bool, entries: Sequence[int] = (), again: Planned | None = None, changes: Changes | None = None,
    ) -> _Step:  # fmt: skip
        """The step after the newest, with what the notebook has become by it."""
        deletions, self._deletions = self._deletions, []
        step = _Step(
            id=id,
            parent=self._tip,
            kind=kind,
            message=message[:_MESSAGE],
            number=number,
            kernel=kernel,
            state=state,
            logged=logged,
            entries=[*deletions, *entries, *(() if again is None else again.entries)],
            changes=changes or self._notebook.changes(),
        )
        if again is not None:
            step.answers = [one.entry(id) for one in again.answers]
        elif id == self._cell:
            step.answers, self._answers, self._cell = self._answers, [], ""
            step.share, self._answers_share = self._answers_share, self.account.share()
        return step

    def commit_deletions(self) -> None:
        """Have what was deleted from the notebook since the newest step out of the store, by a commit of its own.

        Not while another caller has the session's turn: it may be going to another commit, and leave this one beside
        the history. Nor while the newest step is to be taken again. Until then the journal has the deletions.
        """
        is_known = self.is_committed or any(step.id == self._tip for step in self._queue)
        if is_known and (changes := self._notebook.deletions()).cells:
            message = f"deleted {len(changes.cells)} cells" if len(changes.cells) > 1 else "deleted a cell"
            self._enqueue(self._step(_new_id(), ASIDE, message, 0, None, 0, logged=False, changes=changes))

    async def committed(self) -> None:
        """Until all steps are in the store. What keeps the oldest out is raised, and what else is at risk told."""
        await self._try_commits()
        self._raise_failure()

    async def _try_commits(self) -> None:
        """Have the commits of all steps made, or tried."""
        self._go_on_here()
        await self._log_deletions()
        if self._queue and not self._working:
            self._go_on()
        while self._working:
            await self._progress.wait()
        if not self._queue:
            await self._settle()

    async def read(self, step: str, state_after: Callable[[str], tuple[Kernel, int] | None]) -> None:
        """The host has read what a step led to: until that is in the store, so that it is the same after any death.

        Where it was committed by its source as steps came fast, the state of the newest step, of which `state_after`
        tells where it is, is saved instead. Where the store does not take it, or not in time, the next cell says so.
        """
        self._go_on_here()
        if self.by_source:  # then it is made again in any case
            return
        await self._until_read(next((one for one in self._queue if one.id == step), None))
        if self._lacks_of(step).can_have_state and (self._queue or self.lacks_state):
            await self._until_read(self._queue[-1] if self._queue else self._amended(state_after(self._tip)))

    async def _until_read(self, step: _Step | None) -> None:
        """Until a step is in the store with its state, where it is not yet."""
        if step is None:
            return
        step.is_read = True
        if not self._working:
            self._go_on()
        with anyio.move_on_after(_READ_SECONDS):
            while self._working and step in self._queue:
                await self._progress.wait()
        if self._working and step in self._queue:
            self._to_tell += (at_risk(str(step), f"it was not done within {_READ_SECONDS:.0f} s"),)

    def _amended(self, state: tuple[Kernel, int] | None) -> _Step | None:
        """Have the commit where the session stands made once more, with that state of a kernel."""
        if state is None:
            return None
        step = _Step(
            id=_new_id(),
            parent=self._tip,
            kind=ASIDE,
            message="the state where the session stands",
            number=0,
            kernel=state[0],
            state=state[1],
            logged=True,
            is_read=True,
            amends=self.head,
            place=self._place,
        )
        self._enqueue(step)
        return step

    def _raise_failure(self) -> None:
        if (failure := self._failure) is not None and self._queue:
            raise type(failure)(f"{failure.args[0]}; not in the store yet: {self._waiting()}", hint=failure.hint)

    def _waiting(self) -> str:
        """The steps that are not in the store yet."""
        more = f" and {len(self._queue) - _MOST_TOLD} more" if len(self._queue) > _MOST_TOLD else ""
        return ", ".join(map(str, islice(self._queue, _MOST_TOLD))) + more

    @property
    def unsaved(self) -> tuple[Lost, ...]:
        """Losses: parts of the state that the newest commit could not save, or saved in a way that cannot be loaded,
        and the session has."""
        return (*self._lacks.lost(), *self._at_risk())

    @property
    def lacks_states(self) -> bool:
        """True if the newest commits hold no state, and should."""
        return self._lacks.since is not None and not self.by_source

    @property
    def lacks_state(self) -> bool:
        """True if the commit where the session stands holds no state, as steps came fast, and one can be saved."""
        return not self.by_source and self._lacks_of(self._tip).can_have_state

    def _lacks_of(self, step: str) -> _Lacks:
        """The lacks of the commit of a step; of one that is not in the store yet there are none."""
        return self._lacked.get(self._commits.get(step, ""), _Lacks())

    def newly_lost(self) -> tuple[Lost, ...]:
        """Names that could not be saved by the newest commit, and that were not among the lost of the one before."""
        return self._newly_lost

    def at_once(self, unsaved: Mapping[str, str]) -> tuple[Lost, ...]:
        """Losses to tell in the cell that has just ended: names that it bound to what cannot be saved, by the types
        that tell why, and what commits have found out meanwhile.
        """
        if self.by_source or self.strict:
            return ()
        found = tuple(
            Lost(name=name, type=kind.removeprefix("builtins."), reason=told[0], remedy=told[1], alive=True)
            for name, kind in unsaved.items()
            if (told := REMEDIES.get(kind)) is not None
        )
        self._told.update(one.name for one in found)
        return found + self._found_out()

    def to_tell(self) -> tuple[Lost, ...]:
        """Losses that nobody was told of yet: what commits could not save, and what the store has not taken, unless
        that is being tried again.
        """
        return (*self._found_out(), *(() if self._working else self._at_risk()))

    def _at_risk(self) -> tuple[Lost, ...]:
        """The steps that the store has refused, as one loss."""
        if self._failure is None or not self._queue:
            return ()
        return (at_risk(self._waiting(), str(self._failure)),)

    def _found_out(self) -> tuple[Lost, ...]:
        told, self._to_tell = self._to_tell, ()
        return told

    async def flush(self) -> None:
        """Durable against a loss of power what is in the store, and what is new has been loaded once."""
        await self.tried()
        await to_thread.run_sync(self._held.flush)

    async def saved(self) -> None:
        """The same as `committed`, and with the newest state: `CaptureFailed` where that could not be saved."""
        await self.committed()
        if (failure := self._lacks.failure) is not None:
            what = f"nothing since cell {self._lacks.since} could be saved"
            raise CaptureFailed(f"{what}: {failure.args[0]}", hint=failure.hint)

    def _enqueue(self, step: _Step) -> None:
        self._require_open()
        self._go_on_here()
        self._newly_lost = ()  # of this step they will be
        if not step.stands_in:
            self._tip = step.id
        self._queue.append(step)
        self._background.start(self._fork, step)
        if not self._working:
            self._go_on()

    def _go_on(self) -> None:
        self._require_open()
        self._working, self._progress = True, anyio.Event()
        self._background.start(self._work)

    def _go_on_here(self) -> None:
        """Begin again, on the event loop that runs, what another that ended has left in the middle."""
        if not self._background.has_lost:
            return
        self._progress, self._tried = anyio.Event(), anyio.Event()
        for step in (*self._queue, *self._trials):
            step.forked = anyio.Event()  # who waits for the other one never goes on
        self._background.end_lost()
        for step in (*self._queue, *self._trials):
            step.forked.set()
            step.has_slot = False
        self._let_go((*self._queue, *self._trials))
        self._trials.clear()
        self._slots, self._working = anyio.Semaphore(_SLOTS), False
        for step in self._queue:
            step.forked, step.was_let_go = anyio.Event(), False
            self._background.start(self._fork, step)
        if self._queue:
            self._go_on()

    async def _fork(self, step: _Step, seconds: float = _SLOT_SECONDS) -> None:
        if step.kernel is None:
            step.forked.set()
            return
        if self.by_source:
            step.unsaved = "a session under a policy, or without checkpoints, is made again by running its cells"
            step.forked.set()
            return
        try:
            await self._capture(step, step.kernel, seconds)
        finally:
            step.forked.set()
            if not self._working:  # a step before this one has failed
                self._let_go([step])

    async def _capture(self, step: _Step, kernel: Kernel, seconds: float = _SLOT_SECONDS) -> None:
        """Have a step's state held to be saved, or held anew."""
        if step.capture is not None:
            step.capture.close()
        step.capture = step.failure = None
        try:
            if not step.has_slot:
                if not self._slots.value:
                    self._end_a_trial()
                with anyio.move_on_after(seconds):
                    await self._slots.acquire()
                    step.has_slot = True
            if step.has_slot:
                step.capture = await kernel.capture(step.state)
        except SessionClosed as error:  # it is committed by its source
            step.unsaved = str(error)
        except CellblockError as error:  # such as CaptureFailed
            step.unsaved = str(error)
            # before the first cell that ends well there is nothing to save; after a kill it is made again
            is_newest = step.state == kernel.states[-1]  # older states may have been let go
            if step.cell is not None and not step.cell.rolled_back and is_newest and not await kernel.ending():
                step.failure = error

    async def forked(self) -> None:
        """Until the state of the newest step is held, so that the next one may change it."""
        self._go_on_here()
        if self._queue:
            await self._queue[-1].forked.wait()

    async def _work(self) -> None:
        """Make the commits, in order. A border: whatever keeps one from being made is told to those who ask."""
        try:
            while self._queue:
                step = self._queue[0]
                await step.forked.wait()
                if step.was_let_go or (not step.has_slot and (step.is_read or step is self._queue[-1])):
                    await self._fork(step, _NEWEST_SECONDS)  # it is saved even where steps come fast
                try:
                    await self._commit(step)
                except Exception as error:  # it is tried again once, then by whoever asks, and before the next
                    again = not step.failed
                    self._failure = error if isinstance(error, CellblockError) else StoreError(repr(error)[:_MESSAGE])
                    step.failed = True
                    if not again:
                        return
                else:
                    self._failure = None
                    done = self._queue.popleft()
                    self._let_go([done])
                    if done.share is not None:
                        done.share.close()
                    self._progressed()
        finally:
            self._let_go(self._queue)
            self._working = False
            self._progressed()
            if self._is_dropped:
                self._leave()

    def _progressed(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()

    def _end_a_trial(self) -> None:
        """Have the oldest trial come to its end: it gives its slot back once nobody reads its state any more."""
        if (trial := next((one for one in self._trials if not one.was_let_go), None)) is not None:
            trial.was_let_go = True
            if trial.capture is not None:
                trial.capture.close()

    def _let_go(self, steps: Iterable[_Step]) -> None:
        """Hold the states of some steps no more, which nobody reads."""
        for step in steps:
            if step.forked.is_set():
                if step.capture is not None:
                    step.capture.close()
                if step.has_slot:
                    self._slots.release()
                if step.read_share is not None:
                    step.read_share.close()
                step.capture, step.read_share, step.has_slot, step.was_let_go = None, None, False, True

    async def _commit(self, step: _Step) -> None:
        if step.tried and await to_thread.run_sync(self._is_written, step):
            return
        batch = await to_thread.run_sync(self._held.batch)
        with batch:
            if step.failed and step.capture is not None and step.kernel is not None:  # a capture is read once
                await self._capture(step, step.kernel)
            step.suspects, before = Suspects(self._known_suspects), self._snapshot
            snapshot = await self._read(step, before, batch.put)
            while step.kernel is not None and step.suspects.tries_again():
                await self._capture(step, step.kernel)
                snapshot = await self._read(step, before, batch.put)
            step.tried = True
            before_it = self._lacks
            if not await to_thread.run_sync(self._write_once, batch, step, snapshot):
                return
        if snapshot is not None:
            step.suspects.settle()
            await self._note_saved(step, snapshot, before)
        elif self._lacks.failure is not None and before_it.failure is None:
            self._to_tell += self._lacks.everything()

    def _is_written(self, step: _Step) -> bool:
        """True if a step's commit is there: of a thread whose caller has gone, or of a store that failed to say so."""
        with self._writing:
            if step.commit is None and step_of(head := self._held.resolve("HEAD")) == step.id:
                self._led_to(step, head)
            return step.commit is not None

    def _write_once(self, batch: Batch, step: _Step, snapshot: Snapshot | None) -> bool:
        """Write a step's commit; False where a thread whose caller has gone has done so meanwhile, or where the session
        has left the commit that is to be amended.
        """
        with self._writing:
            if step.commit is not None:
                return False
            if step.amends is not None and step.place != self._place:
                return False
            if step.amends is not None and snapshot is None:
                self._lacks = self._lacked[step.amends] = replace(self._lacks, failure=step.failure)
                return True
            self._led_to(step, self._write(batch, step, snapshot))
            self._moving = None
            return True

    def _led_to(self, step: _Step, commit: Commit) -> None:
        """Note the commit of a step, and what it lacks. One that stands in for another commit takes its place."""
        before = self._commits.get(step.parent)
        taken = [one for one, led in [*self._commits.items()] if led == before] if step.stands_in else [step.id]
        self._commits.update(dict.fromkeys(taken, commit.id))
        step.commit = commit.id
        if commit.snapshot:
            self._lacks = replace(self._lacks, since=None, failure=None)
        elif not step.is_same:
            self._lacks = self._lacks.without_state(step.number, step.failure)
        self._lacked[commit.id] = self._lacks

    async def _note_saved(self, step: _Step, snapshot: Snapshot, before: Snapshot | None) -> None:
        """Find out what a snapshot lacks that the one `before` it had, and have what is new in it loaded once."""
        async with self._noting:
            found = await to_thread.run_sync(_compared, snapshot, self._lacks)
            held, newly = found.held, found.newly
            self._lacked[str(step.commit)] = found.lacks
            if step.amends is None or step.place == self._place:  # else the session has left it meanwhile
                self._lacks, self._is_back = found.lacks, False
            self._stand_on(snapshot, step.read_share)
            step.read_share = None
        self._newly_lost = tuple(one for one in newly if not one.type.startswith(PART))
        self._tell(newly)
        self._told.update(one.name for one in found.lacks.missing)
        if step.capture is not None:
            trial = replace(step, was_let_go=False)
            step.capture, step.has_slot = None, False
            self._trials.append(trial)
            self._background.start(self._try, trial, before, held)

    def _stand_on(self, snapshot: Snapshot | None, share: Share | None) -> None:
        """A snapshot, which has a share of the account, is the newest one."""
        self._snapshot_share.close()
        self._snapshot, self._snapshot_share = snapshot, share or self.account.share()

    def _tell(self, lost: Sequence[Lost]) -> None:
        if not self.strict:
            self._to_tell += tuple(one for one in lost if one.name not in self._told)

    async def _try(self, trial: _Step, before: Snapshot | None, held: Mapping[str, Row]) -> None:
        """Find out which names of a snapshot cannot be loaded."""
        try:
            read: Snapshot | None = self._snapshot
            while (capture := trial.capture) is not None:
                if read is not None and not trial.was_let_go:
                    await self._note_unloadable(trial, await capture.trial(), held)
                if trial.was_let_go or trial.kernel is None or not trial.suspects.tries_again():
                    break
                await self._capture(trial, trial.kernel)
                read = await self._read(trial, before, _drop)
        finally:
            self._known_suspects.update(trial.suspects.confirmed)
            self._let_go([trial])
            self._trials.remove(trial)
            self._tried.set()
            self._tried = anyio.Event()

    async def _note_unloadable(self, trial: _Step, lost: Sequence[Lost], held: Mapping[str, Row]) -> None:
        """Take up which names of a commit cannot be loaded, and of where the session stands if they are those still."""
        if not lost:
            return
        lost = [replace(one, alive=True) for one in lost]
        async with self._noting:
            its, now = self._lacked.get(str(trial.commit), _Lacks()), self._lacks
            snapshot = None if self._is_back else self._snapshot
            failed = lost if its is now else await to_thread.run_sync(_still_failed, lost, held, snapshot)
            fresh = tuple(one for one in failed if one.name not in now.unloadable)
            for lacks, names in ((now, fresh), (its, lost)):
                lacks.unloadable.update((one.name, (held[one.name], one)) for one in names)
        self._newly_lost += fresh
        self._tell(fresh)

    async def tried(self) -> None:
        """Until what the newest commits wrote has been loaded once."""
        self._go_on_here()
        while self._trials:
            await self._tried.wait()

    async def _read(self, step: _Step, before: Snapshot | None, put: Callable[[bytes], object]) -> Snapshot | None:
        if (capture := step.capture) is None:
            return None
        if step.read_share is not None:
            step.read_share.close()
        step.read_share = share = self.account.share()

        def take(size: int) -> None:
            if not share.take(size):
                raise too_large(self.account.limit)

        try:
            await capture.begin(before, step.suspects)
            return await capture.read(put, take)
        except CaptureFailed as error:
            step.unsaved, step.failure = str(error), error
            return None

    def _write(self, batch: Batch, step: _Step, snapshot: Snapshot | None) -> Commit:
        parent = self._commit_of(step.parent) if step.parent else None
        if self._basis != parent:
            self._written = Written() if parent is None else read_written(self._held, self._held.resolve(parent))
            self._basis = parent
        written = self._written.copy()
        detail: dict[str, JSON] = {} if snapshot is None else put_snapshot(batch, written, snapshot)
        if step.amends is None:
            commit = self._write_step(batch, step, parent, written, detail, has_state=snapshot is not None)
        else:
            old = self._held.resolve(step.amends)
            commit = batch.commit(
                kind=old.kind,
                message=old.message,
                number=old.number,
                trees=written.roots,
                detail={**{what: told for what, told in old.detail.items() if what not in _WITHOUT_STATE}, **detail},
                parents=old.parents,
            )
        self._written, self._basis = written, commit.id
        return commit

    def _write_step(
        self, batch: Batch, step: _Step, parent: str | None, written: Written, detail: dict[str, JSON], *,
        has_state: bool,
    ) -> Commit:  # fmt: skip
        if step.kernel is None and parent is not None:
            before = self._held.resolve(parent)
            has_state, step.number, detail = before.snapshot, before.number, of_state(before)
            step.host = None if has_state else HostStep("run", buffers=(b"",))
        detail["step"] = step.id
        links = put_cells(batch, self._held, written.roots, step.changes)
        if step.changes.deleted:
            detail["deleted"] = sorted(step.changes.deleted)
        if step.cell is not None:
            detail["cell"] = links.get(step.cell.id) or records(put_cell(batch, step.cell, step.parts))
            detail["rolled_back"] = step.cell.rolled_back
        if step.during:
            detail["during"] = step.during
        if step.answers:
            detail["answers"] = records(batch.record(step.answers))
        if not has_state:
            detail["unsaved"], detail["stopped"], detail["overwritten"] = step.unsaved, step.stopped, step.overwritten
            if step.host is not None:
                detail["host"] = _kept(batch, step.host)
        return batch.commit(
            kind=step.kind,
            message=step.message,
            number=step.number,
            snapshot=has_state,
            trees=written.roots,
            detail=detail,
            parents=() if parent is None else (parent,),
            entries=step.entries,
        )

    # ----------------------------------------------------------------------------- resuming

    async def newest(self) -> Past | None:
        """The past of where the session is, the journal included; None where it has not begun.

        What the journal holds whole is taken from there, and waits to be committed no more.
        """
        await self.finish()
        for step in self._queue:
            if step.share is not None:
                step.share.close()
        self._queue.clear()
        self._lacks, self._lacked = _Lacks(), {}

        def found() -> Commit | None:
            return None if self._held.head().commit is None else self._held.resolve("HEAD")

        head = await to_thread.run_sync(found)
        return None if head is None else await self.past(head, journal=True)

    async def resolve(self, revision: str) -> Commit:
        """The commit that a revision means."""
        return await to_thread.run_sync(self._held.resolve, revision)

    async def before(self, steps: int) -> Commit:
        """The commit that so many steps lead back to."""
        return await to_thread.run_sync(before, self._held, steps)

    async def led_to(self, step: str) -> Commit:
        """The commit that a step led to; CellblockError where it did not lead to where the session stands."""
        return await to_thread.run_sync(led_to, self._held, self.head, step, self._commits.get(step))

    async def deleted_since(self, commit: str) -> set[str]:
        """The cells that were deleted since a commit which leads to where the session stands."""
        return await to_thread.run_sync(deleted_since, self._held, self.head, commit)

    async def log(self, revision: str, limit: int) -> list[Commit]:
        """The commits that lead to a revision, newest first."""
        return await to_thread.run_sync(lambda: list(islice(self._held.log(revision), limit)))

    async def diff(self, before: str, after: str) -> Diff:
        """Difference between two revisions."""

        def found() -> Diff:
            return difference(self._held, self._held.resolve(before), self._held.resolve(after))

        return await to_thread.run_sync(found)

    async def tag(self, name: str, revision: str) -> None:
        """Name a commit."""
        await to_thread.run_sync(lambda: self._held.tag(name, at=revision))

    async def found(self, other: str) -> Commit:
        """The commit at which another session of the user stands, or else the commit that a revision means."""
        return await to_thread.run_sync(find, self._store, self._held, other)

    async def adopted(self, other: Lasting, commit: str) -> Commit:
        """A commit of another session, which this one can read from now on."""
        return await to_thread.run_sync(adopted, self._held, other._held, commit)

    def beside(self, name: str) -> Turns | None:
        """The user's session of that name, where this program has it open on the event loop that runs here."""
        other = _open.get(self._place_of(name))
        session = None if other in (None, self) or other.user is None else other.user()
        is_usable = session is not None and session._is_here and session._is_of_running_loop and not session._closed
        return session if is_usable else None

    def _place_of(self, name: str) -> tuple[str | None, str, str, str]:
        return self._state.url, self._store.identity, self._held.user, name  # a copied store is of the same identity

    async def why_private(self, other: str) -> str:
        """Why the user's session of that name holds private data; "" where it does not, or there is none."""
        return await to_thread.run_sync(why_private, self._store, self._held.user, other)

    @property
    def tip(self) -> str:
        """The newest step."""
        return self._tip

    @property
    def head(self) -> str:
        """The commit where the session stands."""
        return self._commit_of(self._tip)

    @property
    def is_committed(self) -> bool:
        """True if the newest step is in the store."""
        return self._tip in self._commits

    def _commit_of(self, step: str) -> str:
        """The commit that a step led to; StoreError where it is not in the store, as one that is to be taken again."""
        if (commit := self._commits.get(step)) is None:
            what = f"what session {self._held.name!r} did last is not in its store"
            raise StoreError(what, hint="use the session, then try again")
        return commit

    async def merge(self, id: str, theirs: Commit, prefer: Literal["ours", "theirs"] | None) -> Commit:
        """Make a commit of where the session stands and another: a step of this id."""

        def merged() -> Commit:
            if seeds := self.sown(self._tip):  # nothing was drawn since
                sown: JSON = [*self._sown, {"step": id, "seed": str(seeds[-1])}]
                self._held.configure({"sown": sown})
            return merge(self._held, self._held.resolve(self.head), theirs, prefer, id)

        return await to_thread.run_sync(merged)

    def sown(self, step: str | None = None) -> list[int]:
        """The seeds that branches sowed where they began, after a step: this one, and those that it is a branch of."""
        with reading("the settings of the session are", StoreError):
            return [int(one["seed"]) for one in self._sown if step in (None, one["step"])]

    @property
    def _sown(self) -> Any:
        return self._held.settings.get("sown", [])

    async def fork(self, name: str, seed: int, own: int, step: str, account: Account) -> Lasting:
        """Another session that stands where this one did after a step, with an account of its own.

        `seed` is what its processes are begun with, `own` what it sows after that step.
        """
        commit = self._commit_of(step)

        def forked() -> Lasting:
            store = open_store(self._state.url)
            try:
                sown: JSON = [*self._sown, {"step": step, "seed": str(own)}]
                settings = {**self._held.settings, "seed": str(seed), "sown": sown}
                held = store.branch(self._held, name, commit, settings)
                other = Lasting(self._state, store, held)
                other.by_source, other.strict, other.otherwise = self.by_source, self.strict, self.otherwise
            except BaseException:
                store.close()
                raise
            other.account, other._tip = account, step
            other._stand_on(self._snapshot, account.share(self._snapshot_share.size))
            other._commits = {step: commit}
            other._lacks = other._lacked[commit] = _Lacks(since=self._lacks_of(step).since)
            return other

        return await to_thread.run_sync(forked)

    async def delete(self, name: str) -> None:
        """Delete another session of the user's."""
        await to_thread.run_sync(self._store.delete, self._held.user, name)

    def stands(self, step: str, commit: str) -> None:
        """The session stands after a step, which led to a commit."""
        self._tip = step
        self._commits[step] = commit

    async def went_back(self, step: str, deleted: Iterable[str]) -> None:
        """The kernel is again in the state after a step: so is the session, but for the cells `deleted_after` that."""
        commit, self._tip = self._commit_of(step), step
        self._place += 1
        left, self._lacks = self._lacks, self._lacked.get(commit, _Lacks())
        gone = {one.name for one in left.lost()} - {one.name for one in self._lacks.lost()}
        self._to_tell = tuple(one for one in self._to_tell if one.name not in gone)
        self._is_back = True
        await self.move(commit, [*deleted])

    async def deleted_after(self, step: str) -> set[str]:
        """The cells that were deleted since a step which led to where the session stands."""
        return await self.deleted_since(self._commit_of(step))

    async def move(self, commit: str, deleted: Sequence[str] = ()) -> None:
        """Go on from another commit; those that are left stay in the store. Cells that were deleted stay so."""
        self._moving = commit
        self._notebook.forget(*deleted)
        self._deleted += deleted
        await self._log_deletions()

        def moved() -> None:
            with self._writing:  # a commit that is amended comes before, or not at all
                self._held.move(commit)

        await to_thread.run_sync(moved)
        self._moving = None

    async def stay(self) -> None:
        """Have the store hold that the session stands where it does, now or before the next step."""
        with suppress(StoreError):
            await self.move(self.head)

    async def past(self, head: Commit, *, journal: bool) -> Past:
        """Steps that lead to a commit, and with `journal` to what was logged after it.

        The bytes of its state are read from here on, until `end_reading`.
        """

        def read() -> tuple[Past, Ahead | None, int]:
            with reading("the steps of the session are", StoreError, hint="check out an older commit"):
                past = leading_to(self._held, head)
                if journal:
                    entries, past.damaged = self._held.readable()
                    self._held.trim(followed_by(past, self._held, entries))
            if past.snapshot is None:
                return past, None, 0
            return past, Ahead(self._get, past.snapshot), past.snapshot.held()

        past, ahead, size = await to_thread.run_sync(read)
        self.end_reading()
        self._stand_on(past.snapshot, self.account.share(size))
        if ahead is not None:
            self._ahead = ahead
            ahead.begin()
        return past

    def earlier(self, past: Past) -> Earlier:
        """The cells that the notebook of what leads to a commit begins with."""
        return Earlier(self.source, past.trees)

    async def fetch(self, addresses: Sequence[str]) -> Sequence[bytes]:
        """Bytes of the state that `past` told of."""
        return await (to_thread.run_sync(self._get, addresses) if self._ahead is None else self._ahead.fetch(addresses))

    def end_reading(self, *, wait: bool = False) -> None:
        """Nothing more will be fetched."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close(wait=wait)

    def _get(self, addresses: Sequence[str]) -> list[bytes]:
        return list(self._held.get_many(addresses))


_open: weakref.WeakValueDictionary[tuple[str | None, str, str, str], Lasting] = weakref.WeakValueDictionary()
"""The sessions that this program has open, by their stores, users and names."""


def _is_left(find: weakref.ref[Lasting]) -> bool:
    """True if nobody is left who could release a session, as its event loop was closed, whatever holds it still."""
    if (lasting := find()) is None:
        return True
    if lasting.user is None:  # about to be given one
        return False
    session = lasting.user()
    return lasting._background.is_left if session is None else session._is_left


@dataclass(frozen=True, slots=True)
class _Lacks:
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

    def without_state(self, number: int, failure: CellblockError | None = None) -> _Lacks:
        """The lacks of the step after, of this number, whose state is not in the store."""
        return replace(self, since=number if self.since is None else self.since, failure=failure)

    def lost(self) -> tuple[Lost, ...]:
        return (*self.missing, *(one for _, one in self.unloadable.values()), *self.everything())

    def everything(self) -> tuple[Lost, ...]:
        """The loss that threatens where states cannot be saved."""
        if self.failure is None:
            return ()
        why, what = str(self.failure.args[0]), f"everything since cell {self.since}"
        remedy = f"these cells are run again when the session is opened, since {why}"
        return (Lost(name=what, type="", reason=why, remedy=remedy, alive=True),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """A snapshot beside the one before: groups by names, what it lacks, and what of that is new."""

    held: Mapping[str, Row]
    lacks: _Lacks
    newly: tuple[Lost, ...]


def _compared(snapshot: Snapshot, before: _Lacks) -> _Compared:
    held = snapshot.groups_of_names()
    missing = tuple(replace(one, alive=True) for one in snapshot.lost if one.name not in held)
    known = {one.name for one in before.lost()}
    unloadable = {name: one for name, one in before.unloadable.items() if held.get(name) == one[0]}
    newly = tuple(one for one in missing if one.name not in known)
    return _Compared(held=held, lacks=_Lacks(missing, unloadable), newly=newly)


def _still_failed(lost: Sequence[Lost], held: Mapping[str, Row], snapshot: Snapshot | None) -> Sequence[Lost]:
    """Of names that could not be loaded, those of which a snapshot holds the same."""
    now = {} if snapshot is None else snapshot.groups_of_names()
    return [one for one in lost if one.name in now and now[one.name] == held.get(one.name)]


def _drop(_data: bytes) -> None:
    """Take bytes that the store has."""


def _deletion(cell_ids: Iterable[str]) -> dict[str, JSON]:
    """Cells that were deleted, for the journal."""
    step = HostStep(FORGET, buffers=tuple(one.encode() for one in cell_ids))
    return host_entry(_new_id(), step)


def _new_id() -> str:
    """An id for a step that deletes cells."""
    return f"{DELETES}{unique_word()}"


def _size(entry: Mapping[str, JSON]) -> int:
    """Characters of the bytes in an entry."""
    parts: Any = entry.get("buffers", ())
    return sum(map(len, parts))


def _kept(batch: Batch, step: HostStep) -> JSON:
    return {"do": step.do, "name": step.name, "buffers": blobs(*(batch.put(memoryview(one)) for one in step.buffers))}
