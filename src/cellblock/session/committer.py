"""The commits of a session, made in the background in the order of its steps.

A scribe of the frozen copy of the state after a step hands over what changed, and the commit takes the step's own
entries from the journal. A step whose state could not be had is a commit of its source alone. A commit that fails is
tried again first. What a commit wrote is loaded once, in a process that is thrown away, to find out what cannot be.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import islice

import anyio

from cellblock.cell import Lost
from cellblock.errors import CaptureFailed, CellblockError, SessionClosed, StoreError
from cellblock.executors.protocol import Kernel, too_large
from cellblock.executors.suspects import Known, Suspects
from cellblock.hosting import to_thread
from cellblock.patience import LOCK_SECONDS
from cellblock.session.account import Account, Share
from cellblock.session.background import Background
from cellblock.session.lacks import Losses
from cellblock.session.past import step_of
from cellblock.session.record import at_risk
from cellblock.session.standing import Standing
from cellblock.session.steps import Step
from cellblock.session.writing import CommitWriter
from cellblock.snapshots import Row, Snapshot
from cellblock.store import Batch, Commit, HeldSession

_MESSAGE = 200
_MOST_TOLD = 5
_SLOTS, _SLOT_SECONDS = 3, 0.25
"""States that are held to be saved at a time, and how long the next step waits for that: then it goes on, and the one
before it is committed by its source alone."""
_READ_SECONDS = LOCK_SECONDS
"""Seconds that a caller who has read something waits for the commit of what it read from."""
_NEWEST_SECONDS = 10.0
"""Seconds that the newest step waits for its state when its commit is made. No step waits for it meanwhile."""


class Committer:
    """Makes the commits of one session, and knows which steps are not in the store yet."""

    def __init__(
        self, held: HeldSession, standing: Standing, losses: Losses, account: Account, background: Background,
        keeper: weakref.ref[object],
    ) -> None:  # fmt: skip
        """The `keeper` is not dropped by this program while commits are being made."""
        self._held = held
        self._standing = standing
        self._losses = losses
        self._account = account
        self._background = background
        self._keeper = keeper
        self._writer = CommitWriter(held)
        self.by_source = False
        """True if no state is to be saved."""
        self.is_closed = False
        """Nothing is taken up any more: whoever still does something is told so."""
        self.queue: deque[Step] = deque()
        """Steps that are not in the store yet, oldest first."""
        self.is_working = False
        """True while their commits are being made."""
        self.then: Callable[[], object] | None = None
        """Called once, when they have been made or tried."""
        self.failure: CellblockError | None = None
        """The error that keeps a step out of the store, or out of the journal."""
        self.snapshot: Snapshot | None = None
        """The newest that was saved, or is read: of the next one only differences are written."""
        self._share = account.share()
        self._trials: list[Step] = []
        """Steps whose commits are made, and of which what is new is being loaded once."""
        self._known_suspects: Known = {}
        self._tried = anyio.Event()
        self._writing = threading.Lock()
        """Held over the writing of a commit, which goes on in its thread where the event loop ends."""
        self._progress = anyio.Event()
        """Set, and another put in its place, with each commit that was made, and once no more are tried."""
        self._slots = anyio.Semaphore(_SLOTS)

    @property
    def is_busy(self) -> bool:
        """True while commits are being made, or tried, in the background."""
        return self.is_working or bool(self._trials)

    @property
    def snapshot_bytes(self) -> int:
        """Bytes that the newest snapshot has on the account."""
        return self._share.size

    def require_open(self) -> None:
        """`SessionClosed` once nothing is taken up any more."""
        if self.is_closed:
            raise SessionClosed("the session was closed", hint="open a new one")

    def close(self) -> None:
        """Make no commits any more."""
        self.is_closed = True
        self._background.cancel()
        self._let_go(self.queue)
        self._let_go(self._trials)  # of which some were not begun

    def forget(self) -> None:
        """Make no commits of what waits for one: the journal has it."""
        for step in self.queue:
            if step.share is not None:
                step.share.close()
        self.queue.clear()

    def _start(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        self._background.start(partial(_holding, self._keeper(), function), *args)

    def write_first(self, step: Step) -> str:
        """Write the first commit of a session, where nothing is there; its id. For a thread."""
        with self._held.batch() as batch:
            return self._writer.write(batch, step, None, Snapshot()).id

    def not_amended(self) -> AbstractContextManager[object]:
        """Around what has the session stand elsewhere: a commit that is being amended comes before, or not at all."""
        return self._writing

    async def done(self) -> None:
        """Until the commits of all steps were made, or tried."""
        if self.queue and not self.is_working:
            self._go_on()
        while self.is_working:
            await self._progress.wait()

    async def until_read(self, step: Step | None) -> None:
        """Until a step is in the store with its state, where it is not yet."""
        if step is None:
            return
        step.is_read = True
        if not self.is_working:
            self._go_on()
        with anyio.move_on_after(_READ_SECONDS):
            while self.is_working and step in self.queue:
                await self._progress.wait()
        if self.is_working and step in self.queue:
            self._losses.tell(at_risk(str(step), f"it was not done within {_READ_SECONDS:.0f} s"))

    def raise_failure(self) -> None:
        """Raise what keeps the oldest step out of the store."""
        if (failure := self.failure) is not None and self.queue:
            raised = copy.copy(failure)  # with the fields of its class
            raised.args = (f"{failure.args[0]}; not in the store yet: {self._waiting()}",)
            raise raised

    def _waiting(self) -> str:
        """The steps that are not in the store yet."""
        more = f" and {len(self.queue) - _MOST_TOLD} more" if len(self.queue) > _MOST_TOLD else ""
        return ", ".join(map(str, islice(self.queue, _MOST_TOLD))) + more

    def at_risk(self) -> tuple[Lost, ...]:
        """The steps that the store has refused, as one loss."""
        if self.failure is None or not self.queue:
            return ()
        return (at_risk(self._waiting(), str(self.failure)),)

    def enqueue(self, step: Step) -> None:
        """Have the commit of a step made, after those before it."""
        self.require_open()
        self.go_on_here()
        self._losses.newly = ()  # of this step they will be
        if not step.stands_in:
            self._standing.tip = step.id
        self.queue.append(step)
        self._start(self._fork, step)
        if not self.is_working:
            self._go_on()

    def _go_on(self) -> None:
        self.require_open()
        self.is_working, self._progress = True, anyio.Event()
        self._start(self._work)

    def go_on_here(self) -> None:
        """Begin again, on the event loop that runs, what another that ended has left in the middle."""
        if not self._background.has_lost:
            return
        self._progress, self._tried = anyio.Event(), anyio.Event()
        for step in (*self.queue, *self._trials):
            step.forked = anyio.Event()  # who waits for the other one never goes on
        self._background.end_lost()
        for step in (*self.queue, *self._trials):
            step.forked.set()
            step.has_slot = False
        self._let_go((*self.queue, *self._trials))
        self._trials.clear()
        self._slots, self.is_working = anyio.Semaphore(_SLOTS), False
        for step in self.queue:
            step.forked, step.was_let_go = anyio.Event(), False
            self._start(self._fork, step)
        if self.queue:
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
            if not self.is_working:  # a step before this one has failed
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
        self.go_on_here()
        if self.queue:
            await self.queue[-1].forked.wait()

    async def _work(self) -> None:
        """Make the commits, in order. A border: whatever keeps one from being made is told to those who ask."""
        try:
            while self.queue:
                step = self.queue[0]
                await step.forked.wait()
                if step.was_let_go or (not step.has_slot and (step.is_read or step is self.queue[-1])):
                    await self._fork(step, _NEWEST_SECONDS)  # it is saved even where steps come fast
                try:
                    await self._commit(step)
                except Exception as error:  # it is tried again once, then by whoever asks, and before the next
                    again = not step.failed
                    self.failure = error if isinstance(error, CellblockError) else StoreError(repr(error)[:_MESSAGE])
                    step.failed = True
                    if not again:
                        return
                else:
                    self.failure = None
                    done = self.queue.popleft()
                    self._let_go([done])
                    if done.share is not None:
                        done.share.close()
                    self._progressed()
        finally:
            self._let_go(self.queue)
            self.is_working = False
            self._progressed()
            then, self.then = self.then, None
            if then is not None:
                then()

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
            step.suspects, before = Suspects(self._known_suspects), self.snapshot
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
            self._standing.untold = None
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
            self.stand_on(snapshot, step.read_share)
            step.read_share = None
        if step.capture is not None:
            trial = replace(step, was_let_go=False)
            step.capture, step.has_slot = None, False
            self._trials.append(trial)
            self._start(self._try, trial, before, found.held)

    def stand_on(self, snapshot: Snapshot | None, share: Share | None) -> None:
        """A snapshot, which has a share of the account, is the newest one."""
        self._share.close()
        self.snapshot, self._share = snapshot, share or self._account.share()

    async def _try(self, trial: Step, before: Snapshot | None, held: Mapping[str, Row]) -> None:
        """Find out which names of a snapshot cannot be loaded."""
        try:
            read: Snapshot | None = self.snapshot
            while (capture := trial.capture) is not None:
                if read is not None and not trial.was_let_go and (lost := await capture.trial()):
                    async with self._losses.noting:
                        await self._losses.take_unloadable(str(trial.commit), lost, held, self.snapshot)
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
        self.go_on_here()
        while self._trials:
            await self._tried.wait()

    async def _read(self, step: Step, before: Snapshot | None, put: Callable[[bytes], object]) -> Snapshot | None:
        if (capture := step.capture) is None:
            return None
        if step.read_share is not None:
            step.read_share.close()
        step.read_share = share = self._account.share()

        def take(size: int) -> None:
            if not share.take(size):
                raise too_large(self._account.limit)

        try:
            await capture.begin(before, step.suspects)
            return await capture.read(put, take)
        except CaptureFailed as error:
            step.unsaved, step.failure = str(error), error
            return None


async def _holding(_keeper: object, function: Callable[..., Awaitable[None]], *args: object) -> None:
    await function(*args)


def _drop(_data: bytes) -> None:
    """Take bytes that the store has."""
