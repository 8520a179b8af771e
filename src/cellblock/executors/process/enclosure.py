"""The control group around one session: what it may hold in all, who is in it, what was killed for it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from cellblock.executors.process import cgroups, delegation
from cellblock.executors.process.cgroups import Group
from cellblock.executors.process.delegation import NotDelegated
from cellblock.hosting import clock
from cellblock.limits import ExecutionLimits
from cellblock.walls import Applied, Unavailable, Wall
from cellblock.worker.confine.rlimits import DATA_HEADROOM_BYTES
from cellblock.worker.init.quota import SPARE_PROCESSES

MECHANISM = "cgroup"

_ROOM_SECONDS = 0.25
_NEARLY = 0.9
_MORE_PROCESSES = 16
"""Those that have ended are counted until they are gone."""
_KERNEL_BYTES = 64 * 2**20
_FILE_BYTES = 1536
"""Memory that the kernel takes for a file, beside its content."""


def expect_one(process: int) -> None:
    """A session's processes will be put into a group in some milliseconds. `process` is one that makes sessions."""
    with contextlib.suppress(NotDelegated):
        cgroups.of_this_process().stir(process)


class Enclosure:
    """A session's group, or why it has none."""

    def __init__(self, limits: ExecutionLimits, *, saved: bool = False) -> None:
        """Nothing is done yet. `saved`: scribes live beside the session's processes."""
        self._limits = limits
        self._saved = saved
        self.group: Group | None = None
        self.wall: Wall | None = None

    def prepare(self) -> None:
        """Take a group, which can be done while a worker is waited for.

        Init stays outside: where memory ends the kernel could take it for the one to kill, and every file with it.
        """
        if self.group is not None or self.wall is not None:
            return
        try:
            self.group = cgroups.of_this_process().take()
        except NotDelegated as error:
            self._without(str(error), error.remedy)
        except OSError as error:
            self._without(str(error), delegation.REMEDY)

    def enclose(self, worker: int) -> Wall:
        """Put a worker in, by pid, before any cell runs; what stands around the session now."""
        self.prepare()
        if self.group is not None:
            try:
                self.group.bound(
                    session_bytes(self._limits, _image(worker), saved=self._saved),
                    session_processes(self._limits, saved=self._saved),
                )
                self.group.add(worker)
                self.wall = Applied(mechanism=MECHANISM, detail=self.group.detail)
            except ProcessLookupError:
                pass  # it has ended, which whoever uses it finds out
            except OSError as error:
                self._without(str(error), delegation.REMEDY)
        return self.wall or Unavailable(mechanism=MECHANISM, reason="its process has ended", remedy="", needed=False)

    def _without(self, reason: str, remedy: str) -> None:
        self.wall = Unavailable(mechanism=MECHANISM, reason=reason, remedy=remedy, needed=False)
        self.leave()

    def killed(self) -> int:
        """Number of processes that the kernel has killed for want of memory since this was last asked."""
        return 0 if self.group is None else self.group.killed()

    @property
    def held(self) -> str:
        """Memory that was held then: all that the group may hold, or all that there is room for in one around it."""
        if self.group is None:
            return ""
        if (most := self.group.most()) < self.group.memory_bytes * _NEARLY:
            around = "the control group around this program has no room for more: give it more memory"
            return f"{most >> 20} MB, and {around}"
        return f"{self.group.memory_bytes >> 20} MB, all that its control group allows"

    @property
    def full(self) -> bool:
        """True if the session's processes hold nearly all they may, or what has ended is still counted to them."""
        return self.group is not None and self.group.full

    def await_room(self) -> None:
        """Wait until what has ended is no longer counted: its page tables go when every processor has let go of them.

        For a quarter of a second at most.
        """
        deadline = clock.now() + _ROOM_SECONDS
        while self.full and clock.now() < deadline:
            time.sleep(0.002)

    def leave(self) -> None:
        """Give the group back, once the session's processes are ended or ending."""
        if self.group is not None:
            cgroups.give_back(self.group)
            self.group = None


_SCRIBES = 6
"""At once, and such as have ended and were not taken note of."""


def session_bytes(limits: ExecutionLimits, image: int, *, saved: bool) -> int:
    """Most memory that a session within its limits may take: its files are in memory, and so is what the kernel has of
    each.

    `image` is the memory that its worker came with. One scribe writes at a time, the others wait, and share what the
    worker has not changed since.
    """
    files = limits.max_disk_mb * 2**20 + limits.max_files * _FILE_BYTES
    memory = image + limits.max_memory_mb * 2**20 + DATA_HEADROOM_BYTES
    scribes = 2 * memory if saved else 0
    # the newest is kept whatever it costs, as much as the worker at most; and a cell may change all that the worker
    # holds before that is looked at
    checkpoints = max(limits.checkpoint_bytes, memory) + memory if limits.max_checkpoints else 0
    return memory + files + _KERNEL_BYTES + checkpoints + scribes


def session_processes(limits: ExecutionLimits, *, saved: bool) -> int:
    copies = limits.max_checkpoints + SPARE_PROCESSES if limits.max_checkpoints else 0
    return limits.max_processes + _MORE_PROCESSES + copies + (_SCRIBES if saved else 0)


def _image(worker: int) -> int:
    """The memory that a worker came with: it is counted to the session when it is written to."""
    try:
        resident, shared = Path(f"/proc/{worker}/statm").read_text(encoding="ascii").split()[1:3]
    except FileNotFoundError as gone:
        raise ProcessLookupError from gone
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
