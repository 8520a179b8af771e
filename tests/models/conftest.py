"""What the tests of endpoints share: a model of a server that they script, with waits of milliseconds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio
import pytest

from cellblock.models import Patience, Retry


@pytest.fixture(autouse=True)
def _no_endpoint_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key nor an endpoint nor a proxy of whoever runs the tests is used."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def retries() -> list[Retry]:
    """What the model of `endpoint` was told before each of its waits."""
    return []


@pytest.fixture
def endpoint(retries: list[Retry]) -> Callable:
    pytest.importorskip("openai")
    from cellblock.models.openai import EndpointModel

    def endpoint(server, name="gpt", **given):
        patience = {"first_wait": 0.001, "retries": 3, "seed": 1} | given.pop("patience", {})
        return EndpointModel(
            name, **{"base_url": server.url, "api_key": server.key, "on_retry": retries.append} | given,
            patience=Patience(**patience),
        )  # fmt: skip

    return endpoint


@pytest.fixture
def longest_turn() -> Callable:
    """Carries work out; seconds of the processor that the loop's thread took at most before another task's turn."""

    async def longest_turn(work: Callable[[], Awaitable[None]]) -> float:
        longest, is_over = 0.0, False

        async def idle() -> None:
            nonlocal longest
            last = time.thread_time()
            while not is_over:
                await anyio.sleep(0)
                longest, last = max(longest, time.thread_time() - last), time.thread_time()

        async with anyio.create_task_group() as group:
            group.start_soon(idle)
            await work()
            is_over = True
        return longest

    return longest_turn
