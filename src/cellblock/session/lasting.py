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
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Literal

import anyio

from cellblock.cell import Cell, Lost
from cellblock.differences import Diff
from cellblock.documents import reading
from cellblock.errors import CaptureFailed, CellblockError, SessionClosed, StoreError
from cellblock.executors.protocol import Kernel, too_large
from cellblock.executors.suspects import Known, Suspects
from cellblock.hosting import to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.patience import LOCK_SECONDS, Deadline
from cellblock.session.account import Account, Share
from cellblock.session.ahead import Ahead
from cellblock.session.background import Background
from cellblock.session.earlier import Earlier, Source
from cellblock.session.hoststeps import ASIDE, HostStep
from cellblock.session.journal import Journal, deletion_id
from cellblock.session.lacks import Lacks, Losses
from cellblock.session.merging import merge
from cellblock.session.notebook import Changes, Notebook
from cellblock.session.past import (
    Past,
    Planned,
    Replay,
    followed_by,
    leading_to,
    step_of,
)
from cellblock.session.record import at_risk
from cellblock.session.shown import Blob
from cellblock.session.standing import Standing
from cellblock.session.steps import Step
from cellblock.session.timeline import adopted, before, deleted_since, difference, find, led_to, why_private
from cellblock.session.tools import Asked
from cellblock.session.writing import CommitWriter
from cellblock.snapshots import Row, Snapshot
from cellblock.state import Versioned
from cellblock.store import JSON, Batch, Commit, HeldSession, Store, open_store
from cellblock.wire.messages import ToolReply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.turns import Turns

_log = logging.getLogger("cellblock.store")

_MESSAGE = 200
_MOST_TOLD = 5
_SLOTS, _SLOT_SECONDS = 3, 0.25
"""States that are held to be saved at a time, and how long the next step waits for that: then it goes on, and the one
before it is committed by its source alone."""
_READ_SECONDS = LOCK_SECONDS
"""Seconds that a caller who has read something waits for the commit of what it read from."""
_NEWEST_SECONDS = 10.0
"""Seconds that the newest step waits for its state when its commit is made. No step waits for it meanwhile."""


class Lasting:
    """One session's place in a store, held by this program until `close`."""

    def __init__(self, state: Versioned, store: Store, held: HeldSession, account: Account) -> None:
        self._state = state
        self._store = store
        self._held = held
        self.user: Callable[[], Turns | None] | None = None
        """The session that goes on with this, while there is one."""
        held.watch(partial(_is_left, weakref.ref(self)))
        _open[self._place_of(held.name)] = self
        self.by_source = False
        """True if no state is to be saved."""
        self.otherwise = "open the session without strict=True"
        """Remedy for its opener to keep others."""
        self.lacks_settings: tuple[Lost, ...] = ()
        """The loss of its settings, where they are damaged in the store."""
        self._losses = Losses()
        self._trials: list[Step] = []
        """Steps whose commits are made, and of which what is new is being loaded once."""
        self._known_suspects: Known = {}
        self._tried = anyio.Event()
        self.deadline = Deadline()
        """By it all that is begun here is over, once the session is being closed."""
        self._background = Background(self.deadline)
        self._queue: deque[Step] = deque()
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
        self._writer = CommitWriter(held)
        self._snapshot: Snapshot | None = None
        self._ahead: Ahead | None = None
        self.source = Source(store, held)
        """Source from which earlier cells of the notebook are read."""
        self._notebook = Notebook()
        self._standing = Standing(held.name)
        self._moving: str | None = None
        """The commit that the session stands at, where the store could not be told. The next commit tells it, too."""
        self._unset: dict[str, JSON] = {}
        """Settings that the store could not be told."""
        self.is_closed = False
        """Nothing is taken up any more: whoever still does something is told so."""
        self.account = account
        """Account on which everything counts that waits to be written."""
        self._journal = Journal(held, account)
        self._snapshot_share = account.share()

    @classmethod
    async def open(cls, state: Versioned, user: str, name: str, account: Account) -> Lasting:
        """Take a session's lease; `SessionBusy` names who has it, `StoreError` says what the store lacks.

        A session that is new has no settings until it has begun.
        """

        def opened() -> Lasting:
            store = open_store(state.url)
            try:
                return cls(state, store, store.hold(user, name), account)
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
        while self._journal.has_unlogged or self._owes:
            await self._journal.log_deletions()
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
        await self._journal.begin(step, draft)

    def begin_host(self, step: str) -> None:
        """A step of the host's begins: what functions give it is logged with it."""
        self._journal.begin_host(step)

    async def answered(self, call: Asked, reply: ToolReply) -> None:
        """Log what a host function gave a cell, before the cell gets it; of a step of the host's, with that."""
        self._failure = await self._journal.answered(call, reply) or self._failure

    async def ended(self, kernel: Kernel, state: int, cell: Cell, parts: Mapping[str, Blob], *, stopped: bool) -> str:
        """A cell has ended: log that, and have it committed. Why the store did not take it; "" where it did."""
        self._failure = await self._journal.ended(cell, stopped=stopped) or self._failure
        logged = self._journal.is_whole
        self.commit(kernel, state, self._journal.step, cell, parts, stopped=stopped, logged=logged)
        return "" if logged else str(self._failure or "it is out of reach")

    async def let_go(self, entries: tuple[int, ...]) -> None:
        """Entries of the journal are needed no more: what they hold is in a commit."""
        await self._journal.trim(entries)

    async def log_host(self, id: str, step: HostStep, during: str = "") -> tuple[int, ...]:
        """Log what the host did, maybe during another step, and what functions gave it; the numbers of the entries."""
        if not during:  # else its beginning has seen to that
            await self._durable()
        return await self._journal.log_host(id, step, during)

    def delete_cell(self, cell_id: str) -> None:
        """Delete a cell from the notebook, and log that: at once, or, where that has to wait, before anything else."""
        self._require_open()
        cell_id = self._notebook[cell_id].id
        self._notebook.forget(cell_id)
        self._journal.delete_at_once(cell_id)

    def delete_again(self, deletion: HostStep, entries: Iterable[int]) -> None:
        """Delete the cells of a deletion that the journal holds, in these entries."""
        self._notebook.forget(*(bytes(one).decode() for one in deletion.buffers))
        self._journal.deleted_again(entries)

    async def log_overwritten(self, id: str) -> int:
        """Log that a step has changed the file that the host changed during it; the number of the entry."""
        return await self._journal.log_overwritten(id)

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
        followed = self._notebook, self._standing.tip
        self._standing.place += 1
        try:
            with self._losses.as_they_were():
                yield
        except BaseException:
            self._notebook, self._standing.tip = followed
            raise

    def commit(
        self, kernel: Kernel, state: int, id: str, cell: Cell, parts: Mapping[str, Blob], *,
        again: Planned | None = None, stopped: bool = False, logged: bool = True,
    ) -> None:  # fmt: skip
        """Have a cell committed, by the id of its step, or as it was planned to be run `again`, unless it is."""
        if self._stands_again(id, again, cell.number):
            return
        first = cell.source.strip().partition("\n")[0]
        own = self._journal.take_entries()
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
        now = self._losses.now
        is_same = isinstance(again.do, Replay) and again.do.rolled_back  # the state is that of before
        self._losses.note(again.commit, now if is_same else now.without_state(number))
        self._standing.go(step, again.commit)
        return True

    async def start(self, kernel: Kernel) -> None:
        """The first commit of a session: nothing is there."""
        step = self._step("open", "open", "", 0, kernel, kernel.states[-1], logged=False)

        def written() -> str:
            with self._held.batch() as batch:
                return self._writer.write(batch, step, None, Snapshot()).id

        self._standing.go(step.id, await to_thread.run_sync(written))

    def _step(
        self, id: str, kind: str, message: str, number: int, kernel: Kernel | None, state: int, *,
        logged: bool, entries: Sequence[int] = (), again: Planned | None = None, changes: Changes | None = None,
    ) -> Step:  # fmt: skip
        """The step after the newest, with what the notebook has become by it."""
        deletions = self._journal.take_deletions()
        step = Step(
            id=id,
            parent=self._standing.tip,
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
        else:
            step.answers, step.share = self._journal.take_answers(id)
        return step

    def commit_deletions(self) -> None:
        """Have what was deleted from the notebook since the newest step out of the store, by a commit of its own.

        Not while another caller has the session's turn: it may be going to another commit, and leave this one beside
        the history. Nor while the newest step is to be taken again. Until then the journal has the deletions.
        """
        is_known = self.is_committed or any(step.id == self._standing.tip for step in self._queue)
        if is_known and (changes := self._notebook.deletions()).cells:
            message = f"deleted {len(changes.cells)} cells" if len(changes.cells) > 1 else "deleted a cell"
            self._enqueue(self._step(deletion_id(), ASIDE, message, 0, None, 0, logged=False, changes=changes))

    async def committed(self) -> None:
        """Until all steps are in the store. What keeps the oldest out is raised, and what else is at risk told."""
        await self._try_commits()
        self._raise_failure()

    async def _try_commits(self) -> None:
        """Have the commits of all steps made, or tried."""
        self._go_on_here()
        await self._journal.log_deletions()
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
            await self._until_read(self._queue[-1] if self._queue else self._amended(state_after(self._standing.tip)))

    async def _until_read(self, step: Step | None) -> None:
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
            self._losses.tell(at_risk(str(step), f"it was not done within {_READ_SECONDS:.0f} s"))

    def _amended(self, state: tuple[Kernel, int] | None) -> Step | None:
        """Have the commit where the session stands made once more, with that state of a kernel."""
        if state is None:
            return None
        step = Step(
            id=deletion_id(),
            parent=self._standing.tip,
            kind=ASIDE,
            message="the state where the session stands",
            number=0,
            kernel=state[0],
            state=state[1],
            logged=True,
            is_read=True,
            amends=self.head,
            place=self._standing.place,
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
        return (*self._losses.now.lost(), *self._at_risk())

    @property
    def lacks_states(self) -> bool:
        """True if the newest commits hold no state, and should."""
        return self._losses.now.since is not None and not self.by_source

    @property
    def lacks_state(self) -> bool:
        """True if the commit where the session stands holds no state, as steps came fast, and one can be saved."""
        return not self.by_source and self._lacks_of(self._standing.tip).can_have_state

    def _lacks_of(self, step: str) -> Lacks:
        return self._losses.of(self._standing.find(step))

    @property
    def strict(self) -> bool:
        """True if each name that a cell binds has to be saved."""
        return self._losses.strict

    @strict.setter
    def strict(self, strict: bool) -> None:
        self._losses.strict = strict

    def newly_lost(self) -> tuple[Lost, ...]:
        """Names that could not be saved by the newest commit, and that were not among the lost of the one before."""
        return self._losses.newly

    def at_once(self, unsaved: Mapping[str, str]) -> tuple[Lost, ...]:
        """Losses to tell in the cell that has just ended: names that it bound to what cannot be saved, by the types
        that tell why, and what commits have found out meanwhile.
        """
        return () if self.by_source or self.strict else self._losses.at_once(unsaved)

    def to_tell(self) -> tuple[Lost, ...]:
        """Losses that nobody was told of yet: what commits could not save, and what the store has not taken, unless
        that is being tried again.
        """
        return (*self._losses.found_out(), *(() if self._working else self._at_risk()))

    def _at_risk(self) -> tuple[Lost, ...]:
        """The steps that the store has refused, as one loss."""
        if self._failure is None or not self._queue:
            return ()
        return (at_risk(self._waiting(), str(self._failure)),)

    async def flush(self) -> None:
        """Durable against a loss of power what is in the store, and what is new has been loaded once."""
        await self.tried()
        await to_thread.run_sync(self._held.flush)

    async def saved(self) -> None:
        """The same as `committed`, and with the newest state: `CaptureFailed` where that could not be saved."""
        await self.committed()
        if (failure := (lacks := self._losses.now).failure) is not None:
            what = f"nothing since cell {lacks.since} could be saved"
            raise CaptureFailed(f"{what}: {failure.args[0]}", hint=failure.hint)

    def _enqueue(self, step: Step) -> None:
        self._require_open()
        self._go_on_here()
        self._losses.newly = ()  # of this step they will be
        if not step.stands_in:
            self._standing.tip = step.id
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

    async def _fork(self, step: Step, seconds: float = _SLOT_SECONDS) -> None:
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

    async def _capture(self, step: Step, kernel: Kernel, seconds: float = _SLOT_SECONDS) -> None:
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

    def _let_go(self, steps: Iterable[Step]) -> None:
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

    async def _commit(self, step: Step) -> None:
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
            before_it = self._losses.now
            if not await to_thread.run_sync(self._write_once, batch, step, snapshot):
                return
        if snapshot is not None:
            step.suspects.settle()
            await self._note_saved(step, snapshot, before)
        elif before_it.failure is None:
            self._losses.tell(*self._losses.now.everything())

    def _is_written(self, step: Step) -> bool:
        """True if a step's commit is there: of a thread whose caller has gone, or of a store that failed to say so."""
        with self._writing:
            if step.commit is None and step_of(head := self._held.resolve("HEAD")) == step.id:
                self._led_to(step, head)
            return step.commit is not None

    def _write_once(self, batch: Batch, step: Step, snapshot: Snapshot | None) -> bool:
        """Write a step's commit; False where a thread whose caller has gone has done so meanwhile, or where the session
        has left the commit that is to be amended.
        """
        with self._writing:
            if step.commit is not None:
                return False
            if step.amends is not None and step.place != self._standing.place:
                return False
            if step.amends is not None and snapshot is None:
                self._losses.note(step.amends, replace(self._losses.now, failure=step.failure))
                return True
            parent = self._standing.commit_of(step.parent) if step.parent else None
            self._led_to(step, self._writer.write(batch, step, parent, snapshot))
            self._moving = None
            return True

    def _led_to(self, step: Step, commit: Commit) -> None:
        """Note the commit of a step, and what it lacks."""
        self._standing.led_to(step, commit.id)
        now = self._losses.now
        if commit.snapshot:
            now = replace(now, since=None, failure=None)  # what the state lacks is found out next
        elif not step.is_same:
            now = now.without_state(step.number, step.failure)
        self._losses.note(commit.id, now)

    async def _note_saved(self, step: Step, snapshot: Snapshot, before: Snapshot | None) -> None:
        """Find out what a snapshot lacks that the one `before` it had, and have what is new in it loaded once."""
        async with self._losses.noting:
            found = await self._losses.compared(snapshot)
            is_here = step.amends is None or step.place == self._standing.place  # or the session has left it meanwhile
            self._losses.take_up(str(step.commit), found, is_here=is_here)
            self._stand_on(snapshot, step.read_share)
            step.read_share = None
        if step.capture is not None:
            trial = replace(step, was_let_go=False)
            step.capture, step.has_slot = None, False
            self._trials.append(trial)
            self._background.start(self._try, trial, before, found.held)

    def _stand_on(self, snapshot: Snapshot | None, share: Share | None) -> None:
        """A snapshot, which has a share of the account, is the newest one."""
        self._snapshot_share.close()
        self._snapshot, self._snapshot_share = snapshot, share or self.account.share()

    async def _try(self, trial: Step, before: Snapshot | None, held: Mapping[str, Row]) -> None:
        """Find out which names of a snapshot cannot be loaded."""
        try:
            read: Snapshot | None = self._snapshot
            while (capture := trial.capture) is not None:
                if read is not None and not trial.was_let_go and (lost := await capture.trial()):
                    async with self._losses.noting:
                        await self._losses.take_unloadable(str(trial.commit), lost, held, self._snapshot)
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

    async def tried(self) -> None:
        """Until what the newest commits wrote has been loaded once."""
        self._go_on_here()
        while self._trials:
            await self._tried.wait()

    async def _read(self, step: Step, before: Snapshot | None, put: Callable[[bytes], object]) -> Snapshot | None:
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
        self._losses.forget()

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
        return await to_thread.run_sync(led_to, self._held, self.head, step, self._standing.find(step))

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
        return self._standing.tip

    @property
    def head(self) -> str:
        """The commit where the session stands."""
        return self._standing.head

    @property
    def is_committed(self) -> bool:
        """True if the newest step is in the store."""
        return self._standing.is_committed

    async def merge(self, id: str, theirs: Commit, prefer: Literal["ours", "theirs"] | None) -> Commit:
        """Make a commit of where the session stands and another: a step of this id."""

        def merged() -> Commit:
            if seeds := self.sown(self._standing.tip):  # nothing was drawn since
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
        commit = self._standing.commit_of(step)

        def forked() -> Lasting:
            store = open_store(self._state.url)
            try:
                sown: JSON = [*self._sown, {"step": step, "seed": str(own)}]
                settings = {**self._held.settings, "seed": str(seed), "sown": sown}
                held = store.branch(self._held, name, commit, settings)
                other = Lasting(self._state, store, held, account)
                other.by_source, other.strict, other.otherwise = self.by_source, self.strict, self.otherwise
            except BaseException:
                store.close()
                raise
            other._stand_on(self._snapshot, account.share(self._snapshot_share.size))
            other._standing.go(step, commit)
            other._losses.note(commit, Lacks(since=self._lacks_of(step).since))
            return other

        return await to_thread.run_sync(forked)

    async def delete(self, name: str) -> None:
        """Delete another session of the user's."""
        await to_thread.run_sync(self._store.delete, self._held.user, name)

    def stands(self, step: str, commit: str) -> None:
        """The session stands after a step, which led to a commit."""
        self._standing.go(step, commit)

    async def went_back(self, step: str, deleted: Iterable[str]) -> None:
        """The kernel is again in the state after a step: so is the session, but for the cells `deleted_after` that."""
        commit, self._standing.tip = self._standing.commit_of(step), step
        self._standing.place += 1
        self._losses.went_back(commit)
        await self.move(commit, [*deleted])

    async def deleted_after(self, step: str) -> set[str]:
        """The cells that were deleted since a step which led to where the session stands."""
        return await self.deleted_since(self._standing.commit_of(step))

    async def move(self, commit: str, deleted: Sequence[str] = ()) -> None:
        """Go on from another commit; those that are left stay in the store. Cells that were deleted stay so."""
        self._moving = commit
        self._notebook.forget(*deleted)
        self._journal.delete(*deleted)
        await self._journal.log_deletions()

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


def _drop(_data: bytes) -> None:
    """Take bytes that the store has."""
