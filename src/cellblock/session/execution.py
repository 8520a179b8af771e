"""One request under way: its deadline, the folding of its events, and what follows when its process dies."""

from __future__ import annotations

import contextlib
import time

import anyio

from cellblock.cell import Cell, CellError, Lost
from cellblock.errors import CellblockError, SessionClosed
from cellblock.events import Done, Event, ToolCall
from cellblock.executors.protocol import Curbed, Died, Kernel, Turn, TurnEvent, WorkerGone, Written
from cellblock.limits import ExecutionLimits
from cellblock.session.record import Recorder, death_error, how, losses, timeout_error
from cellblock.wire.messages import Display, Finished, Request, ToolCalled, ToolReply


class Execution:
    """Drives one turn of a kernel. `next` tells its events; the last is `Done`, and `cell` is set with it."""

    def __init__(self, kernel: Kernel, limits: ExecutionLimits, draft: Cell, *, seconds: float) -> None:
        self._kernel = kernel
        self._limits = limits
        self._recorder = Recorder(draft, limits.max_output_bytes)
        self._seconds = seconds
        self._began = time.monotonic()
        self._deadline = self._began + seconds
        self._expired = False
        self._killed = False
        self._abandoned = False
        self._lost: tuple[Lost, ...] = ()
        self._turn: Turn | None = None
        self.cell: Cell | None = None

    @property
    def recorder(self) -> Recorder:
        """What the cell has shown so far."""
        return self._recorder

    async def start(self, request: Request) -> None:
        """Send the request down. A process that died while nothing ran is first replaced by another."""
        try:
            try:
                self._turn = await self._send(request)
            except WorkerGone as gone:
                self._lost = losses(self._kernel.names, f"the session's process {how(gone.death)} between two cells")
                await self._restart()
                self._turn = await self._send(request)
        except TimeoutError:  # the worker takes nothing: what was sent of the request is of no use
            self._expired = self._killed = True
            self._kernel.kill()

    async def _send(self, request: Request) -> Turn:
        limit, seconds = self._limits.max_output_bytes, self._deadline - time.monotonic()
        return await self._kernel.turn(request, max_output_bytes=limit, seconds=seconds)

    async def next(self) -> Event:
        """The next event of the cell."""
        while True:
            event = Died() if self._turn is None else await self._event(self._turn)
            match event:
                case Finished():
                    limit = self._seconds if self._expired and not self._abandoned else None
                    self.cell = self._recorder.finish(event, timed_out=limit, lost=self._lost)
                    return Done(cell=self.cell)
                case Written():
                    return self._recorder.write(event)
                case Curbed():
                    return self._recorder.curb(event)
                case Display():
                    output = self._recorder.display(event)
                    if output is not None:
                        return output
                case ToolCalled():
                    await self._refuse(event)
                    return ToolCall(id=event.call, name=event.name)
                case Died():
                    self.cell = await self._bury(event)
                    return Done(cell=self.cell)

    async def to_end(self) -> Cell:
        """The cell, once it has ended."""
        while self.cell is None:
            await self.next()
        return self.cell

    async def abandon(self) -> Cell:
        """The caller went away in the middle: interrupt the cell, and kill it when that does not end it.

        Cannot be cancelled: the session would be left with a cell that nobody follows. Takes the grace at most.
        """
        self._abandoned = True
        self._deadline = time.monotonic()
        with anyio.CancelScope(shield=True):
            with contextlib.suppress(SessionClosed):
                await self.to_end()
        return self.cell or self._recorder.die(self._abandoned_error(), (), self._elapsed_ms())

    def _abandoned_error(self) -> CellError:
        return CellError(
            type="Abandoned",
            message="the cell was left before it ended: its caller stopped waiting, or the session was closed",
            kind="crashed",
        )

    async def _event(self, turn: Turn) -> TurnEvent:
        """The turn's next event. At the deadline the cell is interrupted, and killed when that does not end it."""
        while True:
            if not self._killed and time.monotonic() >= self._deadline:  # events may come without a pause
                self._overrun()
            if (event := turn.at_once()) is not None:  # most are: a cancel scope costs more than a short cell
                return event
            with anyio.move_on_after(None if self._killed else self._deadline - time.monotonic()):
                return await turn.next()

    def _overrun(self) -> None:
        if not self._expired:
            self._expired = True
            self._deadline = time.monotonic() + self._limits.interrupt_grace_seconds
            self._kernel.interrupt()
        else:
            self._killed = True
            self._kernel.kill()

    async def _refuse(self, event: ToolCalled) -> None:
        """Answer that there is no such tool; a worker that does not read the answer meets the deadline."""
        assert self._turn is not None
        with anyio.move_on_after(self._deadline - time.monotonic()) as scope:
            await self._turn.reply(ToolReply(call=event.call, error=("NameError", f"no tool {event.name!r}")))
        if scope.cancelled_caught:
            self._expired = self._killed = True
            self._kernel.kill()

    async def _bury(self, death: Died) -> Cell:
        """The process is gone: start another over the same files, and tell what went with it."""
        lost = self._lost or losses(self._kernel.names, "the session's process ended")
        if self._abandoned:
            error = self._abandoned_error()
        else:
            error = timeout_error(self._seconds, killed=True) if self._expired else death_error(death)
        await self._restart()
        return self._recorder.die(error, lost, self._elapsed_ms())

    async def _restart(self) -> None:
        """Another process in the place of the dead one; a session that can have none is closed.

        Cannot be cancelled: half way there is no process that a later cell could run in. Takes about 10 ms.
        """
        with anyio.CancelScope(shield=True):
            try:
                await self._kernel.restart()
            except (CellblockError, OSError) as error:
                await self._kernel.close()
                raise SessionClosed(f"the session's process ended and no other could be started: {error}") from error

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._began) * 1e3
