"""The words of portable values: what travels, what arrives in place of an instance, and the two refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cellblock.errors import CellblockError
from cellblock.text import represent, type_name

Buffer = bytes | bytearray | memoryview

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 64

# Bounds that both sides hold, so that what one writes the other reads.
INLINE_BYTES = 1024
"""Bytes shorter than this are hexadecimal text in the tree, longer ones are buffers of their own."""
BESIDE_BYTES = 2**18
"""From here on a buffer may be read out of its owner's memory; the buffer of an array is the array's memory itself."""
INLINE_TEXT = 2**16
"""Text longer than this is a buffer: no JSON escapes, one copy."""
FRACTION_BITS = 2**14
"""Numerators and denominators: reducing a fraction takes time that grows with their square."""
KEY_BITS = 2**14
KEY_DIGITS = 5_000
"""Integers and Decimals that are keys: comparing the two takes time that grows with their square."""
DECIMAL_EXPONENT = 999_999
"""The default context's range; `int(Decimal("1E+999999999"))` would fill the memory of who reads it."""


class NotPortable(CellblockError):
    """A value that cannot cross a wall as a value: its type is in no row, or it is too large or deep."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedValue(CellblockError):
    """Bytes from inside a wall that `encode` did not write."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value on its way: a tree of what JSON holds, and the bytes it names by position, once each.

    `room` is what the buffers and paths take of the reader's memory.
    """

    tree: object
    buffers: Sequence[Buffer] = ()
    room: int = 0


@dataclass(frozen=True, slots=True)
class Opaque:
    """Stand-in for a value that is not portable: its type's name and its repr, cut. `reason` says why."""

    type: str
    repr: str
    reason: str = field(default="", compare=False)


def opaque(value: object, *, max_repr: int = 2000, reason: str = "") -> Opaque:
    """The value's type and repr. Runs the value's own `__repr__`, so only where the value lives."""
    return Opaque(type_name(value), represent(value, max_chars=max_repr), reason)


@dataclass(frozen=True, slots=True)
class EnumName:
    """A member of an enumeration that the reader does not have: `EnumName("Colour", "RED")`."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a dataclass, pydantic model or named tuple whose class stayed behind: `record["x"]`, `record.x`."""

    type: str
    fields: Mapping[str, object]

    def __getitem__(self, name: str) -> object:
        return self.fields[name]

    def __getattr__(self, name: str) -> object:
        """A field by its name, unless that begins with "_": there libraries look for methods, and inside names them."""
        if not name.startswith("_") and name not in ("type", "fields") and name in self.fields:
            return self.fields[name]
        raise AttributeError(f"the record has no field {name}", name=name, obj=self)

    def __hash__(self) -> int:
        return hash((self.type, frozenset(self.fields.items())))
