"""The session that an agent's runs work in: one for each run, or one that outlives them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio

from cellblock.agent.attempts import drop
from cellblock.agent.recording import recorded
from cellblock.agent.signals import SIGNALS
from cellblock.container import Container, default_image
from cellblock.hosting.finalizers import finalizer
from cellblock.limits import ExecutionLimits
from cellblock.network import destinations
from cellblock.policy import Policy
from cellblock.session.blocking import Session, session_here
from cellblock.session.session import AsyncSession
from cellblock.session.tools import Mark, asking, describe
from cellblock.state import Live, State, Versioned
from cellblock.tools.registry import Registry
from cellblock.tools.tool import about

_STATES_A_STEP = 3
"""A cell, and what is put before it and read after it where it speaks of memory."""
_MOST_STATES = 40
"""Most states that an exploration may go back over."""


class Workplace:
    """Opens sessions with what an agent registered. With a state it keeps one, in which one run works at a time."""

    def __init__(
        self,
        registry: Registry,
        limits: ExecutionLimits,
        *,
        state: State | None,
        name: str | None,
        options: dict[str, Any],
    ) -> None:
        """`options` are what else `AsyncSession` is given, by name."""
        self.registry = registry
        self.limits = limits
        self.state = state
        self.name = name or ("agent" if isinstance(state, Versioned) else None)
        self.options = options
        self._session: AsyncSession | None = None
        self._running = anyio.Lock()

    def afresh(self, limits: ExecutionLimits, policy: Policy | None, **options: Any) -> Workplace:
        """Another one, with a live session of its own, other limits, and these in place of its own options and policy.
        """
        registry = self.registry if policy is None else self.registry.under(policy)
        return Workplace(registry, limits, state=Live(), name=None, options={**self.options, **options})

    @finalizer
    def __del__(self) -> None:
        """Let others have the session, as where it is dropped: what a cell has begun may still hold that."""
        if (session := getattr(self, "_session", None)) is not None:
            session.__del__()

    @property
    def is_open(self) -> bool:
        """True if it keeps a session that is open."""
        return self._session is not None

    def description(self) -> dict[str, object]:
        """Its description for a log: its sessions' arguments and limits, and what is registered."""
        options, registry = self.options, self.registry
        return {
            "name": self.name,
            "user": options["user"],
            "state": None if self.state is None else type(self.state).__name__,
            "trust_level": options["trust_level"],
            "walls": options["walls"] or "full",
            "image": _image(options["container"]) if options["trust_level"] == "sandboxed" else None,
            "limits": {name: getattr(self.limits, name) for name in self.limits.__slots__},
            "seed": options["seed"],
            "preload": options["preload"],
            "mounts": sorted(options["mounts"] or ()),
            "network": [str(one) for one in destinations(options["network"] or ())],
            "policy": None if registry.policy is None else _policy(registry.policy),
            "tools": [{**describe(one.__name__, one), "outward": about(one).outward} for one in registry.tools],
            "classes": sorted(registry.classes),
        }

    @asynccontextmanager
    async def session(self, given: AsyncSession | Session | None = None) -> AsyncIterator[tuple[AsyncSession, bool]]:
        """A session for one run, and whether it has run agents before. One that is `given` is the caller's to close."""
        async with (
            self._own_or(given) as (session, again),
            marks_passed(session.mark_private, lambda: session.private),
        ):
            yield session, again

    async def keep(self, session: AsyncSession, winner: AsyncSession) -> None:
        """Go on with the branch that won, where the session outlives the run."""
        if self._session is not session:
            await winner.close()
        elif isinstance(self.state, Versioned):
            await session.merge(winner, prefer="theirs")
            await drop(winner)
        else:
            self._session = winner
            await session.close()

    async def close(self) -> None:
        """End the session that is kept. The next run opens another, or the same from its store."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @asynccontextmanager
    async def _own_or(self, given: AsyncSession | Session | None) -> AsyncIterator[tuple[AsyncSession, bool]]:
        if given is not None:
            session = session_here(given)
            if lacking := [one.__name__ for one in SIGNALS if not session._offers(one.__name__)]:
                raise TypeError(f"session has no {', '.join(lacking)}: open it with tools=agent.tools")
            yield session, True
        elif self.state is None:
            async with self._made(Live()) as session:
                await self._equip(session)
                yield session, False
        else:
            if self._session is not None:
                self._session._require_not_calling()
            async with self._running:
                again = self._session is not None
                if self._session is None:
                    self._session = await self._made(self.state).open()
                    again = self._session.resumed is not None
                    await self._equip(self._session)
                yield self._session, again

    def require_openable(self) -> None:
        """Raise, as the first run would, for arguments that no session takes."""
        self._made(self.state or Live())

    def _made(self, state: State) -> AsyncSession:
        """A session, not open yet, that keeps as many states as explorations go back over."""
        checkpoints = min(max(self.limits.max_checkpoints, _STATES_A_STEP * self.limits.max_steps + 2), _MOST_STATES)
        limits = replace(self.limits, max_checkpoints=checkpoints if self.limits.max_checkpoints else 0)
        policy = self.registry.policy
        return AsyncSession(self.name, state=state, limits=limits, tools=self.tools, policy=policy, **self.options)

    @property
    def tools(self) -> tuple[Callable[..., Any], ...]:
        """The functions of its sessions: what cells say to the loop, and what was registered."""
        return (*SIGNALS, *map(recorded, self.registry.tools))

    async def _equip(self, session: AsyncSession) -> None:
        for name, cls in self.registry.classes.items():
            await session.set(name, cls)


@asynccontextmanager
async def marks_passed(mark: Mark, why_private: Callable[[], str]) -> AsyncIterator[None]:
    """Around the work of an agent, which `mark` makes private, and of which `why_private` tells why it is.

    Where the cell of a session has asked for it, what either holds may be private goes for both, however it ends.
    """
    asked_by = asking()
    if asked_by is not None and asked_by.private:
        await mark(f"asked from private data: {asked_by.private}")
    try:
        yield
    finally:
        tell = None if asked_by is None or asked_by.private else asked_by.mark
        if tell is not None and (why := why_private()):
            with anyio.CancelScope(shield=True):
                await tell(f"was answered from private data: {why}")


def _image(container: Container | str | None) -> str | None:
    return (container.image if isinstance(container, Container) else container) or default_image()


def _policy(policy: Policy) -> dict[str, object]:
    """A policy as data; objects of the host that it grants are given by name only."""
    return {
        **policy.settings(),
        "functions": [grant.name for grant in policy.functions],
        "classes": [grant.name for grant in policy.classes],
        "granted": [grant.name for grant in policy.granted],
    }
