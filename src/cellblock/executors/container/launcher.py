"""Opens kernels of the level `sandboxed`: directly where the container's kernel is the host's, else over a relay."""

from __future__ import annotations

import contextlib
import os

from cellblock.container import Container
from cellblock.errors import IsolationUnavailable
from cellblock.executors.container import pool
from cellblock.executors.container.engine import engine_of
from cellblock.executors.container.family import box_of
from cellblock.executors.container.pool import Pool
from cellblock.executors.container.relayed.kernel import RelayedKernel, RelayedLauncher
from cellblock.executors.process.family import FamilyGone
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.kinds import kind_of
from cellblock.executors.process.launcher import kernel_in
from cellblock.executors.process.linked import require_possible
from cellblock.executors.process.mounts import check
from cellblock.executors.protocol import KernelSpec
from cellblock.hosting import to_thread

_TRIES = 3
_SHARING = ("runc", "crun", "youki", "io.containerd.runc.v2")
"""Runtimes whose containers have the kernel that their engine has."""


class ContainerLauncher:
    """Opens kernels in containers, each in one of its own, which branches of it share."""

    def __init__(self, containers: Pool | None = None, *, nested: bool = True) -> None:
        """By default containers are of the one pool of this process. Those that are not `nested` have no walls inside
        but those that need no namespaces, whatever their runtime."""
        self._pool = containers or pool.SHARED
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
    """Whether the container has another kernel than the host, or may have: a runtime that nothing is known of."""
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
