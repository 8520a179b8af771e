"""Branches of a session that an agent works on and then needs no more: in a store they leave no session behind."""

from __future__ import annotations

import secrets

import anyio

from cellblock.hosting import to_thread
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned


async def branch_of(session: AsyncSession, what: str) -> AsyncSession:
    """A branch, which `drop` ends. In a store its name is the session's with `what` and a few random digits."""
    if not isinstance(session.state, Versioned):
        return await session.branch()
    return await session.branch(f"{session.name}-{what}-{secrets.token_hex(4)}")


async def drop(branch: AsyncSession) -> None:
    """Close a branch, and forget it in its store. What was merged of it stays."""
    await branch.close()
    if isinstance(branch.state, Versioned):
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_forget, branch.state, branch.user, str(branch.name))


def _forget(state: Versioned, user: str, name: str) -> None:
    from cellblock.store import open_store

    with open_store(state.url) as store:
        store.delete(user, name)
