"""The published standard tests for sandboxes of deepagents, as they are published.

Run by `make integrations`: langchain-tests brings plugins of pytest that the other tests are not to have.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

langchain_tests = pytest.importorskip("langchain_tests.integration_tests", exc_type=ImportError)
pytest.importorskip("deepagents", exc_type=ImportError)

from cellblock.integrations.deepagents import CellblockSandbox  # noqa: E402 - it says what is missing, which is no failure here

pytestmark = [pytest.mark.integrations, pytest.mark.asyncio]


class TestCellblockSandbox(langchain_tests.SandboxIntegrationTests):  # type: ignore[misc,name-defined]
    """All of them, on one session."""

    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[CellblockSandbox]:
        with CellblockSandbox() as backend:
            yield backend
