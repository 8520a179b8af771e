"""A session: cells run in order over one namespace and one set of files, behind one kernel's walls."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import anyio

from cellblock.cell import Cell, CellKind, CellState, Lost
from cellblock.errors import CellblockError, SessionBusy, SessionClosed, UnpicklableError
from cellblock.events import Done, Event
from cellblock.executors.binding import require_sendable
from cellblock.executors.choose import launcher_for
from cellblock.executors.protocol import Capabilities, Kernel, KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.policy import Policy
from cellblock.session.execution import Execution, equip, recover
from cellblock.session.files import AsyncFiles
from cellblock.session.notebook import Notebook
from cellblock.session.record import losses
from cellblock.session.tools import Toolbox
from cellblock.state import Live
from cellblock.walls import Walls
from cellblock.wire.messages import Bind, Clear, Fetch, Request, Run, Shell, Survey

_LIVE = Live()
_MAX_NAMES = 10_000
_PREVIEW = 120
_HOST_SECONDS = 60.0
_MOST_SAID = 500
_HOST_STEP = Cell(id="host", number=0, source="", state=CellState.RUNNING, kind="host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What a name in the session holds: its type, its own size in bytes, and the beginning of its repr."""

    type: str
    size: int
    preview: str


class AsyncSession:
    """A place to run code that remembers.

    Calls are first come, first served; `wait=False` raises `SessionBusy` instead of waiting. `interrupt` and
    `kill` never wait. Use it as `async with AsyncSession() as session`, on one event loop.

    `walls="reduced"` goes without namespaces, where a machine gives none: see docs/security.md for what that gives up.
    Nothing falls back to it.

    `mounts` are directories or files of the host that cells see, read-only and without a copy: under a name in the
    workspace, or under a path below `/data`.

    `policy` has cells run behind the guard: at `local`, where None is one that grants the audited standard library, and
    at `isolated` within the walls, where its functions are called as tools are.

    `state` says what is remembered: `Live()` all names, in memory; None, at `local`, nothing from one cell to the next.
    """

    def __init__(
        self,
        *,
        trust_level: Literal["local", "isolated"] = "isolated",
        walls: Walls = "full",
        limits: ExecutionLimits | None = None,
        preload: Iterable[str] = (),
        python: str | None = None,
        seed: int | None = None,
        mounts: Mapping[str, str | os.PathLike[str]] | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        policy: Policy | None = None,
        state: Live | None = _LIVE,
    ) -> None:
        if not isinstance(policy, Policy | None):
            raise TypeError(f"policy must be a Policy, not {type(policy).__name__}")
        if not isinstance(state, Live | None):
            raise TypeError(f"state must be Live() or None, not {type(state).__name__}")
        if not isinstance(limits, ExecutionLimits | None):
            raise TypeError(f"limits must be ExecutionLimits, not {type(limits).__name__}")
        self.limits = limits or ExecutionLimits()
        self.seed = secrets.randbits(64) if seed is None else seed
        self.trust_level = trust_level
        self.walls = walls
        self.notebook = Notebook()
        self._launcher = launcher_for(trust_level, walls)
        self._spec = KernelSpec(
            limits=self.limits,
            preload=tuple(preload),
            python=python,
            seed=self.seed,
            mounts=_mounts(mounts or {}),
            policy=policy,
            forgets=state is None,
        )
        self._kernel: Kernel | None = None
        self._turns = anyio.Semaphore(1, fast_acquire=True)
        self._count = 0
        self._ids = random.Random(self.seed)  # noqa: S311 - names cells; nothing rests on it
        self._lost: tuple[Lost, ...] = ()
        self._state = 0
        self._cells: dict[int, str] = {}
        """The cells that can be undone, by the states that they led to."""
        self._toolbox = Toolbox(tools, granted=() if policy is None or trust_level == "local" else policy.functions)
        self._branched = 0
        self._closed = False
        self._host = os.getpid()

    def __repr__(self) -> str:
        level = self.trust_level if self.walls == "full" else f"{self.trust_level}, {self.walls} walls"
        state = "closed" if self._closed else "open" if self._kernel else "not open"
        return f"<{type(self).__name__} {level}, {state}>"

    # ------------------------------------------------------------------------------- life

    async def open(self) -> Self:
        """Start the session's process; `IsolationUnavailable` names the wall this machine cannot give."""
        self._require_open()
        if self._kernel is None:
            kernel = await self._launcher.open(self._spec)
            if self._closed:
                await kernel.close()
                raise SessionClosed("the session was closed while it opened", hint="open a new one")
            try:
                await equip(kernel, self._toolbox)
            except BaseException:
                await kernel.close()
                raise
            self._kernel = kernel
        return self

    async def close(self) -> None:
        """End the session and everything it started. Its notebook stays readable."""
        self._closed = True
        if self._kernel is not None:
            kernel, self._kernel = self._kernel, None
            with anyio.CancelScope(shield=True):
                await kernel.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def capabilities(self) -> Capabilities:
        """The walls around this session, mechanism by mechanism."""
        return self._living().capabilities

    @property
    def files(self) -> AsyncFiles:
        """The session's files, which its cells see as ordinary files."""
        return AsyncFiles(self._living().files, self._change_files)

    def _living(self) -> Kernel:
        if os.getpid() != self._host:
            raise SessionClosed("the session belongs to the process this one was forked from", hint="open a new one")
        self._require_open()
        if self._kernel is None:
            raise SessionClosed("the session is not open", hint="use `async with` or `await session.open()`")
        return self._kernel

    def _require_open(self) -> None:
        if self._closed:
            raise SessionClosed("the session was closed", hint="open a new one")

    # ------------------------------------------------------------------------------ cells

    async def run(self, source: str, *, wait: bool = True) -> Cell:
        """Run one cell to its end. What its code did wrong is `cell.error`, never an exception."""
        return await self._to_end(source, "python", wait)

    async def stream(
        self, source: str, *, kind: Literal["python", "shell"] = "python", wait: bool = True
    ) -> AsyncGenerator[Event, None]:
        """Run one cell and tell what it shows as it happens; the last event is `Done`.

        A cell of kind "shell" is a command for /bin/sh. A caller that leaves before the end interrupts the cell.
        """
        execution = await self._begin(source, kind, wait)
        try:
            while not isinstance(event := await execution.next(), Done):
                yield event
        finally:
            await self._end(execution)
        yield event

    async def shell(self, command: str, *, wait: bool = True) -> Cell:
        """Run a command with /bin/sh in the workspace. A status other than 0 is the cell's error."""
        return await self._to_end(command, "shell", wait)

    async def rerun(self, cell_id: str, *, wait: bool = True) -> Cell:
        """Run a cell's source again, as a new execution with a new number in the same cell."""
        old = self.notebook[cell_id]
        return await self._to_end(old.source, old.kind, wait, cell_id=old.id)

    def delete(self, cell_id: str) -> None:
        """Remove a cell's record; what it did stays done."""
        self.notebook.delete(cell_id)

    async def clear(self) -> None:
        """Remove every record and unbind every name; CellblockError where that failed. Files stay."""
        _answer(await self._ask(Clear()), "clear")
        self.notebook.clear()

    async def undo(self, steps: int = 1) -> None:
        """Go back by so many steps, each a cell, a command or a change from the host: names, objects and files.

        What was rolled back is no step any more. CellblockError where fewer can be undone.
        """
        if type(steps) is not int or steps < 1:
            raise ValueError(f"steps must be a whole number above 0, not {steps!r}")
        kernel = await self._acquire(wait=True)
        try:
            if (bound := await kernel.reserve(steps)) is not None:
                raise self._not_undone(steps, kernel.steps, bound)
            recovery = await recover(kernel, steps, toolbox=self._toolbox)
            self._lost += losses(recovery, "the session was set back")
        finally:
            self._give_turn()

    def _not_undone(self, steps: int, able: int, bound: str) -> CellblockError:
        """The error of steps that cannot be undone, of which `able` can be, for a limit of that name."""
        many = "1 step" if steps == 1 else f"{steps} steps"
        if steps <= able:
            return CellblockError(
                f"{many} cannot be undone: the copy of the session from before that has ended",
                hint="undo another number of steps",
            )
        message = f"{many} cannot be undone, {able} can" if able else "nothing can be undone"
        if self.walls == "reduced":
            hint = 'walls="reduced" keeps no checkpoints: use walls="full" where the machine gives them'
            return CellblockError(message, hint=hint)
        if bound in _HELD:
            limits = self.limits
            megabytes = limits.checkpoint_bytes >> 20 if bound == "max_checkpoint_mb" else limits.max_disk_mb
            message += f": {_HELD[bound].format(megabytes)}"
        few = bound in _HELD or able >= self.limits.max_checkpoints
        hint = f"raise ExecutionLimits({bound}=…) before the session is opened" if few else ""
        return CellblockError(message, hint=hint)

    async def branch(self) -> AsyncSession:
        """Another session with the same names, objects and files, from which on the two go apart.

        While a cell runs, the state is the one before it. What two processes cannot have both (pipes, sockets, shared
        memory) is closed in the branch: its next cell says so in `lost`. It executes no programs. Its first state is
        the oldest that its `undo` goes back to. Takes time by the size of the files, which are copied.
        """
        kernel = self._living()
        if not self.limits.max_checkpoints:
            raise CellblockError(
                "a session without checkpoints cannot be branched", hint="open it with max_checkpoints above 0"
            )
        if not kernel.branchable:
            await self._ask(Run(source="", filename="<branch>", max_text=self.limits.max_output_bytes))
        self._branched += 1
        seed = random.Random(f"{self.seed}/{self._branched}").getrandbits(64)  # noqa: S311 - reproducible, not secret
        branch = AsyncSession(
            trust_level=self.trust_level,
            walls=self.walls,
            limits=self.limits,
            preload=self._spec.preload,
            python=self._spec.python,
            seed=seed,
            mounts=dict(self._spec.mounts),
            tools=self._toolbox.tools,
            policy=self._spec.policy,
        )
        with anyio.CancelScope(shield=True):
            kernel, rows = await kernel.branch(branch._spec)
        branch._kernel, branch._state, branch._count = kernel, kernel.states[-1], self._count
        branch.notebook = self.notebook.copy()
        branch._lost = tuple(
            Lost(name=name, type=kind, reason=reason, remedy=remedy) for name, kind, reason, remedy in rows
        )
        return branch

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell. Does not wait."""
        self._living().interrupt()

    def kill(self) -> None:
        """End the session's process at once. Does not wait; the running cell reports it."""
        self._living().kill()

    # ----------------------------------------------------------------------------- values

    async def get(self, name: str) -> object:
        """A name's value where it is portable, an `Opaque` where it is not; KeyError if it is unbound."""
        cell = await self._ask(Fetch(name=name))
        if cell.error is not None and cell.error.type == "KeyError":
            raise KeyError(name)
        return _answer(cell, name)

    async def set(self, name: str, value: object) -> None:
        """Bind a name to a copy of any picklable value. The host is trusted: it is unpickled inside.

        At `local` the copy is a deep one, nothing is pickled, and objects of classes that the policy grants stay live.
        """
        if not name.isidentifier():
            raise ValueError(f"{name!r} is not a name")
        cell = await self._ask(self._living().binding(name, value))
        if cell.error is not None and cell.error.kind != "raised":
            raise CellblockError(f"{name}: {_said(cell.error.message)}", hint=cell.error.hint)
        if cell.error is not None:
            raise UnpicklableError(
                f"{name}: the session could not rebuild {type(value).__name__}: {_said(cell.error.message)}",
                hint="its type must be importable inside the session",
            )

    async def names(self) -> dict[str, Name]:
        """The names that cells have bound, with previews made inside."""
        cell = await self._ask(Survey(max_names=_MAX_NAMES, max_preview=_PREVIEW))
        found = {}
        rows = _answer(cell, "names")
        for row in rows if isinstance(rows, list) else ():
            match row:
                case [str(name), str(kind), int(size), str(preview)]:
                    found[name] = Name(type=kind, size=size, preview=preview)
        return found

    def read_output(self, uri: str) -> bytes:
        """The bytes behind an output's URI."""
        return self.notebook.read(uri)

    # ---------------------------------------------------------------------------- turning

    async def _to_end(self, source: str, kind: CellKind, wait: bool, cell_id: str | None = None) -> Cell:
        return await self._follow(await self._begin(source, kind, wait, cell_id))

    async def _begin(self, source: str, kind: CellKind, wait: bool, cell_id: str | None = None) -> Execution:
        """Wait for the session's turn and start the next cell; `_end` must follow."""
        _require_text(source)
        return self._start(await self._acquire(wait), source, kind, cell_id)

    def _begin_at_once(self, source: str) -> Execution | None:
        """Start the next cell if nobody else has the session's turn; `_end_at_once` must follow."""
        _require_text(source)
        kernel = self._living()
        try:
            self._turns.acquire_nowait()
        except anyio.WouldBlock:
            return None
        return self._start(kernel, source, "python", None)

    def _start(self, kernel: Kernel, source: str, kind: CellKind, cell_id: str | None) -> Execution:
        """Send the next cell down; what is to be kept of it is made while it runs."""
        try:
            number = self._count + 1
            request = _request(source, kind, number, self.limits)
            began = time.monotonic()
            turn = kernel.turn(request, max_output_bytes=self.limits.max_output_bytes)
            self._count = number
            draft = Cell(
                id=cell_id or f"c{self._ids.getrandbits(40):010x}",
                number=number,
                source=source,
                kind=kind,
                state=CellState.RUNNING,
            )
            self.notebook.record(draft, {})
            lost, self._lost = self._lost, ()
            return Execution(
                kernel,
                self.limits,
                draft,
                request,
                turn,
                began=began,
                seconds=self.limits.timeout_seconds,
                toolbox=self._toolbox,
                lost=lost,
            )
        except BaseException:
            self._give_turn()
            raise

    async def _follow(self, execution: Execution) -> Cell:
        """A cell that was started, when it has ended."""
        try:
            return await execution.to_end()
        finally:
            await self._end(execution)

    def _end_at_once(self, execution: Execution) -> Cell | None:
        """A cell that was started, if it ends within a moment; else `_follow` must follow."""
        cell = execution.at_once()
        if cell is not None:
            try:
                self.notebook.record(cell, execution.recorder.blobs)
            finally:
                self._give_turn(cell.id)
        return cell

    async def _end(self, execution: Execution) -> None:
        """Record a cell, which is ended first if its caller left it, and give the turn on."""
        try:
            cell = execution.cell or await execution.abandon()
            self.notebook.record(cell, execution.recorder.blobs)
        finally:
            self._give_turn(execution.cell_id)

    async def _ask(self, request: Request) -> Cell:
        """Carry out a request that is no cell."""
        kernel = await self._acquire(wait=True)
        seconds = self.limits.timeout_seconds
        if isinstance(request, Bind):  # the host's own values: no matter how short the cells are to be
            seconds = max(seconds, _HOST_SECONDS)
        try:
            if isinstance(request, Bind):
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
            )
            try:
                cell = await execution.to_end()
            finally:
                if execution.cell is None:
                    await execution.abandon()
            self._lost += cell.lost  # of a host's request nobody sees it: the next cell says so
            return cell
        finally:
            self._give_turn()

    async def _stored(self, kernel: Kernel, request: Bind) -> Bind:
        """The request with its large buffers in the worker's memory already, where they can be put there."""
        first, *large = request.buffers
        if large and await kernel.store(large, _HOST_SECONDS):
            request = Bind(name=request.name, buffers=(first,), is_stored=True)
        require_sendable(request)
        return request

    async def _acquire(self, wait: bool) -> Kernel:
        """Take the session's one turn; the kernel that is alive by then."""
        kernel = self._living()
        try:
            self._turns.acquire_nowait()
            return kernel
        except anyio.WouldBlock:
            if not wait:
                raise SessionBusy("another call is using the session", hint="wait for it, or interrupt()") from None
        await self._turns.acquire()
        try:
            return self._living()  # closed while this call waited
        except SessionClosed:
            self._give_turn()
            raise

    def _give_turn(self, cell_id: str | None = None) -> None:
        """Give the session's turn on, after a cell or something else. What the host has changed of the files meanwhile
        is a step first."""
        if (kernel := self._kernel) is not None:
            self._mark(kernel.states, cell_id)
            self._note_files(kernel)
        self._turns.release()

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

    async def _change_files(self, change: Callable[[], None]) -> None:
        """Does not wait for its turn: a cell may be waiting for a file."""
        kernel = self._living()
        await kernel.change_files(change)
        if self._turns.value:  # else the one who has the turn notes it
            self._note_files(kernel)


_HELD = {
    "max_checkpoint_mb": "the memory of older states came to more than ExecutionLimits(max_checkpoint_mb=…), {} MB",
    "max_disk_mb": "the files of older states came to more than ExecutionLimits(max_disk_mb=…), {} MB",
}


def _mounts(mounts: Any) -> tuple[tuple[str, str], ...]:
    """Names and sources; a relative source is one of this process's directory as it is now."""
    if not isinstance(mounts, Mapping):
        raise TypeError(f"mounts must map names to paths, not be a {type(mounts).__name__}")
    found = []
    for name, source in mounts.items():
        path = os.fspath(source)
        if not isinstance(name, str) or not isinstance(path, str):
            raise TypeError(f"mounts maps names to paths, both str, not {name!r:.100} to {source!r:.100}")
        found.append((name, os.path.join(os.getcwd(), path)))
    return tuple(found)


def _answer(cell: Cell, what: str) -> object:
    """What a request that is no cell gave; `CellblockError` where it failed, which the session outlives."""
    if cell.error is not None:
        raise CellblockError(f"{what}: {_said(f'{cell.error.type}: {cell.error.message}')}", hint=cell.error.hint)
    return cell.value


def _said(text: str) -> str:
    """What was said inside, for a message of ours: logs and terminals get those, so it is one line, and inert."""
    from cellblock.session.inert import inert

    line = " ".join(inert(text[:_MOST_SAID]).split())
    return f"{line}…" if len(text) > _MOST_SAID else line


def _request(source: str, kind: CellKind, number: int, limits: ExecutionLimits) -> Request:
    if kind == "shell":
        return Shell(command=source)
    return Run(source=source, filename=f"<cell {number}>", max_text=limits.max_output_bytes)


def _require_text(source: object) -> None:
    if not isinstance(source, str):
        raise TypeError(f"source must be str, not {type(source).__name__}")
