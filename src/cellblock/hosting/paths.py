"""Absolute paths of the host's files, which stay the same wherever the program goes."""

from __future__ import annotations

import os

from cellblock.errors import CellblockError


def absolute(path: str, error: type[CellblockError] = CellblockError, *, argument: str = "") -> str:
    """A path from the working directory as it is now; an error of this class where that is gone."""
    try:
        return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    except FileNotFoundError:
        raise error(
            f"{argument}{path!r:.300} is relative, and the working directory of this program is gone",
            hint="give an absolute path",
        ) from None
