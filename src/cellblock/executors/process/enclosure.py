"""The control group around one session: what it may hold in all, who is in it, what was killed for it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cellblock.executors.process import cgroups, delegation
from cellblock.executors.process.cgroups import Group
from cellblock.executors.process.delegation import NotDelegated
from cellblock.limits import ExecutionLimits
from cellblock.walls import Applied, Unavailable, Wall
from cellblock.worker.confine.rlimits import DATA_HEADROOM_BYTES

MECHANISM = "cgroup"

_MORE_PROCESSES = 16
"""Those that have ended are counted until they are gone."""
_KERNEL_BYTES = 64 * 2**20
_FILE_BYTES = 1536
"""What the kernel has of a file, beside its content."""


class Enclosure:
    """A session's group, or why it has none."""

    def __init__(self, init: int | None, limits: ExecutionLimits) -> None:
        """For the session of an init, by pidfd, or one without; nothing is done yet."""
        self._init, self._limits = init, limits
        self.group: Group | None = None
        self.wall: Wall | None = None

    def prepare(self) -> None:
        """Take a group and put init in, if there is one, which can be done while a worker is waited for."""
        if self.group is not None or self.wall is not None:
            return
        try:
            self.group = cgroups.of_this_process().take()
            if self._init is not None:
                self.group.add(_pid_of(self._init))
        except ProcessLookupError:
            return  # it has ended, which whoever uses it finds out
        except NotDelegated as error:
            self._without(str(error), error.remedy)
        except OSError as error:
            self._without(str(error), delegation.REMEDY)

    def enclose(self, worker: int) -> Wall:
        """Put a worker in, by pid, before any cell runs; what stands around the session now."""
        self.prepare()
        if self.group is not None:
            try:
                self.group.bound(_bytes(self._limits, worker), self._limits.max_processes + _MORE_PROCESSES)
                self.group.add(worker)
                self.wall = Applied(mechanism=MECHANISM, detail=self.group.detail)
            except ProcessLookupError:
                pass  # the same
            except OSError as error:
                self._without(str(error), delegation.REMEDY)
        return self.wall or Unavailable(mechanism=MECHANISM, reason="its process has ended", remedy="", needed=False)

    def _without(self, reason: str, remedy: str) -> None:
        self.wall = Unavailable(mechanism=MECHANISM, reason=reason, remedy=remedy, needed=False)
        self.leave()

    @property
    def exceeded(self) -> str:
        """What was held when the kernel last killed a process for want of memory, if that is new; else ""."""
        if self.group is None or not self.group.killed():
            return ""
        return f"{self.group.memory_bytes >> 20} MB, all that its control group allows"

    def leave(self) -> None:
        """Give the group back, once the session's processes are ended or ending."""
        if self.group is not None:
            cgroups.give_back(self.group)
            self.group = None


def _bytes(limits: ExecutionLimits, worker: int) -> int:
    """What a session within its limits may come to: its files are in memory, and so is what the kernel has of each."""
    files = limits.max_disk_mb * 2**20 + limits.max_files * _FILE_BYTES
    return _image(worker) + limits.max_memory_mb * 2**20 + DATA_HEADROOM_BYTES + files + _KERNEL_BYTES


def _image(worker: int) -> int:
    """The memory that a worker came with: it is counted to the session when it is written to."""
    try:
        resident, shared = Path(f"/proc/{worker}/statm").read_text(encoding="ascii").split()[1:3]
    except FileNotFoundError as gone:
        raise ProcessLookupError from gone
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _pid_of(pidfd: int) -> int:
    """The pid behind a pidfd, in this process' namespace; ProcessLookupError when it has ended."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        if line.startswith("Pid:") and int(line.split()[1]) > 0:
            return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
