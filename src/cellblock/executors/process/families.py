"""The families of this process, one for each profile: started on first use, ended with this process or when idle."""

from __future__ import annotations

import atexit
import contextlib
import errno

from cellblock.executors.process import cgroups
from cellblock.executors.process.family import Family, FamilyGone, Profile
from cellblock.executors.process.kinds import Kind
from cellblock.executors.process.zygote import Progress
from cellblock.hosting.forks import Lock, emptied

MOST_IDLE = 8
"""Families without a session; when there are more, the one that was used longest ago ends."""

_families: dict[Profile, Family] = emptied({})
_kept: dict[Profile, dict[str, tuple[Kind, int]]] = emptied({})
"""Sessions to be kept ready for each profile, in whatever family."""
_starting = Lock()


def running(profile: Profile) -> Family | None:
    """The family of a profile, if there is one that can make a session at once."""
    family = _families.get(profile)
    return family if family is not None and family.ready else None


def family_of(profile: Profile, progress: Progress | None = None, expected: Kind | None = None) -> Family:
    """The family of a profile, started if there is none that lives, with a zygote. Blocks while one starts.

    `progress` is told what is waited for: "importing pandas", say. The same goes to the logger `cellblock`. A session
    of the kind that is `expected` is made with the family.
    """
    family = running(profile)
    if family is not None:
        return family
    with _starting:
        family = _families.get(profile)
        if family is None or not family.alive:
            if family is not None:
                family.close()
            family = _families[profile] = Family.start(profile, progress, expected)
            _end_the_idle(family)
            for kind, count in _kept.get(profile, {}).values():
                family.keep(kind, count, wait=False)
        family.ensure_ready(progress)
        return family


def keep(profile: Profile, kind: Kind, count: int) -> None:
    """Keep so many spares of a kind, in this family and those that take its place. Blocks until they are there."""
    kinds = _kept.setdefault(profile, {})
    kinds.pop(repr(kind), None)
    family = family_of(profile) if count else running(profile)
    if family is None:
        return
    try:
        family.keep(kind, count, wait=count > 0)
    except BaseException:
        with contextlib.suppress(FamilyGone):
            family.keep(kind, 0, wait=False)
        raise
    if count:
        kinds[repr(kind)] = (kind, count)


def _end_the_idle(new: Family) -> None:
    idle = sorted((one for one in _families.values() if one.idle and one is not new), key=lambda one: one.used)
    for family in idle[: max(0, len(idle) - MOST_IDLE)]:
        del _families[family.profile]
        family.close()


@atexit.register
def _close_all() -> None:
    try:
        families = list(_families.values())
        _families.clear()
        for family in families:
            family.part()
        for family in families:
            family.close()
        cgroups.remove_all()
    except OSError as error:
        if error.errno != errno.EBADF:  # else the program has closed all descriptors, and so ended all processes
            raise
