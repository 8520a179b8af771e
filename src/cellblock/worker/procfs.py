"""Place where this process looks at the processes of a session: `/proc`, or a mount of it that nobody else reaches."""

from __future__ import annotations

import os

_root = "/proc"


def use(directory: int) -> None:
    """Look below an open directory from now on."""
    global _root
    _root = f"/proc/self/fd/{directory}"


def path(of: int | str = "") -> str:
    """The entry of a process, or another."""
    return f"{_root}/{of}"


def duplicate() -> int:
    """A descriptor of it, for another who is to look there."""
    return os.open(_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
