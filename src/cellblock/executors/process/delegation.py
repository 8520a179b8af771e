"""Places where this process may make control groups, for memory, the number of processes and shares of processors.

Version 1 has a hierarchy for each controller, and groups may be made below the one that this process is in. Version 2
has one hierarchy, in which a group with processes cannot give controllers to those below it: where this process is
alone in its group it moves to one below, and where it is not, nothing is done. `CELLBLOCK_CGROUP` names a group of
version 2 to use instead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "CELLBLOCK_CGROUP"
PREFIX = "cellblock-"
_HOST = "cellblock_host"
NEEDED, WANTED = ("memory", "pids"), ("cpu",)
"""Controllers without which there are no groups, and those that groups have where they can."""
REMEDY = (
    "start the program in a group of its own, systemd-run --user --scope -p Delegate=yes PROGRAM, "
    f"or name an empty group that it may write in {VARIABLE}"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A directory in which groups can be made that have these controllers."""

    folder: Path
    version: int
    controllers: tuple[str, ...]


class NotDelegated(Exception):
    """No groups can be made; `remedy` is what would help."""

    def __init__(self, reason: str, remedy: str = REMEDY) -> None:
        super().__init__(reason)
        self.remedy = remedy


def places() -> list[Place]:
    """Places for groups with each controller: one place for those that share a hierarchy."""
    try:
        named = os.environ.get(VARIABLE)
        if named:
            return [_version_2(Path(named), NEEDED)]
        own = groups_of("self")
        found = [_version_1(controller, own[controller]) for controller in NEEDED if controller in own]
        for controller in WANTED:
            with contextlib.suppress(NotDelegated, KeyError):
                found.append(_version_1(controller, own[controller]))
        rest = tuple(controller for controller in NEEDED if controller not in own)
        if not rest:
            return found
        if "" not in own:
            raise NotDelegated(f"this kernel has no controller for {' and '.join(rest)} here")
        return [*found, _version_2(_own_folder(own[""]), rest)]
    except OSError as error:
        raise NotDelegated(str(error)) from error


def entrance() -> tuple[str, Path]:
    """This process' group in the first hierarchy there is: its line in `/proc/PID/cgroup`, and the file that moves
    processes into it. `NotDelegated` where that is not shown."""
    line = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()[0]
    _, controllers, path = line.split(":", 2)
    folder = folder_of(path, "cgroup" if controllers else "cgroup2", controllers.partition(",")[0])
    return line, folder / "cgroup.procs"


def give(folder: Path, controllers: Sequence[str]) -> None:
    """Let groups below one of version 2 have controllers."""
    given = (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
    wanted = [f"+{controller}" for controller in controllers if controller not in given]
    if wanted:
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted), encoding="ascii")


def _version_1(controller: str, path: str) -> Place:
    folder = folder_of(path, "cgroup", controller)
    if not os.access(folder, os.W_OK):
        raise NotDelegated(f"{folder} is not writable", REMEDY)
    return Place(folder, 1, (controller,))


def _version_2(folder: Path, needed: tuple[str, ...]) -> Place:
    if not (folder / "cgroup.controllers").exists():
        raise NotDelegated(f"{folder} is not a control group of version 2")
    there = (folder / "cgroup.controllers").read_text(encoding="ascii").split()
    missing = set(needed) - set(there)
    if missing:
        raise NotDelegated(f"{folder} has no controller for {' and '.join(sorted(missing))}")
    files = (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control")
    if not all(os.access(path, os.W_OK) for path in files):
        raise NotDelegated(f"{folder} is not writable")
    if (folder / "cgroup.type").exists():  # all but the root, which may have processes beside groups
        _empty(folder)
    controllers = (*needed, *(controller for controller in WANTED if controller in there))
    give(folder, controllers)
    return Place(folder, 2, controllers)


def _empty(folder: Path) -> None:
    """Move this process to a group below, if it is the only one in its group."""
    within = (folder / "cgroup.procs").read_text(encoding="ascii").split()
    if not within:
        return
    if within != [str(os.getpid())]:
        raise NotDelegated(f"{folder} holds {len(within)} processes, so that groups below it get no controllers")
    (folder / _HOST).mkdir(exist_ok=True)
    (folder / _HOST / "cgroup.procs").write_text("0", encoding="ascii")


def _own_folder(path: str) -> Path:
    """Of version 2: this process' own group, or that from which it, or who it was forked from, moved."""
    folder = folder_of(path, "cgroup2", "")
    return folder.parent if folder.name == _HOST else folder


def groups_of(process: str) -> dict[str, str]:
    """A process' group by controller, that of version 2 under ""."""
    found: dict[str, str] = {}
    for line in Path(f"/proc/{process}/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def folder_of(path: str, kind: str, controller: str) -> Path:
    """A group's directory, where a mount shows it; of version 2, without a controller, where `kind` is "cgroup2"."""
    for root, point, options in _mounts(kind):
        if controller and controller not in options:
            continue
        with contextlib.suppress(ValueError):
            return Path(point) / Path(path).relative_to(root)
    raise NotDelegated(f"no hierarchy with {controller or 'controllers'} is mounted", "mount /sys/fs/cgroup writable")


def _mounts(kind: str) -> Iterator[tuple[str, str, list[str]]]:
    """Of each mounted hierarchy: the group that it shows, where, and its controllers."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        words, _, more = line.partition(" - ")
        filesystem, _, options = more.split(" ", 2)
        if filesystem == kind:
            root, point = words.split(" ")[3:5]
            yield root, point.replace("\\040", " "), options.split(",")
