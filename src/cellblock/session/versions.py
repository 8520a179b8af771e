"""A session's past: resuming it from a store, its log, going to another of its versions, merging, and sleeping."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import anyio

from cellblock.cell import Cell, Lost
from cellblock.differences import Diff
from cellblock.errors import CaptureFailed, CellblockError, RestoreFailed, SessionClosed, StoreError
from cellblock.executors.protocol import Capabilities, Kernel
from cellblock.executors.suspects import Suspects
from cellblock.hosting import to_thread
from cellblock.limits import ExecutionLimits
from cellblock.session.arguments import require_kind, require_text
from cellblock.session.background import Background
from cellblock.session.execution import recover
from cellblock.session.hoststeps import FORGET, HostStep, aside, not_done_again
from cellblock.session.notebook import Blob, Kept, Notebook
from cellblock.session.tools import Toolbox
from cellblock.session.turns import Turns
from cellblock.session.unbroken import unbroken
from cellblock.state import Resumed
from cellblock.text import line
from cellblock.wire.messages import Sow

TYPE_CHECKING = False
if TYPE_CHECKING:  # what only sessions that last need
    from cellblock.session.lasting import Lasting
    from cellblock.session.past import Logged, Past, Planned, Replay
    from cellblock.snapshots import Snapshot
    from cellblock.store import Commit


_MOST_SAID = 200
_RUN_AGAIN = "run the cell again"
_WENT_ON = "# what threads and processes did after their cells"
_COMMITS = 100
"""Times that another session which is merged may have begun another step meanwhile."""
_TRIES = 3
"""A step whose process is killed is taken again so often: it did not die of it the first time."""


class Versions(Turns):
    """Operations of a stored session on its past."""

    def __init__(self, *, limits: ExecutionLimits, seed: int, toolbox: Toolbox, name: str | None) -> None:
        super().__init__(limits=limits, seed=seed, toolbox=toolbox, name=name)
        self.seed = seed
        self.resumed: Resumed | None = None
        """Description of the resume, where it existed before."""
        self._left_out: tuple[str, ...] = ()
        self._lacking: tuple[str, ...] = ()
        """Arguments that the session had when it was open before and lacks now, each as "name=value"."""
        self._capabilities: Capabilities | None = None
        self._background = Background()

    async def _opened(self) -> Kernel:
        """A new kernel with the session's tools, and another where its process ends before it has them."""
        tries = 1
        while True:
            try:
                return await self._opened_once()
            except SessionClosed:
                if self._closed or tries == _TRIES:
                    raise
            tries += 1

    async def _opened_once(self) -> Kernel:
        raise NotImplementedError

    @property
    def _rests_after(self) -> float | None:
        """After how many seconds without a call it hibernates."""
        raise NotImplementedError

    @property
    def _replays_live(self) -> bool:
        """True if a cell that is run again would call functions of the host's again."""
        raise NotImplementedError

    async def _take_turn(self, *, wait: bool = True) -> None:
        self._background.end_lost()  # which may be about to have the session hibernate, and has its turn
        if self._rests_after is not None and self._background.is_idle and not self._closed:
            self._background.start(_doze, weakref.ref(self), self._rests_after)
        await super()._take_turn(wait=wait)

    async def _resume(self, lasting: Lasting, past: Past | None) -> None:
        """Go on from where the session was, or begin one that is new."""
        await self._take_turn()
        try:
            kernel = self._living()
            if past is None:
                lasting.follow(self.notebook)
                await lasting.start(kernel)
                self._settle("open")
            else:
                self.resumed = await self._go_on(lasting, kernel, past, keep_notebook=False)
                if self.resumed.replayed and not lasting.committer.by_source:  # else that is how it is opened each time
                    self._note = _resumption(self.resumed, "the session's last cells had not been saved")
        finally:
            self._give_turn()

    @contextlib.contextmanager
    def _rebuilding(self, lasting: Lasting) -> Iterator[None]:
        """Have the session stand where it stood until what is done within succeeds.

        Its place is nobody else's meanwhile: those without its turn wait for the end, or are told where it stood.
        """
        self._rebuilt = anyio.Event()
        try:
            with self._history.as_it_was(), lasting.as_it_was():
                yield
        finally:
            self._rebuilt.set()
            self._rebuilt = None

    async def _rebuild(self, lasting: Lasting, kernel: Kernel, past: Past, *, keep_notebook: bool = False) -> Resumed:
        """Bring a kernel that has run nothing yet to where a commit and what follows it lead."""
        lost = () if past.snapshot is None else await self._restore(lasting, kernel, past.snapshot)
        if not keep_notebook:
            await self._begin_notebook(lasting, past)
        self._history.begin_again()
        lasting.standing.go(past.base_step, past.base)
        self._settle(past.base_step)
        await self._sow(lasting, kernel, past.base_step)
        replayed, numbers = list[Cell](), self._history.count if keep_notebook else 0  # which undone cells have
        for planned in past.plan():
            if isinstance(planned.do, HostStep):
                if planned.do.do == FORGET:
                    lasting.delete_again(planned.do, planned.entries)
                    continue
                if not planned.overwritten:
                    lost += await self._do_again(kernel, planned.do, planned.answers)
                if planned.step:
                    during, overwritten = planned.during, planned.overwritten
                    self._commit(
                        kernel, planned.do, planned.step, during=during, overwritten=overwritten, again=planned
                    )
                else:
                    self._settle(planned.during)
                await self._sow(lasting, kernel, planned.step)
                continue
            again, unlike = await self._take_again(lasting, kernel, planned, planned.do)
            await self._sow(lasting, kernel, planned.step)
            replayed += again
            lost += unlike
        self._history.count = max(past.number, numbers)
        lost += await self._write_again(kernel)
        lost += (*lasting.lacks_settings, *past.lost())
        lasting.lacks_settings = ()  # told once
        if unread := past.unread():
            await lasting.journal.trim(unread)
        self._lost += lost
        begun, _ = (None if past.begun is None else await self._kept(past.begun.id)) or (None, {})
        return Resumed(
            commit=past.base, replayed=tuple(replayed), interrupted=begun, lost=lost, left_out=self._left_out
        )

    async def _sow(self, lasting: Lasting, kernel: Kernel, step: str) -> None:
        """Have the kernel draw what a branch drew that began after this step."""
        for seed in lasting.sown(step)[-1:]:
            await self._carry_out(kernel, Sow(seed=seed))
            self._settle()

    async def _take_again(
        self, lasting: Lasting, kernel: Kernel, planned: Planned, replay: Replay
    ) -> tuple[tuple[Cell, ...], tuple[Lost, ...]]:
        """Take the step that a cell was again, under the id that it had; the cell, where it was run, and how it differs
        from then.
        """
        from cellblock.session.past import unlike

        kept = await self._kept(replay.id)
        is_before = planned.commit is None and kept is not None and kept[0].number < replay.number
        before = self.notebook.hold(kept if is_before else planned.before)
        cell, blobs = self._not_repeated(replay, kept)
        runs = cell is None
        lost: tuple[Lost, ...] = (_stopped(replay),) if replay.stopped else ()
        if cell is None:
            self._history.count = replay.number - 1
            cell, blobs, unused = await self._run_again(kernel, replay.draft(), planned)
            _require_here(kernel)
            lacking = self._lacking or _too_little(cell, self.limits)
            if replay.ok and not cell.ok and lacking:  # nothing of this is committed
                raise _unlike_before(cell, lacking)
            lost = unlike(replay, cell, unused)
        if planned.commit is None or (runs and kept is not None):  # else it was deleted
            self.notebook.record(cell, blobs)
        state = self._settle(planned.step, replay.id, before)
        lasting.commit(kernel, state, planned.step, cell, blobs, again=planned)
        await lasting.committer.forked()
        return (cell,) if runs else (), lost

    async def _run_again(self, kernel: Kernel, draft: Cell, planned: Planned) -> tuple[Cell, Mapping[str, Blob], str]:
        """Run a cell again, and once more where its process is killed meanwhile; the functions of which it did not ask
        for all answers.
        """
        from cellblock.session.past import Replaying

        tries = 1
        while True:
            execution = self._start(kernel, draft, planned.step, answers := Replaying(planned.answers))
            cell = await execution.to_end()
            if not cell.rolled_back or kernel.ended or tries == _TRIES:
                return cell, execution.recorder.blobs, answers.unused
            tries += 1

    def _not_repeated(self, replay: Replay, kept: Kept | None) -> tuple[Cell | None, Mapping[str, Blob]]:
        """The record of a cell that is not run again, with the binary parts of its outputs; None for the others.

        `kept` is what the notebook has of it.
        """
        from cellblock.session.past import interrupted, rolled_back, unrepeated

        if not replay.ended:
            # it may be a call that the store refused, and that was made again
            return kept if kept is not None and kept[0].number >= replay.number else (interrupted(replay), {})
        if replay.rolled_back:
            return kept or (rolled_back(replay), {})
        if replay.stopped:
            return unrepeated(replay, "it was interrupted, and how far it had come is not known"), {}
        if self._replays_live:
            return unrepeated(replay, "its policy grants what is the host's"), {}
        return None, {}

    async def _begin_notebook(self, lasting: Lasting, past: Past) -> None:
        """A notebook of what leads to a commit. Its cells are read here only where they will be needed, or gone."""
        earlier = lasting.earlier(past)
        again = not all(isinstance(one.do, HostStep) for one in past.steps)
        if again or not lasting.rereads:
            await to_thread.run_sync(earlier.cells)
        self._history.notebook = Notebook(earlier, account=self._account)
        self.notebook.private = self._private
        lasting.follow(self.notebook)

    async def _restore(self, lasting: Lasting, kernel: Kernel, snapshot: Snapshot) -> tuple[Lost, ...]:
        """Losses: parts that could not be saved, and parts that were saved and could not be loaded."""
        suspects = Suspects()
        try:
            while True:
                try:
                    rows = await kernel.restore(snapshot, lasting.fetch, suspects=suspects)
                    break
                except RestoreFailed:
                    if not suspects.tries_again():
                        raise
                await unbroken(partial(recover, kernel, toolbox=self._toolbox))
        finally:
            lasting.end_reading()
        loaded = tuple(Lost(name=name, type=kind, reason=why, remedy=remedy) for name, kind, why, remedy in rows)
        told = {one.name for one in loaded}
        return tuple(one for one in snapshot.lost if one.name not in told) + loaded

    @property
    def unsaved(self) -> tuple[Lost, ...]:
        """Losses: parts of the state that the newest commit could not save, each with the reason and a remedy.

        A commit is made after its cell has ended: `flush` waits for it, and `cell.lost` tells at once of some.
        """
        return () if self._lasting is None or self._lasting.committer.is_closed else self._lasting.unsaved

    async def hibernate(self) -> None:
        """End the session's processes once all is in the store; the next call that needs them makes others.

        Names that cannot be saved are gone with them, and told as `lost` by the cell that comes next. `CaptureFailed`
        where no state could be saved: then the processes go on.
        """
        lasting = self._require_lasting("hibernate")
        await self._take_turn()
        try:
            await self._catch_up(lasting)
            await self._save(lasting)
            while (kernel := self._kernel) is not None and self._meanwhile:
                self._note_meanwhile(kernel)
                await self._save(lasting)
            if kernel is not None:
                self._capabilities = kernel.capabilities
                self._kernel, self._asleep = None, True
                with anyio.CancelScope(shield=True):
                    await kernel.close()
        finally:
            self._give_turn()

    async def _save(self, lasting: Lasting) -> None:
        """Until the newest state is in the store; of processes that have ended there is none but by their steps."""
        try:
            await lasting.saved()
        except CaptureFailed:
            if self._kernel is None or not await self._kernel.ending():
                raise

    async def _wake(self) -> None:
        await self._go_on(self._require_lasting("wake"))

    async def _resume_ended(self) -> None:
        """As after an end of the program: from the newest commit and what was logged after it."""
        lasting, ended = self._require_lasting("resume"), self._living()
        self._capabilities = ended.capabilities
        self._kernel, self._asleep = None, True
        with anyio.CancelScope(shield=True):
            await ended.close()
        resumed = await self._go_on(lasting)
        self.resumed, self._note = resumed, _resumption(resumed, "all processes of the session had ended")

    async def _go_on(
        self, lasting: Lasting, kernel: Kernel | None = None, past: Past | None = None, *, keep_notebook: bool = True
    ) -> Resumed:
        """Bring a new kernel to where the session was, and another where that ends meanwhile."""
        tries = 1
        with self._rebuilding(lasting):
            while True:
                past = past or await lasting.newest()
                assert past is not None  # it has begun
                kernel = kernel or await self._opened_for(lasting)
                self._kernel, self._asleep = kernel, False
                try:
                    return await self._rebuild(lasting, kernel, past, keep_notebook=keep_notebook)
                except BaseException as error:
                    again = isinstance(error, CellblockError) and kernel.ended and tries < _TRIES
                    self._kernel, self._asleep = None, True
                    with anyio.CancelScope(shield=True):
                        await kernel.close()
                    if not again:
                        raise
                kernel = past = None
                tries += 1

    async def _opened_for(self, lasting: Lasting) -> Kernel:
        """A new kernel for a state that is being read."""
        try:
            return await self._opened()
        except BaseException:
            lasting.end_reading()
            raise

    async def _rest(self, seconds: float) -> float:
        """Hibernate if nothing was done for so long, and tell in how long to look again.

        What the store does not take keeps the session awake.
        """
        left = seconds - self._lock.idle_seconds
        if left <= 0 and not self._asleep and self._lock.is_free:
            with contextlib.suppress(CellblockError):
                await self.hibernate()
            left = seconds
        return max(left, seconds / 10)

    async def _do_again(self, kernel: Kernel, step: HostStep, answers: tuple[Logged, ...]) -> tuple[Lost, ...]:
        """Do again what the host did, as it was kept; the loss where it cannot be done again."""
        from cellblock.session.past import Replaying

        why = ""
        if step.clears_files:
            await step.change(kernel, again=True)
        if (request := step.request(kernel)) is not None:
            for _ in range(_TRIES):
                cell = await self._carry_out(kernel, request, answer=Replaying(answers))
                if not cell.rolled_back or kernel.ended:
                    break
            why = "" if cell.error is None else f"{cell.error.type}: {cell.error.message}"
        else:
            try:
                await step.change(kernel, again=True)
                kernel.note_files()
            except (CellblockError, OSError) as error:
                why = str(error)
        _require_here(kernel)
        return (not_done_again(step, why),) if why else ()

    async def flush(self) -> None:
        """Until all that was done is in the store for good, a loss of power included; `StoreError` where it is not."""
        lasting = self._require_lasting("flush")
        await self._catch_up_between_calls(lasting)
        await self._save(lasting)
        await lasting.flush()

    async def _catch_up(self, lasting: Lasting) -> None:
        """Have committed what threads and processes did since the newest step, and its state if the store lacks that.

        Both belong to that step. For one who has the turn; `committed` must follow.
        """
        lasting.commit_deletions()
        await lasting.committed()  # what saves states is no process of a cell's
        await lasting.read(lasting.standing.tip, self._state_after)
        if (kernel := self._kernel) is None or lasting.committer.by_source or await kernel.ending():
            return
        if lasting.lacks_state or await kernel.stirred():
            try:
                await self._asked(kernel, aside(_WENT_ON), HostStep("run", buffers=(_WENT_ON.encode(),)), changes=True)
            except SessionClosed:
                if self._closed or not await kernel.ending():  # else its steps are in the store, and taken again
                    raise

    async def _catch_up_between_calls(self, lasting: Lasting) -> None:
        """The same for one who has not the turn. While another call has it, what that leads to is a state to come."""
        if self._lock.is_free:
            await self._take_turn()
            try:
                await self._catch_up(lasting)
            finally:
                self._give_turn()
        elif not self._closed:  # which waits for no state that is being made again
            await self._was_read(lasting, lasting.standing.tip)

    async def _was_read(self, lasting: Lasting, step: str) -> None:
        """The host has read what a step led to: until that is in the store, or cannot be. Needs no turn."""
        await self._until_rebuilt()
        await lasting.read(step, self._state_after)
        if lasting.lacks_state and self._lock.is_free:  # the checkpoint that had it has ended
            with contextlib.suppress(StoreError):  # the next cell says so
                await self._catch_up_between_calls(lasting)

    def _state_after(self, step: str) -> tuple[Kernel, int] | None:
        """The kernel and its state after a step; None where it has none, or goes on from there and keeps no states."""
        state = self._history.state_after(step)
        if self._kernel is None or state is None or (self._keeps_no_states and self._under_way):
            return None
        return self._kernel, state

    async def log(self, revision: str = "HEAD", *, limit: int = 50) -> list[Commit]:
        """The newest commits that lead to a revision, newest first: one for each step."""
        require_text(revision=revision)
        if limit < 0:
            raise ValueError(f"limit must be 0 or more, not {limit}")
        lasting = self._require_lasting("log")
        await self._committed()
        return await lasting.log(revision, limit)

    async def diff(self, before: str = "HEAD~1", after: str = "HEAD") -> Diff:
        """Difference between two revisions: names with previews, files with sizes, and the steps in between."""
        require_text(before=before, after=after)
        lasting = self._require_lasting("diff")
        await self._committed()
        return await lasting.diff(before, after)

    async def checkout(self, revision: str) -> None:
        """Go to the state of a commit: names, files and notebook. What comes next follows from there; nothing is lost.

        A revision is `HEAD~3`, a tag, a branch, or the beginning of a commit's id; `UnknownCommit` for anything else.
        """
        require_text(revision=revision)
        lasting = self._require_lasting("checkout")
        await self._acquire(wait=True)
        try:
            await self._catch_up(lasting)
            await lasting.committed()
            await self._go_to(lasting, await lasting.resolve(revision), undoes=False)
        finally:
            self._give_turn()

    async def _go_to(self, lasting: Lasting, commit: Commit, *, undoes: bool = True) -> Kernel:
        past = await lasting.past(commit, journal=False)
        deleted = await lasting.deleted_since(commit.id) if undoes else set()
        old, new = self._living(), await self._opened_for(lasting)
        left, self._kernel = self.notebook, new
        try:
            with self._rebuilding(lasting):
                await self._rebuild(lasting, new, past)
        except BaseException:
            self._kernel = old
            with anyio.CancelScope(shield=True):
                await new.close()
            raise
        deleted |= left.deletions().cells.keys()  # some until now
        await unbroken(partial(_leave, lasting, commit, [*deleted], old))
        return new

    async def merge(self, other: Versions | str, *, prefer: Literal["ours", "theirs"] | None = None) -> Commit:
        """Take over what another version has changed since the two parted: names with what they share, and files.

        `other` is a branch of this session, or its name, or else a revision. One that is not open here is merged as the
        store has it; CellblockError where its journal holds more. Both are parents of the commit; where there is
        nothing to take over, it is the newest one of this session. `MergeConflict`, and nothing is merged, where both
        changed the same, unless one is preferred.
        """
        if isinstance(other, str):
            require_text(other=other)
        if prefer not in (None, "ours", "theirs"):
            raise ValueError(f'prefer must be "ours", "theirs" or None, not {prefer!r:.80}')
        lasting = self._require_lasting("merge")
        if isinstance(other, str) and isinstance(beside := lasting.beside(other), Versions):
            other = beside
        elif not isinstance(other, str):
            require_kind(other, type(self), "other")
        if not isinstance(other, str):
            if other._closed and other.name is not None:
                raise SessionClosed(
                    f"session {other.name!r}, which is to be merged, was closed", hint=f"give its name: {other.name!r}"
                )
            await other._catch_up_between_calls(other._require_lasting("merge"))
            await other._standing()
        await self._acquire(wait=True)
        try:
            await self._catch_up(lasting)
            if self._kernel is not None and await self._kernel.ending():  # their newest state has gone with them
                await self._resume_ended()
                await self._catch_up(lasting)
            await lasting.committed()
            # not before: what is private is marked first, and may have come between
            if isinstance(other, str):
                name, theirs = other, await lasting.found(other)
                why = await lasting.why_private(other)
            else:
                name, theirs = str(other.name), await lasting.adopted(*await other._standing())
                why = other.private
            if why:
                await self.mark_private(f"merged {name}: {why}")
            try:
                merged = await unbroken(partial(lasting.merge, self._history.new_step(), theirs, name, prefer))
                if merged.id != lasting.standing.head:
                    await self._go_to(lasting, merged, undoes=False)
            except BaseException:
                await unbroken(lasting.stay)
                raise
            return merged
        finally:
            self._give_turn()

    async def _standing(self) -> tuple[Lasting, str]:
        """The commit where the session stands once what it has done is in the store with its state, for one without its
        turn."""
        lasting = self._require_lasting("merge")
        for _ in range(_COMMITS):
            await self._committed()
            await self._was_read(lasting, lasting.standing.tip)
            if self._rebuilt is None and lasting.standing.is_committed:
                break
        return lasting, lasting.standing.head

    async def tag(self, name: str, revision: str = "HEAD") -> None:
        """Give a commit a name of its own."""
        require_text(name=name, revision=revision)
        lasting = self._require_lasting("tag")
        await self._committed()
        await lasting.tag(name, revision)

    def _require_lasting(self, what: str) -> Lasting:
        self._require_usable()
        if self._lasting is None:
            raise CellblockError(f"{what} is for sessions with versions", hint='open it with a name: Session("name")')
        self._require_one_loop()
        return self._lasting


async def _leave(lasting: Lasting, commit: Commit, deleted: Sequence[str], old: Kernel) -> None:
    try:
        await lasting.move(commit.id, deleted)
    finally:
        await old.close()


def _require_here(kernel: Kernel) -> None:
    """SessionClosed where a kernel has ended in which steps are taken again: none of what it did counts."""
    if kernel.ended:
        raise SessionClosed(
            "the session's processes ended while its steps were taken again", hint="use the session once more"
        )


def _unlike_before(cell: Cell, lacking: tuple[str, ...]) -> CellblockError:
    """A cell that had ended well, and fails where the session is opened without what it had."""
    why = "" if cell.error is None else f": {cell.error.type}: {cell.error.message[:_MOST_SAID]}"
    return CellblockError(
        f"cell {cell.number} had ended well, its state was not saved, and run again it fails{line(why)}",
        hint=f"give what the session had before: {', '.join(lacking)} (tools are not called; their answers are stored)",
    )


def _too_little(cell: Cell, limits: ExecutionLimits) -> tuple[str, ...]:
    """A limit that allows for more than the one that a cell met."""
    match cell.error and cell.error.kind:
        case "timeout" if cell.timeout_seconds is None:
            return (f"a timeout_seconds above {limits.timeout_seconds:g}",)
        case "memory":
            return (f"a max_memory_mb above {limits.max_memory_mb}",)
        case _:
            return ()


def _stopped(replay: Replay) -> Lost:
    """A cell that was interrupted before its state was saved."""
    why = "it was interrupted, and is not run again, as how far it had come is not known"
    return Lost(name=f"cell {replay.number}", type="cell", reason=why, remedy=_RUN_AGAIN)


def _resumption(resumed: Resumed, why: str) -> str:
    """The note of a session that was resumed, and why: a cell that was run again may have made something else."""
    again = ", ".join(str(cell.number) for cell in resumed.replayed)
    then = f"; run again after it: {again}" if again else ""
    commit = resumed.commit.removeprefix("sha256-")[:12]
    return f"[{why}: it was resumed from commit {commit}{then}]\n"


async def _doze(find: weakref.ref[Versions], seconds: float) -> None:
    """Hibernate a session whenever nothing was done for so long, until it is closed or nobody holds it."""
    while (session := find()) is not None and not session._closed:
        left = await session._rest(seconds)
        del session
        await anyio.sleep(left)
