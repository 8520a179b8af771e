"""The walls and limits that an engine has put around a container, read from outside as the kernel holds them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.errors import IsolationUnavailable
from cellblock.executors.container.running import Running
from cellblock.executors.process.delegation import NotDelegated, folder_of, groups_of
from cellblock.executors.process.enclosure import MECHANISM, Enclosure
from cellblock.limits import ExecutionLimits
from cellblock.walls import Applied, Unavailable, Wall

if TYPE_CHECKING:
    from cellblock.executors.container.relayed.kernel import Contained

_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_NAMESPACES = ("pid", "mnt", "ipc", "uts", "net")


def inspected(running: Running) -> Applied:
    """The container as a wall; IsolationUnavailable where a part of it is missing.

    Its first process waits meanwhile, in the namespaces that it was started in.
    """
    try:
        missing = sorted(_missing(Path("/proc") / str(running.pid)))
    except (OSError, KeyError, ValueError) as error:
        raise _refused(running, f"what stands around it cannot be read: {error}") from None
    if missing:
        raise _refused(running, f"it was started without {', '.join(missing)}")
    started = f"{running.engine.title}, {running.runtime}, {running.image}"
    detail = f"{started}; no network, read-only root, no capabilities, no new privileges, system call filter"
    return Applied(mechanism="container", detail=detail)


def _missing(process: Path) -> Iterator[str]:
    lines = (process / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if any(int(status[name], 16) for name in _CAPABILITIES):
        yield "dropping every capability"
    if status["NoNewPrivs"] != "1":
        yield "no-new-privileges"
    if status["Seccomp"] != "2":
        yield "a system call filter"
    for name in _NAMESPACES:
        if os.readlink(process / "ns" / name) == os.readlink(f"/proc/self/ns/{name}"):
            yield f"a {name} namespace of its own"
    devices = (process / "net" / "dev").read_text(encoding="utf-8").splitlines()[2:]
    if any(device.partition(":")[0].strip() != "lo" for device in devices):
        yield "taking away the network"
    if not _is_read_only(process):
        yield "a read-only root"


def _is_read_only(process: Path) -> bool:
    """True if the last mount over `/` is read-only: its point is the fifth field, its options are the sixth."""
    mounts = (line.split() for line in (process / "mountinfo").read_text(encoding="utf-8").splitlines())
    options = [fields[5].split(",") for fields in mounts if fields[4] == "/"]
    return bool(options) and "ro" in options[-1]


def _refused(running: Running, reason: str) -> IsolationUnavailable:
    return IsolationUnavailable(
        f"a container of {running.engine.title} with {running.runtime} is not a wall: {reason}",
        mechanism="container",
        hint="use another runtime or engine: container=Container(runtime=…)",
    )


_MEMORY = {1: ("memory.limit_in_bytes", "memory.oom_control"), 2: ("memory.max", "memory.events")}
"""By the version of groups: the files of the limit of memory, and of the number of kills by it."""
_REMEDY = "run the engine as root, or give the user control groups of version 2 (systemd delegates them)"


class Bounds(Enclosure):
    """Limits of a container's control group, which all its sessions share: every process starts in it."""

    def __init__(self, wall: Wall, events: Path | None) -> None:
        super().__init__(ExecutionLimits())
        self.wall = wall
        self._events = events
        self._kills = self._count()

    @classmethod
    def of(cls, running: Running | Contained, memory_bytes: int, processes: int, cpus: float | None) -> Bounds:
        """Read the limits of a container, and compare them with those that the engine was asked for."""
        try:
            memory, version = _folder(running.pid, "memory")
            pids, _ = _folder(running.pid, "pids")
            limit, events = (memory / name for name in _MEMORY[version])
            found = _number(limit), _number(pids / "pids.max")
        except FileNotFoundError:
            return cls.missing(f"{running.engine.title} bounds no containers here")
        except (OSError, ValueError, NotDelegated) as error:
            return cls.missing(f"the container's group cannot be read: {error}")
        bounds = zip(("memory", "processes"), found, (memory_bytes, processes), strict=True)
        if unbounded := [what for what, bound, asked in bounds if bound > asked]:
            return cls.missing(f"{running.engine.title} does not bound {' and '.join(unbounded)} here")
        time = "" if cpus is None else f", {cpus:g} processors"
        detail = f"the container's: v{version} memory {memory_bytes >> 20} MB, {processes} processes{time}"
        return cls(Applied(mechanism=MECHANISM, detail=detail), events)

    @classmethod
    def missing(cls, reason: str, remedy: str = _REMEDY) -> Bounds:
        """Limits that are not there, or cannot be read."""
        return cls(Unavailable(mechanism=MECHANISM, reason=reason, remedy=remedy, needed=False), None)

    def killed(self) -> int:
        before, self._kills = self._kills, self._count()
        return self._kills - before

    @property
    def held(self) -> str:
        return "all the memory that its container may have"

    def _count(self) -> int:
        with contextlib.suppress(OSError, ValueError):  # it is gone, or of an old kernel, which counts no kills
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
