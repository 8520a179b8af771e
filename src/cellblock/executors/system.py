"""The operating system, and what it must be for the kernel to hold walls."""

from __future__ import annotations

import os
import sys

from cellblock.errors import IsolationUnavailable

_WAYS_OUT = (
    'run it in a Linux virtual machine, where every level works; or, for code that means no harm, trust_level="local"'
)


def require_linux(asked: str, *, mechanism: str = "namespaces") -> None:
    """`IsolationUnavailable` on a system without the walls that were `asked` for; it names the ways out."""
    if sys.platform != "linux":
        raise IsolationUnavailable(f"{asked} needs Linux, this is {sys.platform}", mechanism=mechanism, hint=_WAYS_OUT)
    if wsl() == 1:
        raise IsolationUnavailable(
            f"{asked} needs a Linux kernel, and WSL 1 has none",
            mechanism=mechanism,
            hint=f"wsl --set-version DISTRIBUTION 2, in PowerShell, gives it one; or {_WAYS_OUT}",
        )


def wsl() -> int:
    """Version of the Windows Subsystem for Linux, by the kernel's name for itself; 0 for none.

    WSL 1 says `4.4.0-19041-Microsoft`, and WSL 2, whose kernel is a Linux, `5.15.90.1-microsoft-standard-WSL2`.
    """
    if sys.platform != "linux":
        return 0
    release = os.uname().release
    if "microsoft" not in release.lower():
        return 0
    return 1 if release.endswith("-Microsoft") else 2
