"""The machine that this interpreter is made for, and its devices.

The kernel may tell a program of another: under `linux32` a 64-bit interpreter is told `i686`.
"""

from __future__ import annotations

import os
import stat
import sys

MACHINE = ""
"""Such as `x86_64`; "" where it is no 64-bit Linux."""
if sys.platform == "linux" and sys.maxsize > 2**32:
    MACHINE = (getattr(sys.implementation, "_multiarch", "") or os.uname().machine).partition("-")[0]

DEVICES = {
    "/dev/null": (1, 3),
    "/dev/zero": (1, 5),
    "/dev/full": (1, 7),
    "/dev/random": (1, 8),
    "/dev/urandom": (1, 9),
}
"""Those that every session is given, each with the kernel's number."""


def is_device(path: str, of: str) -> bool:
    """True if a path leads to the device that is to be at `of`, and to no file that somebody has put in its place."""
    found = os.stat(path)
    return stat.S_ISCHR(found.st_mode) and (os.major(found.st_rdev), os.minor(found.st_rdev)) == DEVICES[of]
