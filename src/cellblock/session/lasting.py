"""The lasting side of a session: what happens is logged before it runs, and every step becomes a commit afterwards.

Every step has one id, under which the journal, the commit and the plan of a replay know it. A cell is written into the
store's journal before it starts, and again when it has ended, before its caller is told; the commit follows in the
background. A step whose commit holds no state is run again when the session is resumed from there.
"""

from __future__ import annotations

import _thread
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, Literal

import anyio

from cellblock.cell import Cell, Lost
from cellblock.differences import Diff
from cellblock.documents import reading
from cellblock.errors import CaptureFailed, SessionClosed, StoreError
from cellblock.executors.protocol import Kernel
from cellblock.hosting import to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.patience import Deadline
from cellblock.session.account import Account
from cellblock.session.ahead import Ahead
from cellblock.session.background import Background
from cellblock.session.committer import Committer
from cellblock.session.earlier import Earlier, Source
from cellblock.session.hoststeps import ASIDE, HostStep
from cellblock.session.journal import Journal, deletion_id
from cellblock.session.lacks import Lacks, Losses
from cellblock.session.merging import merge
from cellblock.session.notebook import Changes, Notebook
from cellblock.session.past import Past, Planned, Replay, followed_by, leading_to
from cellblock.session.shown import Blob
from cellblock.session.standing import Standing
from cellblock.session.steps import Step
from cellblock.session.timeline import adopted, before, deleted_since, difference, find, led_to, why_private
from cellblock.session.tools import Asked
from cellblock.snapshots import CHUNK_BYTES
from cellblock.state import Versioned
from cellblock.store import JSON, Commit, HeldSession, Store, open_store
from cellblock.wire.messages import ToolReply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.turns import Turns

_log = logging.getLogger("cellblock.store")

_MESSAGE = 200


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
        self.otherwise = "open the session without strict=True"
        """Remedy for its opener to keep others."""
        self.lacks_settings: tuple[Lost, ...] = ()
        """The loss of its settings, where they are damaged in the store."""
        self.losses = Losses()
        self.deadline = Deadline()
        """By it all that is begun here is over, once the session is being closed."""
        self._background = Background(self.deadline)
        self._left = threading.Lock()
        """Held from when a session that was dropped is left."""
        self._ahead: Ahead | None = None
        self.source = Source(store, held)
        """Source from which earlier cells of the notebook are read."""
        self._notebook = Notebook()
        self.standing = Standing(held.name)
        self._unset: dict[str, JSON] = {}
        """Settings that the store could not be told."""
        self.account = account
        """Account on which everything counts that waits to be written."""
        held.read_at_most(account.limit)
        self.journal = Journal(held, account)
        self.committer = Committer(held, self.standing, self.losses, account, self._background, weakref.ref(self))

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
        if any(not step.logged for step in self.committer.queue):
            self.committer.raise_failure()
        while self.journal.has_unlogged or self._owes:
            await self.journal.log_deletions()
            await self._settle()

    async def close(self) -> None:
        """Let others have the session."""
        self.committer.close()
        await to_thread.run_sync(self._close)

    def drop(self) -> None:
        """Dropped without `close`: let others have the session once what waits for the store is written.

        Takes no lock: a collector calls it anywhere.
        """
        if self._held.is_here:
            self._held.leave_soon()
            self.committer.then = self._leave  # before it is looked: the commits may end meanwhile, in another thread
            if not self.committer.is_working:
                self.committer.then = None
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
        await self.journal.begin(step, draft)

    async def answered(self, call: Asked, reply: ToolReply) -> None:
        """Log what a host function gave a cell, before the cell gets it; of a step of the host's, with that."""
        self._note_failure(await self.journal.answered(call, reply))

    async def ended(self, kernel: Kernel, state: int, cell: Cell, parts: Mapping[str, Blob], *, stopped: bool) -> str:
        """A cell has ended: log that, and have it committed. Why the store did not take it; "" where it did."""
        self._note_failure(await self.journal.ended(cell, stopped=stopped))
        logged = self.journal.is_whole
        self.commit(kernel, state, self.journal.step, cell, parts, stopped=stopped, logged=logged)
        return "" if logged else str(self.committer.failure or "it is out of reach")

    def _note_failure(self, failure: StoreError | None) -> None:
        """The journal has not taken an entry: steps are at risk until they are committed."""
        self.committer.failure = failure or self.committer.failure

    async def log_host(self, id: str, step: HostStep, during: str = "") -> tuple[int, ...]:
        """Log what the host did, maybe during another step, and what functions gave it; the numbers of the entries."""
        if not during:  # else its beginning has seen to that
            await self._durable()
        return await self.journal.log_host(id, step, during)

    def delete_cell(self, cell_id: str) -> None:
        """Delete a cell from the notebook, and log that: at once, or, where that has to wait, before anything else."""
        self.committer.require_open()
        cell_id = self._notebook[cell_id].id
        self._notebook.forget(cell_id)
        self.journal.delete_at_once(cell_id)

    def delete_again(self, deletion: HostStep, entries: Iterable[int]) -> None:
        """Delete the cells of a deletion that the journal holds, in these entries."""
        self._notebook.forget(*(bytes(one).decode() for one in deletion.buffers))
        self.journal.deleted_again(entries)

    async def _durable(self) -> None:
        """Until all that the session's state rests on is in a commit or in the journal; what keeps it out is raised."""
        if any(not step.logged for step in self.committer.queue):
            await self.committed()
        await self._settle()

    @property
    def _owes(self) -> bool:
        """True if there is something that the store could not be told."""
        return bool(self._unset) or self.standing.untold is not None

    async def _settle(self) -> None:
        """Have the store hold that the session stands where it does, and its settings."""
        if self._unset:
            await self.configure(self._unset.copy())
        if self.standing.untold is not None:
            await self.move(self.standing.untold)

    # ------------------------------------------------------------------------------ commits

    def follow(self, notebook: Notebook) -> None:
        """Commit what changes of a notebook from now on; what it holds is in the store."""
        notebook.note_changes()
        self._notebook = notebook

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Follow what is followed now, and stand where the session stands, unless what is done within succeeds."""
        followed = self._notebook, self.standing.tip
        self.standing.place += 1
        try:
            with self.losses.as_they_were():
                yield
        except BaseException:
            self._notebook, self.standing.tip = followed
            raise

    def commit(
        self, kernel: Kernel, state: int, id: str, cell: Cell, parts: Mapping[str, Blob], *,
        again: Planned | None = None, stopped: bool = False, logged: bool = True,
    ) -> None:  # fmt: skip
        """Have a cell committed, by the id of its step, or as it was planned to be run `again`, unless it is."""
        if self._stands_again(id, again, cell.number):
            return
        first = cell.source.strip().partition("\n")[0]
        own = self.journal.take_entries()
        step = self._step(id, cell.kind, first, cell.number, kernel, state, logged=logged, entries=own, again=again)
        step.cell, step.parts, step.stopped = cell, parts, stopped
        self.committer.enqueue(step)

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
        self.committer.enqueue(step)

    def _stands_again(self, step: str, again: Planned | None, number: int) -> bool:
        """Stand after a step that was taken again, if it is in a commit: one that holds no state."""
        if again is None or again.commit is None:
            return False
        now = self.losses.now
        is_same = isinstance(again.do, Replay) and again.do.rolled_back  # the state is that of before
        self.losses.note(again.commit, now if is_same else now.without_state(number))
        self.standing.go(step, again.commit)
        return True

    async def start(self, kernel: Kernel) -> None:
        """The first commit of a session: nothing is there."""
        step = self._step("open", "open", "", 0, kernel, kernel.states[-1], logged=False)
        self.standing.go(step.id, await to_thread.run_sync(self.committer.write_first, step))

    def _step(
        self, id: str, kind: str, message: str, number: int, kernel: Kernel | None, state: int, *,
        logged: bool, entries: Sequence[int] = (), again: Planned | None = None, changes: Changes | None = None,
    ) -> Step:  # fmt: skip
        """The step after the newest, with what the notebook has become by it."""
        deletions = self.journal.take_deletions()
        step = Step(
            id=id,
            parent=self.standing.tip,
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
            step.answers, step.share = self.journal.take_answers(id)
        return step

    def commit_deletions(self) -> None:
        """Have what was deleted from the notebook since the newest step out of the store, by a commit of its own.

        Not while another caller has the session's turn: it may be going to another commit, and leave this one beside
        the history. Nor while the newest step is to be taken again. Until then the journal has the deletions.
        """
        is_known = self.standing.is_committed or any(step.id == self.standing.tip for step in self.committer.queue)
        if is_known and (changes := self._notebook.deletions()).cells:
            message = f"deleted {len(changes.cells)} cells" if len(changes.cells) > 1 else "deleted a cell"
            step = self._step(deletion_id(), ASIDE, message, 0, None, 0, logged=False, changes=changes)
            self.committer.enqueue(step)

    async def committed(self) -> None:
        """Until all steps are in the store. What keeps the oldest out is raised, and what else is at risk told."""
        await self._try_commits()
        self.committer.raise_failure()

    async def _try_commits(self) -> None:
        """Have the commits of all steps made, or tried."""
        self.committer.go_on_here()
        await self.journal.log_deletions()
        await self.committer.done()
        if not self.committer.queue:
            await self._settle()

    async def read(self, step: str, state_after: Callable[[str], tuple[Kernel, int] | None]) -> None:
        """The host has read what a step led to: until that is in the store, so that it is the same after any death.

        Where it was committed by its source as steps came fast, the state of the newest step, of which `state_after`
        tells where it is, is saved instead. Where the store does not take it, or not in time, the next cell says so.
        """
        committer = self.committer
        committer.go_on_here()
        if self.committer.by_source:  # then it is made again in any case
            return
        await committer.until_read(next((one for one in committer.queue if one.id == step), None))
        if self._lacks_of(step).can_have_state and (committer.queue or self.lacks_state):
            newest = committer.queue[-1] if committer.queue else self._amended(state_after(self.standing.tip))
            await committer.until_read(newest)

    def _amended(self, state: tuple[Kernel, int] | None) -> Step | None:
        """Have the commit where the session stands made once more, with that state of a kernel."""
        if state is None:
            return None
        step = Step(
            id=deletion_id(),
            parent=self.standing.tip,
            kind=ASIDE,
            message="the state where the session stands",
            number=0,
            kernel=state[0],
            state=state[1],
            logged=True,
            is_read=True,
            amends=self.standing.head,
            place=self.standing.place,
        )
        self.committer.enqueue(step)
        return step

    @property
    def unsaved(self) -> tuple[Lost, ...]:
        """Losses: parts of the state that the newest commit could not save, or saved in a way that cannot be loaded,
        and the session has."""
        return (*self.losses.now.lost(), *self.committer.at_risk())

    @property
    def lacks_states(self) -> bool:
        """True if the newest commits hold no state, and should."""
        return self.losses.now.since is not None and not self.committer.by_source

    @property
    def lacks_state(self) -> bool:
        """True if the commit where the session stands holds no state, as steps came fast, and one can be saved."""
        return not self.committer.by_source and self._lacks_of(self.standing.tip).can_have_state

    def _lacks_of(self, step: str) -> Lacks:
        return self.losses.of(self.standing.find(step))

    def at_once(self, unsaved: Mapping[str, str]) -> tuple[Lost, ...]:
        """Losses to tell in the cell that has just ended: names that it bound to what cannot be saved, by the types
        that tell why, and what commits have found out meanwhile.
        """
        return () if self.committer.by_source or self.losses.strict else self.losses.at_once(unsaved)

    def to_tell(self) -> tuple[Lost, ...]:
        """Losses that nobody was told of yet: what commits could not save, and what the store has not taken, unless
        that is being tried again.
        """
        return (*self.losses.found_out(), *(() if self.committer.is_working else self.committer.at_risk()))

    async def flush(self) -> None:
        """Durable against a loss of power what is in the store, and what is new has been loaded once."""
        await self.committer.tried()
        await to_thread.run_sync(self._held.flush)

    async def saved(self) -> None:
        """The same as `committed`, and with the newest state: `CaptureFailed` where that could not be saved."""
        await self.committed()
        if (failure := (lacks := self.losses.now).failure) is not None:
            what = f"nothing since cell {lacks.since} could be saved"
            raise CaptureFailed(f"{what}: {failure.args[0]}", hint=failure.hint)

    # ----------------------------------------------------------------------------- resuming

    async def newest(self) -> Past | None:
        """The past of where the session is, the journal included; None where it has not begun.

        What the journal holds whole is taken from there, and waits to be committed no more.
        """
        await self.finish()
        self.committer.forget()
        self.losses.forget()

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
        return await to_thread.run_sync(led_to, self._held, self.standing.head, step, self.standing.find(step))

    async def deleted_since(self, commit: str) -> set[str]:
        """The cells that were deleted since a commit which leads to where the session stands."""
        return await to_thread.run_sync(deleted_since, self._held, self.standing.head, commit)

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
        if session is None or session._closed or not (session._is_here and session._lock.is_of_running_loop):
            return None
        return session

    def _place_of(self, name: str) -> tuple[str | None, str, str, str]:
        return self._state.url, self._store.identity, self._held.user, name  # a copied store is of the same identity

    async def why_private(self, other: str) -> str:
        """Why the user's session of that name holds private data; "" where it does not, or there is none."""
        return await to_thread.run_sync(why_private, self._store, self._held.user, other)

    async def merge(self, id: str, theirs: Commit, name: str, prefer: Literal["ours", "theirs"] | None) -> Commit:
        """Make a commit of where the session stands and another, of this name: a step of this id."""

        def merged() -> Commit:
            if seeds := self.sown(self.standing.tip):  # nothing was drawn since
                sown: JSON = [*self._sown, {"step": id, "seed": str(seeds[-1])}]
                self._held.configure({"sown": sown})
            return merge(self._held, self._held.resolve(self.standing.head), theirs, name, prefer, id)

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
        commit = self.standing.commit_of(step)

        def forked() -> Lasting:
            store = self._store.another()
            try:
                sown: JSON = [*self._sown, {"step": step, "seed": str(own)}]
                settings = {**self._held.settings, "seed": str(seed), "sown": sown}
                held = store.branch(self._held, name, commit, settings)
                other = Lasting(self._state, store, held, account)
                other.committer.by_source, other.losses.strict = self.committer.by_source, self.losses.strict
                other.otherwise = self.otherwise
            except BaseException:
                store.close()
                raise
            other.committer.stand_on(self.committer.snapshot, account.share(self.committer.snapshot_bytes))
            other.standing.go(step, commit)
            other.losses.note(commit, Lacks(since=self._lacks_of(step).since))
            return other

        return await to_thread.run_sync(forked)

    async def delete(self, name: str) -> None:
        """Delete another session of the user's."""
        await to_thread.run_sync(self._store.delete, self._held.user, name)

    async def went_back(self, step: str, deleted: Iterable[str]) -> None:
        """The kernel is again in the state after a step: so is the session, but for the cells `deleted_after` that."""
        commit, self.standing.tip = self.standing.commit_of(step), step
        self.standing.place += 1
        self.losses.went_back(commit)
        await self.move(commit, [*deleted])

    async def deleted_after(self, step: str) -> set[str]:
        """The cells that were deleted since a step which led to where the session stands."""
        return await self.deleted_since(self.standing.commit_of(step))

    async def move(self, commit: str, deleted: Sequence[str] = ()) -> None:
        """Go on from another commit; those that are left stay in the store. Cells that were deleted stay so."""
        self.standing.untold = commit
        self._notebook.forget(*deleted)
        self.journal.delete(*deleted)
        await self.journal.log_deletions()

        def moved() -> None:
            with self.committer.not_amended():
                self._held.move(commit)

        try:
            await to_thread.run_sync(moved)
        except StoreError as error:
            if type(error) is not StoreError:
                raise
            told = "the session was set to another state, of which its store is told with the next step"
            raise StoreError(f"{told}: {error.args[0]}", hint=error.hint) from error
        self.standing.untold = None

    async def stay(self) -> None:
        """Have the store hold that the session stands where it does, now or before the next step."""
        with suppress(StoreError):
            await self.move(self.standing.head)

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
        self.committer.stand_on(past.snapshot, self.account.share(size))
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
        return list(self._held.get_many(addresses, CHUNK_BYTES))


_open: weakref.WeakValueDictionary[tuple[str | None, str, str, str], Lasting] = weakref.WeakValueDictionary()
"""The sessions that this program has open, by their stores, users and names."""


async def all_written(seconds: float) -> None:
    """Until all commits that are being made on the event loop that runs were made, or tried, or for so long."""
    with anyio.move_on_after(seconds):
        for lasting in [*_open.values()]:
            if lasting._background.is_here:
                await lasting.committer.done()


def _is_left(find: weakref.ref[Lasting]) -> bool:
    """True if nobody is left who could release a session, as its event loop was closed, whatever holds it still."""
    if (lasting := find()) is None:
        return True
    if lasting.user is None:  # about to be given one
        return False
    session = lasting.user()
    return lasting._background.is_left if session is None else session._is_left
