"""The base of kernels whose worker is a process: its link, turns over it, signals to it."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Self

import anyio

from cellblock.documents import reading
from cellblock.errors import CellblockError, IsolationUnavailable, RestoreFailed, SessionClosed
from cellblock.executors import room
from cellblock.executors.binding import pickled
from cellblock.executors.process import memory
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.process.kinds import limits_of
from cellblock.executors.process.link import Link
from cellblock.executors.process.turn import Before, Overseer, ProcessTurn
from cellblock.executors.process.waits import processor_seconds, stands_still
from cellblock.executors.protocol import (
    Capabilities,
    Curbed,
    Died,
    Fetch,
    Kernel,
    KernelSpec,
    Named,
    Row,
    Turn,
    TurnEvent,
    WorkerGone,
)
from cellblock.executors.suspects import Suspects
from cellblock.hosting import to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.hosting.loops import OfLoop
from cellblock.limits import ExecutionLimits
from cellblock.snapshots import Snapshot
from cellblock.values import portable
from cellblock.walls import Applied
from cellblock.wire.frames import Buffer, ProtocolError
from cellblock.wire.messages import Bind, Finished, Hello, Place, Request, Reserve, Restore, Restrict
from cellblock.worker import exits

_MOST_SAID = 500
_GUARD = Applied(mechanism="guard", detail="names, attributes and imports by allow-list")

_FALL_SECONDS = 0.1
"""Longest time between the worker's end and that of the rest where all processes of a session are killed."""
_GO_BACK = "a value's own code may do that; go back to before it: cellblock sessions undo NAME"


class LinkedKernel(Kernel, Overseer):
    """Belongs to no event loop until it is first used on one."""

    capabilities: Capabilities
    _changing = OfLoop(anyio.Lock)
    """Held over a recovery, a change of files by the host, and a close: they do not meet half way."""
    _falling = OfLoop(anyio.Lock)

    def __init__(self, spec: KernelSpec, enclosure: Enclosure, *, checkpoints: int = 0, contained: bool) -> None:
        self._spec = spec
        self._enclosure = enclosure
        self.most_descriptors = room.most(checkpoints=checkpoints, saved=spec.saved, contained=contained)
        self._host, self._user = os.getpid(), os.geteuid()
        self._open = True
        self._link: Link | None = None
        self._turn_began = 0.0
        self._policy = policy_of(spec)
        self._untold: str | None = None
        """Memory that was held when a process was killed, where nobody has told it yet."""
        room.count(self)

    @property
    def descriptors(self) -> int:
        """Number of descriptors it holds for certain."""
        if not self._open or os.getpid() != self._host:
            return 0
        return room.BASE - (room.OF_LINK if self._link is None else 0)

    @property
    def names(self) -> dict[str, str]:
        return self._living().names

    async def open(self) -> Self:
        """Have a worker made and let it begin; closed again where that fails."""
        try:
            await self.attach()
            await self.begin()
        except BaseException:
            self.dispose()
            raise
        return self

    async def attach(self) -> None:
        """Have a worker made, and learn what walls it stands behind. It waits for `begin`."""
        raise NotImplementedError

    async def begin(self) -> None:
        """Let the worker take requests: it is seeded now, and has the policy, if there is one."""
        link = self._living()
        spec = self._spec
        link.begin(spec.seed, sealed=self._policy is not None, saved=spec.saved, scoped=spec.scoped)
        if self._policy is not None:
            _require_laid(await link.asked(Restrict(policy=self._policy)))
            self.capabilities = replace(self.capabilities, walls=(*self.capabilities.walls, _GUARD))

    def _judged(self, death: Died) -> Died:
        """Security border: a death, with what the host and the kernel know of it, whatever the worker says."""
        exceeded = self.exceeded()  # its count is read, whoever else has killed
        excess = death.excess or exceeded or ""
        link = self._living()
        untaken = (link.unread or death.untaken) and not (link.heard or excess or link.killed)
        return replace(death, excess=excess, untaken=untaken)

    def _listen(self, link: Link, channel: socket.socket) -> None:
        """Hear what comes on a channel, and what the control group has to say, too."""
        link.watch_notices(channel.fileno())
        if self._enclosure.group is not None:
            link.watch_group(self._enclosure.group)

    def curbed(self) -> str | None:
        untold, self._untold = self._untold, None
        return self._curbed() or untold

    def _curbed(self) -> str | None:
        """As `curbed`, by what the session's first process has told since this was last asked."""
        raise NotImplementedError

    @property
    def ended(self) -> bool:
        return not self._open

    async def ending(self) -> bool:
        if not self.ended and self.gone and self._link is not None and not self._link.alive:
            async with self._falling:  # a descriptor is waited for by one task at a time
                with anyio.move_on_after(_FALL_SECONDS):
                    await anyio.wait_readable(self._falls)
        return self.ended or (self.gone and not await self._has_copy())

    @property
    def gone(self) -> bool:
        return (link := self._link) is None or link.killed or not link.alive

    async def _has_copy(self) -> bool:
        """True if a process holds the newest state, beside the worker."""
        return False

    @property
    def _falls(self) -> int:
        """A descriptor that can be read once that is gone with which every process of the session goes."""
        raise NotImplementedError

    def turn(self, request: Request, *, max_output_bytes: int) -> Turn:
        self._require_user()
        self._turn_began = boot_time()
        return self._turn(self._living(), request, max_output_bytes)

    def _turn(self, link: Link, request: Request, max_output_bytes: int) -> ProcessTurn:
        turn = ProcessTurn(link, max_output_bytes, self)
        try:
            turn.begin(request, *self._prepared(request))
        except BaseException:
            turn.close()
            raise
        return turn

    def binding(self, name: str, value: object) -> Bind:
        return pickled(name, value)

    def _prepared(self, request: Request) -> tuple[socket.socket | None, Before | None]:
        """Attachments of a request: the end for a checkpoint after it, and what has to be waited for before it."""
        return None, None

    async def branch(self, spec: KernelSpec, state: int | None = None) -> tuple[Kernel, tuple[Row, ...]]:
        raise CellblockError("a session with reduced walls cannot be branched", hint='open it with walls="full"')

    async def change_files(self, change: Callable[[], object]) -> None:
        async with self._changing:
            self._require_user()
            await to_thread.run_sync(change)

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._link is not None:
            self._link.killed = True

    def _signal(self, number: signal.Signals) -> None:
        if self._link is not None and self._link.pidfd >= 0 and os.getpid() == self._host:
            try:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._link.pidfd, number)
            except PermissionError:  # see `_require_user`
                self._forsake()

    def _forsake(self) -> None:
        """Have the session's first process end all of it, which this program may not do itself any more."""
        raise NotImplementedError

    async def fetch(self, event: Named) -> Named:
        link = self._living()
        most = self._spec.limits.max_value_mb * 2**20
        return await to_thread.run_sync(partial(memory.fetch, event, link.pid, link.pidfd, most))

    async def store(self, buffers: Sequence[Buffer], seconds: float) -> bool:
        link = self._living()
        if not link.beside:
            return False
        turn = self._turn(link, Reserve(lengths=tuple(map(len, buffers))), 0)
        try:
            with anyio.fail_after(seconds):
                if not turn.sent:
                    await turn.send_rest(seconds)
                while not isinstance(event := await turn.next(), Finished | Died):
                    if isinstance(event, Curbed):
                        self._untold = event.held
            if not isinstance(event, Finished) or event.failure is not None:
                return False
            await self.write(event.beside, buffers)
        except TimeoutError:
            self.kill()
            return False
        except (WorkerGone, OSError):  # which the request that is next will meet
            return False
        finally:
            turn.close()
        return True

    async def _restore_names(
        self, snapshot: Snapshot, fetch: Fetch, seconds: float, suspects: Suspects
    ) -> tuple[Row, ...]:
        """Have the worker bind what was saved; the names that could not be."""
        from cellblock.wire.saving import pack_record, record_of  # most sessions are not restored

        def described() -> tuple[bytes, set[str], set[str]]:
            record = record_of(snapshot)
            if suspects.any:
                record["left_out"] = {key: reason for key, (reason, _) in suspects.left_out.items()}
            with reading("what was saved is", RestoreFailed, hint=_GO_BACK):
                return pack_record(record), snapshot.addresses(), {one.key for one in snapshot.groups}

        record, addresses, keys = await to_thread.run_sync(described)
        turn = self._turn(self._living(), Restore(buffers=(record,)), 0)
        pid = self._living().pid
        silence, had = anyio.CancelScope(), 0.0

        def go_on() -> None:
            """The worker has as long as it may to say something."""
            nonlocal had
            silence.deadline, had = anyio.current_time() + suspects.patience, processor_seconds(pid)

        async def given(wanted: Sequence[str]) -> Sequence[bytes]:
            """Security border: the session gets nothing that is not its own."""
            if not addresses.issuperset(wanted):
                raise ProtocolError("it asked for bytes that are not its own")
            silence.deadline = math.inf
            given = await fetch(wanted) if wanted else ()
            go_on()
            return given

        turn.fetch = given
        event: TurnEvent | None = None
        try:
            with anyio.fail_after(seconds):
                if not turn.sent:
                    await turn.send_rest(seconds)
                go_on()
                while not isinstance(event, Finished | Died):
                    with silence:
                        event = await turn.next()
                    wait = silence.deadline
                    if silence.cancelled_caught:
                        if stands_still(pid, had, suspects.patience):
                            break
                        wait = anyio.current_time() + suspects.patience
                    silence = anyio.CancelScope(deadline=wait)
        except TimeoutError:
            self.kill()
            raise RestoreFailed(f"it took longer than {seconds:g} s", hint=_GO_BACK) from None
        except WorkerGone as gone:
            event = gone.death
        except BaseException as error:
            self.kill()  # it waits for bytes that do not come
            if isinstance(error, (OSError, ProtocolError)):
                raise RestoreFailed(f"its bytes could not be given to the session: {error}") from error
            raise
        finally:
            turn.close()
        loading = turn.loading if turn.loading in keys else ""
        if isinstance(event, Died):
            ended = f"the session's process ended: {event.reason or said_of(event)}"
            if "memory" in event.excess:
                raise too_little_memory(self._spec.limits)
            if not event.excess:
                suspects.ended(loading, f"its code ended the session's process: {event.reason or said_of(event)}")
            raise RestoreFailed(ended, hint=_GO_BACK)
        if not isinstance(event, Finished):
            self.kill()
            raise RestoreFailed(f"the code of a value {suspects.stood_still(loading)}", hint=_GO_BACK)
        if event.failure is not None and event.failure.kind == "memory":
            raise too_little_memory(self._spec.limits)
        if event.failure is not None:
            raise RestoreFailed(f"{event.failure.type}: {event.failure.message}")
        return rows_of(event)

    @property
    def beside(self) -> bool:
        return self._living().beside

    async def write(self, places: Sequence[Place], buffers: Sequence[Buffer]) -> None:
        link = self._living()
        await to_thread.run_sync(memory.store, places, buffers, link.pid, link.pidfd)

    def time_out(self) -> None:
        self.interrupt()

    def dispose(self) -> None:
        """Close without a wait: for one that nobody else has yet. Safe to call twice."""
        raise NotImplementedError

    @finalizer
    def __del__(self) -> None:
        if self._open:
            self.dispose()
            warnings.warn(f"{self.owner} was not closed", ResourceWarning, stacklevel=2, source=self)

    def _require_open(self) -> None:
        if not self._open:
            raise SessionClosed("the session was closed", hint="open a new one")

    def _require_user(self) -> None:
        """Raise where this program has become another user, which may neither stop cells nor reach files."""
        if os.geteuid() != self._user:
            raise CellblockError(
                f"the session was opened as user {self._user}, and this program is now user {os.geteuid()}",
                hint="open sessions after the change of user",
            )

    def _living(self) -> Link:
        if self._link is None:
            raise SessionClosed("the session's worker is gone", hint="open a new session")
        return self._link

    def _setup(self, link: Link) -> dict[str, object]:
        """Settings of a worker, sent before it walls itself in."""
        return {"nonce": link.nonce.hex(), "limits": limits_of(self._spec.limits, door=self._spec.has_door)}


def too_little_memory(limits: ExecutionLimits) -> RestoreFailed:
    return RestoreFailed(
        f"what was saved needs more memory than max_memory_mb={limits.max_memory_mb} allows; nothing is lost",
        hint="open the session with a larger one: limits=ExecutionLimits(max_memory_mb=…)",
    )


def rows_of(event: Finished) -> tuple[Row, ...]:
    """Security border: the rows that a reply's value says."""
    try:
        told = portable.unpack(event.buffers)
    except portable.MalformedValue:
        told = None
    if not isinstance(told, list):
        raise RestoreFailed("the session's process did not say what was lost")
    rows = [row for row in told if isinstance(row, list) and len(row) == 4 and all(isinstance(one, str) for one in row)]
    return tuple((name, kind, reason, remedy) for name, kind, reason, remedy in rows)


def require_possible(spec: KernelSpec) -> None:
    """Raise for a session that is to forget, which processes do not, and for a policy that cannot be laid over one."""
    policy_of(spec)
    if spec.forgets:
        raise CellblockError(
            "state=None is for trust_level='local': a process remembers from cell to cell",
            hint="leave state= out, and open a session for each task; or call clear() after a cell",
        )


def policy_of(spec: KernelSpec) -> dict[str, object] | None:
    """The policy as data for the worker. CellblockError for one that cannot be laid over a process."""
    if spec.policy is None:
        return None
    from cellblock.wire.granted import as_data  # most sessions have no policy

    return as_data(spec.policy)


def _require_laid(answer: Finished | None) -> None:
    """Raise for a policy that a worker could not take."""
    if answer is not None and answer.failure is None:
        return
    said = "its process ended" if answer is None or answer.failure is None else answer.failure.message
    raise CellblockError(
        f"the policy cannot be laid over the session: {ascii(said[:_MOST_SAID])[1:-1]}",
        hint="what it grants by name must be installed for the session's interpreter",
    )


def boot_time() -> float:
    """Seconds, by the clock that the kernel tells the age of processes by."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def gone(before: dict[str, str], after: Mapping[str, str] = MappingProxyType({})) -> tuple[Row, ...]:
    """Names, with their types, that a session has no more."""
    remedy = "run the cells that defined it again"
    return tuple((name, kind, "", remedy) for name, kind in sorted(before.items()) if name not in after)


def require_walls(hello: Hello) -> None:
    """Raise for a wall that a worker could not put up."""
    if hello.missing:
        mechanism, reason, remedy = hello.missing[0]
        raise IsolationUnavailable(f"{mechanism}: {reason}", mechanism=mechanism, hint=remedy)


def death_of(status: int | None) -> Died:
    """A death, from a wait status."""
    if status is None or status < 0:
        return Died()
    if os.WIFSIGNALED(status):
        return Died(signal=os.WTERMSIG(status))
    left = os.WEXITSTATUS(status)
    excess = "more than its memory limit" if left == exits.MEMORY else ""
    return Died(status=left, reason=exits.REASONS.get(left, ""), excess=excess)


def said_of(death: Died) -> str:
    """The same in words."""
    if death.signal is not None:
        return f"it was killed by {signal.Signals(death.signal).name}"
    return "it ended" if death.status is None else f"it left with status {death.status}"


def not_started(reason: str) -> IsolationUnavailable:
    """The error of a worker that says no hello."""
    return IsolationUnavailable(
        f"the worker did not start: {reason}",
        mechanism="worker",
        hint="see its message on stderr, and whether the machine is overloaded",
    )
