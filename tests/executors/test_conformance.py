"""Every launcher keeps the contract, on every event loop that the async core is written for."""

from __future__ import annotations

import pytest

from cellblock.executors.process.launcher import ProcessLauncher
from cellblock.executors.protocol import Launcher
from cellblock.testing import ExecutorConformance


class TestProcessLauncher(ExecutorConformance):
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        if request.param == "trio":
            pytest.importorskip("trio")
        return str(request.param)

    @pytest.fixture
    def launcher(self) -> Launcher:
        return ProcessLauncher()
