"""Opens kernels of the local level."""

from __future__ import annotations

import importlib
import sys

from cellblock.errors import IsolationUnavailable, MountRefused, PreloadFailed
from cellblock.executors.local.kernel import LocalKernel
from cellblock.executors.protocol import Kernel, KernelSpec


class LocalLauncher:
    """Opens kernels that are threads of this process."""

    async def open(self, spec: KernelSpec) -> Kernel:
        if spec.mounts:
            raise MountRefused(
                "a session at trust level local has no files to mount anything in",
                hint='use trust_level="isolated", or grant a function that reads them: policy.fn(f)',
            )
        if spec.network:
            raise IsolationUnavailable(
                "a session at trust level local has no network, and so no door in it",
                mechanism="door",
                hint='use trust_level="isolated", or grant a function that asks the network: policy.fn(f)',
            )
        if spec.python not in (None, sys.executable):
            raise IsolationUnavailable(
                "a session at trust level local runs on the host's own interpreter",
                mechanism="python",
                hint='leave python= out, or use trust_level="isolated"',
            )
        for name in spec.preload:
            try:
                importlib.import_module(name)
            except ImportError as error:
                raise PreloadFailed(f"{name} cannot be imported: {error}", hint="install it for the host") from error
        return LocalKernel(spec)

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        """Nothing has to be made beforehand: a kernel opens in less than a millisecond."""
