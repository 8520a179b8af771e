"""Sessions of the level `sandboxed`, in containers for real: the executors' contract, and what a container adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cellblock.container import Container
from cellblock.executors.container.launcher import ContainerLauncher
from cellblock.executors.container.pool import Pool
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.protocol import KernelSpec, Launcher
from cellblock.testing import ExecutorConformance

pytestmark = pytest.mark.containers


class _OfImage(ContainerLauncher):
    """Opens kernels in containers of the tests' image."""

    def __init__(self, container: Container) -> None:
        super().__init__(Pool(ahead=False))
        self._container = container

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        return await super().open(replace(spec, container=self._container))


class TestContainerLauncher(ExecutorConformance):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def launcher(self, image: str) -> Launcher:
        return _OfImage(Container(image=image))
