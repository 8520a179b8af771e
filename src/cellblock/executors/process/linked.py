"""What every kernel whose worker is a process has: its link, turns over it, signals to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType

import anyio
from anyio import to_thread

from cellblock.errors import CellblockError, IsolationUnavailable, RestoreFailed, SessionClosed
from cellblock.executors.process import memory
from cellblock.executors.process.demand import limits_of
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.process.link import Link
from cellblock.executors.process.turn import Before, Fetch, ProcessTurn
from cellblock.executors.protocol import Died, Kernel, KernelSpec, Named, WorkerGone
from cellblock.snapshots import Snapshot
from cellblock.values import portable
from cellblock.wire.codec import as_json
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import Finished, Hello, Place, Request, Reserve, Restore
from cellblock.worker import exits

Row = tuple[str, str, str, str]
"""What is gone: its name, its type, the reason, the remedy."""


class LinkedKernel:
    """Belongs to no event loop until it is first used on one."""

    def __init__(self, spec: KernelSpec, enclosure: Enclosure) -> None:
        self._spec = spec
        self._enclosure = enclosure
        self._host = os.getpid()
        self._open = True
        self._link: Link | None = None

    @cached_property
    def _changing(self) -> anyio.Lock:
        """Held over a recovery, a change of files by the host, and a close: they do not meet half way."""
        return anyio.Lock()

    @property
    def names(self) -> dict[str, str]:
        return self._living().names

    def begin(self) -> None:
        """Let the worker take requests: it is seeded now."""
        self._living().begin(self._spec.seed, saved=self._spec.saved)

    def _listen(self, link: Link, channel: socket.socket) -> None:
        """Hear what comes on a channel, and what the control group has to say, too."""
        link.watch_notices(channel.fileno())
        if self._enclosure.group is not None:
            link.watch_group(self._enclosure.group)

    def turn(self, request: Request, *, max_output_bytes: int) -> ProcessTurn:
        turn = ProcessTurn(self._living(), max_output_bytes, self)
        try:
            turn.begin(request, *self._prepared(request))
        except BaseException:
            turn.close()
            raise
        return turn

    def _prepared(self, request: Request) -> tuple[socket.socket | None, Before | None]:
        """What goes with a request: the end for a checkpoint after it, and what has to be waited for before it."""
        return None, None

    @property
    def steps(self) -> int:
        """How many steps can be undone."""
        return 0

    @property
    def states(self) -> tuple[int, ...]:
        """See `Kernel`."""
        return (0,)

    @property
    def branchable(self) -> bool:
        """See `Kernel`."""
        return True  # which `branch` then refuses

    async def branch(self, spec: KernelSpec) -> tuple[Kernel, tuple[Row, ...]]:
        """See `Kernel`."""
        raise CellblockError("a session with reduced walls cannot be branched", hint='open it with walls="full"')

    async def reserve(self, steps: int) -> str | None:
        """See `Kernel`."""
        return None if steps <= self.steps else "max_checkpoints"

    def finished(self, *, tentative: bool) -> None:
        """See `Overseer`."""

    async def change_files(self, change: Callable[[], None]) -> None:
        """See `Kernel`."""
        async with self._changing:
            await to_thread.run_sync(change)

    def note_files(self) -> None:
        """See `Kernel`."""

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._link is not None:
            self._link.killed = True

    def _signal(self, number: signal.Signals) -> None:
        if self._link is not None and self._link.pidfd >= 0 and os.getpid() == self._host:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._link.pidfd, number)

    async def fetch(self, event: Named) -> Named:
        """See `Kernel`."""
        link = self._living()
        most = self._spec.limits.max_value_mb * 2**20
        return await to_thread.run_sync(partial(memory.fetch, event, link.pid, link.pidfd, most))

    async def store(self, buffers: Sequence[Buffer], seconds: float) -> bool:
        """See `Kernel`."""
        link = self._living()
        if not link.beside:
            return False
        turn = self.turn(Reserve(lengths=tuple(map(len, buffers))), max_output_bytes=0)
        try:
            with anyio.fail_after(seconds):
                if not turn.sent:
                    await turn.send_rest(seconds)
                while not isinstance(event := await turn.next(), Finished | Died):
                    continue
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

    async def _restore_names(self, snapshot: Snapshot, fetch: Fetch, seconds: float) -> tuple[Row, ...]:
        """Have the worker bind what was saved; the names that could not be."""
        from cellblock.wire.saving import pack_record  # most sessions are not restored

        record = as_json(pack_record(snapshot)).encode()
        turn = self.turn(Restore(buffers=(record,)), max_output_bytes=0)
        turn.fetch = fetch
        try:
            with anyio.fail_after(seconds):
                if not turn.sent:
                    await turn.send_rest(seconds)
                while not isinstance(event := await turn.next(), Finished | Died):
                    continue
        except TimeoutError:
            self.kill()
            raise RestoreFailed(f"it took longer than {seconds:g} s", hint="allow more") from None
        except WorkerGone as gone:
            raise RestoreFailed(f"the session's process ended: {said_of(gone.death)}") from None
        except BaseException as error:
            self.kill()  # it waits for bytes that do not come
            if isinstance(error, OSError):
                raise RestoreFailed(f"its bytes could not be given to the session: {error}") from error
            raise
        finally:
            turn.close()
        if isinstance(event, Died):
            raise RestoreFailed(f"the session's process ended: {event.reason or said_of(event)}")
        if event.failure is not None:
            raise RestoreFailed(f"{event.failure.type}: {event.failure.message}")
        return rows_of(event)

    @property
    def beside(self) -> bool:
        """See `Kernel`."""
        return self._living().beside

    async def write(self, places: Sequence[Place], buffers: Sequence[Buffer]) -> None:
        """See `Kernel`."""
        await to_thread.run_sync(memory.store, places, buffers, self._living().pid)

    def time_out(self, seconds: float) -> None:
        """See `Kernel`."""
        self.interrupt()

    async def end_since(self, seconds: float) -> int:
        """See `Kernel`."""
        raise NotImplementedError

    def curbed(self) -> str | None:
        """See `Overseer`."""
        raise NotImplementedError

    def exceeded(self) -> str | None:
        """See `Overseer`."""
        return None

    async def how_it_ended(self) -> Died:
        """What is known of the worker's death."""
        raise NotImplementedError

    def dispose(self) -> None:
        """Close without a wait: for one that nobody else has yet. Safe to call twice."""
        raise NotImplementedError

    def __del__(self) -> None:
        if self._open:
            self.dispose()
            warnings.warn("a session was not closed", ResourceWarning, stacklevel=2, source=self)

    def _require_open(self) -> None:
        if not self._open:
            raise SessionClosed("the session was closed", hint="open a new one")

    def _living(self) -> Link:
        if self._link is None:
            raise SessionClosed("the session's worker is gone")
        return self._link

    def _setup(self, link: Link) -> dict[str, object]:
        """What a worker is told before it walls itself in."""
        return {"nonce": link.nonce.hex(), "limits": limits_of(self._spec.limits)}


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
    if status is None:
        return Died()
    if os.WIFSIGNALED(status):
        return Died(signal=os.WTERMSIG(status))
    left = os.WEXITSTATUS(status)
    return Died(status=left, reason=exits.REASONS.get(left, ""), untaken=left == exits.CHANGED_BETWEEN)


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
