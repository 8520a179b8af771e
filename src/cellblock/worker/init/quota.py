"""Limit on the number of processes of a session's worker, itself included: init sets it, and no cell can.

Frozen copies do not count to what the cells may have, nor do the processes of branches, which the kernel counts to the
session that they were branched from as well. A few over, rather than one too few.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from resource import RLIMIT_FSIZE, RLIMIT_NPROC, prlimit

_LEAVING = 1
"""A copy that was let go, and has not quite ended."""
SPARE_PROCESSES = 4
"""Besides the copies that are kept: such ones, one that is made, and the step between."""


class Quota:
    """The soft limits of a session's processes; the hard ones are as high as the host's."""

    def __init__(self) -> None:
        self._worker = self._cells = self._copies = self._making = self._branches = self._scribes = 0

    def of(self, worker: int, cells: int) -> None:
        """This is the worker, and so many processes its cells may have; 0 where the worker keeps its limit itself."""
        self._worker, self._cells = worker, cells

    def have(self, copies: int, *, making: bool) -> None:
        """There are so many frozen copies; `making`: and one that is being made beside, perhaps by a step between."""
        self._copies, self._making = copies, SPARE_PROCESSES if making else 0
        self._set([self._worker])

    def give(self, branches: int, processes: Iterable[int]) -> None:
        """Branches may have so many processes in all; `processes` are those of this session that there are."""
        self._branches = branches
        self._set([self._worker, *processes])

    def saving(self, scribes: int, copies: Iterable[int]) -> None:
        """There are, or are to be, so many scribes, and these frozen copies make them."""
        self._scribes = 2 * scribes  # one that has ended counts until its copy, or init, has taken note of it
        self._set([self._worker, *copies])

    @staticmethod
    def tie(scribes: Iterable[int]) -> None:
        """Have scribes make no process, and write to no file: they outlive what a cell made otherwise, and a cell may
        pass one off as a scribe.
        """
        for scribe in scribes:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
                prlimit(scribe, RLIMIT_NPROC, (0, 0))
                prlimit(scribe, RLIMIT_FSIZE, (0, 0))

    def _set(self, processes: Iterable[int]) -> None:
        if not self._cells:
            return
        wanted = (
            self._cells
            + (self._copies + _LEAVING if self._copies else 0)
            + self._making
            + self._branches
            + self._scribes
        )
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
                _, hard = prlimit(process, RLIMIT_NPROC)
                prlimit(process, RLIMIT_NPROC, (min(wanted, hard) if hard >= 0 else wanted, hard))
