"""Files and directories that hold what users do: all are made here, for their owner alone (modes 600 and 700)."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import Literal

from cellblock.hosting.unique import unique_word

_FLAGS = {"x": os.O_WRONLY | os.O_EXCL | os.O_CREAT, "a": os.O_RDWR | os.O_APPEND | os.O_CREAT, "r+": os.O_RDWR}

Path = str | os.PathLike[str]


def open_private(path: Path, mode: Literal["x", "a", "r+"]) -> int:
    """A descriptor of a new file ("x"), of one to add to ("a"), or of one that is there ("r+").

    A file that others could read is its owner's alone from then on. A link at the path is not followed.
    """
    file = os.open(path, _FLAGS[mode] | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
    if stat.S_IMODE(os.fstat(file).st_mode) & 0o077:
        os.fchmod(file, 0o600)
    return file


def write_private(path: Path, content: bytes | str) -> None:
    """Write a whole file or none, in place of one that is there; it is on the disk when this returns."""
    directory = os.path.dirname(os.path.abspath(path))
    unfinished = os.path.join(directory, f".cellblock-{unique_word()}.part")
    try:
        with os.fdopen(open_private(unfinished, "x"), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    fsync(directory)


def private_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing."""
    path, missing = os.path.abspath(path), []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for one in reversed(missing):
        try:
            os.mkdir(one, 0o700)
        except FileExistsError:  # made by another program meanwhile, unless it is a file
            if not os.path.isdir(one):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), one) from None
        fsync(os.path.dirname(one))


def fsync(path: Path) -> None:
    """Bring a file or directory to the disk; nothing where there is none."""
    flags = os.O_RDONLY
    if sys.platform == "win32":  # it brings to the disk what may be written to, and opens no directories
        if os.path.isdir(path):
            return
        flags = os.O_RDWR
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
