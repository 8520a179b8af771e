"""How many sessions are worth keeping ready, judged by how they are asked for."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from cellblock.hosting import clock
from cellblock.limits import ExecutionLimits
from cellblock.network import PORT
from cellblock.wire.text import NONCE_BYTES

IN_A_ROW = 3
_PAUSES = 10.0
_LEAST_SECONDS = 2.0
_MOST_SECONDS = 60.0
EXPECTED_SECONDS = 60.0
_MOST = 2
_MOST_KINDS = 64


Kind = dict[str, object]
"""What a session's processes are made with: two specs of one kind can have the same."""


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


@dataclass(slots=True)
class Kept:
    """How many the nursery is to keep ready, and for how long."""

    count: int
    seconds: float


@dataclass(slots=True)
class _Use:
    asked: int = 0
    by_use: int = 1
    opened: float = -math.inf
    in_a_row: int = 0
    until: float = -math.inf
    once_until: float = -math.inf


class Demand:
    """What one family's sessions were asked for, by their kind. Callers keep the lock.

    A kind that was opened three times, with no more than 60 s between, has one ready, two where one was not enough,
    for as long as the next opening can be expected: ten times the last pause, at least 2 s, at most 60 s.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Use] = {}

    def ask(self, kind: Kind, count: int) -> None:
        """Somebody wants so many kept, whatever the use."""
        self._use(kind).asked = count

    def expect(self, kind: Kind) -> None:
        """One is opened as soon as one can be."""
        self._use(kind).once_until = clock.now() + EXPECTED_SECONDS

    def opened(self, kind: Kind, *, spare: bool) -> Kept | None:
        """A session was opened, with a spare or without; what is to be kept from now on, None for no change."""
        now = clock.now()
        known = self._use(kind)
        if not spare and now < known.until:
            known.by_use = _MOST
        pause, known.opened = now - known.opened, now
        known.in_a_row = known.in_a_row + 1 if pause <= _MOST_SECONDS else 1
        known.once_until = -math.inf
        if known.asked >= known.by_use or known.in_a_row < IN_A_ROW:
            return None
        seconds = min(max(_PAUSES * pause, _LEAST_SECONDS), _MOST_SECONDS)
        known.until = now + seconds
        return Kept(known.by_use, seconds)

    def expects(self, kind: Kind) -> bool:
        """Whether there may be one ready."""
        known = self._kinds.get(_key(kind))
        return known is not None and (known.asked > 0 or clock.now() < max(known.until, known.once_until))

    def _use(self, kind: Kind) -> _Use:
        key = _key(kind)
        known = self._kinds.get(key)
        if known is None:
            known = self._kinds[key] = _Use()
            if len(self._kinds) > _MOST_KINDS:
                del self._kinds[min(self._kinds, key=lambda one: (self._kinds[one].asked > 0, self._kinds[one].opened))]
        return known


def _key(kind: Kind) -> str:
    return json.dumps(kind, sort_keys=True)
