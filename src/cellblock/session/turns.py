"""One request at a time on one kernel: whose turn it is, what is sent down, and the record of what came of it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio

from cellblock.callers import Caller, callers, waiting_for
from cellblock.cell import Cell, CellKind, CellState, Lost
from cellblock.errors import CellblockError, LeaseLost, SessionBusy, SessionClosed, StoreError, UnpicklableError
from cellblock.executors.protocol import FileVersion, Kernel, Recovery
from cellblock.hosting import clock, to_thread
from cellblock.hosting.loops import OfLoop
from cellblock.hosting.shortage import named
from cellblock.limits import ExecutionLimits
from cellblock.session.account import Account
from cellblock.session.arguments import require_seconds, require_text
from cellblock.session.calls import Answer
from cellblock.session.execution import HOST_SECONDS, Execution, recover, sendable
from cellblock.session.history import History, Stand
from cellblock.session.hoststeps import ASIDE, HostStep, host_step, is_own, not_done_again
from cellblock.session.lock import SessionLock
from cellblock.session.notebook import Kept, Notebook, Record
from cellblock.session.record import Recorder, also_lost, at_risk, failed_cell, losses, unsaved_error
from cellblock.session.tools import Asked, Toolbox
from cellblock.session.unbroken import unbroken
from cellblock.text import exact
from cellblock.wire.messages import Bind, Clear, Request, Run, Shell, ToolReply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.lasting import Lasting  # a store and its database are imported for sessions that last
    from cellblock.session.past import Planned
    from cellblock.session.unreached import Reach
    from cellblock.store import Commit

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_REASON, _MOST_NOTED = 200, 2000
_HOST_STEP = Cell(id="host", number=0, source="", state=CellState.RUNNING, kind="host")


@dataclass(frozen=True, slots=True)
class Change:
    """A host's change of a file `during` a step, by its id, and the version of the file that it left.

    `entries` are the numbers of what the journal holds of it.
    """

    host: HostStep
    left: FileVersion | None
    during: str
    entries: tuple[int, ...] = ()


class Turns:
    """Requests of a session to its kernel. Calls are first come, first served."""

    _changing = OfLoop(anyio.Lock)
    """Held over a change of files by the host, until it is known here, and over a recovery."""

    def __init__(self, *, limits: ExecutionLimits, seed: int, toolbox: Toolbox, name: str | None) -> None:
        self.name = name
        """The session's name in its store; None where it does not last."""
        self.limits = limits
        self._account = toolbox.account = Account(limits.max_host_mb * 2**20)
        self._kernel: Kernel | None = None
        self._lock = SessionLock()
        self._history = History(Notebook(account=self._account), seed)
        self._lost: tuple[Lost, ...] = ()
        self._stopped = False
        """True if the cell that runs was interrupted."""
        self._before: Record | None = None
        """The notebook's record of it before: an undo leaves what it did then."""
        self._meanwhile: dict[str, Change] = {}
        """Changes of the host to files while somebody had the turn, by the ids of these steps."""
        self._under_way = ""
        """The id of the step that is being taken."""
        self._toolbox = toolbox
        self._has_door = False
        self._private = ""
        self._private_since = 0
        """The number of the cell in which, or after which, that was said; 0 is before the first."""
        self._private_paths: tuple[str, ...] = ()
        self._lasting: Lasting | None = None
        self._asleep = False
        self._rebuilt: anyio.Event | None = None
        """Set once the session's kernel is in its state again; None where it is."""
        self._note = ""
        """Note for the next cell on how the session came to be where it is."""
        self._caller = Caller(toolbox, "")
        """The cell under way, for functions that a kernel calls in its own thread."""
        self._closed = False
        self._closing_loop: asyncio.AbstractEventLoop | None = None
        """The event loop that it was closed on."""
        self._host = os.getpid()

    @property
    def notebook(self) -> Notebook:
        """The session's cells and what they showed."""
        return self._history.notebook

    def _offers(self, tool: str) -> bool:
        """True if cells can call a function of the host by that name."""
        return tool in self._toolbox

    @property
    def private(self) -> str:
        """Why the session holds private data; "" where nobody has said that it does."""
        return self._private

    async def mark_private(self, reason: str) -> None:
        """From now on the session has no network, and cannot call functions that are declared outward. For good.

        Does not wait for its turn. When this returns, what is open is cut, and the mark is in the store.
        """
        if not _in_a_line(reason):
            raise ValueError("the reason why the session is private must be a text of one line")
        self._close_off(reason, self._history.count)
        if self._lasting is not None and not self._lasting.settings.get("private"):
            await self._lasting.configure({"private": self._private, "private_since": self._private_since})

    def _close_off(self, reason: str, since: int = 0) -> None:
        """The part of `mark_private` that happens at once."""
        if not self._private:
            self._private = self.notebook.private = self._toolbox.private = _in_a_line(reason)[:_MOST_REASON]
            self._private_since = since
        if self._kernel is not None:
            self._kernel.cut_off()

    def _reach(self) -> Reach:
        """The hosts that the session can connect to, or the reason why to none."""
        raise NotImplementedError

    def _living(self) -> Kernel:
        """The kernel, of a session that does not sleep."""
        self._require_usable()
        if self._kernel is None:
            raise SessionClosed("the session is not open", hint="use `async with` or `await session.open()`")
        return self._kernel

    @property
    def _is_here(self) -> bool:
        """True if the session is this process's, and not of the one that this was forked from."""
        return os.getpid() == self._host

    def _require_here(self) -> None:
        """SessionClosed for the session of another process."""
        if not self._is_here:
            raise SessionClosed("the session belongs to the process this one was forked from", hint="open a new one")

    def _require_usable(self) -> None:
        self._require_here()
        self._require_open()
        if self._kernel is None and not self._asleep:
            raise SessionClosed("the session is not open", hint="use `async with` or `await session.open()`")

    async def _awake(self) -> Kernel:
        """The kernel, of a session that may sleep, for one who does not have its turn."""
        self._require_usable()
        await self._until_rebuilt()
        self._require_usable()
        if self._asleep or (self._lasting is not None and self._living().ended):
            await self._acquire(wait=True)
            self._give_turn()
        return self._living()

    async def _is_replaced(self, kernel: Kernel) -> bool:
        """True if another kernel is, or will be, in a kernel's place."""
        if kernel is not self._kernel or self._lasting is None:
            return kernel is not self._kernel
        await kernel.ending()
        return kernel.ended

    async def _until_rebuilt(self) -> None:
        """Until the session's kernel is in its state, for one without its turn."""
        while self._rebuilt is not None:
            self._lock.require_going_on()
            await self._rebuilt.wait()

    async def _wake(self) -> None:
        """Give a session that sleeps a kernel again; whoever has its turn does so."""
        raise NotImplementedError

    async def _resume_ended(self) -> None:
        """The same for one whose processes have all ended."""
        raise NotImplementedError

    def _require_not_calling(self) -> None:
        """SessionBusy for a function that a cell of this session waits for: it cannot wait for that cell's end."""
        if (caller := waiting_for(self._toolbox)) is not None:
            session = "the session" if self.name is None else f"session {self.name!r}"
            raise SessionBusy(
                f"{caller.name} uses {session}, a cell of which has called it and waits for it",
                hint="return what the cell is to go on with, or use a branch or another session",
            )

    @property
    def _is_left(self) -> bool:
        """True once nobody can go on with it: its event loop was closed in the middle of a call, or of its closing."""
        if self._closed:
            return self._closing_loop is not None and self._closing_loop.is_closed()
        return self._lock.is_left

    def _require_one_loop(self) -> None:
        self._lock.require_one_loop(saving=self._lasting is not None and self._lasting.committer.is_busy)

    def _require_open(self) -> None:
        if self._closed:
            raise SessionClosed("the session was closed", hint="open a new one")

    async def _to_end(
        self, source: str, kind: CellKind, wait: bool, call_id: str | None = None, again: Cell | None = None,
        timeout: float | None = None,
    ) -> Cell:  # fmt: skip
        begun = await self._begin(source, kind, wait, call_id, again, timeout)
        return begun if isinstance(begun, Cell) else await self._follow(begun)

    @named
    async def _begin(
        self, source: str, kind: CellKind, wait: bool, call_id: str | None = None, again: Cell | None = None,
        timeout: float | None = None,
    ) -> Execution | Cell:  # fmt: skip
        """Wait for the session's turn and start the next cell, or one `again`; `_end` must follow. The cell that a call
        of this id has run, where there is one.
        """
        source = _exact(source)
        if timeout is not None:
            require_seconds("timeout", timeout)
        if call_id is not None and (ran := await self._ran(call_id)) is not None:
            return ran
        kernel = await self._acquire(wait)
        try:
            if call_id is not None and (ran := await self._ran(call_id)) is not None:  # while this call waited
                self._give_turn()
                return ran
            draft = self._draft(source, kind, call_id if again is None else again.id, timeout)
            before = None if again is None else await self._kept(again.id)
            self._under_way = step = self._history.new_step()
            if self._lasting is not None:
                if 2 * self._account.held > self._account.limit:  # much of it may wait to be written
                    await self._lasting.finish()
                await self._lasting.begin(step, draft)
            return self._start(kernel, draft, step, before=before)
        except BaseException:
            self._give_turn()
            raise

    async def _ran(self, call_id: str) -> Cell | None:
        """The cell that a call has run, once it has ended, for as long as it is part of the session's history."""
        require_text(call_id=call_id)
        if not _CALL_ID.fullmatch(call_id):
            raise ValueError(f"call_id must be 1 to 64 letters, digits, _ or -, not {call_id[:80]!a}")
        cell, _ = await self._kept(call_id) or (None, {})
        return None if cell is None or cell.undone or cell.state is CellState.RUNNING else cell

    async def _kept(self, cell_id: str) -> Kept | None:
        """A cell's record, by its id: in a thread where the store has to be asked for it."""
        ask = self.notebook.kept
        return ask(cell_id) if self.notebook.has_recorded(cell_id) else await to_thread.run_sync(ask, cell_id)

    def _begin_at_once(self, source: str) -> Execution | None:
        """Start the next cell if nobody else has the session's turn and none of it is written to a store.

        `_end_at_once` must follow.
        """
        source = _exact(source)
        if self._lasting is not None:
            return None
        kernel = self._living()
        if not self._lock.acquire_at_once():
            return None
        try:
            self._under_way = step = self._history.new_step()
            return self._start(kernel, self._draft(source, "python"), step)
        except BaseException:
            self._give_turn()
            raise

    def _draft(self, source: str, kind: CellKind, cell_id: str | None = None, timeout: float | None = None) -> Cell:
        """The next cell, before it runs."""
        return Cell(
            id=cell_id or self._history.new_cell(),
            number=self._history.count + 1,
            source=source,
            kind=kind,
            state=CellState.RUNNING,
            timeout_seconds=timeout,
        )

    def _start(
        self, kernel: Kernel, draft: Cell, step: str, answer: Answer | None = None, before: Kept | None = None
    ) -> Execution:
        """Send the next cell down, a step of this id; what is to be kept of it is made while it runs.

        With an `answer` of its own for its calls it is run again: whoever does so records it, and what the next cell is
        to tell is left for that.
        """
        self._stopped = False
        request = _request(draft, self.limits)
        passed = kernel.traffic if self._has_door else None
        began = clock.now()
        self._caller = Caller(self._toolbox, "a function of the policy")
        asked = callers.set((*callers.get(), self._caller))
        try:
            turn = kernel.turn(request, max_output_bytes=self.limits.max_output_bytes)
        finally:
            callers.reset(asked)
        self._history.count = draft.number
        lost, note = tuple[Lost, ...](), ""
        if answer is None:
            self._before = self.notebook.hold(before)
            self.notebook.record(draft, {})
            lost, self._lost, note, self._note = self._lost, (), self._note, ""
            if self._lasting is not None:
                gone = {one.name for one in lost}
                lost += tuple(one for one in self._lasting.to_tell() if one.name not in gone)
        return Execution(
            kernel,
            self.limits,
            draft,
            request,
            turn,
            step=step,
            began=began,
            seconds=draft.timeout_seconds or self.limits.timeout_seconds,
            toolbox=self._toolbox,
            account=self._account,
            recover=partial(self._recover, kernel),
            answer=answer or self._answer,
            lost=lost,
            judge=None if self._lasting is None else self._lasting.at_once,
            passed=passed,
            reach=self._reach,
            resumes=self._lasting is not None,
            note=note,
        )

    @named
    async def _follow(self, execution: Execution) -> Cell:
        """A cell that was started, when it has ended."""
        try:
            await execution.to_end()
        finally:
            cell = await self._end(execution)
        return cell

    def _end_at_once(self, execution: Execution) -> Cell | None:
        """A cell that was started, if it ends within a moment; else `_follow` must follow."""
        cell = execution.at_once()
        if cell is not None:
            try:
                self.notebook.record(cell, execution.recorder.blobs, shown=execution.recorder.held)
            finally:
                self._settle(execution.step, cell.id, self._before)
                self._give_turn()
        return cell

    async def _end(self, execution: Execution) -> Cell:
        """Record a cell, ended first if its caller left it, and give the turn on; the cell as it is recorded."""
        try:
            if execution.cell is None:
                return await unbroken(partial(self._abandon, execution))
            if self._lasting is None:
                return await self._record(execution, execution.cell)
            return await unbroken(partial(self._record, execution, execution.cell))
        finally:
            self._give_turn()

    async def _abandon(self, execution: Execution) -> Cell:
        self._stopped = True
        return await self._record(execution, await execution.abandon())

    async def _record(self, execution: Execution, cell: Cell) -> Cell:
        parts = execution.recorder.blobs
        shown = execution.recorder.held
        self._under_way = ""
        self.notebook.record(cell, parts, shown=shown)
        if (kernel := self._kernel) is None:
            if self._lasting is not None:
                raise SessionClosed(f"session {self.name!r} was closed while this cell ran", hint="open it again")
            return cell
        led = None if cell.rolled_back and kernel.ended else execution.step  # the state of before is told by its step
        state = self._settle(led, cell.id, self._before, is_fresh=execution.is_fresh)
        if self._lasting is not None:
            stopped = self._stopped or cell.state is CellState.TIMEOUT
            if why := await self._lasting.ended(kernel, state, cell, parts, stopped=stopped):
                risk, notes = at_risk(f"cell {cell.number}", why), execution.recorder.notes
                cell = also_lost(cell, risk, self.limits.max_output_bytes, notes)
                self.notebook.record(cell, parts, shown=shown)
            if self._lasting.losses.strict and not cell.rolled_back:
                cell = await self._refused(self._lasting, kernel, cell, execution.recorder)
        if self._lasting is not None:
            await self._log_overwritten(self._lasting, kernel)
        return cell

    async def _refused(self, lasting: Lasting, kernel: Kernel, cell: Cell, recorder: Recorder) -> Cell:
        """The cell, or, where it bound a name to what cannot be saved, that cell with an error, and rolled back."""
        await lasting.committed()
        await lasting.committer.tried()
        error = unsaved_error(lasting.losses.newly, otherwise=lasting.otherwise)
        if error is None:
            return cell
        kernel = await self._go_back(lasting, kernel)
        cell = failed_cell(cell, error, self.limits.max_output_bytes, recorder.notes)
        self._history.count = cell.number
        self.notebook.record(cell, recorder.blobs)
        step = self._history.new_step()
        lasting.commit(kernel, self._settle(step, cell.id, self._before), step, cell, recorder.blobs)
        return cell

    async def _go_back(self, lasting: Lasting, kernel: Kernel) -> Kernel:
        """To before the newest step: where that has left no checkpoint, by its commit, in another kernel."""
        if not kernel.steps:
            return await self._go_to(lasting, await lasting.resolve("HEAD~1"))
        return await self._set_back(kernel, 1, "the step was refused")

    async def _set_back(self, kernel: Kernel, states: int, why: str) -> Kernel:
        """Go back by so many of the kernel's states, and with it what the store takes for the session's state.

        A session that lasts goes there by its store where the kernel cannot; the kernel that stands there.
        """
        wanted = self._history.of_state(kernel.states[-1 - states])
        assert wanted is not None  # whoever has the turn has told of all of them
        if not await unbroken(partial(self._recover_to, kernel, states, wanted, why)) and self._lasting is not None:
            return await self._go_to(self._lasting, await self._lasting.led_to(wanted.step))
        return kernel

    async def _recover_to(self, kernel: Kernel, states: int, wanted: Stand, why: str) -> bool:
        """Go back with the kernel and the store, both or neither; whether the kernel could, where there is a store."""
        deleted = set() if self._lasting is None else await self._lasting.deleted_after(wanted.step)  # this may fail
        recovery = await self._recover(kernel, states)
        if self._lasting is not None and not recovery.exact:
            await kernel.close()  # an older state is none to go on from: if nothing else comes, the newest is resumed
            return False
        self._lost += losses(recovery, why)
        if wanted.notebook is not self.notebook:  # it was cleared since
            self._take(wanted.notebook)
        self._settle(is_fresh=recovery.fresh and not recovery.exact)
        if self._lasting is not None:
            self._history.stand = wanted  # also where the kernel has ended since: another will stand there
            await self._lasting.went_back(wanted.step, deleted)
        return True

    def _take(self, notebook: Notebook) -> None:
        """Go on with another notebook."""
        self._history.notebook = notebook
        if self._lasting is not None:
            self._lasting.follow(notebook)

    async def _recover(self, kernel: Kernel, steps: int = 0) -> Recovery:
        """Have the session's kernel go back, in the one way that there is. What the host has changed of the files, and
        is no step yet, stays or is among the lost. Cannot be cancelled.
        """
        return await unbroken(partial(self._recovered, kernel, steps))

    async def _recovered(self, kernel: Kernel, steps: int) -> Recovery:
        async with self._changing:
            recovery = await recover(kernel, steps, toolbox=self._toolbox)
            lost = await self._write_again(kernel) if recovery.rewound else ()
        return replace(recovery, lost=(*recovery.lost, *((one.name, one.type, one.reason, one.remedy) for one in lost)))

    async def _go_to(self, lasting: Lasting, commit: Commit, *, undoes: bool = True) -> Kernel:
        """Put a new kernel in the place of this one, in the state of a commit. An undo brings no deleted cell back."""
        raise NotImplementedError

    async def _ask(self, request: Request, host: HostStep | None = None, *, seconds: float | None = None) -> Cell:
        """Carry out a request that is no cell. `host` is what it is in the store, where the request does not say it.

        `seconds` is its time limit where that is not the cells'.
        """
        changes = host is not None or isinstance(request, Bind | Clear)
        if host is None and isinstance(request, Bind | Clear) and self._lasting is not None:
            host = host_step(request)
        kernel = await self._acquire(wait=True)
        try:
            cell = await self._asked(kernel, request, host, changes=changes, seconds=seconds)
            read = "" if self._lasting is None else self._lasting.standing.tip
        finally:
            self._give_turn()
        if changes and (host is None or host.kind != ASIDE):
            await self._committed()
        elif self._lasting is not None:
            await self._was_read(self._lasting, read)
        return cell

    async def _was_read(self, lasting: Lasting, step: str) -> None:
        """The host has read what a step led to: that is to be the same from now on, whatever dies."""
        raise NotImplementedError

    async def _asked(
        self, kernel: Kernel, request: Request, host: HostStep | None, *, changes: bool, seconds: float | None = None
    ) -> Cell:
        """The same, for one who has the turn."""
        if host is not None and host.clears_files:
            async with self._changing:  # as part of the step that begins
                await host.change(kernel)
        self._under_way = self._history.new_step() if changes else ""
        if changes and self._lasting is not None:
            self._lasting.journal.begin_host(self._under_way)
        then, answer = partial(self._note_asked, kernel, request, host), self._answer if changes else None
        return await self._carry_out(kernel, request, then, answer, seconds=seconds)

    async def _note_asked(self, kernel: Kernel, request: Request, host: HostStep | None) -> None:
        """Make a step of a request that has changed something, or have it belong to the one before."""
        if isinstance(request, Clear):
            self._take(self.notebook.emptied())
            self.notebook.clear()
            self._lost = tuple(one for one in self._lost if one.type == "file")  # no other name is left to be lost
        if host is not None or isinstance(request, Bind | Clear):
            entries: tuple[int, ...] = ()
            try:
                if host is not None and host.kind == ASIDE and self._lasting is not None:
                    entries = await self._lasting.log_host(self._under_way, host)
            finally:
                self._commit(kernel, host, self._under_way, entries)
            if self._lasting is not None and self._lasting.losses.strict:
                await self._require_saved(self._lasting, kernel)

    async def _require_saved(self, lasting: Lasting, kernel: Kernel) -> None:
        """That what the host has bound could be saved; UnpicklableError where not, and the session is as before."""
        await lasting.committed()
        await lasting.committer.tried()
        if (error := unsaved_error(lasting.losses.newly, otherwise=lasting.otherwise)) is not None:
            await self._go_back(lasting, kernel)
            raise UnpicklableError(error.message, hint=error.hint)

    async def _carry_out(
        self, kernel: Kernel, request: Request, then: Callable[[], Coroutine[None, None, None]] | None = None,
        answer: Answer | None = None, *, seconds: float | None = None,
    ) -> Cell:  # fmt: skip
        """Carry out a request that is no cell, for one who has the session's turn.

        `then` is done with whatever was carried out, also for a caller who left meanwhile. `answer`, where it is given,
        answers its calls, and no function of the host does.
        """
        seconds = seconds or self.limits.timeout_seconds
        if isinstance(request, Bind):  # the host's own values: no matter how short the cells are to be
            seconds = max(seconds, HOST_SECONDS)
        given = await sendable(kernel, request)
        began = clock.now()
        turn = kernel.turn(given, max_output_bytes=self.limits.max_output_bytes)
        execution = Execution(
            kernel,
            self.limits,
            _HOST_STEP,
            request,
            turn,
            began=began,
            seconds=seconds,
            toolbox=self._toolbox,
            account=self._account,
            recover=partial(self._recover, kernel),
            answer=answer,
            resumes=self._lasting is not None,
        )
        try:
            await execution.to_end()
        finally:
            cell = await unbroken(partial(self._carried_out, execution, then))
        return cell

    async def _carried_out(self, execution: Execution, then: Callable[[], Coroutine[None, None, None]] | None) -> Cell:
        cell = execution.cell or await execution.abandon()
        if execution.is_fresh:
            self._settle(is_fresh=True)
        self._lost += cell.lost  # of a host's request nobody sees it: the next cell says so
        self._note = (self._note + execution.recorder.killed)[:_MOST_NOTED]
        if cell.ok and then is not None:
            await then()
        return cell

    async def _acquire(self, wait: bool) -> Kernel:
        """Take the session's one turn; the kernel that is alive by then."""
        self._require_usable()
        await self._take_turn(wait=wait)
        try:
            if self._lasting is not None:
                await self._lasting.committer.forked()
            if self._asleep:
                await self._wake()
            elif self._lasting is not None and await self._living().ending():
                await self._resume_ended()
            kernel = self._living()  # closed while this call waited
            if self._lasting is None and kernel.ended:
                raise SessionClosed("the session's processes have ended", hint="open a new session")
            return kernel
        except BaseException:
            self._give_turn()
            raise

    async def _take_turn(self, *, wait: bool = True) -> None:
        """Take the session's one turn, once it is free. An error where it would never be."""
        if not self._lock.is_free:
            self._require_not_calling()
        self._require_one_loop()
        await self._lock.acquire(wait=wait)

    def _give_turn(self) -> None:
        """Give the session's turn on, after a cell or something else. What the host has changed of the files meanwhile
        is a step first."""
        self._under_way = ""
        try:
            if self._kernel is not None:
                self._settle()
                self._note_meanwhile(self._kernel)
        finally:
            self._caller.ended, self._before = True, None
            self._lock.release()

    async def _turn_given(self, seconds: float) -> None:
        """Until no call has the turn, or for so long; not for one that waits for this, or never goes on."""
        if waiting_for(self._toolbox) is None:
            await self._lock.free(seconds)

    @property
    def _keeps_no_states(self) -> bool:
        """True if all states of its kernel have the same number."""
        raise NotImplementedError

    def _settle(
        self, step: str | None = None, cell_id: str | None = None, before: Record | None = None, *,
        made: bool = True, is_fresh: bool = False,
    ) -> int:  # fmt: skip
        """`History.settle`, of the session's kernel."""
        return self._history.settle(
            self._kernel, step, cell_id, before,
            made=made, is_fresh=is_fresh, keeps_states=not self._keeps_no_states,
        )  # fmt: skip

    def _commit(
        self, kernel: Kernel, host: HostStep | None, step: str, entries: tuple[int, ...] = (), *,
        during: str = "", overwritten: bool = False, again: Planned | None = None,
    ) -> None:  # fmt: skip
        """The host did something: a step of this id, which in a session that lasts is on its way into the store;
        `_committed` must follow.
        """
        state = self._settle(step, made=host is None or is_own(host.kind, during))
        if self._lasting is not None and host is not None:
            self._lasting.step(
                kernel, state, step, host, self._history.count,
                entries=entries, during=during, overwritten=overwritten, again=again,
            )  # fmt: skip

    async def _committed(self) -> None:
        """Until all that was done is in the store; what keeps it out is raised."""
        if self._lasting is not None:
            await self._until_rebuilt()  # until then some of it is being done again
            if self._lock.is_free:
                self._lasting.commit_deletions()
            await self._lasting.committed()

    async def _answer(self, call: Asked) -> ToolReply:
        """Answer of a host function; in a session that lasts it is logged before the cell gets it."""
        reply = await self._toolbox.answer(call)
        if self._lasting is not None:
            try:
                await self._lasting.answered(call, reply)
            except LeaseLost as error:  # which the caller is told when the cell has ended
                return ToolReply(call=call.call, error=("RuntimeError", str(error)))
        return reply

    def _note_meanwhile(self, kernel: Kernel) -> None:
        """Make steps of what the host has changed of the files while somebody had the turn."""
        meanwhile, self._meanwhile = self._meanwhile, {}
        self._note_files(kernel, meanwhile)

    def _note_files(self, kernel: Kernel, changes: Mapping[str, Change]) -> None:
        """Make what the host has changed of the files steps of these ids."""
        overwritten = {step for step, change in changes.items() if self._is_overwritten(kernel, change)}
        kernel.note_files()
        for step, one in changes.items():
            is_overwritten = step in overwritten
            self._commit(kernel, one.host, step, one.entries, during=one.during, overwritten=is_overwritten)

    def _is_overwritten(self, kernel: Kernel, change: Change) -> bool:
        """True if a file is no more what the host left, and the step during which that was is the newest there is."""
        if change.during != self._history.stand.step or kernel.ended:
            return False
        return kernel.files.version(change.host.name) != change.left

    async def _log_overwritten(self, lasting: Lasting, kernel: Kernel) -> None:
        """Log which files a cell that has ended has changed after the host did: a commit may never be made of that."""
        for step, change in list(self._meanwhile.items()):
            if change.entries and self._is_overwritten(kernel, change):
                with suppress(StoreError):  # the commit tells it, too
                    entry = await lasting.journal.log_overwritten(step)
                    self._meanwhile[step] = replace(change, entries=(*change.entries, entry))

    async def _change_files(self, host: HostStep) -> None:
        """Does not wait for its turn: a cell may be waiting for a file."""
        if host.do == "write" and self._private_paths:
            from cellblock.session.privacy import matches

            if matches(host.name, self._private_paths):
                await self.mark_private(f"file {host.name}")
        while not await unbroken(partial(self._changed, await self._awake(), host)):
            continue

    async def _changed(self, kernel: Kernel, host: HostStep) -> bool:
        """Have the host change a file, and make a step of it; whether the kernel is the session's still."""
        step, lasting = self._history.new_step(), self._lasting
        async with self._changing:
            during = self._under_way
            try:
                left = await host.change(kernel)
            except CellblockError:
                if not await self._is_replaced(kernel):
                    raise
                return False
            if kernel is not self._kernel:
                return False
            change = Change(host, left, during or self._under_way)
            if is_free := self._lock.is_free:
                self._note_files(kernel, {step: change})
            else:
                self._meanwhile[step] = change  # the one who has the turn notes it, and commits it after what it did
        if is_free:
            await self._committed()
        if is_free or lasting is None:
            return True
        entries = await lasting.log_host(step, host, change.during)
        if step in self._meanwhile:
            self._meanwhile[step] = replace(self._meanwhile[step], entries=entries)
        else:
            await self._committed()
            await lasting.journal.trim(entries)
        return True

    async def _write_again(self, kernel: Kernel) -> tuple[Lost, ...]:
        """Do again, in their order, the host's changes of files that are no step yet; the loss of each that fails.

        No other can be made meanwhile.
        """
        lost = tuple[Lost, ...]()
        for step, change in list(self._meanwhile.items()):
            try:
                left = await change.host.change(kernel, again=True)
                self._meanwhile[step] = replace(self._meanwhile[step], left=left)
            except (CellblockError, OSError) as error:
                if kernel.ended:
                    break  # the kernel that takes its place is given them
                lost += (not_done_again(change.host, str(error)),)
        return lost


def _in_a_line(text: object) -> str:
    """A text, which may come from inside, without what could not be printed; "" for what is none."""
    if not isinstance(text, str):
        return ""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _request(draft: Cell, limits: ExecutionLimits) -> Request:
    if draft.kind == "shell":
        return Shell(command=draft.source)
    return Run(source=draft.source, filename=f"<cell {draft.number}>", max_text=limits.max_output_bytes)


def _exact(source: object) -> str:
    if not isinstance(source, str):
        raise TypeError(f"source must be str, not {type(source).__name__}")
    return exact(source, None)
