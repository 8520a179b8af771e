"""Opens kernels of the level `sandboxed`: directly where the container's kernel is the host's, else over a relay.

A session and its branches have a container of their own, a family with all walls of the level `isolated` inside.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from dataclasses import dataclass, field, replace
from functools import partial

from cellblock.container import Container, default_image
from cellblock.errors import CellblockError, IsolationUnavailable
from cellblock.executors.container.engine import engine_of
from cellblock.executors.container.inspection import Bounds, inspected
from cellblock.executors.container.options import PYTHON
from cellblock.executors.container.relayed.kernel import RelayedKernel, RelayedLauncher
from cellblock.executors.container.running import Running, run
from cellblock.executors.process.enclosure import Enclosure, session_bytes, session_processes
from cellblock.executors.process.family import Family, FamilyGone, Profile
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.kinds import Kind, kind_of
from cellblock.executors.process.launcher import kernel_in
from cellblock.executors.process.linked import require_possible
from cellblock.executors.process.mounts import check
from cellblock.executors.process.zygote import Progress
from cellblock.executors.protocol import KernelSpec
from cellblock.hosting import to_thread
from cellblock.hosting.forks import Lock, emptied
from cellblock.hosting.threads import begun
from cellblock.limits import ExecutionLimits
from cellblock.walls import Wall
from cellblock.worker import control

_log = logging.getLogger("cellblock")

_IMAGE_BYTES = 512 * 2**20
"""Size of an interpreter with its packages, and of the processes that make sessions of it."""
_SESSIONS = 2
"""Number of sessions at their limits that a container has room for: branches share it."""
_MORE_PROCESSES = 64


@dataclass(frozen=True, slots=True)
class Box:
    """Properties of a container; two containers with equal ones are interchangeable."""

    container: Container
    profile: Profile
    memory_bytes: int
    processes: int


def box_of(spec: KernelSpec) -> Box:
    """The container for a session of a spec."""
    container = spec.container or Container()
    return Box(
        replace(container, image=container.image or default_image()),
        Profile(spec.python or PYTHON, spec.preload, spec.policy is not None),
        _SESSIONS * session_bytes(spec.limits, _IMAGE_BYTES, saved=spec.saved),
        _SESSIONS * session_processes(spec.limits, saved=spec.saved) + _MORE_PROCESSES,
    )


class ContainerFamily(Family):
    """A family of one session and its branches. The container ends with the last of them."""

    trust_level = "sandboxed"
    lone = True

    def __init__(self, box: Box, running: Running, wall: Wall, bounds: Bounds) -> None:
        super().__init__(box.profile, running)
        self.walls = (wall,)
        self.running = running
        self._bounds = bounds
        self._host = os.getpid()

    @classmethod
    def started(cls, box: Box, progress: Progress | None = None, expected: Kind | None = None) -> ContainerFamily:
        """Start a container, and wait until its packages are imported. Blocks; raises what is missing."""
        if progress is not None:
            progress("starting a container")
        python = box.profile.python
        running = run(box.container, python=python, memory_bytes=box.memory_bytes, processes=box.processes)
        try:
            wall = inspected(running)
            bounds = Bounds.of(running, box.memory_bytes, box.processes, box.container.cpus)
            control.send(running.channel, {"begin": True})
            family = cls(box, running, wall, bounds)
        except BaseException:
            running.close()
            running.await_end()
            raise
        family.settle(progress, expected)
        return family

    def enclosure(self, limits: ExecutionLimits, *, saved: bool) -> Enclosure:
        return self._bounds

    def stir(self) -> None:
        """Do nothing: the container's group holds all processes."""

    def leave(self, shell: object) -> None:
        super().leave(shell)
        if self.idle and os.getpid() == self._host:  # a forked copy of the host only lets go
            self.end_soon()

    def end_soon(self) -> None:
        """End it in a thread: a collector may be calling."""
        begun(self.close, name="cellblock-container")


@dataclass(slots=True, eq=False)
class _Shelf:
    """Pre-warmed containers of one box, with a session of one kind in each; `kept` is the number to keep ready."""

    box: Box
    kind: Kind
    kept: int = 0
    ready: list[ContainerFamily] = field(default_factory=list)
    filling: threading.Lock = field(default_factory=threading.Lock)


class Pool:
    """Warm pool of containers, by box and kind of session. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shelves: dict[tuple[Box, str], _Shelf] = emptied({})

    def take(self, box: Box, kind: Kind, progress: Progress | None = None) -> ContainerFamily:
        """A container that is ready, or a new one. Blocks while it starts."""
        shelf = self._shelf(box, kind)
        with self._lock:
            family = next((one for one in shelf.ready if one.ready), None)
            if family is not None:
                shelf.ready.remove(family)
        if family is None:
            family = ContainerFamily.started(box, progress, kind)
        if shelf.kept:
            begun(partial(self._fill_beforehand, shelf), name="cellblock-containers")
        return family

    def keep(self, box: Box, kind: Kind, count: int) -> None:
        """Keep so many ready. Blocks until they are, and raises errors of starting."""
        shelf = self._shelf(box, kind)
        shelf.kept = count
        try:
            self._fill(shelf)
        except BaseException:
            shelf.kept = 0
            raise

    def close(self) -> None:
        """End every container that was not taken."""
        with self._lock:
            shelves = list(self._shelves.values())
            self._shelves.clear()
        for shelf in shelves:
            shelf.kept = 0
            self._trim(shelf)

    def _shelf(self, box: Box, kind: Kind) -> _Shelf:
        with self._lock:
            return self._shelves.setdefault((box, repr(kind)), _Shelf(box, kind))

    def _fill_beforehand(self, shelf: _Shelf) -> None:
        try:
            self._fill(shelf)
        except (CellblockError, FamilyGone, OSError) as error:
            _log.warning("no container could be started beforehand: %s", error)

    def _fill(self, shelf: _Shelf) -> None:
        """Start containers up to the number to be kept, in place of those that have ended, and end those beyond it."""
        with shelf.filling:
            while self._count(shelf) < shelf.kept:
                family = ContainerFamily.started(shelf.box, None, shelf.kind)
                with self._lock:
                    shelf.ready.append(family)
        self._trim(shelf)

    def _count(self, shelf: _Shelf) -> int:
        with self._lock:
            shelf.ready = [one for one in shelf.ready if one.ready]
            return len(shelf.ready)

    def _trim(self, shelf: _Shelf) -> None:
        with self._lock:
            over = [shelf.ready.pop() for _ in range(len(shelf.ready) - shelf.kept)]
        for family in over:
            family.close()


SHARED = Pool()
"""Pool of this process."""
atexit.register(SHARED.close)


_TRIES = 3
_SHARING = ("runc", "crun", "youki", "io.containerd.runc.v2")
"""Runtimes whose containers share the engine's kernel."""


class ContainerLauncher:
    """Opens each kernel in a container of its own, which its branches share."""

    def __init__(self, containers: Pool | None = None, *, nested: bool = True) -> None:
        """`containers` is the pool, by default that of this process. Without `nested` only those walls are inside that
        need no namespaces, whatever the runtime."""
        self._pool = containers or SHARED
        self._nested = nested

    async def open(self, spec: KernelSpec) -> ProcessKernel | RelayedKernel:
        if not self._nested or await to_thread.run_sync(_is_apart, spec):
            return await RelayedLauncher().open(spec)
        return await _opening(spec, self._pool)

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        if not self._nested or _is_apart(spec):
            RelayedLauncher().keep_ready(spec, count)
            return
        self._pool.keep(box_of(spec), kind_of(spec.limits, door=spec.has_door), count)


def _is_apart(spec: KernelSpec) -> bool:
    """True if the container's kernel is not the host's, or may not be, as with an unknown runtime."""
    container = spec.container or Container()
    engine = engine_of(container.engine)
    return engine.apart or os.path.basename(container.runtime or engine.runtime) not in _SHARING


async def _opening(spec: KernelSpec, containers: Pool) -> ProcessKernel:
    require_possible(spec)  # before anything is made
    mounts = await to_thread.run_sync(check, spec.mounts) if spec.mounts else ()
    box, kind = box_of(spec), kind_of(spec.limits, door=spec.has_door)
    for _ in range(_TRIES):
        family = await to_thread.run_sync(containers.take, box, kind, spec.progress)
        try:
            with contextlib.suppress(FamilyGone):
                return await kernel_in(family, spec, kind, mounts)
        except BaseException:
            family.end_soon()
            raise
        family.end_soon()
    raise IsolationUnavailable(
        f"the container ended {_TRIES} times while a session was opened in it",
        mechanism="container",
        hint="see whether the machine is out of memory",
    )
