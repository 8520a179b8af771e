"""Kinds of sessions: what their processes are made with."""

from __future__ import annotations

from cellblock.limits import ExecutionLimits
from cellblock.network import PORT
from cellblock.wire.text import NONCE_BYTES

Kind = dict[str, object]
"""Two specs of one kind can have the same processes."""


def kind_of(limits: ExecutionLimits, *, door: bool = False) -> Kind:
    """The kind of a session without mounts. Limits that the host keeps, such as time, are none of the processes'."""
    return {
        "disk_bytes": limits.max_disk_mb * 2**20,
        "files": limits.max_files,
        "memory_bytes": limits.max_memory_mb * 2**20,
        "checkpoint_bytes": limits.checkpoint_bytes,
        "limits": limits_of(limits, door=door),
        "door": PORT if door else 0,
        "nonce_bytes": NONCE_BYTES,
    }


def limits_of(limits: ExecutionLimits, *, door: bool = False) -> dict[str, int]:
    """The limits that a worker sets itself; `door` is the one port that it may connect to, 0 where there is none."""
    return {
        "memory_bytes": limits.max_memory_mb * 2**20,
        "file_bytes": limits.max_disk_mb * 2**20,
        "processes": limits.max_processes,
        "open_files": limits.max_open_files,
        "value_bytes": limits.max_value_mb * 2**20,
        "checkpoints": limits.max_checkpoints,
        "door": PORT if door else 0,
    }
