"""A session's past: resuming it from a store, its log, going to another of its versions, merging, and sleeping."""

from __future__ import annotations

import contextlib
import random
import time
from functools import partial
from itertools import zip_longest
from typing import Literal

import anyio
from anyio import to_thread

from cellblock.cell import Cell, CellState, Lost
from cellblock.differences import Diff
from cellblock.errors import CellblockError
from cellblock.executors.protocol import Capabilities, Kernel, Unloadable
from cellblock.limits import ExecutionLimits
from cellblock.session.background import Background
from cellblock.session.execution import recover
from cellblock.session.hoststeps import HostStep
from cellblock.session.notebook import Notebook
from cellblock.session.tools import Toolbox
from cellblock.session.turns import Turns
from cellblock.session.unbroken import unbroken
from cellblock.state import Resumed

TYPE_CHECKING = False
if TYPE_CHECKING:  # what only sessions that last need
    from cellblock.session.lasting import Lasting
    from cellblock.session.past import Past
    from cellblock.snapshots import Snapshot
    from cellblock.store import Commit


_MOST_LEFT_OUT = 5
"""So many groups of a snapshot whose values end the process that loads them; then its restore fails."""


class Versions(Turns):
    """What a session that lasts can do with its past."""

    def __init__(self, *, limits: ExecutionLimits, seed: int, toolbox: Toolbox, name: str | None) -> None:
        super().__init__(limits=limits, seed=seed, toolbox=toolbox)
        self.seed = seed
        self.name = name
        self.resumed: Resumed | None = None
        """What the session was resumed from, where it existed before."""
        self._left_out: tuple[str, ...] = ()
        self._capabilities: Capabilities | None = None
        self._background = Background()

    async def _opened(self) -> Kernel:
        """A new kernel with the session's tools."""
        raise NotImplementedError

    @property
    def _replays_live(self) -> bool:
        """Whether a cell that is run again would call functions of the host's again."""
        raise NotImplementedError

    async def _resume(self, lasting: Lasting, past: Past | None) -> None:
        """Go on from where the session was, or begin one that is new."""
        await self._turns.acquire()
        try:
            kernel = self._living()
            if past is None:
                lasting.follow(self.notebook)
                await lasting.start(kernel)
            else:
                self.resumed = await self._rebuild(lasting, kernel, past)
        finally:
            self._give_turn()

    async def _rebuild(self, lasting: Lasting, kernel: Kernel, past: Past, *, keep_notebook: bool = False) -> Resumed:
        """Bring a kernel that has run nothing yet to where a commit and what follows it lead."""
        from cellblock.session.past import interrupted, replaying, rolled_back, unrepeated

        lost = () if past.snapshot is None else await self._restore(lasting, kernel, past.snapshot)
        if not keep_notebook:
            await self._begin_notebook(lasting, past)
        notebook = self.notebook
        self._reseed(past.number)
        self._cells, self._state = {}, kernel.states[-1]
        lasting.stands(kernel.states[-1], past.base)
        replayed = []
        for replay, commit in zip_longest(past.replays, past.commits):
            if isinstance(replay, HostStep):
                await self._do_again(kernel, replay)
                lasting.stands(kernel.states[-1], commit)
                continue
            if replay.rolled_back and commit is not None:
                lasting.stands(kernel.states[-1], commit)
                continue
            if replay.rolled_back:
                notebook.record(rolled_back(replay), {})
                lasting.commit(kernel, notebook[replay.id], {})
                continue
            if self._replays_live:
                notebook.record(unrepeated(replay), {})
                if commit is None:
                    lasting.commit(kernel, notebook[replay.id], {})
                else:
                    lasting.stands(kernel.states[-1], commit)
                continue
            self._count = replay.number - 1
            draft = Cell(
                id=replay.id, number=replay.number, kind=replay.kind, source=replay.source, state=CellState.RUNNING
            )
            execution = self._start(kernel, draft, replaying(replay))
            replayed.append(await execution.to_end())
            notebook.record(replayed[-1], execution.recorder.blobs)
            self._settle(draft.id)
            if commit is not None:
                lasting.stands(kernel.states[-1], commit)
            else:
                lasting.commit(kernel, replayed[-1], execution.recorder.blobs)
                await lasting.forked()
        self._count = past.number
        begun = None if past.begun is None else interrupted(past.begun)
        if begun is not None:
            notebook.record(begun, {})
            lasting.commit(kernel, begun, {})
        self._lost += lost
        return Resumed(
            commit=past.base, replayed=tuple(replayed), interrupted=begun, lost=lost, left_out=self._left_out
        )

    async def _begin_notebook(self, lasting: Lasting, past: Past) -> None:
        """A notebook of what leads to a commit. Its cells are read here only where they will be needed, or gone."""
        from cellblock.session.celltree import CellTree

        earlier = lasting.earlier(past)
        again = past.begun is not None or not all(isinstance(one, HostStep) for one in past.replays)
        if again or not lasting.rereads:
            await to_thread.run_sync(earlier.cells)
        self.notebook = Notebook(earlier)
        self.notebook.private = self._private
        lasting.follow(self.notebook, CellTree(earlier))

    def _reseed(self, number: int) -> None:
        """Have cells named by how many there were before."""
        self._ids = random.Random(f"{self.seed}/{number}")  # noqa: S311 - names cells; nothing rests on it

    async def _restore(self, lasting: Lasting, kernel: Kernel, snapshot: Snapshot) -> tuple[Lost, ...]:
        """What could not be saved, and what could be and not be loaded."""
        left_out: dict[str, str] | None = None
        try:
            while True:
                try:
                    rows = await kernel.restore(snapshot, lasting.fetch, left_out=left_out)
                    break
                except Unloadable as ended:
                    left_out = _without(left_out, ended)
                await recover(kernel, toolbox=self._toolbox)
        finally:
            lasting.end_reading()
        loaded = tuple(Lost(name=name, type=kind, reason=why, remedy=remedy) for name, kind, why, remedy in rows)
        told = {one.name for one in loaded}
        return tuple(one for one in snapshot.lost if one.name not in told) + loaded

    @property
    def unsaved(self) -> tuple[Lost, ...]:
        """What the session has and its newest commit could not save, each with the reason and a remedy."""
        return () if self._lasting is None else self._lasting.unsaved

    async def hibernate(self) -> None:
        """End the session's processes once all is in the store; the next call that needs them makes others.

        What cannot be saved is gone with them, and told as `lost` by the cell that comes next.
        """
        lasting = self._require_lasting("hibernate")
        await self._turns.acquire()
        try:
            await lasting.committed()
            if (kernel := self._kernel) is not None:
                self._capabilities = kernel.capabilities
                self._kernel, self._asleep = None, True
                with anyio.CancelScope(shield=True):
                    await kernel.close()
        finally:
            self._give_turn()

    async def _wake(self) -> None:
        lasting = self._require_lasting("wake")
        await self._go_on(lasting, await lasting.past(await lasting.resolve("HEAD"), journal=False))

    async def _resume_ended(self) -> None:
        """As after an end of the program: from the newest commit and what was logged after it."""
        lasting, ended = self._require_lasting("resume"), self._living()
        await lasting.finish()
        self._capabilities = ended.capabilities
        self._kernel, self._asleep = None, True
        with anyio.CancelScope(shield=True):
            await ended.close()
        resumed = await self._go_on(lasting, await lasting.past(await lasting.resolve("HEAD"), journal=True))
        self.resumed, self._note = resumed, _resumption(resumed)

    async def _go_on(self, lasting: Lasting, past: Past) -> Resumed:
        """In a new kernel, from where the session was when it gave up its own."""
        kernel = await self._opened_for(lasting)
        self._kernel, self._asleep = kernel, False
        try:
            return await self._rebuild(lasting, kernel, past, keep_notebook=True)
        except BaseException:
            self._kernel, self._asleep = None, True
            with anyio.CancelScope(shield=True):
                await kernel.close()
            raise

    async def _opened_for(self, lasting: Lasting) -> Kernel:
        """A new kernel for a state that is being read."""
        try:
            return await self._opened()
        except BaseException:
            lasting.end_reading()
            raise

    async def _doze(self, seconds: float) -> None:
        """Hibernate whenever nothing was done for so long. What the store does not take keeps the session awake."""
        while not self._closed:
            left = self._used + seconds - time.monotonic()
            if left <= 0 and not self._asleep and self._turns.value:
                with contextlib.suppress(CellblockError):
                    await self.hibernate()
                left = seconds
            await anyio.sleep(max(left, seconds / 10))

    async def _do_again(self, kernel: Kernel, step: HostStep) -> None:
        """What the host did once, as it was kept."""
        if (request := step.request(kernel)) is not None:
            await self._carry_out(kernel, request)
        else:
            await kernel.change_files(partial(step.change(), kernel.files))
        self._settle()

    async def flush(self) -> None:
        """Until all that was done is in the store for good, a loss of power included; `StoreError` where it is not."""
        await self._require_lasting("flush").flush()

    async def log(self, revision: str = "HEAD", *, limit: int = 50) -> list[Commit]:
        """The newest commits that lead to a revision, newest first: one for each step."""
        lasting = self._require_lasting("log")
        await lasting.committed()
        return await lasting.log(revision, limit)

    async def diff(self, before: str = "HEAD~1", after: str = "HEAD") -> Diff:
        """What lies between two revisions: names with previews, files with sizes, and the steps in between."""
        lasting = self._require_lasting("diff")
        await lasting.committed()
        return await lasting.diff(before, after)

    async def checkout(self, revision: str) -> None:
        """Go to the state of a commit: names, files and notebook. What comes next follows from there; nothing is lost.

        A revision is `HEAD~3`, a tag, a branch, or the beginning of a commit's id; `UnknownCommit` for anything else.
        """
        lasting = self._require_lasting("checkout")
        await self._acquire(wait=True)
        try:
            await lasting.committed()
            await self._go_to(lasting, await lasting.resolve(revision))
        finally:
            self._give_turn()

    async def _go_to(self, lasting: Lasting, commit: Commit) -> Kernel:
        past = await lasting.past(commit, journal=False)
        old, new = self._living(), await self._opened_for(lasting)
        stood = self.notebook, self._count, self._ids, self._cells, self._state
        self._kernel = new
        try:
            with lasting.as_it_was():
                await self._rebuild(lasting, new, past)
        except BaseException:
            self._kernel = old
            self.notebook, self._count, self._ids, self._cells, self._state = stood
            with anyio.CancelScope(shield=True):
                await new.close()
            raise
        await unbroken(partial(_leave, lasting, commit, old))
        return new

    async def merge(self, other: Versions | str, *, prefer: Literal["ours", "theirs"] | None = None) -> Commit:
        """Take over what another version has changed since the two parted: names with what they share, and files.

        `other` is a branch of this session: open, or by its name as the store has it; or a revision of this one. Both
        are parents of the commit. `MergeConflict`, and nothing is merged, where both changed the same, unless one is
        preferred.
        """
        lasting = self._require_lasting("merge")
        if isinstance(other, Versions):
            await other._require_lasting("merge").committed()
        await self._acquire(wait=True)
        try:
            await lasting.committed()
            name = other if isinstance(other, str) else str(other.name)
            theirs = await lasting.found(name)
            # not before: what is private is marked first, and may have come between
            if why := (await lasting.why_private(other) if isinstance(other, str) else other.private):
                await self.mark_private(f"merged {name}: {why}")
            merged = await lasting.merge(theirs, prefer)
            await self._go_to(lasting, merged)
            return merged
        finally:
            self._give_turn()

    async def tag(self, name: str, revision: str = "HEAD") -> None:
        """Give a commit a name of its own."""
        lasting = self._require_lasting("tag")
        await lasting.committed()
        await lasting.tag(name, revision)

    def _require_lasting(self, what: str) -> Lasting:
        self._require_usable()
        if self._lasting is None:
            raise CellblockError(f"{what} is for sessions with versions", hint='open it with a name: Session("name")')
        return self._lasting


async def _leave(lasting: Lasting, commit: Commit, old: Kernel) -> None:
    await lasting.move(commit)
    await old.close()


def _without(left_out: dict[str, str] | None, ended: Unloadable) -> dict[str, str]:
    """What to leave out next, after what was left out before. At first that is nothing: it is found out which to."""
    if left_out is None:
        return {}
    more = ended.groups - left_out.keys()
    if not more or len(left_out) >= _MOST_LEFT_OUT:
        raise ended
    return {**left_out, **dict.fromkeys(more, ended.reason)}


def _resumption(resumed: Resumed) -> str:
    """What a session says whose processes had ended."""
    again = ", ".join(str(cell.number) for cell in resumed.replayed)
    then = f"; run again after it: {again}" if again else ""
    commit = resumed.commit.removeprefix("sha256-")[:12]
    return f"[all processes of the session had ended: it was resumed from commit {commit}{then}]\n"
