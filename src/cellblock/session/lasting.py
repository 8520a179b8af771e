"""The lasting side of a session: what happens is logged before it runs, and every step becomes a commit afterwards.

A cell is written into the store's journal before it starts, and again when it has ended, before its caller is told. The
commit follows in the background: a scribe of the state's frozen copy hands over what changed, and the commit replaces
what the journal says of that cell. A step whose state could not be had is a commit of its source alone: it is run again
when the session is resumed from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

import anyio
from anyio import to_thread

from cellblock.cell import Cell, Lost
from cellblock.differences import Diff
from cellblock.errors import CaptureFailed, CellblockError, SessionClosed
from cellblock.executors.protocol import Capture, Chunk, Kernel
from cellblock.session.ahead import Ahead
from cellblock.session.background import Background
from cellblock.session.celltree import CellTree
from cellblock.session.commits import (
    Written,
    put_cell,
    put_snapshot,
    read_written,
)
from cellblock.session.earlier import Earlier, Source
from cellblock.session.hoststeps import HostStep
from cellblock.session.merging import merge
from cellblock.session.notebook import Changes, Notebook
from cellblock.session.past import Past, answer_entry, followed_by, leading_to
from cellblock.session.shown import Blob
from cellblock.session.timeline import before, difference, find, why_private
from cellblock.snapshots import Group, Snapshot
from cellblock.store import JSON, Batch, Commit, HeldSession, Store, blobs, open_store, records
from cellblock.wire.messages import ToolReply
from cellblock.worker.saving.losses import PART, REMEDIES

_MESSAGE = 200
_SLOTS, _SLOT_SECONDS = 3, 0.25
"""States that are held to be saved at a time, and how long the next step waits for that: then it goes on, and the one
before it is committed by its source alone."""


@dataclass(slots=True)
class _Step:
    """A step on its way into the store."""

    kind: str
    message: str
    number: int
    state: int
    cell: Cell | None
    parts: Mapping[str, Blob]
    changes: Changes
    answers: list[JSON]
    through: int
    host: HostStep | None = None
    capture: Capture | None = None
    has_slot: bool = False
    unsaved: str = "steps came faster than they could be saved"
    failure: CellblockError | None = None
    """What kept its state from being saved, where that was tried."""
    forked: anyio.Event = field(default_factory=anyio.Event)


class Lasting:
    """One session's place in a store, held by this program until `close`."""

    def __init__(self, url: str | None, store: Store, held: HeldSession) -> None:
        self._url = url
        self._store = store
        self._held = held
        self.by_source = False
        """Whether no state is to be saved."""
        self.strict = False
        """Whether each name that a cell binds has to be saved."""
        self.otherwise = "open the session without strict=True"
        """What its opener can do to keep others."""
        self._newly_lost: tuple[Lost, ...] = ()
        self._told: set[str] = set()
        self._to_tell: tuple[Lost, ...] = ()
        self._missing: tuple[Lost, ...] = ()
        self._unloadable: dict[str, tuple[Group, Lost]] = {}
        """Names of the newest snapshot that were saved and cannot be loaded, each with its group."""
        self._stateless: tuple[int, CellblockError] | None = None
        """Since which cell no state could be saved, and why."""
        self._trials: list[Capture] = []
        self._tried = anyio.Event()
        self._background = Background()
        self._queue: deque[_Step] = deque()
        self._working = False
        self._idle = anyio.Event()
        self._idle.set()
        self._slots = anyio.Semaphore(_SLOTS)
        self._failure: CellblockError | None = None
        self._written = Written()
        self._snapshot: Snapshot | None = None
        self._ahead: Ahead | None = None
        self._source = Source(store, held)
        self._notebook = Notebook()
        self.tree = CellTree()
        """Where the notebook's cells have their places."""
        self._unwritten = Changes()
        """Of the notebook: what was to be written by a commit that failed."""
        self._answers: list[JSON] = []
        self._commits: dict[int, str] = {}
        self._last = 0

    @classmethod
    async def open(cls, url: str | None, user: str, name: str, settings: Mapping[str, JSON]) -> Lasting:
        """Take a session's lease; `SessionBusy` names who has it, `StoreError` says what the store lacks."""

        def opened() -> Lasting:
            store = open_store(url)
            try:
                return cls(url, store, store.hold(user, name, settings=settings))
            except BaseException:
                store.close()
                raise

        return await to_thread.run_sync(opened)

    @property
    def settings(self) -> Mapping[str, JSON]:
        """What the session was created with."""
        return self._held.settings

    @property
    def rereads(self) -> bool:
        """Whether what is not read of the store can be read once the session is closed."""
        return self._store.lasts

    @property
    def quick(self) -> bool:
        """Whether the journal may be written on the event loop."""
        return self._store.quick

    async def configure(self, settings: Mapping[str, JSON]) -> None:
        """Change what the session is opened with from now on."""
        await to_thread.run_sync(self._held.configure, settings)

    async def finish(self) -> None:
        """Until everything is written, or has failed to be: the journal then has it."""
        await self._idle.wait()

    async def close(self) -> None:
        """Let others have the session."""
        self._background.cancel()
        await to_thread.run_sync(self._close)

    def _close(self) -> None:
        try:
            self.end_reading(wait=True)
            self._source.close()
            self._held.release()
        finally:
            self._store.close()

    # ------------------------------------------------------------------------------ journal

    async def begin(self, draft: Cell) -> None:
        """Log a cell that is about to run."""
        self._answers = []
        await self._append(
            {"do": "begin", "id": draft.id, "number": draft.number, "kind": draft.kind, "source": draft.source}
        )

    async def answered(self, name: str, reply: ToolReply) -> None:
        """Log what a host function gave a cell, before the cell gets it."""
        entry = answer_entry(name, reply)
        self._answers.append(entry)
        await self._append(entry)

    async def _append(self, entry: dict[str, JSON]) -> None:
        if self._store.quick:
            self._last = self._held.append(entry)
        else:
            self._last = await to_thread.run_sync(self._held.append, entry)

    # ------------------------------------------------------------------------------ commits

    def follow(self, notebook: Notebook, tree: CellTree | None = None) -> None:
        """Commit what changes of a notebook from now on; what it holds is in the store, at the places of `tree`."""
        notebook.note_changes()
        self._notebook, self.tree = notebook, tree or CellTree()

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Follow what is followed now, and stand where the session stands, unless what is done within succeeds."""
        followed = self._notebook, self.tree, dict(self._commits)
        try:
            yield
        except BaseException:
            self._notebook, self.tree, self._commits = followed
            raise

    async def ended(self, kernel: Kernel, cell: Cell, parts: Mapping[str, Blob]) -> None:
        """A cell has ended: log that, and have it committed. Returns when it is logged."""
        await self._append({"do": "end", "id": cell.id, "number": cell.number, "rolled_back": cell.rolled_back})
        self.commit(kernel, cell, parts)

    def commit(self, kernel: Kernel, cell: Cell, parts: Mapping[str, Blob]) -> None:
        """Have a cell that is in the journal committed."""
        first = cell.source.strip().partition("\n")[0]
        self._enqueue(kernel, cell.kind, first, cell.number, cell, parts)

    def step(self, kernel: Kernel, step: HostStep, number: int) -> None:
        """The host did something to the session: have it committed. `committed` tells when it is."""
        self._enqueue(kernel, "host", step.message, number, None, {}, step)

    async def start(self, kernel: Kernel) -> None:
        """The first commit of a session: nothing is there."""
        step = _Step("open", "", 0, kernel.states[-1], None, {}, Changes(), [], self._last)
        await to_thread.run_sync(self._write_apart, step, Snapshot())

    def _write_apart(self, step: _Step, snapshot: Snapshot | None) -> None:
        with self._held.batch() as batch:
            self._commits[step.state] = self._write(batch, step, snapshot).id

    async def committed(self) -> None:
        """Until all steps are in the store. What keeps the newest out is raised."""
        await self._idle.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def unsaved(self) -> tuple[Lost, ...]:
        """What the newest commit could not save, or saved in a way that cannot be loaded, and the session has."""
        lost = (*self._missing, *(one for _, one in self._unloadable.values()))
        return lost if self._stateless is None else (*lost, _everything_since(*self._stateless))

    def newly_lost(self) -> tuple[Lost, ...]:
        """Names that could not be saved by the newest commit, and that were not among the lost of the one before."""
        return self._newly_lost

    def at_once(self, unsaved: Mapping[str, str]) -> tuple[Lost, ...]:
        """What to tell in the cell that has just ended: names that it bound to what cannot be saved, by the types that
        tell why, and what commits have found out meanwhile.
        """
        if self.by_source or self.strict:
            return ()
        found = tuple(
            Lost(name=name, type=kind.removeprefix("builtins."), reason=told[0], remedy=told[1], alive=True)
            for name, kind in unsaved.items()
            if (told := REMEDIES.get(kind)) is not None
        )
        self._told.update(one.name for one in found)
        return found + self.to_tell()

    def to_tell(self) -> tuple[Lost, ...]:
        """What commits could not save and nobody was told of, for the next cell to say."""
        told, self._to_tell = self._to_tell, ()
        return told

    async def flush(self) -> None:
        """The same, durable against a loss of power, and what is new has been loaded once. `CaptureFailed` where states
        could not be saved.
        """
        await self.committed()
        await self.tried()
        if self._stateless is not None:
            since, failure = self._stateless
            raise CaptureFailed(f"nothing since cell {since} could be saved: {failure.args[0]}", hint=failure.hint)
        await to_thread.run_sync(self._held.flush)

    def _enqueue(
        self,
        kernel: Kernel,
        kind: str,
        message: str,
        number: int,
        cell: Cell | None,
        parts: Mapping[str, Blob],
        host: HostStep | None = None,
    ) -> None:
        changes = self._notebook.changes()
        answers, self._answers = self._answers, []
        step = _Step(
            kind, message[:_MESSAGE], number, kernel.states[-1], cell, parts, changes, answers, self._last, host
        )
        self._queue.append(step)
        self._background.start(self._fork, kernel, step)
        if not self._working:
            self._working, self._idle = True, anyio.Event()
            self._background.start(self._work)

    async def _fork(self, kernel: Kernel, step: _Step) -> None:
        if self.by_source:
            step.unsaved = "under a policy a session is made again by running its cells"
            step.forked.set()
            return
        try:
            if self._trials and not self._slots.value:
                self._trials[0].close()
            with anyio.move_on_after(_SLOT_SECONDS):
                await self._slots.acquire()
                step.has_slot = True
            if step.has_slot:
                step.capture = await kernel.capture()
        except SessionClosed as error:  # it is committed by its source
            step.unsaved = str(error)
        except CaptureFailed as error:
            step.unsaved, step.failure = str(error), error
        finally:
            step.forked.set()

    async def forked(self) -> None:
        """Until the state of the newest step is held, so that the next one may change it."""
        if self._queue:
            await self._queue[-1].forked.wait()

    async def _work(self) -> None:
        try:
            while self._queue:
                step = self._queue[0]
                await step.forked.wait()
                try:
                    await self._commit(step)
                    self._failure = None
                except CellblockError as error:  # the journal still has the step; whoever asks for it is told
                    self._failure = error
                    self._unwritten = self._unwritten.then(step.changes)
                finally:
                    if step.capture is not None:
                        step.capture.close()
                    if step.has_slot:
                        self._slots.release()
                    self._queue.popleft()
        finally:
            self._working = False
            self._idle.set()

    async def _commit(self, step: _Step) -> None:
        batch = await to_thread.run_sync(self._held.batch)
        with batch:
            snapshot = await self._read(step, batch.put)
            commit = await to_thread.run_sync(self._write, batch, step, snapshot)
        if snapshot is not None:
            self._note_saved(step, snapshot)
        elif step.failure is not None:
            if self._stateless is None:
                self._to_tell += (_everything_since(step.number, step.failure),)
            self._stateless = (step.number if self._stateless is None else self._stateless[0], step.failure)
        self._commits[step.state] = commit.id

    def _note_saved(self, step: _Step, snapshot: Snapshot) -> None:
        """Find out what a snapshot lacks, and have what is new in it loaded once."""
        self._snapshot, self._stateless = snapshot, None
        saved = {one.name for one in snapshot.names}
        missing = [replace(one, alive=True) for one in snapshot.lost if one.name not in saved]
        before = {one.name for one in self._missing}
        self._missing = tuple(missing)
        newly = [one for one in missing if one.name not in before]
        self._newly_lost = tuple(one for one in newly if not one.type.startswith(PART))
        groups = {one.key: one for one in snapshot.groups}
        held = {one.name: groups[one.group] for one in snapshot.names}
        self._unloadable = {name: one for name, one in self._unloadable.items() if held.get(name) == one[0]}
        self._tell(newly)
        self._told.update(one.name for one in missing)
        if (capture := step.capture) is not None:
            self._trials.append(capture)
            self._background.start(self._try, capture, step.has_slot, held)
            step.capture, step.has_slot = None, False

    def _tell(self, lost: Sequence[Lost]) -> None:
        if not self.strict:
            self._to_tell += tuple(one for one in lost if one.name not in self._told)

    async def _try(self, capture: Capture, has_slot: bool, held: Mapping[str, Group]) -> None:
        """Take up which names of a snapshot cannot be loaded, unless they are others by then."""
        try:
            failed = [replace(one, alive=True) for one in await capture.trial() if one.name in held]
            now = {} if self._snapshot is None else {one.key: one for one in self._snapshot.groups}
            failed = [one for one in failed if now.get(held[one.name].key) == held[one.name]]
            fresh = [one for one in failed if one.name not in self._unloadable]
            self._unloadable.update((one.name, (held[one.name], one)) for one in failed)
            self._newly_lost += tuple(fresh)
            self._tell(fresh)
        finally:
            capture.close()
            self._trials.remove(capture)
            if has_slot:
                self._slots.release()
            self._tried.set()
            self._tried = anyio.Event()

    async def tried(self) -> None:
        """Until what the newest commits wrote has been loaded once."""
        while self._trials:
            await self._tried.wait()

    async def _read(self, step: _Step, put: Callable[[bytes], str]) -> Snapshot | None:
        if (capture := step.capture) is None:
            return None
        try:
            await capture.begin(self._snapshot)
            while isinstance(event := await capture.read(), Chunk):
                await to_thread.run_sync(put, event.data)
        except CaptureFailed as error:
            step.unsaved, step.failure = str(error), error
            return None
        return event

    def _write(self, batch: Batch, step: _Step, snapshot: Snapshot | None) -> Commit:
        written = self._written.copy()
        detail: dict[str, JSON] = {} if snapshot is None else put_snapshot(batch, written, snapshot)
        changes = self._unwritten.then(step.changes)
        written.roots["cells"], links = self.tree.write(batch, self._held, written.roots.get("cells"), changes)
        if step.cell is not None:
            detail["cell"] = links.get(step.cell.id) or records(put_cell(batch, step.cell, step.parts))
        if step.answers:
            detail["answers"] = records(batch.record(step.answers))
        if snapshot is None:
            detail["unsaved"] = step.unsaved
            if step.host is not None:
                detail["host"] = _kept(batch, step.host)
        if step.cell is not None:
            detail["rolled_back"] = step.cell.rolled_back
        commit = batch.commit(
            kind=step.kind,
            message=step.message,
            number=step.number,
            snapshot=snapshot is not None,
            trees=written.roots,
            detail=detail,
            through=step.through,
        )
        self._written, self._unwritten = written, Changes()
        return commit

    # ----------------------------------------------------------------------------- resuming

    async def newest(self) -> Past | None:
        """What leads to where the session is, the journal included; None where it has not begun."""

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

    async def log(self, revision: str, limit: int) -> list[Commit]:
        """The commits that lead to a revision, newest first."""
        return await to_thread.run_sync(lambda: list(islice(self._held.log(revision), limit)))

    async def diff(self, before: str, after: str) -> Diff:
        """What lies between two revisions."""

        def found() -> Diff:
            return difference(self._held, self._held.resolve(before), self._held.resolve(after))

        return await to_thread.run_sync(found)

    async def tag(self, name: str, revision: str) -> None:
        """Name a commit."""
        await to_thread.run_sync(lambda: self._held.tag(name, at=revision))

    async def found(self, other: str) -> Commit:
        """The commit that a revision means, or where another session of the user stands."""
        return await to_thread.run_sync(find, self._held, other)

    async def why_private(self, other: str) -> str:
        """Why the user's session of that name holds private data; "" where it does not, or there is none."""
        return await to_thread.run_sync(why_private, self._store, self._held.user, other)

    async def merge(self, theirs: Commit, prefer: Literal["ours", "theirs"] | None) -> Commit:
        """Make a commit of the session's newest and another."""
        return await to_thread.run_sync(merge, self._held, theirs, prefer)

    async def fork(self, name: str, seed: int) -> Lasting:
        """Another session that stands where this one does."""

        def forked() -> Lasting:
            store = open_store(self._url)
            try:
                store.fork(self._held.user, self._held.name, name)
                held = store.hold(self._held.user, name, create=False)
                held.configure({**self._held.settings, "seed": str(seed)})
                other = Lasting(self._url, store, held)
                other.by_source, other.strict, other.otherwise = self.by_source, self.strict, self.otherwise
            except BaseException:
                store.close()
                raise
            other._written, other._snapshot, other._last = self._written.copy(), self._snapshot, 0
            other.tree = self.tree.copy(other._source)
            return other

        return await to_thread.run_sync(forked)

    def stands(self, state: int, commit: str | None) -> None:
        """The kernel's state of this number is that of a commit; None is the newest."""
        self._commits[state] = commit or str(self._held.head().commit)

    async def went_back(self, state: int) -> None:
        """The kernel is in an earlier state again: so is the session, at the newest commit that led there."""
        self._commits = {number: commit for number, commit in self._commits.items() if number <= state}
        await self.move(await self.resolve(self._commits[max(self._commits)]))

    async def move(self, commit: Commit) -> None:
        """Go on from another commit; those that are left stay in the store."""

        def moved() -> None:
            self._held.move(commit.id, through=self._last)
            self._written, self._unwritten = read_written(self._held, commit), Changes()

        await to_thread.run_sync(moved)

    async def past(self, head: Commit, *, journal: bool) -> Past:
        """What leads to a commit, and with `journal` to what was logged after it.

        The bytes of its state are read from here on, until `end_reading`.
        """

        def read() -> Past:
            past = leading_to(self._held, head)
            if journal:
                self._written, self._snapshot = read_written(self._held, head), past.snapshot
                entries = self._held.journal()
                followed_by(past, entries)
                self._last = entries[-1].number if entries else self._last
            return past

        past = await to_thread.run_sync(read)
        self.end_reading()
        if past.snapshot is not None:
            self._ahead = Ahead(self._get, past.snapshot)
        return past

    def earlier(self, past: Past) -> Earlier:
        """The cells that the notebook of what leads to a commit begins with."""
        return Earlier(self._source, past.cells)

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


def _everything_since(number: int, failure: CellblockError) -> Lost:
    """What is at risk where states cannot be saved."""
    remedy = f"these cells are run again when the session is opened, since {failure.args[0]}"
    return Lost(name=f"everything since cell {number}", type="", reason=str(failure.args[0]), remedy=remedy, alive=True)


def _kept(batch: Batch, step: HostStep) -> JSON:
    return {"do": step.do, "name": step.name, "buffers": blobs(*(batch.put(memoryview(one)) for one in step.buffers))}
