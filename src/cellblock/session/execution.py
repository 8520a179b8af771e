"""One request under way: its deadline, the folding of its events, and what follows when its process dies."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio.lowlevel

from cellblock.cell import Cell, CellError, Lost
from cellblock.errors import CellblockError, SessionClosed
from cellblock.events import Done, Event
from cellblock.executors.binding import require_sendable
from cellblock.executors.protocol import Curbed, Died, Kernel, Recovery, Turn, TurnEvent, WorkerGone, Written
from cellblock.hosting import clock
from cellblock.hosting.shortage import short_of
from cellblock.limits import ExecutionLimits
from cellblock.network import Traffic
from cellblock.outputs import Output
from cellblock.session.account import Account
from cellblock.session.calls import Answer, Calls
from cellblock.session.record import Recorder, death_error, ended_error, full_error, how, losses, timeout_error
from cellblock.session.tools import Toolbox
from cellblock.session.unbroken import unbroken
from cellblock.wire.messages import (
    Bind,
    Display,
    Equip,
    Finished,
    Request,
    Reserved,
    Run,
    Shell,
    ToolCalled,
    ToolReply,
    ToolRoom,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.unreached import Reach

_EQUIP_SECONDS = 30.0
HOST_SECONDS = 60.0
"""Seconds that the host's own values may take at the least."""


class Execution:
    """Drives one turn of a kernel. `next` tells its events; the last is `Done`, and `cell` is set with it.

    `began` is by the monotonic clock, before anything of the request was sent. `recover` has the kernel go back by so
    many steps. `judge` tells which of the names that a cell has bound, by their types, will not survive a restore.
    """

    def __init__(
        self,
        kernel: Kernel,
        limits: ExecutionLimits,
        draft: Cell,
        request: Request,
        turn: Turn,
        *,
        step: str = "",
        began: float,
        seconds: float,
        toolbox: Toolbox,
        account: Account,
        recover: Callable[[int], Awaitable[Recovery]],
        answer: Answer | None = None,
        lost: tuple[Lost, ...] = (),
        judge: Callable[[Mapping[str, str]], tuple[Lost, ...]] | None = None,
        passed: Traffic | None = None,
        reach: Callable[[], Reach] | None = None,
        resumes: bool = False,
        note: str = "",
    ) -> None:
        """`passed` is what had passed the session's door before, where it has one; `reach` tells what that leads to.

        `resumes`: a session that cannot go on is no error of the caller's, as the next call resumes it. `note` is told
        first, on stderr.
        """
        self._kernel = kernel
        self._limits = limits
        self._request = request
        self._turn: Turn | None = turn
        self._account = account
        self._recorder = Recorder(draft, limits.max_output_bytes, account.share())
        self._recorder.reach = reach
        if passed is not None:
            self._recorder.traffic = lambda: kernel.traffic.since(passed)
        self._seconds = seconds
        self._has_own_limit = draft.timeout_seconds is not None
        self._began = began
        self._deadline = self._began + seconds
        self._expired = False
        self._full = False
        self._killed = False
        self._abandoned = False
        self._swept = False
        self._given_again = False
        self._lost = lost
        self._judge = judge
        self._recover = recover
        self._calls = Calls(toolbox, kernel, account, self._fill, answer)
        self._recorder.failures = self._calls.failures
        self._left: TurnEvent | None = Written(stream="stderr", text=note) if note else None
        self._resumes = resumes
        self._gone: SessionClosed | None = None
        self._under_way = turn.sent
        self.step = step
        self.cell: Cell | None = None
        self.is_fresh = False
        """True if the names of before were lost, in whichever state the session went back to."""

    @property
    def recorder(self) -> Recorder:
        """Recorder of what the cell has shown so far."""
        return self._recorder

    @property
    def left(self) -> float:
        """Seconds until the cell is to end."""
        return max(0.0, self._deadline - clock.now())

    def at_once(self) -> Cell | None:
        """The cell if it ends within a moment, which needs no waiting; else `next` tells what is left of it."""
        turn = self._turn
        if turn is None or not self._under_way or self._left is not None:
            return None
        while (event := turn.at_once()) is not None:
            if isinstance(event, ToolCalled | Reserved | Died) or (isinstance(event, Finished) and event.beside):
                self._left = event
                return None
            if self._must_relieve(event):
                self._left = event
                return None
            self._fold(event)
            if self.cell is not None:
                return self.cell
        return None

    async def next(self) -> Event:
        """The next event of the cell."""
        if self._turn is not None and not self._under_way:
            self._under_way = True
            await self._send_rest(self._turn)
        while True:
            event = await self._event()
            if self._full and not isinstance(event, Finished | Died):
                continue
            if isinstance(event, ToolCalled) and not await self._calls.fits(event):
                self._fill()
                continue
            if isinstance(event, Finished | ToolCalled) and event.beside:
                event = await self._kernel.fetch(event)
                if isinstance(event, ToolCalled) and not await self._calls.fits(event):
                    self._fill()
                    continue
            match event:
                case ToolCalled():
                    call = await self._calls.begin(event, self._reply)
                    await anyio.lowlevel.checkpoint()  # most tools answer at once: the turn then waits for what follows
                    return call
                case Reserved():
                    self._calls.offer(event)
                case Finished() if self._must_relieve(event):
                    return await unbroken(partial(self._relieve, event))
                case Died(untaken=True) if not (self._given_again or self._expired or self._abandoned):
                    await self._give_again(event)
                case Died():
                    return await unbroken(partial(self._bury, event))
                case Finished() if (note := await self._end_what_it_started()) is not None:
                    self._left = event
                    return note
                case _:
                    if (told := self._fold(event)) is not None:
                        return told

    def _fold(self, event: Finished | Written | Curbed | Display) -> Event | None:
        """The event to pass on; None where it is left out."""
        match event:
            case Finished():
                unsaved = () if self._judge is None else self._judge(event.unsaved)
                return self._done(self._recorder.finish(event, ended=self._ended_for(), lost=self._lost + unsaved))
            case Written():
                told: Event | None = self._recorder.write(event)
            case Curbed():
                told = self._recorder.curb(event)
            case Display():
                told = self._recorder.display(event)
        if not self._account.has_room():
            self._fill()
        return told

    def _ended_for(self, recovery: Recovery | None = None) -> CellError | None:
        """The error that the cell was interrupted or killed for, if it was."""
        if self._abandoned:
            return None
        if self._full:
            return full_error(self._limits.max_host_mb, recovery=recovery)
        return timeout_error(self._seconds, recovery=recovery, given=self._has_own_limit) if self._expired else None

    async def _send_rest(self, turn: Turn) -> None:
        """Send what has to be waited for. A process that died while nothing ran is first replaced by another."""
        self._turn = None  # nothing comes of it unless all is sent
        try:
            try:
                await turn.send_rest(self._deadline - clock.now())
            except WorkerGone as gone:
                if (other := await self._replaced(gone.death)) is None:
                    return
                turn = other
                if not turn.sent:
                    await turn.send_rest(self._deadline - clock.now())
            self._turn = turn
        except WorkerGone as gone:  # the other one too: what ends processes ends every one
            self._left = gone.death
        except SessionClosed as closed:
            if not self._resumes:
                raise
            self._gone, self._left = closed, Died()
        except TimeoutError:  # the worker takes nothing: what was sent of the request is of no use
            self._expired = self._killed = True
            self._kernel.kill()

    async def _give_again(self, death: Died) -> None:
        """Give the request to another process: the one that had been sent it ended without taking it."""
        self._given_again = True
        turn = await self._replaced(death)
        if turn is None:
            return
        if turn.sent:
            self._turn = turn
        else:
            await self._send_rest(turn)

    async def _replaced(self, death: Died) -> Turn | None:
        """The request, begun on another process than the one that ended between two cells; None where there is none."""
        if (recovery := await self._recovered()) is None or self._kernel.ended:
            self._turn, self._left = None, death
            return None
        self._lost += losses(recovery, f"between two cells the session's process {how(death)}")
        request = await sendable(self._kernel, self._request)
        return self._kernel.turn(request, max_output_bytes=self._limits.max_output_bytes)

    async def to_end(self) -> Cell:
        """The cell, once it has ended."""
        try:
            while self.cell is None:
                await self.next()
            return self.cell
        finally:
            self._calls.cancel()

    async def abandon(self) -> Cell:
        """The caller went away in the middle: interrupt the cell, and kill it when that does not end it.

        To be carried out `unbroken`, or the session is left with a cell that nobody follows. Takes the grace at most.
        """
        self._abandoned = True
        self._deadline = clock.now()
        with contextlib.suppress(SessionClosed):
            await self.to_end()
        return self.cell or self._recorder.die(self._abandoned_error(), (), self._elapsed_ms())

    def _abandoned_error(self) -> CellError:
        return CellError(
            type="Abandoned",
            message="the cell was left before it ended: its caller stopped waiting, or the session was closed",
            kind="crashed",
        )

    async def _event(self) -> TurnEvent:
        """The turn's next event. At the deadline the cell is interrupted, and killed when that does not end it."""
        if (left := self._left) is not None:
            self._left = None
            return left
        if (turn := self._turn) is None:
            return Died()
        while True:
            if not self._killed and clock.now() >= self._deadline and not turn.has_ended():
                self._overrun()  # here, as events may come without a pause
            if (event := turn.at_once()) is not None:  # most are: a cancel scope costs more than a short cell
                return event
            if self._abandoned and turn.has_ended():  # what its last event asked for has failed
                return turn.at_once() or Died()
            with anyio.move_on_after(None if self._killed else self._deadline - clock.now()):
                return await turn.next()

    def _fill(self) -> None:
        """The cell has the host hold more than it may: it is interrupted, and what it tells from now on is dropped."""
        if not self._full:
            self._full = True
            if not self._expired:
                self._overrun()

    def _overrun(self) -> None:
        self._calls.refused = True
        if not self._expired:
            self._expired = True
            self._deadline = clock.now() + self._limits.interrupt_grace_seconds
            self._kernel.time_out()
        else:
            self._killed = True
            self._kernel.kill()

    async def _reply(self, reply: ToolReply | ToolRoom) -> None:
        """Give a call its answer, unless the cell has ended; a worker that does not read it meets the deadline."""
        if self.cell is not None or self._turn is None:
            return
        self._turn.reply(reply)
        if not self._turn.sent:
            try:
                await self._turn.send_rest(self._deadline - clock.now())
            except TimeoutError:
                self._expired = self._killed = True
                self._kernel.kill()

    async def _end_what_it_started(self) -> Output | None:
        """When a cell met its time limit, the processes that it started end with it; what is told of them, if any did.

        Cannot be cancelled: the answer would be taken for that to a later cell's. Takes a few milliseconds.
        """
        if not self._expired or self._swept:
            return None
        self._swept = True
        count = await unbroken(self._kernel.end_started)
        return self._recorder.ended(count) if count else None

    async def _bury(self, death: Died) -> Done:
        """The process is gone: go back to before the cell, and tell what could not be brought back."""
        if (recovery := await self._recovered()) is None:
            return self._done(self._ended())
        if self._abandoned:
            error = self._abandoned_error()
        else:
            error = self._ended_for(recovery) or death_error(death, recovery)
        lost = self._lost + losses(recovery, "the session's process ended")
        return self._done(self._recorder.die(error, lost, self._elapsed_ms(), rolled_back=recovery.exact))

    def _must_relieve(self, event: TurnEvent) -> bool:
        """True if the cell ended at its memory limit, and there is a state to go back to."""
        return (
            isinstance(event, Finished)
            and event.failure is not None
            and (event.failure.kind == "memory" or self._recorder.curbed)
            and not self._expired
            and isinstance(self._request, Run | Shell)
            and self._kernel.steps > 0
        )

    async def _relieve(self, event: Finished) -> Done:
        """The cell ended at its memory limit: go back to before it, where there is room."""
        if (recovery := await self._recovered(1)) is None:
            return self._done(self._ended())
        lost = self._lost + losses(recovery, "the cell ended at its memory limit")
        return self._done(self._recorder.finish(event, ended=None, lost=lost, rolled_back=recovery.exact))

    def _done(self, cell: Cell) -> Done:
        self.cell = cell
        self._calls.cancel()
        return Done(cell=cell)

    async def _recovered(self, steps: int = 0) -> Recovery | None:
        """The state that the session went back to; None where it cannot go on, and the next call resumes it."""
        self._calls.cancel()  # what has not begun would not find by the next process that its own has ended
        if self._gone is None:
            try:
                recovery = await self._recover(steps)
            except SessionClosed as closed:
                if not self._resumes:
                    raise
                self._gone = closed
            else:
                if recovery.exact or recovery.dead or not self._resumes:
                    self.is_fresh |= recovery.fresh and not recovery.exact
                    return recovery
                await self._kernel.close()  # an older state is none to go on from: the next call resumes the newest
                return Recovery(exact=True)
        return None

    def _ended(self) -> Cell:
        """The cell under which all of the session's processes ended."""
        reason = str(self._gone.args[0]) if self._gone is not None else ""
        error = self._abandoned_error() if self._abandoned else ended_error(reason)
        return self._recorder.die(error, self._lost, self._elapsed_ms(), rolled_back=True)

    def _elapsed_ms(self) -> float:
        return (clock.now() - self._began) * 1e3


async def sendable(kernel: Kernel, request: Request) -> Request:
    """A request for the process that there is: with its large buffers in the memory of that one, where they can be.

    Where the process has ended the request is as it was: its turn finds that, and another process is given it.
    """
    if not isinstance(request, Bind):
        return request
    first, *large = request.buffers
    if large and await kernel.store(large, HOST_SECONDS):
        return Bind(name=request.name, buffers=(first,), is_stored=True)
    if not kernel.gone:
        require_sendable(request, had_room=not (large and kernel.beside))
    return request


async def recover(kernel: Kernel, steps: int = 0, *, toolbox: Toolbox) -> Recovery:
    """Have a kernel go back; a session that cannot go on at all is closed. Takes about 10 ms.

    To be carried out `unbroken`: half way there is no process that a later cell could run in.
    """
    try:
        recovery = await kernel.recover(steps)
        if recovery.fresh:
            await equip(kernel, toolbox)
        return recovery
    except (CellblockError, OSError, WorkerGone) as error:
        await kernel.close()
        told = short_of(error, "it could not be made") or error
        reason, hint = (told.args[0], told.hint) if isinstance(told, CellblockError) else (told, "")
        raise SessionClosed(
            f"the session's process ended and no other could be started: {reason}",
            hint=hint or "open a new session",
        ) from error


async def equip(kernel: Kernel, toolbox: Toolbox) -> None:
    """Put the host's functions into a worker that has none yet. SessionClosed where that ends meanwhile."""
    if not toolbox:
        return
    event: TurnEvent
    try:
        turn = kernel.turn(Equip(tools=toolbox.specs()), max_output_bytes=0)
        if not turn.sent:
            await turn.send_rest(_EQUIP_SECONDS)
        while not isinstance(event := await turn.next(), Finished | Died):
            continue
    except WorkerGone as gone:
        event = gone.death
    if isinstance(event, Died):
        raise SessionClosed(f"the session's process {how(event)} before it had its tools", hint="try once more")
    if event.failure is not None:
        raise CellblockError(f"the tools could not be put into the session: {event}")
