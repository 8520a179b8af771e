"""Opens kernels of the process level."""

from __future__ import annotations

import sys
from functools import partial

from cellblock.errors import IsolationUnavailable
from cellblock.executors.process.family import FamilyGone, Profile, family_of, running
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.mounts import Mount, check
from cellblock.executors.process.shell import Shell
from cellblock.executors.process.waits import Waits, awaited
from cellblock.executors.protocol import KernelSpec

_TRIES = 3


class ProcessLauncher:
    """Opens kernels in forked, walled-in processes of a shared zygote."""

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        kernel = await awaited(opening(spec))
        kernel.begin(spec)
        return kernel


def opening(spec: KernelSpec) -> Waits[ProcessKernel]:
    """Make a kernel; tried again where the processes that make it end meanwhile."""
    for _ in range(_TRIES):
        try:
            return (yield from _opening(spec))
        except FamilyGone:
            continue
    raise IsolationUnavailable(
        f"the processes that make sessions ended {_TRIES} times while one was opened",
        mechanism="start",
        hint="see what they say on stderr, and whether the machine is out of memory",
    )


def _opening(spec: KernelSpec) -> Waits[ProcessKernel]:
    mounts: tuple[Mount, ...] = (yield partial(check, spec.mounts)) if spec.mounts else ()
    profile = Profile(spec.python or sys.executable, spec.preload)
    family = running(profile) or (yield partial(family_of, profile, spec.progress))
    shell = yield from Shell.make(family, spec, mounts)
    kernel = ProcessKernel(family, shell, spec)
    try:
        yield from kernel.attach()
    except BaseException:
        kernel.dispose()
        raise
    return kernel
