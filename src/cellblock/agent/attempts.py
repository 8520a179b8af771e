"""Several attempts at one task, each on a branch of the session; the best is kept."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from cellblock.agent.loop import Loop
from cellblock.agent.result import RunResult
from cellblock.agent.signals import Setting
from cellblock.errors import CellblockError, ModelError, TaskFailed
from cellblock.hosting import to_thread
from cellblock.hosting.unique import unique_word
from cellblock.observe.log import EventLog
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned

Verifier = Callable[[RunResult], float | Awaitable[float]]
"""Quality of a result; the highest number wins. A truth value is a number."""


async def best_of(
    count: int, setting: Setting, loop: Callable[[Setting], Loop], verifier: Verifier | None, *, again: bool
) -> tuple[RunResult, AsyncSession]:
    """The best of `count` attempts that run at once, and the branch that it was made on, which is left open.

    The others are closed. Where every attempt failed, what the first one raised is raised. What goes wrong beyond that
    ends all of them.
    """
    branches: list[AsyncSession] = []
    results: dict[int, RunResult] = {}
    errors: dict[int, CellblockError] = {}
    broken: list[Exception] = []
    logs = [EventLog() for _ in range(count)]
    kept: AsyncSession | None = None

    async def attempt(number: int, session: AsyncSession) -> None:
        memory, log = setting.memory.copy(), logs[number]
        log.held = session._account.share()
        own = replace(setting, session=session, memory=memory, log=log, attempt=number + 1, tell=None)
        try:
            results[number] = await loop(own).run(again=again)
        except (TaskFailed, ModelError) as error:
            errors[number] = error
        except Exception as error:  # raised below as it is, and not in a group
            broken.append(error)
            tasks.cancel_scope.cancel()

    try:
        for number in range(count):
            branches.append(await branch_of(setting.session, f"attempt-{number + 1}"))
        async with anyio.create_task_group() as tasks:
            for number, branch in enumerate(branches):
                tasks.start_soon(attempt, number, branch)
        for number, log in enumerate(logs):
            for event in log:
                row = dict(event)
                await setting.log.add(row.pop("event"), attempt=number + 1, **row)
        if broken:
            raise broken[0]
        if not results:
            await _mark_as(branches[0], setting.session)
            raise errors[0]
        scores = {number: await _score(result, verifier) for number, result in sorted(results.items())}
        best = max(scores, key=lambda number: (scores[number], -number))
        await setting.log.add(
            "decision",
            size=0,
            step=None,
            kind="attempt kept",
            reason=f"{best + 1} of {count}",
            scores=[scores.get(n) for n in range(count)],
        )
        kept = branches[best]
        await _mark_as(kept, setting.session)
        results[best].log = setting.log
        return results[best], kept
    finally:
        with anyio.CancelScope(shield=True):
            for branch in branches:
                if branch is not kept:
                    await drop(branch)


async def _mark_as(branch: AsyncSession, session: AsyncSession) -> None:
    """Mark the session as private where the branch was."""
    if branch.private:
        await session.mark_private(branch.private)


async def _score(result: RunResult, verifier: Verifier | None) -> float:
    if verifier is None:
        return 0.0 if result.partial else 1.0 + (result.verified_by is not None)
    found = verifier(result)
    return float(await found if inspect.isawaitable(found) else found)


async def branch_of(session: AsyncSession, what: str) -> AsyncSession:
    """A branch, which `drop` ends. In a store its name is the session's with `what` and a few random digits."""
    if not isinstance(session.state, Versioned):
        return await session.branch()
    return await session.branch(f"{session.name}-{what}-{unique_word(4)}")


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
