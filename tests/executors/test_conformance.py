"""Every launcher keeps the contract."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cellblock.executors.local.kernel import LocalLauncher
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.launcher import ProcessLauncher
from cellblock.executors.protocol import Kernel, KernelSpec, Launcher
from cellblock.executors.reduced.kernel import ReducedLauncher
from cellblock.policy import Policy
from cellblock.testing import ExecutorConformance
from cellblock.testing.executors import merged, told
from cellblock.wire.messages import Shell


class TestProcessLauncher(ExecutorConformance):
    @pytest.fixture
    def launcher(self) -> Launcher:
        return ProcessLauncher()


class _Laid(ProcessLauncher):
    """Opens kernels with a policy over them."""

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        return await super().open(replace(spec, policy=spec.policy or Policy()))


class TestProcessLauncherUnderAPolicy(ExecutorConformance):
    """Cells behind the guard reach nothing of the system; the shell and files are the host's to use."""

    reaches_system = False

    @pytest.fixture
    def launcher(self) -> Launcher:
        return _Laid()

    async def test_mounted_directory_is_read_and_never_written(self, launcher: Launcher, mountable: Path) -> None:
        (mountable / "there").write_text("theirs")
        kernel = await launcher.open(KernelSpec(mounts=(("in/data", str(mountable)),)))
        for command, shown in (
            ("cat in/data/there", "theirs"),
            ("echo no > in/data/there || echo refused", "refused\n"),
        ):
            assert ("stdout", shown) in merged(await told(kernel, Shell(command=command)))
        await kernel.close()
        assert (mountable / "there").read_text() == "theirs"


class _WithPython(ReducedLauncher):
    """Opens kernels of an interpreter that is not the tests' own."""

    def __init__(self, python: str) -> None:
        self._python = python

    async def open(self, spec: KernelSpec) -> Kernel:
        return await super().open(replace(spec, python=spec.python or self._python))


class TestReducedLauncher(ExecutorConformance):
    gives_mounts = False
    goes_back = False
    saves = False

    @pytest.fixture
    def launcher(self, readable_python: str) -> Launcher:
        return _WithPython(readable_python)


class _LaidReduced(_WithPython):
    async def open(self, spec: KernelSpec) -> Kernel:
        return await super().open(replace(spec, policy=spec.policy or Policy()))


@pytest.mark.slow  # both of its parts have the contract above
class TestReducedLauncherUnderAPolicy(ExecutorConformance):
    gives_mounts = False
    goes_back = False
    saves = False
    reaches_system = False

    @pytest.fixture
    def launcher(self, readable_python: str) -> Launcher:
        return _LaidReduced(readable_python)


class TestLocalLauncher(ExecutorConformance):
    gives_mounts = False
    goes_back = False
    saves = False
    reaches_system = False

    @pytest.fixture
    def launcher(self) -> Launcher:
        return LocalLauncher()
