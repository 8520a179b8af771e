"""The processes of a family, as the host sees them; for tests that kill one or count them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    name: str
    """Of its program, or what it calls itself."""
    words: tuple[str, ...]
    """Its command line."""
    inner: tuple[int, ...]
    """Its pids, from our pid namespace down to its own."""


def below(pid: int | None = None) -> list[Process]:
    """The living processes that descend from `pid`, this process when None; parents first."""
    found: list[Process] = []
    wave = {pid or os.getpid()}
    rows = list(_rows())
    while wave:
        next_wave = [row for row in rows if row.parent in wave]
        found += next_wave
        wave = {row.pid for row in next_wave}
    return found


def launchers() -> list[Process]:
    """What this process has started, one for each family."""
    return [one for one in below() if one.parent == os.getpid() and "launch" in one.words]


def nursery_of(launcher: Process) -> Process:
    (found,) = (one for one in below(launcher.pid) if one.parent == launcher.pid)
    return found


def zygotes_of(launcher: Process) -> list[Process]:
    """Zygotes, without the workers, which are copies of them in a further pid namespace."""
    depth = len(nursery_of(launcher).inner)
    return [one for one in below(nursery_of(launcher).pid) if one.name == "zygote" and len(one.inner) == depth]


def inits_of(launcher: Process) -> list[Process]:
    depth = len(nursery_of(launcher).inner)
    return [one for one in below(launcher.pid) if len(one.inner) == depth + 1 and one.inner[-1] == 1]


def workers_of(launcher: Process) -> list[Process]:
    depth = len(nursery_of(launcher).inner)
    return [one for one in below(launcher.pid) if len(one.inner) == depth + 1 and one.inner[-1] != 1]


def soon(told: Callable[[], object], expected: object, *, seconds: float = 10.0) -> object:
    """What is told, once that is as expected or the time is over."""
    deadline = time.monotonic() + seconds
    while (now := told()) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return now


def _rows() -> list[Process]:
    rows = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines())
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if status["State"].split()[0] in "ZX":
            continue
        rows.append(
            Process(
                pid=int(entry.name),
                parent=int(status["PPid"]),
                name=status["Name"].strip(),
                words=tuple(words.decode(errors="replace").split("\0")),
                inner=tuple(int(pid) for pid in status["NSpid"].split()),
            )
        )
    return rows
