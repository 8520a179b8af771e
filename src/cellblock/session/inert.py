"""Text from inside a wall, made harmless to show: no terminal sequences, nothing that acts without being seen (W8)."""

from __future__ import annotations

import json
import re
from functools import cache

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like, where they end
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
UNSEEN = (
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of what follows
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # tags among them: a second ASCII, which models read
)
"""Characters without a shape, as within brackets of a regular expression: Unicode's `Default_Ignorable_Code_Point` and
annotations. Joiners and selectors of variants stay: scripts and emoji are written with them."""
_UNSEEN = re.compile(f"[{UNSEEN}]+")


def inert(text: str) -> str:
    """Printable text with tabs and line breaks; a lone carriage return is one, as it is to Python's parser.

    What is not seen is named: marks that change the direction of what follows make code read otherwise than it runs.
    """
    text = _SEQUENCE.sub("", utf8(text)).replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub("", text)
    return _UNSEEN.sub(lambda marks: "".join(map(_name, marks[0])), text)


@cache
def _name(mark: str) -> str:
    return f"[U+{ord(mark):04X}]"


def as_terminal(text: str) -> str:
    """Printed text, made inert. What a carriage return overwrote is gone, as progress bars expect."""
    if "\r" in text:
        lines = (line.rstrip("\r") for line in text.split("\n"))
        text = "\n".join(line[line.rfind("\r") + 1 :] for line in lines)
    return inert(text)


def utf8(text: str) -> str:
    """Text that can be encoded: a lone surrogate becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def strict_json(value: object) -> tuple[object] | None:
    """A copy of a JSON value without NaN, infinities and lone surrogates; None where it cannot be one."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return (json.loads(utf8(text)),)
