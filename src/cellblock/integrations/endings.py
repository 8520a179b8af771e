"""How a command of a shell cell ended, as a shell numbers it, and whether its output is whole."""

from __future__ import annotations

import re
import signal

from cellblock.cell import CellError

_STATUS = re.compile(r"exit status (\d{1,3})")
_SIGNAL = re.compile(r"killed by (SIG[A-Z0-9]+)")
_CUT = re.compile(r"\[\.\.\. \d+ bytes of output cut: the limit is \d+ \.\.\.\]")


def status_of(error: CellError | None) -> int | None:
    """A command's exit status, 128 and more for a signal; None where a limit or a wall ended the cell instead."""
    if error is None:
        return 0
    if found := _STATUS.fullmatch(error.message):
        return int(found[1])
    if found := _SIGNAL.fullmatch(error.message):
        return 128 + int(getattr(signal, found[1], 0))
    return None


def was_cut(text: str) -> bool:
    """Whether the middle of an output was left out, for its limit."""
    return _CUT.search(text) is not None
