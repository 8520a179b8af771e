"""A kernel of the process level: a shell, a worker in it, and the descriptors the host holds on both."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING
from weakref import WeakSet

import anyio

from cellblock.errors import CaptureFailed, CellblockError, FileRefused, RestoreFailed, SessionClosed
from cellblock.executors.process.checkpoints import Checkpoint, Checkpoints, Frozen, inner_pid
from cellblock.executors.process.examination import examine
from cellblock.executors.process.family import Family, FamilyGone
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.kinds import kind_of
from cellblock.executors.process.link import Link
from cellblock.executors.process.linked import (
    LinkedKernel,
    boot_time,
    death_of,
    gone,
    not_started,
    require_walls,
    said_of,
)
from cellblock.executors.process.mounts import check
from cellblock.executors.process.shell import Shell, files_gone
from cellblock.executors.process.turn import Before
from cellblock.executors.process.waits import SECONDS, readable
from cellblock.executors.process.zygote import DEATH_SECONDS
from cellblock.executors.protocol import Capabilities, Died, Fetch, KernelSpec, Recovery, Row
from cellblock.executors.room import WHILE_RECOVERING
from cellblock.executors.suspects import Suspects
from cellblock.hosting import to_thread
from cellblock.hosting.loops import OfLoop
from cellblock.hosting.shortage import short_of
from cellblock.hosting.threads import begun
from cellblock.hosting.waiting import ready
from cellblock.labels import IMPORT
from cellblock.network import Traffic
from cellblock.snapshots import Snapshot
from cellblock.walls import Applied, Wall
from cellblock.wire.frames import ProtocolError
from cellblock.wire.messages import Awake, Bind, Clear, Hello, Request, Restore, Run, Sow
from cellblock.wire.messages import Shell as RunShell

if TYPE_CHECKING:
    from cellblock.executors.door.door import Door
    from cellblock.executors.process.capture import Captured
    from cellblock.executors.process.savedfiles import SavedFiles

_TRIES = 3
_DOOR = "door"
_MAKING_SECONDS = 2.0
_WAKING_SECONDS = 10.0
_LATER_SECONDS = 0.002
"""In which another thread, which has just been given an answer, goes first."""
_BESIDE = 8
"""Init, copies that have not quite ended, what makes the worker."""
_MOST_CAPTURES = 3
_SAVED_TIMES, _SAVED_BYTES = 4, 256 * 2**20
"""Most bytes that a scribe may send: so many times the session's memory, and the image that it began with."""
_STEPS = (Run, RunShell, Bind, Clear, Sow, Restore)
"""The requests that change a session."""


class ProcessKernel(LinkedKernel):
    """One live worker. Its death ends a turn with `Died`; `recover` goes back to the newest checkpoint.

    Belongs to no event loop until it is first used on one.
    """

    _hearing = OfLoop(anyio.Lock)
    """Held over a wait for init's answer, inside `_changing`: another reader of its channel would take it."""

    def __init__(self, family: Family, shell: Shell, spec: KernelSpec, *, stem: ProcessKernel | None = None) -> None:
        """A branch has a `stem`, within whose namespaces it lives."""
        self._family = family
        self._shell = shell
        depth = spec.limits.max_checkpoints
        self._checkpoints = Checkpoints(depth)
        enclosure = family.enclosure(spec.limits, saved=spec.saved)
        super().__init__(spec, enclosure, checkpoints=depth, contained=family.lone)
        self._stem = stem
        self._branches: set[int] = set()
        self._room = 0
        self._files_changed = False
        self._left_at, self._captured = -1, 0
        """The newest states since which something went on, and that were to be saved."""
        self._captures: WeakSet[Captured] = WeakSet()
        self._door = self._opened_door()
        self.capabilities = Capabilities(trust_level=family.trust_level, python="", walls=())

    def _opened_door(self) -> Door | None:
        """Serve what listens in the shell, where there is such."""
        listener, self._shell.listener = self._shell.listener, None
        if listener is None:
            return None
        from cellblock.executors.door.door import Door  # most sessions have none

        limits = self._spec.limits
        return Door(
            listener,
            self._spec.network,
            max_connections=limits.max_connections,
            max_bytes=limits.max_network_mb * 2**20,
        )

    @property
    def descriptors(self) -> int:
        held = super().descriptors
        return held and held + self._checkpoints.descriptors

    @property
    def traffic(self) -> Traffic:
        return Traffic() if self._door is None else self._door.traffic

    @property
    def unlisted(self) -> str:
        return "" if self._door is None else self._door.unlisted

    def cut_off(self) -> None:
        if self._door is not None:
            self._door.shut()
            walls = (wall for wall in self.capabilities.walls if wall.mechanism != _DOOR)
            self.capabilities = replace(self.capabilities, walls=(*walls, *self._walls_of_door()))

    def _walls_of_door(self) -> tuple[Wall, ...]:
        if self._door is None:
            return ()
        detail = "closed for good" if self._door.is_shut else ", ".join(map(str, self._spec.network))
        return (Applied(mechanism=_DOOR, detail=detail),)

    async def attach(self) -> None:
        """Put a worker into the shell and learn what walls it stands behind; `FamilyGone` when nobody is left to.

        It waits for `begin`.
        """
        self._link, self._shell.worker = self._shell.worker, None  # one that was made beforehand may be there
        hello = None if self._link is None else await self._link.introduced(Hello, rouse=self._shell.rouse)
        hello = hello or await self._new_worker()
        require_walls(hello)
        link = self._living()
        group = self._enclosure.enclose(link.pid)
        self._shell.tell("seal", processes=self._counted)
        self._listen(link, self._shell.channel)
        self.capabilities = Capabilities(
            trust_level=self._family.trust_level,
            python=hello.python,
            walls=(
                *self._family.walls,
                Applied(mechanism="namespaces", detail="user, mount, pid, net, ipc, uts"),
                *self._shell.walls,
                *(Applied(mechanism=name, detail=detail) for name, detail in hello.walls),
                *self._walls_of_door(),
                group,
            ),
        )

    async def _new_worker(self) -> Hello:
        """A worker of the zygote, or of the one that takes its place when it ends meanwhile."""
        for _ in range(_TRIES):
            if not self._family.ready:
                await to_thread.run_sync(self._family.ensure_ready, self._spec.progress)
            self._unlink()
            link = self._link = Link()
            try:
                link.token = self._attach(link)
            except FamilyGone:
                continue
            finally:
                link.close_ends()
            self._enclosure.prepare()
            try:
                hello = await link.introduced(Hello, rouse=self._shell.rouse)
            except TimeoutError:
                raise not_started(f"no word of it within {SECONDS:.0f} s") from None
            if hello is not None:
                return hello
            if self._family.ready and not self._shell.ended:
                status = await to_thread.run_sync(self._family.how_it_ended, link.token)
                raise short_of(OSError(-(status or 0), "")) or not_started(said_of(death_of(status)))
            if not self._family.alive or self._shell.ended:
                break
        raise FamilyGone

    def _attach(self, link: Link) -> int:
        """Have the zygote make the worker. With checkpoints, init answers its calls that reach other processes."""
        if not self._spec.limits.max_checkpoints:
            return self._family.attach(self._shell.init, link.ends, self._setup(link))
        with self._shell.supervise() as supervised:
            return self._family.attach(self._shell.init, (*link.ends, supervised), self._setup(link))

    @property
    def files(self) -> ProcessFiles:
        return self._shell.files

    def _prepared(self, request: Request) -> tuple[socket.socket | None, Before | None]:
        end = None
        if isinstance(request, _STEPS):
            self._expect()
            end = self._checkpoints.prepare(self._living().pid)
        elif self._checkpoints.pending:
            self._checkpoints.discard()  # what was prepared for a step that could not be sent
        return end, self._settled if self._unsettled else None

    def _expect(self) -> None:
        """Make ready for the copy of the next step, where that has not been done."""
        if self._open and not self._checkpoints.expects:
            self._shell.expect_to_keep(*self._checkpoints.expect())

    def _expect_if_it_can(self) -> None:
        """The same, beforehand: what keeps it from that is raised by the step, which tries again."""
        with contextlib.suppress(OSError):
            self._expect()

    @property
    def _unsettled(self) -> bool:
        return self._hearing.locked() or self._shell.keeping

    async def _settled(self) -> None:
        """Wait until what the files were is remembered."""
        async with self._hearing:
            self._require_open()
            await self._shell.kept()

    @property
    def steps(self) -> int:
        self._note_gone()
        return self._checkpoints.steps

    @property
    def states(self) -> tuple[int, ...]:
        self._note_gone()
        return self._checkpoints.numbers

    async def reserve(self, steps: int) -> str | None:
        async with self._changing, self._hearing:
            self._require_open()
            self._require_descriptors()
            if self._spec.limits.max_checkpoints and not self._shell.ended:
                await self._shell.reserve()
            self._note_gone()
            return None if self._checkpoints.has(steps) else self._checkpoints.bound

    def _require_descriptors(self) -> None:
        """Raise where there are too few to go back, before anything is ended."""
        with contextlib.ExitStack() as taken:
            for _ in range(WHILE_RECOVERING):
                taken.callback(os.close, os.dup(self._shell.init))

    def _note_gone(self) -> None:
        """Take note of the checkpoints that are no more."""
        while self._shell.unkept:
            if (state := self._checkpoints.of(self._shell.unkept.pop())) is not None:
                state.unkept = True
        while self._shell.gone:
            number, bound = self._shell.gone.pop(0)
            if bound:
                self._checkpoints.let_go(number, bound)
            else:
                self._checkpoints.lose(number)

    def finished(self, *, tentative: bool) -> None:
        """The request under way was carried out: what it led to is a state to come back to."""
        if self._checkpoints.pending:
            self._keep(*self._checkpoints.add(self._living().names), tentative=tentative)
        self._note_left()

    def _note_left(self) -> None:
        """Take note of what goes on in the worker: it may change the session from the latest state on."""
        if self._link is not None and self._link.left:
            self._left_at = self._checkpoints.latest

    async def _has_copy(self) -> bool:
        if self._checkpoints.newest.unkept:
            return False
        if (memory := self._checkpoints.newest.memory) is None:
            return bool(self._spec.limits.max_checkpoints)  # nothing was run: a new worker is as good
        await self._checkpoints.pids()  # the copy may not have been made yet, or never be
        return bool(memory.pid()) and not memory.ended

    @property
    def ended(self) -> bool:
        return not self._open or self._shell.ended or not self._family.alive

    @property
    def _falls(self) -> int:
        return self._shell.init

    async def settle_files(self) -> None:
        if self._unsettled:
            await self._settled()

    async def change_files(self, change: Callable[[], object]) -> None:
        async with self._changing:
            self._require_user()
            await self.settle_files()
            copied: object = None
            while True:
                try:
                    await to_thread.run_sync(change)
                except FileRefused as refused:
                    if refused.errno != errno.EAGAIN or copied == (copied := await self._shell.copied()):
                        raise  # it is not init that holds the file
                else:
                    break
            self._files_changed = True

    def note_files(self) -> None:
        if self._files_changed and self._open and self._spec.limits.max_checkpoints:
            repeated = self._checkpoints.newest.number
            self._keep(*self._checkpoints.repeat(), repeated=repeated)
            self._note_left()

    def _keep(
        self, number: int, forgotten: list[int], *, tentative: bool = False, repeated: int | None = None
    ) -> None:
        self._files_changed = False
        made = self._checkpoints.channels() if repeated is None else []
        self._shell.keep(number, forgotten, *made, tentative=tentative, repeated=repeated)
        asyncio.get_running_loop().call_later(_LATER_SECONDS, self._expect_if_it_can)

    def kill(self) -> None:
        """A checkpoint that is being made comes first, which takes some milliseconds after a step: a thread waits."""
        making = self._checkpoints.being_made() if self._open and os.getpid() == self._host else None
        if making is None or self._link is None or self._link.pidfd < 0 or os.geteuid() != self._user:
            super().kill()
        elif not self._link.killed:
            self._link.killed = True
            ends = os.dup(making), os.dup(self._link.pidfd)
            try:
                begun(_kill_once_made, *ends, name="cellblock-kill")
            except CellblockError:  # no thread can be started
                _kill_once_made(*ends)

    def _forsake(self) -> None:
        self._shell.forsake()

    def time_out(self) -> None:
        self.interrupt()
        try:
            frozen = self._checkpoints.known()
        except OSError:  # no descriptor is to spare: it is killed, if it does not end
            return
        if self._open:
            self._shell.tell("hold back", since=self._turn_began, frozen=frozen)

    async def end_started(self) -> int:
        async with self._changing, self._hearing:
            if not self._open:
                return 0
            frozen = await self._checkpoints.pids()
            return await self._shell.end_since(self._turn_began, frozen)

    async def stirred(self) -> bool:
        try:
            async with self._changing, self._hearing:
                is_left = self._left_at >= self._captured
                return not self.gone and (is_left or await self._shell.stirred(self._captured))
        except SessionClosed:  # what ends has its newest state alone
            return False

    def _require_alive(self) -> None:
        self._require_open()
        if self._shell.ended:
            raise files_gone()

    async def recover(self, steps: int = 0) -> Recovery:
        async with self._changing, self._hearing:
            self._require_user()
            self._require_alive()
            return await self._recover(steps)

    async def capture(self, state: int | None = None, *, seconds: float = 60.0) -> Captured:
        async with self._changing:
            self._require_alive()
            if not self._spec.limits.max_checkpoints:
                raise CaptureFailed("a session without checkpoints cannot be saved", hint="set max_checkpoints to 1")
            if sum(not one.is_given_back for one in self._captures) >= _MOST_CAPTURES:
                raise CaptureFailed(f"{_MOST_CAPTURES} states are being saved", hint="wait until one of them is")
            try:
                return await self._capture(state, seconds)
            except OSError as error:
                short = short_of(error, "the state could not be saved")
                said, hint = (str(error), "capture again") if short is None else (short.args[0], short.hint)
                raise CaptureFailed(said, hint=hint) from error

    @cached_property
    def _saved(self) -> SavedFiles:
        from cellblock.executors.process.savedfiles import SavedFiles

        return SavedFiles()

    async def _capture(self, number: int | None, seconds: float) -> Captured:
        await self._checkpoints.pids()
        state = self._checkpoints.newest if number is None else self._checkpoints.of(number)
        if state is None or state.memory is None or not state.memory.pid():
            raise CaptureFailed("the session has no checkpoint to save", hint="run a cell, then try again")
        with self._shell.speaking(state.memory.pid()):
            return await self._capture_from(state.memory, state.number, seconds)

    async def _capture_from(self, memory: Frozen, number: int, seconds: float) -> Captured:
        from cellblock.executors.process.capture import Captured, scribe_ends  # most sessions are not saved

        *_, root = line = self._line()
        with contextlib.ExitStack() as undo:
            with await _apart(memory, CaptureFailed, sole=False) as apart:
                admitted = undo.enter_context(await root._shell.admit(memory.number(len(line) - 1)))
                stream, end = scribe_ends()
                with end:
                    undo.enter_context(stream)
                    files = self._saved
                    listed = undo.enter_context(self._shell.capture(number, files.number))
                    memory.save(apart, {"seconds": int(seconds) + 1}, end.fileno())
            captured = Captured(
                stream,
                files,
                listed,
                partial(setattr, self, "_saved"),
                seconds=seconds,
                most=_SAVED_TIMES * self._spec.limits.max_memory_mb * 2**20 + _SAVED_BYTES,
                python=self.capabilities.python,
                admitted=(admitted,),
            )
            undo.pop_all()
        self._captured = max(self._captured, number)
        self._captures.add(captured)
        try:
            await captured.meet()
        except BaseException:
            captured.close()
            raise
        return captured

    async def restore(
        self, snapshot: Snapshot, fetch: Fetch, *, seconds: float = 60.0, suspects: Suspects | None = None
    ) -> tuple[Row, ...]:
        if self._checkpoints.numbers != (0,):
            raise RestoreFailed("the session has run something", hint="restore into a new one")
        if "form" in snapshot.environment:
            raise RestoreFailed(
                "the session was saved at the level local, whose names only the guard reads",
                hint='open it with trust_level="local"',
            )
        missed = await self._restore_files(snapshot, fetch)
        lost = await self._restore_names(snapshot, fetch, seconds, suspects or Suspects())
        if any(label.startswith(IMPORT) for label, _ in snapshot.ambient):  # their code may have been run, and write
            async with self._changing:
                await self.settle_files()
                async with self._hearing:
                    missed += await self._shell.as_imported(self._checkpoints.newest.number)
        forgotten = self._checkpoints.newest.number - 1
        self._checkpoints.let_go(forgotten, self._checkpoints.bound)
        return (*lost, *_files(missed))

    async def _restore_files(self, snapshot: Snapshot, fetch: Fetch) -> list[str]:
        from cellblock.executors.process import savedfiles

        try:
            files = await savedfiles.packed(snapshot.files, fetch)
        except ValueError as error:
            raise RestoreFailed(f"the snapshot is not as it was saved: {error}") from error
        async with self._changing, self._hearing:
            self._require_open()
            try:
                return await self._shell.take_over(list(files))
            finally:
                for descriptor in files:
                    os.close(descriptor)

    @property
    def branchable(self) -> bool:
        self._note_gone()
        newest = self._checkpoints.newest
        return not newest.unkept and newest.memory is not None and not newest.memory.lost

    async def branch(self, spec: KernelSpec, state: int | None = None) -> tuple[ProcessKernel, tuple[Row, ...]]:
        async with self._changing:
            self._require_user()
            self._require_alive()
            if self._unsettled:
                await self._settled()
            try:
                return await self._branch(spec, state)
            except FamilyGone:
                raise files_gone() from None

    async def _branch(self, spec: KernelSpec, number: int | None) -> tuple[ProcessKernel, tuple[Row, ...]]:
        await self._checkpoints.pids()
        state = self._checkpoints.newest if number is None else self._checkpoints.of(number)
        if state is None or state.memory is None or not state.memory.pid():
            raise CellblockError(
                "the session has no checkpoint to branch from",
                hint="run a cell, then try again; where it stays so, more processes are needed (ulimit -u, pids.max)",
            )
        mounts = await to_thread.run_sync(check, spec.mounts) if spec.mounts else ()
        self._family.stir()
        try:
            listed, store, processes, *within = await self._shell.export(state.number)
        except OSError:  # nothing of it came
            self._shell.tell("exported")
            raise
        try:
            shell = await Shell.make(self._family, kind_of(spec.limits, door=spec.has_door), mounts, tuple(within))
            branch = ProcessKernel(self._family, shell, spec, stem=self)
            self._branches.add(id(branch))
            for one in self._line():
                one._give_room(branch._most_processes)
            try:
                missed = await shell.take_over([listed, store])
                *_, root = line = self._line()
                await root._shell.part(state.memory.number(len(line) - 1))
                copy, since = state.memory.pid(), boot_time()
                try:
                    with self._shell.speaking(copy):
                        lost = await branch._part_from(self, state, processes)
                finally:
                    await root._shell.part(0)
                    await self._shell.end_beside(copy, since)
            except BaseException:
                branch.dispose()
                raise
        finally:
            for descriptor in (listed, store, processes, *within):
                os.close(descriptor)
            self._shell.tell("exported")
        return branch, (*lost, *_files(missed))

    async def _part_from(self, stem: ProcessKernel, state: Checkpoint, processes: int) -> tuple[Row, ...]:
        """Have the copy that a state of the stem is make this branch's worker; what it could not bring along."""
        assert state.memory is not None
        with await _apart(state.memory, CellblockError, sole=True) as apart:
            link = self._link = Link()
            try:
                message: dict[str, object] = {"nonce": link.nonce.hex(), "seed": self._spec.seed}
                numbers = [end if isinstance(end, int) else end.fileno() for end in link.ends]
                first = state.memory.part(apart, message, [*numbers, *self._shell.spaces])
            finally:
                link.close_ends()
            self._checkpoints = Checkpoints(self._spec.limits.max_checkpoints, Checkpoint(0, first, state.names))
            self._shell.give_spaces()
            try:
                awake = await link.introduced(Awake, _WAKING_SECONDS)
                await readable(apart.fileno(), _WAKING_SECONDS)  # its end: the copy has let go of what the branch has
            except (TimeoutError, ProtocolError):
                awake = None
        if awake is None:
            raise CellblockError("the branch's process did not start", hint="run a cell, then try again")
        link.parted = inner_pid(link.pid, 1)
        examine(link.parted, state.memory.pid(), processes)
        first.follow(link.pid)
        link.adopt(state.names)
        group = self._enclosure.enclose(link.pid)
        self.capabilities = self._capabilities_within(stem.capabilities, group)
        self._shell.tell("seal", processes=self._counted)
        self._shell.adopt(inner_pid(link.pid), 0, self._counted, *self._checkpoints.channels())
        self._begin_of(first, link, awake)
        return _rows(awake)

    def _capabilities_within(self, stem: Capabilities, group: Wall) -> Capabilities:
        """A branch's walls are those of its stem, in namespaces of its own, and one more."""
        own = {
            "namespaces": Applied(
                mechanism="namespaces", detail="user, mount, pid, net, ipc, uts; within its parent's"
            ),
            **{wall.mechanism: wall for wall in self._shell.walls},
            "cgroup": group,
        }
        kept = (wall for wall in stem.walls if wall.mechanism != _DOOR)
        walls = (*(own.get(wall.mechanism, wall) for wall in kept), *self._walls_of_door())
        apart = Applied(mechanism="branch", detail="not dumpable, executes no programs")
        if any(wall.mechanism == apart.mechanism for wall in walls):
            return replace(stem, walls=walls)
        return replace(stem, walls=(*walls, apart))

    async def _recover(self, steps: int) -> Recovery:
        self.kill()
        self._note_gone()
        self._files_changed = False
        self._left_at = -1
        names = self._living().names if self._link is not None else {}
        exact = rewound = bool(self._spec.limits.max_checkpoints)
        forgotten = self._checkpoints.back(steps)
        state = self._checkpoints.newest
        wanted, steps_before = state.number, self._checkpoints.steps
        while (awake := await self._return_to(state, forgotten)) is None:
            exact, forgotten = False, []
            state = self._checkpoints.fall_back(wanted)
        state.failed += not steps
        lost = _rows(awake) + (() if exact else gone(names, state.names))
        if state.number != wanted:
            lost += (_steps_gone(steps_before - self._checkpoints.steps),)
        return Recovery(exact=exact, fresh=state.memory is None, lost=lost, failed=state.failed, rewound=rewound)

    async def _return_to(self, state: Checkpoint, forgotten: list[int]) -> Awake | None:
        """Put the session into a state; None when its frozen copy is gone."""
        spared = await self._checkpoints.pids()
        more: dict[str, object] = {"number": state.number} if self._spec.limits.max_checkpoints else {}
        attaches = state.memory is None and self._stem is None
        wakes = 0 if state.memory is None else state.memory.pid()
        missed = await self._shell.sweep(spared=spared, forgotten=forgotten, attaches=attaches, wakes=wakes, **more)
        if self._enclosure.full:
            await to_thread.run_sync(self._enclosure.await_room)
        if state.unkept:
            return None
        if state.memory is None:
            if self._stem is not None:
                raise SessionClosed("no checkpoint of the branch is left", hint="make another")
            self._unlink()
            try:
                await self.attach()
            except FamilyGone:
                raise files_gone() from None
            await self.begin()
            return Awake(lost=_files(missed))
        if not (worker := state.memory.pid()):
            return None
        before = self._living()
        self._family.forget(before.token)
        link = self._link = before.succeed(state.memory.wake())
        try:
            awake = await link.introduced(Awake, _WAKING_SECONDS)
        except (TimeoutError, ProtocolError):  # cells have changed what it would say
            return None
        if awake is None or not state.memory.is_worker(link.pid):
            return None
        link.adopt(state.names)
        self._shell.adopt(worker, state.number, self._counted, *self._checkpoints.channels())
        self._begin_of(state.memory, link, awake)
        return Awake(lost=awake.lost + _files(missed))

    def _begin_of(self, memory: Frozen, link: Link, awake: Awake) -> None:
        """The worker is a copy that was woken."""
        self._listen(link, self._shell.channel)
        memory.left = link.left = memory.left or awake.left
        self._note_left()

    async def close(self) -> None:
        if os.getpid() != self._host:  # what others wait for there, nobody ends here
            self.dispose()
            return
        try:
            async with self._changing:
                if self._open and self._unsettled and not self._branches:
                    self._shell.end()  # whoever waits for it to have remembered waits no more
                    async with self._hearing:
                        self.dispose()
        finally:  # an event loop that ends cancels what no scope shields
            self.dispose()
        if self._family.lone:
            await to_thread.run_sync(self._family.await_end)

    def dispose(self) -> None:
        """Close without a wait: for one that nobody else has yet. Safe to call twice."""
        if self._open:
            self._open = False
            if self._door is not None:
                self._door.close()
            self._unlink()
            self._checkpoints.close()
            if self._branches and os.getpid() == self._host:
                self._shell.tell("hollow")  # branches live within its namespaces
            else:
                self._fell()

    def _fell(self) -> None:
        """The session is closed, and so is every branch of it."""
        self._shell.close(kill=os.getpid() == self._host)  # a forked copy of the host only lets go
        self._enclosure.leave()
        if self._stem is not None:
            self._stem._lose(self)

    def _lose(self, branch: ProcessKernel) -> None:
        self._branches.discard(id(branch))
        for one in self._line():
            one._give_room(-branch._most_processes)
        if not self._branches and not self._open:
            self._fell()

    def _line(self) -> list[ProcessKernel]:
        """This session, and those that it is within."""
        return [self, *(self._stem._line() if self._stem is not None else ())]

    def _give_room(self, more: int) -> None:
        """The kernel counts the processes of branches to this session, too."""
        self._room += more
        self._shell.tell("branches", processes=self._room)

    @property
    def _counted(self) -> int:
        """Most processes that cells may have, where init sees to it."""
        return self._spec.limits.max_processes if self._spec.limits.max_checkpoints else 0

    @property
    def _most_processes(self) -> int:
        return self._spec.limits.max_processes + self._spec.limits.max_checkpoints + _BESIDE

    def _curbed(self) -> str | None:
        return self._shell.curbed()

    async def how_it_ended(self) -> Died:
        """All that is known of the worker's death."""
        async with self._hearing:
            self._require_open()
            token = self._living().token  # a copy that was woken has none: it is no child of the zygote's
            status = None
            if token:
                status = await to_thread.run_sync(self._family.how_it_ended, token)
            elif self._stem is not None and self._living().parted:
                status = await self._stem._shell.parted(self._living().parted)
            else:
                status = await self._shell.ending(DEATH_SECONDS)
            death = self._shell.explain(death_of(status))
        return self._judged(death)

    def exceeded(self) -> str | None:
        if self._enclosure.killed() <= self._checkpoints.lose_ended():  # a copy less is nothing that a cell is told
            return None
        return self._enclosure.held

    def _unlink(self) -> None:
        if self._link is not None:
            self._family.forget(self._link.token)
            self._link.close()
            self._link = None


def _kill_once_made(copy: int, worker: int) -> None:
    """Kill a worker once its copy has said something, or has had its time. Closes both descriptors."""
    ready(copy, seconds=_MAKING_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(worker, signal.SIGKILL)
    os.close(copy)
    os.close(worker)


async def _apart(memory: Frozen, error: type[CellblockError], *, sole: bool) -> socket.socket:
    try:
        return await memory.apart(sole=sole)
    except OSError as failed:  # a timeout is one, too
        if short_of(failed) is not None and not isinstance(failed, BlockingIOError):
            raise
        raise error("the session's checkpoint does not answer", hint="run a cell, then try again") from None


def _steps_gone(steps: int) -> Row:
    """The loss of steps whose checkpoints ended with the worker, or were not made yet."""
    name, them = ("the last step", "it") if steps == 1 else (f"the last {steps} steps", "them")
    return name, "step", "", f"the session is in the state before {them}: run {them} again"


def _files(paths: list[str]) -> tuple[Row, ...]:
    return tuple((f"file {path}", "file", "it could not be set back", "write it again") for path in paths)


def _rows(awake: Awake) -> tuple[Row, ...]:
    return tuple((name, kind, reason, remedy) for name, kind, reason, remedy in awake.lost)
