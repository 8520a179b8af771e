"""Notices that a relay may send; nothing else is taken.

Security border: every byte comes from inside a container.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable

from cellblock.worker.relayed.line import Broken

MOST_BYTES = 16 * 1024
_MOST_TEXT = 4000
_HELD = re.compile(r"[0-9]{1,9} MB, nearly all that its container has")

Notice = dict[str, object]


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_status(value: object) -> bool:
    """A wait status of an end: an exit code, or a signal that this machine knows."""
    if not _is_number(value) or not isinstance(value, int) or value >> 16:
        return False
    number = value & 0x7F
    return number == 0 or (number in map(int, signal.valid_signals()) and value >> 8 == 0)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TEXT


def _is_held(value: object) -> bool:
    """True for a description of what is held in the relay's own words alone: a cell is told them as the host's."""
    return isinstance(value, str) and _HELD.fullmatch(value) is not None


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_true(value: object) -> bool:
    return value is True


_FIELDS: tuple[dict[str, Callable[[object], bool]], ...] = (
    {"ready": _is_true},
    {"importing": _is_text},
    {"failed": _is_text, "reason": _is_text, "remedy": _is_text},
    {"failed": _is_text, "reason": _is_text, "remedy": _is_text, "errno": _is_number},
    {"failed": _is_text, "reason": _is_text, "module": _is_text},
    {"failed": _is_text, "reason": _is_text, "module": _is_text, "remedy": _is_text},
    {"ended": _is_number, "status": _is_status},
    {"ended": _is_number, "status": _is_status, "unread": _is_true},
    {"curbed": _is_held, "worker": _is_flag, "unruly": _is_flag},
    {"swept": _is_true},
    {"count": _is_number},
    {"outgrown": _is_text},
)


def notice_of(data: bytes) -> Notice:
    """A notice that a row allows; `Broken` for anything else."""
    if len(data) > MOST_BYTES:
        raise Broken(f"a message of {len(data)} bytes")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise Broken("a message that cannot be read") from None
    if isinstance(told, dict):
        for fields in _FIELDS:
            if told.keys() == fields.keys() and all(fits(told[name]) for name, fits in fields.items()):
                return told
    raise Broken("a message that no relay sends")
