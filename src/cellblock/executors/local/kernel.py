"""A kernel that runs cells in a thread of this process."""

from __future__ import annotations

import _thread
import importlib
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

from cellblock.errors import (
    CaptureFailed,
    CellblockError,
    FileRefused,
    IsolationUnavailable,
    MountRefused,
    PreloadFailed,
    RestoreFailed,
    SessionClosed,
)
from cellblock.executors.local.copying import copied
from cellblock.executors.local.runner import Runner
from cellblock.executors.local.saving import Captured
from cellblock.executors.local.turn import LocalTurn
from cellblock.executors.protocol import (
    Capabilities,
    Capture,
    Died,
    Fetch,
    FileVersion,
    Handed,
    Kernel,
    KernelSpec,
    Recovery,
    Row,
)
from cellblock.executors.suspects import Suspects
from cellblock.guard.budget import resident
from cellblock.guard.signals import Ending
from cellblock.hosting import to_thread
from cellblock.hosting.finalizers import finalizer
from cellblock.hosting.threads import begun
from cellblock.policy import Policy
from cellblock.snapshots import Snapshot
from cellblock.values import portable
from cellblock.walls import Applied, Unavailable, Wall
from cellblock.wire.messages import Request, ToolReply, ToolRoom
from cellblock.worker.keeping import FORM

_PATIENCE = 0.4
"""Seconds in which a cell that was killed is to end: with the grace before, a second past its limit at most."""
_AGAIN = 0.02
_TIMES = 250
_STUCK = "the session is dead: a call of its last cell could not be interrupted, and its thread still runs"

_GROWTH = {
    "linux": "growth is looked at now and then, and large results refused",
    "win32": "large results are refused, and its growth is not looked at, as this system does not tell it",
}
_NEW_PEAK = "growth past the most that the process ever held is looked at now and then, and large results refused"

WALLS: tuple[Wall, ...] = (
    Applied(mechanism="time", detail="between two steps of Python; a single call into C is bounded by its size"),
    Unavailable(
        mechanism="memory",
        reason=f"the session shares the host's memory: {_GROWTH.get(sys.platform, _NEW_PEAK)}",
        remedy='use trust_level="isolated" for a limit that the kernel holds',
        needed=False,
    ),
    Unavailable(
        mechanism="kill",
        reason="a call into C that does not return cannot be ended, and its thread goes on",
        remedy='use trust_level="isolated", where sessions are processes',
        needed=False,
    ),
)


class NoFiles:
    """The files of a session that has none."""

    def __init__(self, kernel: LocalKernel) -> None:
        self._kernel = kernel

    def write(self, path: str, data: bytes) -> FileVersion:
        raise self._refusal()

    def read(self, path: str, *, max_bytes: int, offset: int | None = None) -> bytes:
        raise self._refusal()

    def list(self, directory: str = "") -> list[str]:
        self._kernel.require_open()
        return []

    def delete(self, path: str) -> None:
        raise self._refusal()

    def version(self, path: str) -> None:
        return None

    def _refusal(self) -> Exception:
        self._kernel.require_open()
        return FileRefused(
            "a session at trust level local has no files", hint='use trust_level="isolated", or bind the content'
        )


class LocalKernel(Kernel):
    """One world, one thread. `recover` gives it another of each."""

    def __init__(self, spec: KernelSpec) -> None:
        self._spec = spec
        self._policy = spec.policy or Policy()
        self._closed = False
        self._host = os.getpid()
        self._stuck = False
        self._turn: LocalTurn | None = None
        self._states = 0
        self._failed = 0
        self._memory = 0
        self._runner = self._start()
        unguarded = f", but for {', '.join(self._policy.trusted)}" if self._policy.trusted else ""
        guard = Applied(mechanism="guard", detail=f"names, attributes and imports by allow-list{unguarded}")
        walls = (guard, *WALLS)
        self.capabilities = Capabilities(trust_level="local", python=platform.python_version(), walls=walls)

    def _start(self) -> Runner:
        spec = self._spec
        return Runner(
            self._policy,
            seed=spec.seed,
            value_bytes=spec.limits.max_value_mb << 20,
            megabytes=spec.limits.max_memory_mb,
            forgets=spec.forgets,
            scoped=spec.scoped,
        )

    @property
    def files(self) -> NoFiles:
        return NoFiles(self)

    @property
    def names(self) -> dict[str, str]:
        return dict(self._runner.names)

    @property
    def states(self) -> tuple[int, ...]:
        return (self._states,)

    def require_open(self) -> None:
        """SessionClosed for a kernel that takes no more requests."""
        if self._closed:
            raise SessionClosed("the session was closed", hint="open a new one")
        if self._stuck:
            raise SessionClosed(_STUCK, hint='open a new one; at trust_level="isolated" such a cell is killed')

    # ---------------------------------------------------------------------------------- turns

    def turn(self, request: Request, *, max_output_bytes: int) -> LocalTurn:
        self.require_open()
        turn = LocalTurn(max_output_bytes=max_output_bytes, take=self._take, look=self._look)
        self._turn, self._memory = turn, resident()
        if self._runner.world.dead:
            turn.tell(_killed())
        else:
            self._runner.give(request, turn)
        return turn

    def binding(self, name: str, value: object) -> Handed:
        return Handed(name=name, buffers=(b"",), value=copied(name, value, self._policy))

    def _take(self, reply: ToolReply | ToolRoom) -> None:
        self._runner.tools.take(reply)

    def _look(self) -> None:
        """While a cell runs: whether this process has grown by more than the session may."""
        if resident() - self._memory > self._spec.limits.max_memory_mb << 20:
            self._end("memory")

    def interrupt(self) -> None:
        if not self._closed:
            self._end("interrupt")

    def time_out(self) -> None:
        self._end("timeout")

    def kill(self) -> None:
        runner, turn = self._runner, self._turn
        runner.world.dead = True
        if turn is not None:
            turn.tell(_killed())
        self._end("kill")

    def _end(self, reason: str) -> None:
        """Have the cell ended: again and again, as what is raised inside a finalizer is lost."""
        runner = self._runner
        ending = runner.world.ending
        if self._turn is not None and runner.busy and ending.raise_in(reason, cell := ending.cell):
            again = (ending, reason, cell)
            begun(_insist, *again, name="cellblock-local-ending")

    async def end_started(self) -> int:
        return 0

    # ---------------------------------------------------------------------------- going back

    @property
    def ended(self) -> bool:
        return self._closed  # it has no processes

    @property
    def gone(self) -> bool:
        return self._runner.world.dead

    async def ending(self) -> bool:
        return self._closed

    async def change_files(self, change: Callable[[], object]) -> None:
        change()

    async def recover(self, steps: int = 0) -> Recovery:
        if self._closed:
            raise SessionClosed("the session was closed", hint="open a new one")
        runner = self._runner
        if not await to_thread.run_sync(runner.wait, _PATIENCE):
            self._stuck = True
        lost = tuple((name, kind, "", "run what defined it again") for name, kind in runner.names.items())
        runner.finish()
        self._failed += 1
        if not self._stuck:
            self._runner = self._start()
        return Recovery(exact=False, fresh=not self._stuck, failed=self._failed, lost=lost, dead=self._stuck)

    async def branch(self, spec: KernelSpec, state: int | None = None) -> tuple[Kernel, tuple[Row, ...]]:
        raise CellblockError(
            "a session at trust level local cannot be branched: it lives in this process, and keeps no checkpoints",
            hint='use trust_level="isolated"',
        )

    async def capture(self, state: int | None = None, *, seconds: float = 60.0) -> Capture:
        runner = self._runner
        if runner.world.dead or self._stuck or self._closed:
            raise CaptureFailed("the session's world has ended", hint="run what it held again")
        return await Captured.of(runner)

    async def restore(
        self, snapshot: Snapshot, fetch: Fetch, *, seconds: float = 60.0, suspects: Suspects | None = None
    ) -> tuple[Row, ...]:
        self.require_open()
        if snapshot.environment.get("form") != FORM:
            raise RestoreFailed(
                "the session was saved at another level: its names were pickled, which nothing here reads",
                hint='open it with trust_level="isolated"',
            )
        addresses = sorted(snapshot.addresses())
        chunks = dict(zip(addresses, await fetch(addresses), strict=True))
        runner = self._runner
        done = runner.call(partial(runner.restore, snapshot, chunks.__getitem__))
        try:
            return await to_thread.run_sync(done.result, seconds)
        except TimeoutError:
            self.kill()
            raise RestoreFailed("its definitions took longer than they may", hint="open it with another name") from None
        except (portable.MalformedValue, KeyError, ValueError) as error:
            raise RestoreFailed(
                f"the snapshot is not as it was saved: {error!r}", hint="check out an older one"
            ) from error

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._turn is not None and not self._turn.ended:
            self._turn.close()
        self._end("close")
        self._runner.finish()
        await to_thread.run_sync(self._runner.join, _PATIENCE)

    @finalizer
    def __del__(self) -> None:
        """Nobody holds it any more, and nobody waits for a cell of it. Takes no lock: a collector calls it anywhere."""
        runner = getattr(self, "_runner", None)
        if runner is None or self._closed or self._host != os.getpid():
            return
        runner.finish()
        if runner.busy:
            _thread.start_new_thread(_insist, (runner.world.ending, "close", runner.world.ending.cell))
        warnings.warn(f"{self.owner} was not closed", ResourceWarning, stacklevel=2, source=self)


def _insist(ending: Ending, reason: str, cell: int) -> None:
    """Have a cell ended until it has. The import of a library has its time."""
    left = _TIMES
    while left and ending.raise_in(reason, cell):
        left -= not ending.importing
        time.sleep(_AGAIN)


def _killed() -> Died:
    return Died(reason="was killed")


class LocalLauncher:
    """Opens kernels that are threads of this process."""

    async def open(self, spec: KernelSpec) -> Kernel:
        if spec.mounts:
            raise MountRefused(
                "a session at trust level local has no files to mount anything in",
                hint='use trust_level="isolated", or grant a function that reads them: policy.fn(f)',
            )
        if spec.network:
            raise IsolationUnavailable(
                "a session at trust level local has no network, and so no door in it",
                mechanism="door",
                hint='use trust_level="isolated", or grant a function that asks the network: policy.fn(f)',
            )
        if spec.python not in (None, sys.executable):
            raise IsolationUnavailable(
                "a session at trust level local runs on the host's own interpreter",
                mechanism="python",
                hint='leave python= out, or use trust_level="isolated"',
            )
        for name in spec.preload:
            try:
                importlib.import_module(name)
            except ImportError as error:
                raise PreloadFailed(f"{name} cannot be imported: {error}", hint="install it for the host") from error
        return LocalKernel(spec)

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        """Nothing has to be made beforehand: a kernel opens in less than a millisecond."""
