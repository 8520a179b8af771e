"""Every launcher keeps the contract, on every event loop that the async core is written for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cellblock.executors.local.launcher import LocalLauncher
from cellblock.executors.process.launcher import ProcessLauncher
from cellblock.executors.protocol import Kernel, KernelSpec, Launcher
from cellblock.executors.reduced.kernel import ReducedLauncher
from cellblock.testing import ExecutorConformance


class _OnEachLoop(ExecutorConformance):
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        if request.param == "trio":
            pytest.importorskip("trio")
        return str(request.param)


class TestProcessLauncher(_OnEachLoop):
    @pytest.fixture
    def launcher(self) -> Launcher:
        return ProcessLauncher()


class _WithPython(ReducedLauncher):
    """Opens kernels of an interpreter that is not the tests' own."""

    def __init__(self, python: str) -> None:
        self._python = python

    async def open(self, spec: KernelSpec) -> Kernel:
        return await super().open(replace(spec, python=spec.python or self._python))


class TestReducedLauncher(_OnEachLoop):
    gives_mounts = False
    goes_back = False

    @pytest.fixture
    def launcher(self, readable_python: str) -> Launcher:
        return _WithPython(readable_python)


class TestLocalLauncher(_OnEachLoop):
    gives_mounts = False
    goes_back = False
    reaches_system = False

    @pytest.fixture
    def launcher(self) -> Launcher:
        return LocalLauncher()
