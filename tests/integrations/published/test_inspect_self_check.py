"""The conformance checks that Inspect publishes for sandboxes, as they are published."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

pytest.importorskip("inspect_ai", exc_type=ImportError)

from inspect_ai.util._sandbox.self_check import *  # noqa: F403 - their tests

from cellblock.integrations.inspect_ai import CellblockSandboxEnvironment

pytestmark = [pytest.mark.integrations, pytest.mark.anyio]

_AGAINST_THE_WALLS = {"test_exec_as_user": "a session has one user, and nobody is root in it"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def sandbox_env(request: pytest.FixtureRequest) -> AsyncIterator[CellblockSandboxEnvironment]:
    if reason := _AGAINST_THE_WALLS.get(request.node.originalname):
        request.node.add_marker(pytest.mark.xfail(strict=True, reason=reason))
    made = await CellblockSandboxEnvironment.sample_init("checks", None, {})
    yield made["default"]
    await CellblockSandboxEnvironment.sample_cleanup("checks", None, made, False)
