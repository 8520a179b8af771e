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
    numbers = range(1, count + 1)
    logs = {number: EventLog() for number in numbers}
    branches: dict[int, AsyncSession] = {}
    results: dict[int, RunResult] = {}
    errors: dict[int, CellblockError] = {}
    broken: list[Exception] = []
    kept: AsyncSession | None = None

    async def attempt(number: int, session: AsyncSession) -> None:
        memory, log = setting.memory.copy(), logs[number]
        log.held = session._account.share()
        own = replace(setting, session=session, memory=memory, log=log, attempt=number, tell=None)
        try:
            results[number] = await loop(own).run(again=again)
        except (TaskFailed, ModelError) as error:
            errors[number] = error
        except Exception as error:  # raised below as it is, and not in a group
            broken.append(error)
            tasks.cancel_scope.cancel()

    try:
        for number in numbers:
            branches[number] = await branch_of(setting.session, f"attempt-{number}")
        async with anyio.create_task_group() as tasks:
            for number, branch in branches.items():
                tasks.start_soon(attempt, number, branch)
        for number, log in logs.items():
            for event in log:
                row = dict(event)
                await setting.log.add(row.pop("event"), attempt=number, **row)
        if broken:
            raise broken[0]
        scores = {number: await _score(result, verifier) for number, result in sorted(results.items())}
        best = max(scores, key=lambda number: (scores[number], -number), default=1)
        if branches[best].private:
            await setting.session.mark_private(branches[best].private)
        if not results:
            raise errors[best]
        reason = f"{best} of {count}"
        all_scores = [scores.get(number) for number in numbers]
        await setting.log.add("decision", size=0, step=None, kind="attempt kept", reason=reason, scores=all_scores)
        kept, results[best].log = branches[best], setting.log
        return results[best], kept
    finally:
        with anyio.CancelScope(shield=True):
            for branch in branches.values():
                if branch is not kept:
                    await drop(branch)


async def _score(result: RunResult, verifier: Verifier | None) -> float:
    if verifier is None:
        return 0.0 if result.partial else 1.0 + (result.verified_by is not None)
    found = verifier(result)
    score = await found if inspect.isawaitable(found) else found
    try:
        return float(score)
    except (TypeError, ValueError):
        raise TypeError(f"verifier must return a number, not {score!r:.100}") from None


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
