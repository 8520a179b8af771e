"""The account that sessions run as where the host is root, and what it takes to step down to it."""

from __future__ import annotations

import os
import sys

SANDBOX_UID = 61_000
"""An account that owns nothing."""

READABLE = "let all users read it, as by chmod -R go+rX, or name another interpreter: python="
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CAPABILITIES = {"CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}


def is_mapped(uid: int) -> bool:
    """Tell whether the account exists in this user namespace; in a container of one user it does not."""
    with open("/proc/self/uid_map", encoding="ascii") as table:
        ranges = [[int(word) for word in line.split()] for line in table]
    return any(first <= uid < first + count for first, _, count in ranges)


def missing_capabilities(which: str = "CapEff") -> list[str]:
    """Those that root needs for it and does not have in that set of its, by name."""
    with open("/proc/self/status", encoding="ascii") as file:
        held = next(int(line.split()[1], 16) for line in file if line.startswith(f"{which}:"))
    return [name for name, number in _CAPABILITIES.items() if not held >> number & 1]


def unreadable() -> str:
    """A path of the interpreter or of the engine that this process may not read; "" where there is none."""
    needed = (sys.executable, os.path.dirname(os.__file__), os.__file__, _PACKAGE, os.path.abspath(__file__))
    for path in filter(None, needed):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except PermissionError:
            return path
        except OSError:  # it is not there, as in an archive
            continue
    return ""
