"""The processes of one session, as the host sees them; what is not dumpable shows its insides to root alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from family_tree import Process, below

ASK = "import os\nos.readlink('/proc/self/ns/pid')"
"""A cell whose value tells which namespace the session's processes are in."""


@dataclass(frozen=True)
class Insides:
    """Of the session whose pid namespace is called so."""

    namespace: str

    def all(self) -> list[Process]:
        """Init first, then the worker and its frozen copies by their numbers."""
        found = [one for one in below() if _namespace(one.pid) == self.namespace]
        return sorted(found, key=lambda one: one.inner[-1])

    def others(self) -> list[Process]:
        """All but init."""
        return [one for one in self.all() if one.inner[-1] != 1]

    def held(self) -> int:
        """Bytes of private memory of all but init, each page divided by those who share it."""
        return sum(_private(one.pid) for one in self.others())


def weight(pid: int) -> tuple[int, int]:
    """A process's descriptors, and its resident private bytes."""
    return len(os.listdir(f"/proc/{pid}/fd")), _kilobytes(Path(f"/proc/{pid}/status"), "RssAnon:") * 1024


def _private(pid: int) -> int:
    try:
        return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss_Anon:") * 1024
    except OSError:  # it has ended
        return 0


def _kilobytes(file: Path, name: str) -> int:
    return sum(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(name))


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""
