"""The most memory that a process has held, and having the kernel count it anew.

A process can do so for itself only where no wall keeps it from writing to `/proc`; init can for any of the session's.
"""

from __future__ import annotations

from contextlib import suppress
from os import O_CLOEXEC, O_WRONLY, close, pwrite
from os import open as open_file

from cellblock.worker import procfs


class Peak:
    """Holds one process's file for it, or nothing where it cannot be opened."""

    def __init__(self, process: int | None = None) -> None:
        """Of this process, or of another."""
        self._of = process or "self"
        self._file = -1
        self._owed = False
        self.find()

    def find(self) -> None:
        """Open the file if it is not open: a worker hides for a moment while it makes a copy.

        A reset that was asked for meanwhile is made up for.
        """
        if self._file < 0:
            with suppress(OSError):
                self._file = open_file(procfs.path(f"{self._of}/clear_refs"), O_WRONLY | O_CLOEXEC)
                if self._owed:
                    self.reset()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that it holds open."""
        return (self._file,) if self._file >= 0 else ()

    def reset(self) -> None:
        """Have the peak begin again from what is held now."""
        self._owed = self._file < 0
        with suppress(OSError):  # the process is gone, or its cell has closed every descriptor
            if not self._owed:
                pwrite(self._file, b"5", 0)

    def close(self) -> None:
        """Let go of the process."""
        for descriptor in self.descriptors:
            with suppress(OSError):
                close(descriptor)
        self._file = -1
