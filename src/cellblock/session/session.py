"""A session: cells run in order over one namespace and one set of files, behind one kernel's walls."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeVar

import anyio

from cellblock.cell import Cell, Lost
from cellblock.container import Container
from cellblock.differences import Name
from cellblock.errors import CellblockError, LeaseLost, SessionClosed, StoreError, UnpicklableError
from cellblock.events import Done, Event
from cellblock.executors.choose import launcher_for
from cellblock.executors.protocol import Capabilities, Files, Kernel, KernelSpec
from cellblock.executors.room import most, opening
from cellblock.hosting import to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.hosting.forks import importing
from cellblock.hosting.shortage import each_named, named
from cellblock.hosting.to_thread import off_loop
from cellblock.hosting.unique import unique_bytes
from cellblock.limits import ExecutionLimits, limits_of
from cellblock.network import destinations
from cellblock.outputs import OutputType, preformatted
from cellblock.patience import LOCK_SECONDS, left
from cellblock.policy import Policy
from cellblock.session.arguments import (
    as_read,
    container_of,
    identifier,
    modules_of,
    mounts_of,
    python_of,
    require_text,
    require_undeclared,
    state_of,
)
from cellblock.session.background import ignored
from cellblock.session.execution import equip
from cellblock.session.files import AsyncFiles
from cellblock.session.hoststeps import CLEAR_FILES, HostStep, aside
from cellblock.session.tools import Toolbox
from cellblock.session.unbroken import unbroken
from cellblock.session.undoing import gone, not_undone
from cellblock.session.versions import Versions
from cellblock.state import State, Versioned, state_or_type
from cellblock.text import half_made, line, name
from cellblock.values.room import COST
from cellblock.walls import TrustLevel, Unavailable, Walls
from cellblock.wire.messages import Clear, Fetch, Run, Survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.execution import Execution
    from cellblock.session.lasting import Lasting
    from cellblock.session.offered import AsyncSessionTools
    from cellblock.session.unreached import Reach

T = TypeVar("T")

_log = logging.getLogger("cellblock")
_MAX_NAMES = 10_000
_PREVIEW = 120
_MOST_DISPLAYED = 50
"""Names that a session shows of itself in Jupyter."""
_SURVEY_SECONDS, _APART_SECONDS = 2.0, 8.0
"""Seconds that `names()` waits for all values together, and then for copies that show them apart."""
_GRACE_SECONDS = 0.25
"""Seconds that closing waits for a call that is about to end, before it ends the session's processes."""
_LOOK_SECONDS = 0.1
"""Between two looks at whether the session was closed, while a stream is not read."""
_PARTINGS = 10
"""Times that a branch is begun anew where the session's process ended meanwhile."""
_NONE_AT_LOCAL = Unavailable(
    mechanism="checkpoints", reason="the level local keeps none", remedy='use trust_level="isolated"'
)
_UNREAD_EVENTS = 16
"""Events that a stream holds for who reads it; the cell waits where there are more."""


@each_named
class AsyncSession(Versions):
    """A place to run code that remembers.

    Calls are first come, first served; `wait=False` raises `SessionBusy` instead of waiting. `interrupt` and
    `kill` never wait. Use it as `async with AsyncSession() as session`, on one event loop at a time.

    `walls="reduced"` does without namespaces, for machines that have none: docs/limitations/reduced.md says what that
    gives up. Nothing falls back to it.

    `mounts` are directories or files of the host that cells see, read-only and uncopied: each under a name in the
    workspace, or a path below `/data`.

    `network` lists what cells may connect to, as "pypi.org:443": see docs/network.md. By default that is nothing.

    A `private` session has no network, and cannot call functions that are declared outward. If `private` is a list of
    patterns of paths, the session becomes private, as by `mark_private`, with the first mount or written file that
    matches one.

    `policy` has cells run behind the guard. At `local` there always is one: None grants the audited standard library.
    At `isolated` the guard stands within the walls, and functions of the policy are called as tools are.

    `container` says which image a session of the level `sandboxed` runs in, and which engine runs it; a str is the
    name of an image.

    `state` says what is remembered: `Versioned(…)` every step, in a store, under the session's `name` and `user`;
    `Live()` all names, in memory; None, at `local`, nothing from one cell to the next. By default a session with a name
    is versioned, in the user's own store, and one without a name is live.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        user: str = "default",
        state: State | Literal["default"] | None = "default",
        trust_level: TrustLevel | None = None,
        walls: Walls | None = None,
        limits: ExecutionLimits | None = None,
        preload: Iterable[str] = (),
        python: str | None = None,
        seed: int | None = None,
        mounts: Mapping[str, str | os.PathLike[str]] | None = None,
        network: Iterable[str] | None = None,
        private: bool | Iterable[str] = False,
        tools: Iterable[Callable[..., Any]] = (),
        policy: Policy | None = None,
        container: Container | str | None = None,
    ) -> None:
        state = state_or_type(state)  # type: ignore[assignment]  # whose type is looked at below
        if not isinstance(policy, Policy | None):
            raise TypeError(f"policy must be a Policy, not {type(policy).__name__}")
        preload = modules_of(preload)
        if not isinstance(seed, int | None):
            raise TypeError(f"seed must be a whole number, not {type(seed).__name__}")
        self._said = frozenset(
            what
            for what, value in (
                ("trust_level", trust_level),
                ("walls", walls),
                ("limits", limits),
                ("seed", seed),
                ("python", python),
                ("preload", preload or None),
                ("mounts", mounts),
                ("network", network),
                ("container", container),
            )
            if value is not None
        )
        python = python_of(python, trust_level or "isolated")
        self.user = user
        self.state = state_of(name, user, state)
        if isinstance(self.state, Versioned) and self.state.url is not None:
            from cellblock.store.urls import parse_url  # what only sessions that last need

            parse_url(self.state.url)
        self.trust_level: TrustLevel = trust_level or "isolated"
        self.walls: Walls = walls or "full"
        self.seed = self._own_seed = int.from_bytes(unique_bytes(8)) if seed is None else seed
        spec = KernelSpec(
            limits=limits_of(limits),
            preload=preload,
            python=python,
            seed=self.seed,
            mounts=mounts_of({} if mounts is None else mounts),
            policy=policy,
            forgets=self.state is None,
            saved=isinstance(self.state, Versioned),
            network=destinations(() if network is None else network),
            container=container_of(container, self.trust_level),
        )
        self._launcher = launcher_for(self.trust_level, self.walls)
        self._spec = spec
        granted = () if policy is None or self.trust_level == "local" else policy.functions
        super().__init__(limits=spec.limits, seed=self.seed, toolbox=Toolbox(tools, granted=granted), name=name)
        self._has_door = spec.has_door
        self._toolbox.mark_by(self.mark_private)
        if private is not False:
            from cellblock.session.privacy import patterns_of

            self._private_paths = patterns_of(private)
        if private is True:
            self._close_off("opened as private")
        if mounts is not None:
            from cellblock.session.privacy import declared

            if why := declared(mounts):
                self._close_off(why)
        if policy is not None and self.trust_level == "local":
            require_undeclared(policy)
        self._branched = 0
        self._closing: asyncio.Task[Any] | None = None
        """The task that closes the session, while it runs."""

    @half_made
    def __repr__(self) -> str:
        level = self.trust_level if self.walls == "full" else f"{self.trust_level}, {self.walls} walls"
        state = "closed" if self._closed else "asleep" if self._asleep else "open" if self._kernel else "not open"
        whose = "" if self.name is None else f"{self.name!r} of {self.user!r}, "
        private = ", private" if self._private else ""
        return f"<{type(self).__name__} {whose}{level}, {state}{private}>"

    @property
    def _called(self) -> str:
        """The session in the words of a warning."""
        return "a session" if self.name is None else f"session {self.name!r} of {self.user!r}"

    def _repr_html_(self) -> str:
        """The `repr` and the names with their types, for Jupyter. Asks no process."""
        types = dict[str, str]()
        with suppress(CellblockError):  # closed, or not open
            types = self.types
        more = [f"and {len(types) - _MOST_DISPLAYED} more"] if len(types) > _MOST_DISPLAYED else []
        rows = [f"{name(one)}: {line(kind)}" for one, kind in islice(types.items(), _MOST_DISPLAYED)]
        return preformatted("\n".join([repr(self), *rows, *more]))

    # ------------------------------------------------------------------------------- life

    async def open(self) -> Self:
        """Start the session's process; `IsolationUnavailable` names the wall this machine cannot give.

        A session that lasts is resumed from its store: `resumed` tells from what, and what was lost. `SessionBusy`
        where another program has it open.
        """
        self._require_open()
        if asyncio._get_running_loop() is None:
            raise CellblockError(
                "an AsyncSession runs on an event loop of asyncio only, and none runs here",
                hint="use a Session, in a thread of its own where the loop is another library's",
            )
        if self._kernel is None and not self._asleep:
            self._lock.bind()
            settings: Mapping[str, Any] = {}
            try:
                if isinstance(self.state, Versioned) and self._lasting is None:
                    settings = await self._take_up(self.state)
                past = None if self._lasting is None else await self._lasting.newest()  # read while the kernel opens
                self._kernel = await self._opened()
                if self._lasting is None:
                    self._settle("open")
                else:
                    await self._resume(self._lasting, past)
                    if settings:  # nothing is kept of those of an opening that fails
                        await self._lasting.configure(settings)
            except BaseException:
                await self._let_go()
                raise
        return self

    async def _opened_once(self) -> Kernel:
        """A new kernel with the session's tools. One of a private session has no door."""
        if self._private_paths and not self._private and self._spec.mounts:
            from cellblock.session.privacy import matched

            if why := await to_thread.run_sync(matched, self._spec.mounts, self._private_paths):
                await self.mark_private(why)
        with opening(self._descriptors):
            kernel = await self._launcher.open(replace(self._spec, private=bool(self._private)))
        kernel.owner = self._called
        try:
            if self._closed:
                raise SessionClosed("the session was closed while it opened", hint="open a new one")
            self._offer_mark()
            await equip(kernel, self._toolbox)
            if self._private:  # since it began to open
                kernel.cut_off()
        except BaseException:
            await kernel.close()
            raise
        return kernel

    @property
    def _is_spent(self) -> bool:
        """True if it was closed, or another program has taken it over: no call will succeed any more."""
        lasting = self._lasting
        return self._closed or (lasting is not None and (lasting.committer.is_closed or lasting.is_lost))

    @property
    def _descriptors(self) -> int:
        """Most descriptors it may come to hold."""
        if self.trust_level == "local":
            return 0
        checkpoints = self.limits.max_checkpoints if self.walls == "full" else 0
        return most(checkpoints=checkpoints, saved=self._spec.saved, contained=self.trust_level == "sandboxed")

    def _offer_mark(self) -> None:
        """Cells can say that what they hold is private, where that closes anything."""
        if self._spec.network or self._toolbox.reaches_outside:
            self._toolbox.offer_mark()

    def _reach(self) -> Reach:
        with importing():
            from cellblock.session.unreached import Reach  # cells that end well need none of it

        return Reach(
            listed=tuple(map(str, self._spec.network)),
            private=self._private,
            since=self._private_since,
            door=self.trust_level != "local" and self.walls == "full",
            unlisted="" if self._kernel is None else self._kernel.unlisted,
        )

    @property
    def _rests_after(self) -> float | None:
        return self.state.hibernate_after if isinstance(self.state, Versioned) else None

    @property
    def _replays_live(self) -> bool:
        return self.trust_level == "local" and _is_live(self._spec.policy)

    async def _take_up(self, mode: Versioned) -> Mapping[str, Any]:
        """Take the session's place in its store, and what its settings there narrow; those to change there."""
        await to_thread.run_sync(_import_stores)
        from cellblock.session.lasting import Lasting
        from cellblock.session.settings import most_limits, narrowed, to_plain, to_spec

        given = to_plain(self._spec, self.trust_level, self.walls)
        self._lasting = await Lasting.open(mode, self.user, str(self.name), self._account)
        self._lasting.user = weakref.ref(self)
        stored = self._lasting.settings
        if self._lasting.epoch > 1:  # no id of a cell comes twice
            ids = f"{stored.get('seed', '')}/{self.name}/{self._lasting.epoch}"
            self._history.name_cells_by(ids)
        settings, self._left_out = narrowed(stored, given, self._said)
        if self._left_out:
            _log.warning(
                "session %r: not taken from its store: %s (give as arguments what you mean to have)",
                self.name,
                ", ".join(self._left_out),
            )
        self.trust_level, self.walls = settings["trust_level"], settings["walls"]
        self._spec = to_spec(settings, self._spec)
        said = {name: given[name] for name in self._said}
        settings = {**given, **stored, **said, "seed": settings["seed"]}
        tools, before = self._toolbox.names, stored.get("tools")
        settings["tools"] = sorted({*tools, *map(str, before)}) if isinstance(before, list) else sorted(tools)
        missing = [name for name in settings["tools"] if name not in tools]
        settings["most_limits"], lower = most_limits(stored, asdict(self._spec.limits))
        lacking = [f"limits=ExecutionLimits({', '.join(lower)})"] if lower else []
        lacking += [f"tools=[{', '.join(missing)}]"] if missing else []
        self._lacking = (*(one for one in self._left_out if one not in lower), *lacking)
        patterns = stored.get("private_paths")
        paths = map(str, patterns) if isinstance(patterns, list) else ()
        settings["private_paths"] = sorted({*self._private_paths, *paths})
        self._private_paths = tuple(settings["private_paths"])
        if why := stored.get("private"):
            since = stored.get("private_since")
            self._close_off(str(why), since if isinstance(since, int) else 0)
        elif self._private:  # kept before a cell that is run again sees anything
            await self.mark_private(self._private)
        self.limits, self.seed, self._has_door = self._spec.limits, self._spec.seed, self._spec.has_door
        self._own_seed = [self.seed, *self._lasting.sown()][-1]
        self._account.limit = self.limits.max_host_mb * 2**20
        self._launcher = launcher_for(self.trust_level, self.walls)
        local = self.trust_level == "local"
        keeps_states = self.walls == "full" and self.limits.max_checkpoints > 0
        self._lasting.committer.by_source = not local and (self._spec.policy is not None or not keeps_states)
        self._lasting.losses.strict = mode.strict or local
        if local:
            self._lasting.otherwise = "state=Live() keeps whatever there is, in memory"
        self._spec = replace(self._spec, scoped=self._lasting.losses.strict)
        return {name: value for name, value in settings.items() if name not in stored or stored[name] != value}

    async def close(self) -> None:
        """End the session and everything it started. Its notebook stays readable.

        What a session that lasts has done is in its store by then; StoreError names what it does not take.
        """
        self._closed, self._closing_loop = True, asyncio._get_running_loop()
        await unbroken(self._let_go_once)

    async def _let_go_once(self) -> None:
        """Not beside another call that does: it is waited for."""
        if (other := self._closing) is not None and other.get_loop() is self._closing_loop:
            await asyncio.wait([other])
            return
        self._closing = asyncio.current_task()
        try:
            await self._let_go()
        finally:
            self._closing = None

    async def _let_go(self) -> None:
        lasting = self._lasting
        if lasting is not None and (lasting.committer.is_closed or not self._is_here):
            lasting = None  # the lease and its connections may be the parent's
        self._asleep = False
        self._background.cancel()
        if lasting is not None:  # it waits for a lock of another program's, and all that is under way, so long together
            lasting.deadline.give(LOCK_SECONDS)
            left.set((*left.get(), lasting.deadline))
        failure = None
        try:
            if lasting is not None:
                with suppress(CellblockError):  # it is tried once more
                    try:
                        await self._turn_given(_GRACE_SECONDS)  # a cell that has just ended is recorded, with its state
                        await self._catch_up_between_calls(lasting)
                        await lasting.committed()
                    except StoreError as error:
                        failure = error
        except GeneratorExit:  # its event loop was closed, and nothing can be waited for
            raise
        except BaseException:
            await self._end_all(lasting, None)
            raise
        await self._end_all(lasting, failure)

    async def _end_all(self, lasting: Lasting | None, failure: StoreError | None) -> None:
        """End the kernel and the session's place in its store. A `failure` of before is raised where a state is gone by
        that, as it was not saved.
        """
        if self._kernel is not None and lasting is not None:
            await self._kernel.close()
            await self._turn_given(LOCK_SECONDS)  # whoever has it records what has come of that
        if self._kernel is not None:
            kernel, self._kernel = self._kernel, None
            await kernel.close()
        if not self._closed:  # it may be opened once more
            self._lasting = None
        if lasting is not None:
            try:
                with suppress(LeaseLost):  # whoever has it now has the journal
                    await lasting.committed()  # what has ended meanwhile
                await lasting.finish()
                if failure is not None and lasting.lacks_states:
                    raise failure
            except CellblockError:
                with suppress(StoreError):  # the first names what is lost
                    await lasting.close()
                raise
            await lasting.close()

    def __reduce__(self) -> NoReturn:
        raise CellblockError(
            "a session can be neither pickled nor copied", hint="open one in the other process; branch() makes a copy"
        )

    @finalizer
    def __del__(self) -> None:
        if (lasting := getattr(self, "_lasting", None)) is not None:  # it was opened, and not closed
            lasting.drop()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def is_guarded(self) -> bool:
        """True if a guard stands between cells and the interpreter."""
        return self.trust_level == "local" or self._spec.policy is not None

    @property
    def capabilities(self) -> Capabilities:
        """The walls around this session, mechanism by mechanism."""
        return self._capabilities if self._asleep and self._capabilities is not None else self._living().capabilities

    @property
    def files(self) -> AsyncFiles:
        """The session's files, which its cells see as ordinary files."""
        self._require_usable()
        return AsyncFiles(self._look_at_files, self._change_files)

    async def _look_at_files(self, at: Callable[[Files], T], /) -> T:
        """Read the files, in a thread; the answer comes once the store has the step that they are of."""
        self._lock.use()
        while True:
            kernel = await self._awake()
            try:
                await kernel.settle_files()
                found = await to_thread.run_sync(at, kernel.files)
            except CellblockError:
                if self._closed or not await self._is_replaced(kernel):
                    raise
                continue
            if self._lasting is not None:
                await self._was_read(self._lasting, self._lasting.standing.tip)
                if self._lasting.lacks_state and await self._is_replaced(kernel):  # what was read is made again
                    continue
            return found

    # ------------------------------------------------------------------------------ cells

    async def run(
        self, source: str, *, wait: bool = True, call_id: str | None = None, timeout: float | None = None
    ) -> Cell:
        """Run one cell to its end. What its code did wrong is `cell.error`, never an exception.

        `timeout`: seconds that it may take, in place of the session's `timeout_seconds`, more or fewer.

        `call_id` becomes the cell's id: 1 to 64 letters, digits, `_` or `-`. A second call of the same id runs nothing,
        and gives the cell that the first has run; one that another program began and did not end is such a cell, too.
        """
        return await self._to_end(source, "python", wait, call_id=call_id, timeout=timeout)

    async def stream(
        self,
        source: str,
        *,
        kind: Literal["python", "shell"] = "python",
        wait: bool = True,
        call_id: str | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Run one cell and tell what it shows as it happens, an error that ends it too; the last event is `Done`.

        A cell of kind "shell" is a command for /bin/sh. A caller that leaves before the end interrupts the cell; one
        that does not read holds it up until its time limit, and what comes after that is in `Done` alone.
        `call_id` and `timeout`: see `run`.
        """
        if kind not in ("python", "shell"):
            raise ValueError(f'kind must be "python" or "shell", not {kind!a:.80}')
        execution = await self._begin(source, kind, wait, call_id=call_id, timeout=timeout)
        if isinstance(execution, Cell):
            yield Done(cell=execution)
            return
        events, room = asyncio.Queue[Event | None](), asyncio.Semaphore(_UNREAD_EVENTS)
        following = asyncio.create_task(self._tell(execution, events, room))
        following.add_done_callback(ignored)  # who reads the stream is raised it
        try:
            while (event := await events.get()) is not None:
                room.release()
                yield event
        finally:
            following.cancel()
            await unbroken(partial(asyncio.wait, [following]))
            if not following.cancelled():
                cell = following.result()
        for output in cell.outputs[-1:]:
            if output.type is OutputType.ERROR:
                yield output
        yield Done(cell=cell)

    @named
    async def _tell(self, execution: Execution, events: asyncio.Queue[Event | None], room: asyncio.Semaphore) -> Cell:
        """Tell the events of a cell that was started, whose limits hold whether they are read or not; the cell."""
        try:
            while not isinstance(event := await execution.next(), Done):
                while room.locked() and not self._closed and (seconds := execution.left) > 0:
                    with anyio.move_on_after(min(seconds, _LOOK_SECONDS)):
                        async with room:
                            pass
                if not room.locked():
                    await room.acquire()
                    events.put_nowait(event)
        finally:
            try:
                cell = await self._end(execution)
            finally:
                events.put_nowait(None)
        return cell

    async def shell(
        self, command: str, *, wait: bool = True, call_id: str | None = None, timeout: float | None = None
    ) -> Cell:
        """Run a command with /bin/sh in the workspace. A status other than 0 is the cell's error.

        `call_id` and `timeout`: see `run`.
        """
        return await self._to_end(command, "shell", wait, call_id=call_id, timeout=timeout)

    async def rerun(self, cell_id: str, *, wait: bool = True) -> Cell:
        """Run a cell's source again, as a new execution with a new number in the same cell, and its time limit."""
        require_text(cell_id=cell_id)
        old = await to_thread.run_sync(self.notebook.__getitem__, cell_id)
        return await self._to_end(old.source, old.kind, wait, again=old, timeout=old.timeout_seconds)

    def delete(self, cell_id: str) -> None:
        """Remove a cell's record; what it did stays done.

        Does not wait. A session that lasts has it in the store before the next step begins, and after `flush`.
        """
        require_text(cell_id=cell_id)
        if self._lasting is None or not self._is_here:
            self.notebook.delete(cell_id)
        else:
            self._lasting.delete_cell(cell_id)

    async def clear(self, *, files: bool = False) -> None:
        """Remove every record, unbind every name and, with `files`, delete the workspace's files: one step.

        CellblockError where that failed.
        """
        _answer(await self._ask(Clear(), CLEAR_FILES if files else None), "clear")

    def checkpoint(self) -> str:
        """The id of the newest step, for `undo(to=…)`; while a cell runs, that of the step before it.

        In a session that lasts it is good for as long as that step is part of the session's history.
        """
        self._require_usable()
        return self._history.told.step

    async def undo(self, steps: int = 1, *, to: str | None = None) -> None:
        """Undo steps, each a cell, a command or a change from the host: names, objects and files go back.

        `to` is a step, from `checkpoint`, to go back to. A cell that was rolled back does not count as a step.
        CellblockError if fewer steps can be undone, or the state after that step is gone.
        """
        if type(steps) is not int or steps < 1:
            raise ValueError(f"steps must be a whole number above 0, not {steps!r}")
        if not isinstance(to, str | None):
            raise TypeError(f"to must be a step, as checkpoint() gives it, not {type(to).__name__}")
        if to is not None and steps != 1:
            raise TypeError("undo takes steps or to, not both")
        if to is not None:
            require_text(to=to)
        kernel = await self._acquire(wait=True)
        try:
            await self._committed()
            history = self._history
            states = history.states_before(kernel, steps) if to is None else history.states_since(kernel, to)
            if states == 0:
                return
            if (bound := await kernel.reserve(states)) is None:
                await self._set_back(kernel, states, "the session was set back")
            elif self._lasting is not None:
                before = self._lasting.before(steps) if to is None else self._lasting.led_to(to)
                await self._go_to(self._lasting, await before)
            elif to is not None and states > kernel.steps and not self._keeps_no_states:
                raise gone(to)
            else:
                raise self._not_undone(steps if to is None else states, history.steps_kept(kernel), bound)
        finally:
            self._give_turn()

    @property
    def _keeps_no_states(self) -> bool:
        return self.walls == "reduced" or not self.limits.max_checkpoints or self._without_checkpoints is not None

    @property
    def _without_checkpoints(self) -> Unavailable | None:
        """Why its kernel keeps none, whatever the limits, if it says so; at `local` none does."""
        if self.trust_level == "local":
            return _NONE_AT_LOCAL
        walls = () if self._kernel is None else self._kernel.capabilities.walls
        lacking = (wall for wall in walls if isinstance(wall, Unavailable) and wall.mechanism == "checkpoints")
        return next(lacking, None)

    def _not_undone(self, steps: int, able: int, bound: str) -> CellblockError:
        lacking = self._without_checkpoints
        return not_undone(steps, able, bound, limits=self.limits, walls=self.walls, lacking=lacking)

    async def branch(self, name: str | None = None) -> AsyncSession:
        """Another session with the same names, objects and files; from then on the two are independent.

        While a cell runs, the branch has the state before it. What two processes cannot both have (pipes, sockets,
        shared memory) is closed in the branch: its next cell says so in `lost`. A branch executes no programs, and its
        `undo` goes back no further than its first state. Takes time by the size of the files, which are copied.

        The branch of a session that lasts is kept under a name of its own in the same store; `merge` brings it back.
        """
        if name is not None:
            require_text(name=name)
        await self._awake()
        if name is not None and self._lasting is None:
            raise ValueError("only a branch of a session with a name can have a name")
        if not self.limits.max_checkpoints:
            raise CellblockError(
                "a session without checkpoints cannot be branched", hint="open it with max_checkpoints above 0"
            )
        self._branched += 1
        opened = 0 if self._lasting is None else self._lasting.epoch
        which = str(self._branched) if opened < 2 else f"{opened}.{self._branched}"  # no two are the same
        own = random.Random(f"{self._own_seed}/{which}").getrandbits(64)  # noqa: S311 - reproducible, not secret
        runs_again = self._lasting is not None and self._lasting.committer.by_source
        branch = AsyncSession(
            trust_level=self.trust_level,
            walls=self.walls,
            limits=self.limits,
            preload=self._spec.preload,
            python=self._spec.python,
            seed=self.seed if runs_again else own,  # the cells before are run again with what they were run with
            mounts=dict(self._spec.mounts),
            network=map(str, self._spec.network),
            private=self._private_paths,
            tools=self._toolbox.tools,
            policy=self._spec.policy,
            container=self._spec.container,
        )
        if self._private:
            branch._close_off(self._private, self._private_since)
        branch._offer_mark()
        branch._history.name_cells_by(own)
        branch._own_seed = own
        if self._lasting is not None:
            branch.state, branch._spec = self.state, replace(branch._spec, saved=True, scoped=self._spec.scoped)
            branch.name, branch.user = name or f"{self.name}-{which}", self.user
        try:
            for _ in range(_PARTINGS):
                if await unbroken(partial(self._part, await self._branchable(), branch)):
                    break
            else:
                raise CellblockError(
                    "no branch could be made: the session's process ends each time before its state was kept",
                    hint="undo() the cell that has it end, by a limit that it set say",
                )
        except BaseException:
            await unbroken(partial(self._drop, branch))
            raise
        return branch

    async def _drop(self, branch: AsyncSession) -> None:
        """End a branch that nobody is given, and have the store know nothing of it."""
        was_stored = branch._lasting is not None
        try:
            await branch.close()
        finally:
            if was_stored and self._lasting is not None:
                await self._lasting.delete(str(branch.name))

    async def _branchable(self) -> Kernel:
        """The kernel, with a process that lives, in a state of which it is known what led to it."""
        if self._lasting is not None:
            await self._catch_up_between_calls(self._lasting)
        kernel = await self._awake()
        await kernel.settle_files()  # a state whose files could not be remembered is none to branch from
        if kernel.gone or not kernel.branchable:
            await self._ask(Run(source="", filename="<branch>", max_text=self.limits.max_output_bytes))
        if self._history.of_state(kernel.states[-1]) is None:  # somebody is about to tell
            kernel = await self._acquire(wait=True)
            self._give_turn()
        return kernel

    async def _part(self, stem: Kernel, branch: AsyncSession) -> bool:
        """Give a branch its kernel, and a record like this session's; not where another kernel is the session's now."""
        spec = replace(branch._spec, seed=branch._own_seed, private=bool(self._private))
        while True:
            state = stem.states[-1]
            if stem is not self._kernel or (stand := self._history.of_state(state)) is None:
                return False
            notebook, count = self.notebook.copy(), self._history.count  # cells may end while the branch is made
            try:
                with opening(branch._descriptors):
                    branch._kernel, rows = kernel, _ = await stem.branch(spec, state)
                kernel.owner = branch._called
                break
            except CellblockError as error:
                self._require_usable()
                if (stem.gone and not stem.ended) or isinstance(error, SessionClosed):  # another takes its place
                    return False
                if stem is self._kernel and state in stem.states:  # else that state has gone, for a cell that ended
                    raise
        if self._lasting is not None:
            await self._was_read(self._lasting, stand.step)  # a merge needs the state where the two part
            await self._committed()
            seeds = branch.seed, branch._own_seed
            branch._lasting = await self._lasting.fork(str(branch.name), *seeds, stand.step, branch._account)
            branch._lasting.user = weakref.ref(branch)
        if self._private:  # since it was forked in the store, maybe
            branch._close_off(self._private, self._private_since)
            await branch.mark_private(self._private)
        source = None if branch._lasting is None else branch._lasting.source
        branch._history.begin_as(stand, notebook.copy(source, account=branch._account), count, kernel.states[-1])
        branch.notebook.private = branch.private
        branch._lost = tuple(
            Lost(name=name, type=kind, reason=reason, remedy=remedy) for name, kind, reason, remedy in rows
        )
        if branch._lasting is not None:
            branch._lasting.follow(branch.notebook)
            await branch._committed()
        return True

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell. Does not wait."""
        if not self._asleep:
            self._stopped = True
            self._living().interrupt()

    def kill(self) -> None:
        """End the session's process at once. Does not wait; the running cell reports it."""
        if not self._asleep:
            self._living().kill()

    # ----------------------------------------------------------------------------- values

    async def get(self, name: str, default: object = ...) -> object:
        """A name's value where it is portable, an `Opaque` where it is not.

        The default if it is unbound; KeyError without one.
        """
        cell = await self._ask(Fetch(name=as_read(name)))
        if cell.error is not None and cell.error.type == "KeyError":
            if default is ...:
                raise KeyError(name)
            return default
        return await off_loop(COST * cell.result.size, _answer, cell, name)

    async def set(self, name: str, value: object) -> None:
        """Bind a name to a copy of any picklable value. The host is trusted: it is unpickled inside.

        At `local` the copy is a deep one, nothing is pickled, and objects of classes that the policy grants stay live.
        """
        name = identifier(name, "is not a name")
        cell = await self._ask((await self._awake()).binding(name, value))
        if cell.error is not None and cell.error.kind != "raised":
            raise CellblockError(f"{name}: {line(cell.error.message)}", hint=cell.error.hint)
        if cell.error is not None:
            raise UnpicklableError(
                f"{name}: the session could not rebuild {type(value).__name__}: {line(cell.error.message)}",
                hint="its type must be importable inside the session: give it plain data, "
                "or the file of the type's module by files.write or mounts=",
            )

    async def unset(self, name: str) -> None:
        """Unbind a name: a step that can be undone. KeyError if it is unbound."""
        name = identifier(name, "is not a name")
        cell = await self._ask(aside(source := f"del {name}"), HostStep("run", source, (source.encode(),)))
        if cell.error is not None and cell.error.type == "NameError":
            raise KeyError(name)
        _answer(cell, name)

    async def aside(self, source: str, *, step: str = "", reads: bool = False) -> object:
        """Run source that is not a cell, and return its value: it is not in the notebook, and shows nothing.

        CellblockError if it fails. In a session that lasts it is a commit, and run again where that is needed. With
        `step`, which says what it is for, it is a step that can be undone; without, it belongs to the step before:
        `undo` takes both back. `reads` says that it changes nothing: then nothing is kept of it.
        """
        require_text(source=source, step=step)
        kept = None if reads else HostStep("run", step, (source.encode(),))
        cell = await self._ask(aside(source), kept)
        return await off_loop(COST * cell.result.size, _answer, cell, "aside")

    @property
    def types(self) -> dict[str, str]:
        """The names that cells have bound, with their types, as of the last cell that ended. Asks no process."""
        return {} if self._asleep else self._living().names

    async def names(self) -> dict[str, Name]:
        """The names that cells have bound, with previews made inside.

        The preview of a value whose `__repr__` ends its process, or does not end, says so.
        """
        seconds = self.limits.timeout_seconds / 2
        survey = Survey(max_names=_MAX_NAMES, max_preview=_PREVIEW)
        cell = await self._ask(survey, seconds=min(seconds, _SURVEY_SECONDS))
        if cell.error is not None and cell.error.kind in ("timeout", "crashed"):
            cell = await self._ask(replace(survey, apart=min(seconds, _APART_SECONDS)), seconds=seconds)
        return await off_loop(COST * cell.result.size, _named, cell)

    def as_tools(self, include: Iterable[str] | None = None) -> AsyncSessionTools:
        """The session as functions that models call, with their schemas and what answers a call.

        `include` names those that are offered. Needs pydantic, of the extra `agent`.
        """
        from cellblock.session.offered import AsyncSessionTools

        return AsyncSessionTools(self, include)

    def read_output(self, uri: str) -> bytes:
        """The bytes behind an output's URI."""
        return self.notebook.read(uri)


def _import_stores() -> None:
    """Import what sessions that last need: 90 modules in 50 ms, so call it in a thread."""
    with importing():
        import cellblock.session.lasting
        import cellblock.session.settings  # noqa: F401


def _named(cell: Cell) -> dict[str, Name]:
    found = {}
    rows = _answer(cell, "names")
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [str(name), str(kind), int(size), str(preview)]:
                found[name] = Name(type=kind, size=size, preview=preview)
    return found


def _is_live(policy: Policy | None) -> bool:
    """True if it grants what belongs to the host."""
    return policy is not None and bool(policy.functions or policy.classes or policy.granted)


def _answer(cell: Cell, what: str) -> object:
    """Value of a request that is no cell; `CellblockError` where it failed, which the session outlives."""
    if cell.error is not None:
        raise CellblockError(f"{what}: {line(f'{cell.error.type}: {cell.error.message}')}", hint=cell.error.hint)
    return cell.value
