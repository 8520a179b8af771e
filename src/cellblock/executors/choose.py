"""The choice of a launcher by trust level and walls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio

from cellblock.executors.protocol import Launcher
from cellblock.executors.system import require_linux
from cellblock.hosting.conditions import interpreter, replaced, require
from cellblock.hosting.forks import importing
from cellblock.limits import ExecutionLimits


def launcher_for(trust_level: str, walls: str = "full") -> Launcher:
    """The launcher of a trust level; ValueError for one that does not exist. `walls`: "full" or "reduced"."""
    require(replaced)
    with importing():
        if asyncio._get_running_loop() is not None:
            anyio.get_cancelled_exc_class()  # imports what anyio has for this kind of loop
        return _launcher_for(trust_level, walls)


def _launcher_for(trust_level: str, walls: str) -> Launcher:
    if trust_level == "local":
        from cellblock.executors.local.kernel import LocalLauncher

        return LocalLauncher()
    if trust_level == "sandboxed":
        require_linux("trust_level='sandboxed'", mechanism="container")
        from cellblock.executors.container.launcher import ContainerLauncher

        return ContainerLauncher(nested=walls == "full")
    if trust_level != "isolated":
        raise ValueError(f"trust_level must be 'local', 'isolated' or 'sandboxed', not {trust_level!r}")
    if walls == "full":
        require_linux("trust_level='isolated'")
        from cellblock.executors.process.launcher import ProcessLauncher

        return ProcessLauncher()
    if walls == "reduced":
        require_linux('walls="reduced"', mechanism="landlock")
        from cellblock.executors.reduced.kernel import ReducedLauncher

        return ReducedLauncher()
    raise ValueError(f"walls must be 'full' or 'reduced', not {walls!r}")


def prepare(
    python: str | None,
    preload: tuple[str, ...],
    walls: str = "full",
    progress: Callable[[str], None] | None = None,
    limits: ExecutionLimits | None = None,
) -> None:
    """Start the processes that sessions of this interpreter and these packages come from, if there are none. Blocks.

    With `limits` a session without mounts is expected; behind full walls it is made meanwhile.
    """
    require_linux("trust_level='isolated'")
    with importing():
        from cellblock.executors.process.families import family_of as full
        from cellblock.executors.process.family import Profile
        from cellblock.executors.process.kinds import kind_of

    profile = Profile(interpreter(python), preload)
    if walls == "reduced":
        from cellblock.executors.reduced.family import family_of as reduced

        reduced(profile, progress)
    else:
        full(profile, progress, None if limits is None else kind_of(limits))
