"""The control group that the engine has put a container into: read from outside, as the kernel holds it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.executors.process.delegation import NotDelegated, folder_of, groups_of
from cellblock.executors.process.enclosure import MECHANISM, Enclosure
from cellblock.limits import ExecutionLimits
from cellblock.walls import Applied, Unavailable, Wall

if TYPE_CHECKING:
    from cellblock.executors.container.relayed.starting import Contained
    from cellblock.executors.container.running import Running

_MEMORY = {1: ("memory.limit_in_bytes", "memory.oom_control"), 2: ("memory.max", "memory.events")}
"""By the version of groups: what bounds memory, and what counts kills for want of it."""
_REMEDY = "run the engine as root, or give the user control groups of version 2 (systemd delegates them)"


class Bounds(Enclosure):
    """Bounds that all sessions of a container have in common: nothing is put in, all was born there."""

    def __init__(self, wall: Wall, events: Path | None) -> None:
        super().__init__(ExecutionLimits())
        self.wall = wall
        self._events = events
        self._kills = self._count()

    @classmethod
    def of(cls, running: Running | Contained, memory_bytes: int, processes: int, cpus: float | None) -> Bounds:
        """Those of a container that was asked to be bounded so."""
        try:
            memory, version = _folder(running.pid, "memory")
            pids, _ = _folder(running.pid, "pids")
            limit, events = (memory / name for name in _MEMORY[version])
            found = _number(limit), _number(pids / "pids.max")
        except FileNotFoundError:
            return cls.missing(f"{running.engine.said} bounds no containers here")
        except (OSError, ValueError, NotDelegated) as error:
            return cls.missing(f"the container's group cannot be read: {error}")
        bounds = zip(("memory", "processes"), found, (memory_bytes, processes), strict=True)
        if unbounded := [what for what, bound, asked in bounds if bound > asked]:
            return cls.missing(f"{running.engine.said} does not bound {' and '.join(unbounded)} here")
        time = "" if cpus is None else f", {cpus:g} processors"
        detail = f"the container's: v{version} memory {memory_bytes >> 20} MB, {processes} processes{time}"
        return cls(Applied(mechanism=MECHANISM, detail=detail), events)

    @classmethod
    def missing(cls, reason: str, remedy: str = _REMEDY) -> Bounds:
        """Those of a container whose bounds are not there, or not to be read."""
        return cls(Unavailable(mechanism=MECHANISM, reason=reason, remedy=remedy, needed=False), None)

    def killed(self) -> int:
        before, self._kills = self._kills, self._count()
        return self._kills - before

    @property
    def held(self) -> str:
        return "all the memory that its container may have"

    def _count(self) -> int:
        with contextlib.suppress(OSError, ValueError):  # it is gone, or an old kernel's, which counts none
            if self._events is not None:
                words = self._events.read_text(encoding="ascii").split()
                return int(words[words.index("oom_kill") + 1])
        return 0


def _folder(pid: int, controller: str) -> tuple[Path, int]:
    groups = groups_of(str(pid))
    if controller in groups:
        return folder_of(groups[controller], "cgroup", controller), 1
    return folder_of(groups.get("", "/"), "cgroup2", ""), 2


def _number(file: Path) -> float:
    text = file.read_text(encoding="ascii").strip()
    return float("inf" if text == "max" else text)
