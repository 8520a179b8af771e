"""Opens kernels of the process level."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module

from cellblock.errors import IsolationUnavailable
from cellblock.executors.process.families import family_of, keep, running
from cellblock.executors.process.family import Family, FamilyGone, Profile
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.kinds import Kind, kind_of
from cellblock.executors.process.linked import require_possible
from cellblock.executors.process.mounts import Mount, check
from cellblock.executors.process.shell import Shell
from cellblock.executors.protocol import KernelSpec
from cellblock.hosting import to_thread
from cellblock.hosting.conditions import interpreter
from cellblock.hosting.forks import importing

_TRIES = 3


class ProcessLauncher:
    """Opens kernels in forked, walled-in processes of a shared zygote."""

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        for _ in range(_TRIES):  # the processes that make it may end meanwhile
            with contextlib.suppress(FamilyGone):
                return await _opening(spec)
        raise _ending()

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        for _ in range(_TRIES):
            with contextlib.suppress(FamilyGone):
                return keep(_profile(spec), kind_of(spec.limits, door=spec.has_door), count)
        raise _ending()


def _ending() -> IsolationUnavailable:
    return IsolationUnavailable(
        f"the processes that make sessions ended {_TRIES} times while one was opened",
        mechanism="start",
        hint="see what they say on stderr, and whether the machine is out of memory",
    )


async def _opening(spec: KernelSpec) -> ProcessKernel:
    if needed := _unloaded(spec):
        await to_thread.run_sync(_load, needed)
    require_possible(spec)  # before anything is made
    mounts = await to_thread.run_sync(check, spec.mounts) if spec.mounts else ()
    profile, kind = _profile(spec), kind_of(spec.limits, door=spec.has_door)
    family = running(profile)
    if family is None:
        family = await to_thread.run_sync(family_of, profile, spec.progress, None if mounts else kind)
    return await kernel_in(family, spec, kind, mounts)


async def kernel_in(family: Family, spec: KernelSpec, kind: Kind, mounts: tuple[Mount, ...]) -> ProcessKernel:
    """A kernel of this family, in a session of the kind that the spec means."""
    if spec.saved:
        family.save()
    family.stir()
    shell = await Shell.make(family, kind, mounts)
    return await ProcessKernel(family, shell, spec).open()


def _unloaded(spec: KernelSpec) -> list[str]:
    """Modules that this session needs and few do, and that are not imported yet."""
    wanted = {
        "cellblock.executors.door.door": spec.has_door,
        "cellblock.executors.process.capture": spec.saved,
        "cellblock.executors.process.porter": bool(spec.mounts),
        "cellblock.executors.process.savedfiles": spec.saved,
        "cellblock.wire.granted": spec.policy is not None,
    }
    return [name for name, is_needed in wanted.items() if is_needed and name not in sys.modules]


def _load(names: list[str]) -> None:
    with importing():
        for name in names:
            import_module(name)


def _profile(spec: KernelSpec) -> Profile:
    return Profile(interpreter(spec.python), spec.preload, spec.policy is not None)
