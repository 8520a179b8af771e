"""Methods of texts whose result may be far larger than what they are given: measured before they begin.

A text is split in steps, between which a cell can be ended. All take an exact `str`, `bytes` or `bytearray` first.
`texts` holds the kinds of text that the code has made classes of: only then is it asked what a text in a list is.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable
from typing import Any

from cellblock.guard.budget import afford
from cellblock.guard.sizes import bear, counted, width

_FEW = 4
"""So many pieces may be joined whatever they are."""
MAX_PIECES = 5_000_000
MOST_STRIPPED = 256
"""Characters to be taken off the ends of a text that C code may look for one by one."""
_STEP = 1_000_000
"""Characters that are split at once."""
_PIECE = 64
"""Bytes of a short piece of a text."""
_SHORT = 16
_NAMED = 50_000
"""Characters of which the names are looked up at once."""
_OF_BYTES = ("ascii", "iso8859", "cp125", "cp4", "cp8", "koi8", "mac-", "latin")
"""Beginnings of the names of encodings with a byte for each character."""
_SEARCHED = 10_000_000
"""Of the lengths of a text and of what is looked for from its end, multiplied: a hundredth of a second."""


def joined(parts: list[str]) -> str:
    """Exact texts in one; MemoryError where that would be too long."""
    bear(sum(map(len, parts)))
    return "".join(parts)


def _join(kind: Any, texts: list[type]) -> Callable[..., Any]:
    whole = kind.join

    def join(self: Any, iterable: Any, /) -> Any:
        if type(iterable) is not list and type(iterable) is not tuple:
            if not issubclass(type(iterable), Iterable):
                return whole(self, iterable)  # which says what is wrong
            iterable = list(iterable)
        count = len(iterable)
        if count > _FEW:
            try:
                size = _slow_length(iterable) if texts else sum(map(len, iterable))
            except TypeError:
                size = 0  # there is something among them that cannot be joined
            bear(size + len(self) * count)
        return whole(self, iterable)

    return join


def _slow_length(parts: Any) -> int:
    """Of parts that may lie."""
    size = 0
    for part in parts:
        if issubclass(type(part), str):
            size += str.__len__(part)
        elif issubclass(type(part), bytes | bytearray | memoryview):
            size += memoryview(part).nbytes
    return size


def _replace(kind: Any) -> Callable[..., Any]:
    whole, count_of = kind.replace, kind.count

    def replace(self: Any, old: Any, new: Any, /, count: Any = -1) -> Any:
        if issubclass(type(new), kind):
            longer = len(memoryview(new)) if kind is not str else str.__len__(new)
            size = len(self)
            if longer * (size + 1) > _STEP:
                size += count_of(self, old) * longer
            bear(size)
        return whole(self, old, new, count)

    return replace


def _translate(kind: Any) -> Callable[..., Any]:
    whole = kind.translate

    def translate(self: Any, table: Any, /) -> Any:
        if type(table) is not dict:
            return _translated(self, table)
        longest, table = 1, dict(table)  # what is measured nobody changes
        for one in dict.values(table):
            if issubclass(type(one), str) and str.__len__(one) > longest:
                longest = str.__len__(one)
        bear(len(self) * longest)
        return whole(self, table)

    return translate


def _translated(text: str, table: Any) -> str:
    """A text by a table that may give anything for a character, one after the other."""
    parts: list[str] = []
    size = 0
    for one in text:
        try:
            found = table[ord(one)]
        except LookupError:
            found = one
        if found is None:
            continue
        part = one.translate({ord(one): found})  # which says what is wrong
        size += len(part)
        parts.append(part)
        if len(parts) % _FEW == 0:
            bear(size)
    return "".join(parts)


def _encode(kind: Any) -> Callable[..., Any]:
    whole = kind.encode

    def encode(self: Any, /, encoding: Any = "utf-8", errors: Any = "strict") -> Any:
        if len(self) <= _NAMED or not issubclass(type(errors), str) or str.__str__(errors) != "namereplace":
            return whole(self, encoding, errors)
        name = codecs.lookup(str.__str__(encoding)).name if issubclass(type(encoding), str) else "utf-8"
        if name.startswith("utf"):  # which has all characters
            return whole(self, encoding, errors)
        if not name.startswith(_OF_BYTES):  # of parts of a text, other bytes may come
            raise MemoryError(f"{len(self):,} characters with names in {name}: the most are {_NAMED:,} [size]")
        parts: list[bytes] = []
        size = 0
        for begin in range(0, len(self), _NAMED):
            parts.append(whole(self[begin : begin + _NAMED], encoding, errors))
            bear(size := size + len(parts[-1]))
        return b"".join(parts)

    return encode


def _split(kind: Any, name: str) -> Callable[..., Any]:
    whole = kind.split if name == "split" else _rsplit(kind)

    def split(self: Any, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        if len(self) <= _STEP or (type(maxsplit) is int and 0 <= maxsplit <= _STEP):
            return whole(self, sep, maxsplit)
        if sep is None or (type(sep) is kind and kind.__len__(sep) == 1):
            if type(maxsplit) is int and maxsplit < 0:
                return _in_steps(self, kind, sep)
            pieces = len(self) // 2 if sep is None else kind.count(self, sep)
        else:
            pieces = kind.count(self, sep) if issubclass(type(sep), kind) and sep else 0
        if pieces > MAX_PIECES:
            raise MemoryError(f"{pieces:,} pieces of a text [size]")
        afford(pieces * _PIECE)
        return whole(self, sep, maxsplit)

    split.__name__ = name
    return split


def _is_slow(text: Any, part: Any) -> bool:
    """True if CPython takes long to find this in a text from its end, where it compares all of it at each place."""
    return issubclass(type(part), str | bytes | bytearray) and len(part) > _SHORT and len(part) * len(text) > _SEARCHED


def _rsplit(kind: Any) -> Callable[..., Any]:
    def rsplit(self: Any, sep: Any, maxsplit: Any) -> Any:
        if not _is_slow(self, sep):
            return kind.rsplit(self, sep, maxsplit)
        return [one[::-1] for one in reversed(kind.split(self[::-1], sep[::-1], maxsplit))]

    return rsplit


def _last(kind: Any, name: str) -> Callable[..., Any]:
    """`rfind` and `rindex`: what is looked for from the end of a text is found from the beginning of its reverse."""
    whole = getattr(kind, name)

    def last(self: Any, sub: Any, /, *given: Any) -> Any:
        if not _is_slow(self, sub):
            return whole(self, sub, *given)
        begin, end, _ = slice(*(*given, None, None)[:2]).indices(len(self))
        found = kind.find(self[begin:end][::-1], sub[::-1])
        return whole(self[:0], sub) if found < 0 else end - found - len(sub)

    return last


def _rpartition(kind: Any) -> Callable[..., Any]:
    def rpartition(self: Any, sep: Any, /) -> Any:
        if not _is_slow(self, sep):
            return kind.rpartition(self, sep)
        head, found, tail = kind.partition(self[::-1], sep[::-1])
        return (tail[::-1], found[::-1], head[::-1])

    return rpartition


def _in_steps(text: Any, kind: Any, sep: Any) -> list[Any]:
    """A text split piece by piece, each of which ends where a separator begins."""
    found: list[Any] = []
    begin, size = 0, len(text)
    while True:
        end = _cut(text, kind, sep, begin + _STEP)
        found.extend(kind.split(text[begin:end], sep))
        if end >= size:
            return found
        begin = end if sep is None else end + 1


def _cut(text: Any, kind: Any, sep: Any, place: int) -> int:
    """Index at which a separator begins, at this place or after it; else the end."""
    size = len(text)
    if sep is not None:
        found = kind.find(text, sep, place) if place < size else -1
        return size if found < 0 else found
    while place < size and not text[place : place + 1].isspace():
        place += 1
    return min(place, size)


def _splitlines(kind: Any) -> Callable[..., Any]:
    whole = kind.splitlines
    newline = "\n" if kind is str else b"\n"

    def splitlines(self: Any, /, keepends: Any = False) -> Any:
        if len(self) <= _STEP:
            return whole(self, keepends)
        found: list[Any] = []
        begin, size = 0, len(self)
        while begin < size:
            end = kind.find(self, newline, begin + _STEP) + 1 or size
            found.extend(whole(self[begin:end], keepends))
            begin = end
        return found

    return splitlines


def _tabs(kind: Any) -> Callable[..., Any]:
    whole, count_of = kind.expandtabs, kind.count
    tab = "\t" if kind is str else b"\t"

    def expandtabs(self: Any, /, tabsize: Any = 8) -> Any:
        tabsize = counted(tabsize)
        if type(tabsize) is int and tabsize > 8:
            bear(len(self) + count_of(self, tab) * tabsize)
        return whole(self, tabsize)

    return expandtabs


def _strip(kind: Any, name: str) -> Callable[..., Any]:
    """Each item at an end is looked for among those that are taken off: where they are many, in steps."""
    whole, left, right = getattr(kind, name), name != "rstrip", name != "lstrip"

    def strip(self: Any, chars: Any = None, /) -> Any:
        if chars is None or not issubclass(type(chars), (str, bytes, bytearray)) or len(chars) <= MOST_STRIPPED:
            return whole(self, chars)
        whole(self, chars[:0])  # which says where they are of another kind
        wanted = set(chars)
        begin, end = 0, len(self)
        while left and begin < end and self[begin] in wanted:
            begin += 1
        while right and begin < end and self[end - 1] in wanted:
            end -= 1
        return self[begin:end]

    return strip


def methods(kind: type, texts: list[type]) -> dict[str, Callable[..., Any]]:
    """Stand-ins for the methods of a kind of text, by name."""
    found = {
        "join": _join(kind, texts),
        "replace": _replace(kind),
        "split": _split(kind, "split"),
        "rsplit": _split(kind, "rsplit"),
        "rfind": _last(kind, "rfind"),
        "rindex": _last(kind, "rindex"),
        "rpartition": _rpartition(kind),
        "splitlines": _splitlines(kind),
        **{name: _strip(kind, name) for name in ("strip", "lstrip", "rstrip")},
        "expandtabs": _tabs(kind),
        **{name: width(getattr(kind, name)) for name in ("ljust", "rjust", "center", "zfill")},
    }
    if kind is str:
        found |= {"translate": _translate(kind), "encode": _encode(kind)}
    for name, function in found.items():
        function.__name__ = name
        function.__qualname__ = f"{kind.__name__}.{name}"
        function.__doc__ = getattr(kind, name).__doc__
    return found
