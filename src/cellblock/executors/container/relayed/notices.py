"""Notices that a relay may send; nothing else is taken.

Security border: every byte comes from inside a container.
"""

from __future__ import annotations

import json
import re
import signal

from cellblock.documents import fits
from cellblock.worker.relayed.line import Broken

MOST_BYTES = 16 * 1024
_MOST_TEXT = 4000
_HELD = re.compile(r"[0-9]{1,9} MB, nearly all that its container has")
"""The words for what is held: a cell is told them as the host's."""

Notice = dict[str, object]

_NUMBER = range(2**31)
_SIGNALS = tuple(map(int, signal.valid_signals()))
_STATUS = (range(0, 2**16, 256), *_SIGNALS, *(number | 0x80 for number in _SIGNALS))
"""A wait status of an end: an exit code, or a signal that this machine knows, with a core or without."""
_ENDED: dict[object, object] = {"ended": _NUMBER, "status": _STATUS}
_FAILED: dict[object, object] = {"failed": str, "reason": str}
_NOTICES: tuple[dict[object, object], ...] = (
    {"ready": True},
    {"importing": str},
    {**_FAILED, "remedy": str},
    {**_FAILED, "remedy": str, "errno": _NUMBER},
    {**_FAILED, "module": str},
    {**_FAILED, "module": str, "remedy": str},
    _ENDED,
    {**_ENDED, "unread": True},
    {"curbed": str, "worker": bool, "unruly": bool},
    {"swept": True},
    {"count": _NUMBER},
    {"outgrown": str},
)
_NOTHING_ELSE: dict[object, object] = {...: ()}


def notice_of(data: bytes) -> Notice:
    """A notice that a row allows; `Broken` for anything else."""
    if len(data) > MOST_BYTES:
        raise Broken(f"a message of {len(data)} bytes")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise Broken("a message that cannot be read") from None
    known = any(fits(told, row | _NOTHING_ELSE) for row in _NOTICES)
    if not known or any(isinstance(text, str) and len(text) > _MOST_TEXT for text in told.values()):
        raise Broken("a message that no relay sends")
    if "curbed" in told and not _HELD.fullmatch(told["curbed"]):
        raise Broken("a message that no relay sends")
    notice: Notice = told
    return notice
