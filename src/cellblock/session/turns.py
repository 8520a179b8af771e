"""One request at a time on one kernel: whose turn it is, what is sent down, and the record of what came of it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from functools import partial

import anyio

from cellblock.cell import Cell, CellKind, CellState, Lost
from cellblock.errors import SessionBusy, SessionClosed, UnpicklableError
from cellblock.executors.binding import require_sendable
from cellblock.executors.protocol import Kernel
from cellblock.limits import ExecutionLimits
from cellblock.session.calls import Answer
from cellblock.session.execution import Execution, recover
from cellblock.session.hoststeps import HostStep, host_step
from cellblock.session.notebook import Blob, Notebook
from cellblock.session.record import losses, refused_cell, unsaved_error
from cellblock.session.tools import Toolbox
from cellblock.session.unbroken import unbroken
from cellblock.wire.messages import Bind, Clear, Request, Run, Shell, ToolCalled, ToolReply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.lasting import Lasting  # a store and its database are imported for sessions that last
    from cellblock.session.unreached import Reach
    from cellblock.store import Commit

_HOST_SECONDS = 60.0
_MOST_REASON = 200
_HOST_STEP = Cell(id="host", number=0, source="", state=CellState.RUNNING, kind="host")


class Turns:
    """What a session does with its kernel. Calls are first come, first served."""

    def __init__(self, *, limits: ExecutionLimits, seed: int, toolbox: Toolbox) -> None:
        self.limits = limits
        self.notebook = Notebook()
        self._kernel: Kernel | None = None
        self._turns = anyio.Semaphore(1, fast_acquire=True)
        self._count = 0
        self._ids = random.Random(seed)  # noqa: S311 - names cells; nothing rests on it
        self._lost: tuple[Lost, ...] = ()
        self._state = 0
        self._cells: dict[int, str] = {}
        """The cells that can be undone, by the states that they led to."""
        self._toolbox = toolbox
        self._has_door = False
        self._private = ""
        self._private_since = 0
        """The number of the cell in which, or after which, that was said; 0 is before the first."""
        self._private_paths: tuple[str, ...] = ()
        self._lasting: Lasting | None = None
        self._asleep = False
        self._note = ""
        """What the next cell is to tell of how the session came to be where it is."""
        self._used = time.monotonic()
        self._closed = False
        self._host = os.getpid()

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
        self._close_off(reason, self._count)
        if self._lasting is not None and not self._lasting.settings.get("private"):
            settings = {**self._lasting.settings, "private": self._private, "private_since": self._private_since}
            await self._lasting.configure(settings)

    def _close_off(self, reason: str, since: int = 0) -> None:
        """What `mark_private` does at once."""
        if not self._private:
            self._private = self.notebook.private = self._toolbox.private = _in_a_line(reason)[:_MOST_REASON]
            self._private_since = since
        if self._kernel is not None:
            self._kernel.cut_off()

    def _reach(self) -> Reach:
        """What the session can connect to, and why it cannot."""
        raise NotImplementedError

    def _living(self) -> Kernel:
        """The kernel, of a session that does not sleep."""
        self._require_usable()
        if self._kernel is None:
            raise SessionClosed("the session is not open", hint="use `async with` or `await session.open()`")
        return self._kernel

    def _require_usable(self) -> None:
        if os.getpid() != self._host:
            raise SessionClosed("the session belongs to the process this one was forked from", hint="open a new one")
        self._require_open()
        if self._kernel is None and not self._asleep:
            raise SessionClosed("the session is not open", hint="use `async with` or `await session.open()`")

    async def _awake(self) -> Kernel:
        """The kernel, of a session that may sleep, for one who does not have its turn."""
        self._require_usable()
        if self._asleep or (self._lasting is not None and self._living().ended):
            await self._acquire(wait=True)
            self._give_turn()
        return self._living()

    async def _wake(self) -> None:
        """Give a session that sleeps a kernel again; whoever has its turn does so."""
        raise NotImplementedError

    async def _resume_ended(self) -> None:
        """The same for one whose processes have all ended."""
        raise NotImplementedError

    def _require_open(self) -> None:
        if self._closed:
            raise SessionClosed("the session was closed", hint="open a new one")

    async def _to_end(self, source: str, kind: CellKind, wait: bool, cell_id: str | None = None) -> Cell:
        return await self._follow(await self._begin(source, kind, wait, cell_id))

    async def _begin(self, source: str, kind: CellKind, wait: bool, cell_id: str | None = None) -> Execution:
        """Wait for the session's turn and start the next cell; `_end` must follow."""
        _require_text(source)
        kernel = await self._acquire(wait)
        try:
            draft = self._draft(source, kind, cell_id)
            if self._lasting is not None:
                await self._lasting.begin(draft)
        except BaseException:
            self._give_turn()
            raise
        return self._start(kernel, draft)

    def _begin_at_once(self, source: str) -> Execution | None:
        """Start the next cell if nobody else has the session's turn and none of it is written to a store.

        `_end_at_once` must follow.
        """
        _require_text(source)
        if self._lasting is not None:
            return None
        kernel = self._living()
        try:
            self._turns.acquire_nowait()
        except anyio.WouldBlock:
            return None
        return self._start(kernel, self._draft(source, "python", None))

    def _draft(self, source: str, kind: CellKind, cell_id: str | None) -> Cell:
        """The next cell, before it runs."""
        return Cell(
            id=cell_id or f"c{self._ids.getrandbits(40):010x}",
            number=self._count + 1,
            source=source,
            kind=kind,
            state=CellState.RUNNING,
        )

    def _start(self, kernel: Kernel, draft: Cell, answer: Answer | None = None) -> Execution:
        """Send the next cell down; what is to be kept of it is made while it runs."""
        try:
            request = _request(draft, self.limits)
            passed = kernel.traffic if self._has_door else None
            began = time.monotonic()
            turn = kernel.turn(request, max_output_bytes=self.limits.max_output_bytes)
            self._count = draft.number
            self.notebook.record(draft, {})
            lost, self._lost = self._lost, ()
            note, self._note = self._note, ""
            if self._lasting is not None:
                lost += self._lasting.to_tell()
            return Execution(
                kernel,
                self.limits,
                draft,
                request,
                turn,
                began=began,
                seconds=self.limits.timeout_seconds,
                toolbox=self._toolbox,
                answer=answer or self._answer,
                lost=lost,
                judge=None if self._lasting is None else self._lasting.at_once,
                passed=passed,
                reach=self._reach,
                resumes=self._lasting is not None,
                note=note,
            )
        except BaseException:
            self._give_turn()
            raise

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
                self.notebook.record(cell, execution.recorder.blobs)
            finally:
                self._give_turn(cell.id)
        return cell

    async def _end(self, execution: Execution) -> Cell:
        """Record a cell, ended first if its caller left it, and give the turn on; the cell as it is recorded."""
        try:
            if execution.cell is None:
                return await unbroken(partial(self._abandon, execution))
            return await self._record(execution, execution.cell)
        finally:
            self._give_turn(execution.cell_id)

    async def _abandon(self, execution: Execution) -> Cell:
        return await self._record(execution, await execution.abandon())

    async def _record(self, execution: Execution, cell: Cell) -> Cell:
        parts = execution.recorder.blobs
        self.notebook.record(cell, parts)
        if self._lasting is not None and (kernel := self._kernel) is not None:
            self._settle(execution.cell_id)
            await self._lasting.ended(kernel, cell, parts)
            if self._lasting.strict and not cell.rolled_back:
                cell = await self._refused(self._lasting, kernel, cell, parts)
        return cell

    async def _refused(self, lasting: Lasting, kernel: Kernel, cell: Cell, parts: Mapping[str, Blob]) -> Cell:
        """The cell, or, where it bound a name to what cannot be saved, that cell with an error, and rolled back."""
        await lasting.committed()
        await lasting.tried()
        error = unsaved_error(lasting.newly_lost(), otherwise=lasting.otherwise)
        if error is None:
            return cell
        kernel = await self._go_back(lasting, kernel)
        cell = refused_cell(cell, error, self.limits.max_output_bytes)
        self._count = cell.number
        self._reseed(cell.number)
        self.notebook.record(cell, parts)
        lasting.commit(kernel, cell, parts)
        return cell

    async def _go_back(self, lasting: Lasting, kernel: Kernel) -> Kernel:
        """To before the newest step: where that has left no checkpoint, by its commit, in another kernel."""
        if not kernel.steps:
            return await self._go_to(lasting, await lasting.before(1))
        await unbroken(partial(self._set_back, kernel, 1, "the step was refused"))
        return kernel

    async def _set_back(self, kernel: Kernel, steps: int, why: str) -> None:
        """Have the kernel go back, and with it what the store takes for the session's state."""
        recovery = await recover(kernel, steps, toolbox=self._toolbox)
        self._lost += losses(recovery, why)
        if self._lasting is not None:
            self._settle()
            await self._lasting.went_back(kernel.states[-1])

    def _reseed(self, number: int) -> None:
        """Have cells named by how many there were before."""
        raise NotImplementedError

    async def _go_to(self, lasting: Lasting, commit: Commit) -> Kernel:
        """Have a new kernel in the state of a commit take the place of this one."""
        raise NotImplementedError

    async def _ask(self, request: Request, step: HostStep | None = None) -> Cell:
        """Carry out a request that is no cell. `step` is what it is in the store, where the request does not say it."""
        changes = step is not None or isinstance(request, Bind | Clear)
        if isinstance(request, Bind | Clear) and self._lasting is not None:
            step = host_step(request)
        kernel = await self._acquire(wait=True)
        try:
            cell = await self._carry_out(kernel, request)
            if isinstance(request, Clear) and cell.ok:
                self.notebook.clear()
            if step is not None and cell.ok:
                self._commit(step)
                if self._lasting is not None and self._lasting.strict:
                    await self._require_saved(self._lasting, kernel)
        finally:
            self._give_turn()
        if changes:
            await self._committed()
        return cell

    async def _require_saved(self, lasting: Lasting, kernel: Kernel) -> None:
        """That what the host has bound could be saved; UnpicklableError where not, and the session is as before."""
        await lasting.committed()
        await lasting.tried()
        if (error := unsaved_error(lasting.newly_lost(), otherwise=lasting.otherwise)) is not None:
            await self._go_back(lasting, kernel)
            raise UnpicklableError(error.message, hint=error.hint)

    async def _carry_out(self, kernel: Kernel, request: Request) -> Cell:
        """Carry out a request that is no cell, for one who has the session's turn."""
        seconds = self.limits.timeout_seconds
        if isinstance(request, Bind):  # the host's own values: no matter how short the cells are to be
            seconds = max(seconds, _HOST_SECONDS)
            request = await self._stored(kernel, request)
        began = time.monotonic()
        turn = kernel.turn(request, max_output_bytes=self.limits.max_output_bytes)
        execution = Execution(
            kernel,
            self.limits,
            _HOST_STEP,
            request,
            turn,
            began=began,
            seconds=seconds,
            toolbox=self._toolbox,
            resumes=self._lasting is not None,
        )
        try:
            cell = await execution.to_end()
        finally:
            if execution.cell is None:
                await unbroken(execution.abandon)
        self._lost += cell.lost  # of a host's request nobody sees it: the next cell says so
        return cell

    async def _stored(self, kernel: Kernel, request: Bind) -> Bind:
        """The request with its large buffers in the worker's memory already, where they can be put there."""
        first, *large = request.buffers
        if large and await kernel.store(large, _HOST_SECONDS):
            request = Bind(name=request.name, buffers=(first,), is_stored=True)
        require_sendable(request)
        return request

    async def _acquire(self, wait: bool) -> Kernel:
        """Take the session's one turn; the kernel that is alive by then."""
        self._require_usable()
        try:
            self._turns.acquire_nowait()
        except anyio.WouldBlock:
            if not wait:
                raise SessionBusy("another call is using the session", hint="wait for it, or interrupt()") from None
            await self._turns.acquire()
        else:
            if self._lasting is None:
                return self._living()
        try:
            if self._lasting is not None:
                await self._lasting.forked()
            if self._asleep:
                await self._wake()
            elif self._lasting is not None and await self._living().ending():
                await self._resume_ended()
            return self._living()  # closed while this call waited
        except BaseException:
            self._give_turn()
            raise

    def _give_turn(self, cell_id: str | None = None) -> None:
        """Give the session's turn on, after a cell or something else. What the host has changed of the files meanwhile
        is a step first."""
        self._settle(cell_id)
        self._used = time.monotonic()
        self._turns.release()

    def _settle(self, cell_id: str | None = None) -> None:
        if (kernel := self._kernel) is not None:
            self._mark(kernel.states, cell_id)
            self._note_files(kernel)

    def _commit(self, step: HostStep) -> None:
        """What the host did to a session that lasts is on its way into the store; `_committed` must follow."""
        if self._lasting is not None and self._kernel is not None:
            self._settle()
            self._lasting.step(self._kernel, step, self._count)

    async def _committed(self) -> None:
        """Until all that was done is in the store; what keeps it out is raised."""
        if self._lasting is not None:
            await self._lasting.committed()

    async def _answer(self, call: ToolCalled, args: tuple[object, ...], kwargs: dict[str, object]) -> ToolReply:
        """What a host function gives; in a session that lasts it is logged before the cell gets it."""
        reply = await self._toolbox.answer(call, args, kwargs)
        if self._lasting is not None:
            await self._lasting.answered(call.name, reply)
        return reply

    def _mark(self, states: tuple[int, ...], cell_id: str | None) -> None:
        """Remember which state a cell led to, and mark cells whose states are gone as undone."""
        for state in [state for state in self._cells if state not in states]:
            undone = self._cells.pop(state)
            if state > states[0]:  # else it was too long ago to be gone back to
                self.notebook.mark_undone(undone)
        if states[-1] > self._state and cell_id is not None:
            self._cells[states[-1]] = cell_id

    def _note_files(self, kernel: Kernel) -> None:
        kernel.note_files()
        self._state = kernel.states[-1]

    async def _change_files(self, step: HostStep) -> None:
        """Does not wait for its turn: a cell may be waiting for a file."""
        if step.do == "write" and self._private_paths:
            from cellblock.session.privacy import matches

            if matches(step.name, self._private_paths):
                await self.mark_private(f"file {step.name}")
        kernel = await self._awake()
        await kernel.change_files(partial(step.change(), kernel.files))
        if self._turns.value:  # else the one who has the turn notes it, and commits it with what it did
            self._note_files(kernel)
            self._commit(step)
            await self._committed()


def _in_a_line(text: object) -> str:
    """A text, which may come from inside, without what could not be printed; "" for what is none."""
    if not isinstance(text, str):
        return ""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _request(draft: Cell, limits: ExecutionLimits) -> Request:
    if draft.kind == "shell":
        return Shell(command=draft.source)
    return Run(source=draft.source, filename=f"<cell {draft.number}>", max_text=limits.max_output_bytes)


def _require_text(source: object) -> None:
    if not isinstance(source, str):
        raise TypeError(f"source must be str, not {type(source).__name__}")
