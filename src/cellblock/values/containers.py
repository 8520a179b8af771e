"""How many lists and objects a JSON text holds, counted before it is parsed, which may take thirty times its bytes."""

from __future__ import annotations

import re

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""Also one that does not end, so that no text of quotes and backslashes is gone through more than once."""


def more_than(most: int, text: bytes) -> bool:
    """Whether there are more than `most`; brackets inside the text's strings do not count. Costs linear time."""
    if text.count(b"[") + text.count(b"{") <= most:
        return False
    bare = _STRING.sub(b"", text)
    return bare.count(b"[") + bare.count(b"{") > most
