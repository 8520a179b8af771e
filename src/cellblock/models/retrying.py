"""Asking again: how often, after which waits, and for how long in all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from random import Random

from anyio import current_time, move_on_after, sleep

from cellblock.errors import ModelError
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.models.assembling import Assembly
from cellblock.models.failures import Failure
from cellblock.models.protocol import Reply, Tokens


@dataclass(frozen=True, slots=True)
class Retry:
    """An attempt failed with `error`; the next one follows after `wait` seconds. `attempt` counts from 1."""

    attempt: int
    wait: float
    error: ModelError


OnRetry = Callable[[Retry], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds to wait for a reply.

    One request may take `timeout_seconds`, and between two pieces of its answer `stall_seconds`. It is made again up to
    `retries` times, while `total_seconds` have not passed. The waits double from `first_wait` up to `longest_wait`, and
    a random part of up to half is taken off each, the same ones for the same `seed`. What `Retry-After` asks is waited.
    """

    timeout_seconds: float = 600.0
    stall_seconds: float = 120.0
    retries: int = 5
    total_seconds: float = 1200.0
    first_wait: float = 0.5
    longest_wait: float = 30.0
    seed: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("retries", "seed") and not value > 0:
                raise ValueError(f"{field.name} must be above 0, not {value!r}")
        if self.retries < 0:
            raise ValueError(f"retries must be 0 or more, not {self.retries!r}")

    def wait(self, attempt: int, random: Random) -> float:
        """Seconds to wait after the failure of that attempt, where nobody asked for a time."""
        most = min(self.first_wait * 2.0 ** min(attempt - 1, 60), self.longest_wait)
        return most * (1 - random.random() / 2)


async def persist(
    attempt: Callable[[Assembly], Awaitable[None]], patience: Patience, on_retry: OnRetry | None = None
) -> Reply:
    """The answer of the first attempt that succeeds, with the tokens of all of them.

    `attempt` fills the assembly it is given, or raises `Failure`. Raises the `ModelError` of the last failure.
    """
    random = Random(patience.seed)  # noqa: S311 - spreads requests, hides nothing
    deadline = current_time() + patience.total_seconds
    spent, number = Tokens(), 0
    while True:
        number += 1
        assembly, failure = Assembly(), None
        left = max(deadline - current_time(), 0.0)
        limit, name = min((patience.timeout_seconds, "timeout_seconds"), (left, "total_seconds"))
        with move_on_after(limit) as scope:
            try:
                await attempt(assembly)
            except Failure as failed:
                failure = failed
        if scope.cancelled_caught and not assembly.is_whole:
            error = ModelError(f"no whole answer within {limit:.3g} s", kind="timeout", hint=f"raise {name}")
            failure = Failure(error, again=True)
        spent += assembly.tokens
        if failure is None:
            return replace(await off_loop(LARGE, assembly.reply), tokens=spent, attempts=number)
        wait = patience.wait(number, random) if failure.after is None else failure.after
        if not failure.again or number > patience.retries or current_time() + wait >= deadline:
            raise _final(failure, number, wait, patience)
        if on_retry is not None:
            on_retry(Retry(number, wait, failure.error))
        await sleep(wait)


def _final(failure: Failure, attempts: int, wait: float, patience: Patience) -> ModelError:
    """The error of the last failure, which says how many there were and why no other attempt was made."""
    error = failure.error
    said, hint = error.args[0], error.hint
    if attempts > 1:
        said += f"; so ended attempt {attempts}"
    if failure.again and attempts <= patience.retries:  # there was no time for another one
        if failure.after is not None:
            hint = f"it asks to wait {wait:.3g} s, more than is left of total_seconds={patience.total_seconds:g}"
        elif error.kind == "timeout":
            hint = "raise total_seconds"
    return ModelError(said, kind=error.kind, hint=hint, status=error.status, attempts=attempts)
