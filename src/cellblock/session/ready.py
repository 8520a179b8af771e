"""Sessions made ready before they are asked for, by whoever knows that they will be."""

from __future__ import annotations

from collections.abc import Iterable

from cellblock.container import Container
from cellblock.limits import ExecutionLimits
from cellblock.policy import Policy
from cellblock.session.session import AsyncSession
from cellblock.walls import TrustLevel, Walls


def keep_ready(
    count: int,
    *,
    trust_level: TrustLevel = "isolated",
    walls: Walls = "full",
    limits: ExecutionLimits | None = None,
    preload: Iterable[str] = (),
    python: str | None = None,
    network: Iterable[str] | None = None,
    private: bool | Iterable[str] = False,
    policy: Policy | None = None,
    container: Container | str | None = None,
) -> None:
    """Keep `count` sessions ready for `Session` and `AsyncSession` with these arguments; 0 ends that.

    Blocks until they are there, and raises what opening one would: in an event loop call it in a thread. What is
    taken is made again in the background. Each costs the processes and the memory of an open session. One that is
    ready takes any policy, if it was made for one, and any list of a `network`. None are kept with `walls="reduced"`.
    """
    if type(count) is not int or count < 0:
        raise ValueError(f"count must be a whole number of at least 0, not {count!r}")
    session = AsyncSession(
        trust_level=trust_level,
        walls=walls,
        limits=limits,
        preload=preload,
        python=python,
        network=network,
        private=private,
        policy=policy,
        container=container,
    )
    session._launcher.keep_ready(session._spec, count)
