"""`str.format` and `format_map` without attributes: the fields of a format string are data, and read none."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cellblock.guard.growth import joined
from cellblock.guard.refusal import denied
from cellblock.guard.sizes import bear, check_spec
from cellblock.guard.weights import light

_MESSAGE = "Format string attribute access not allowed"
_DEPTH = 2
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}


def bound_format(text: str, *, index: bool) -> Callable[..., str]:
    """`text.format`."""
    text = str.__str__(text)

    def format(*given: Any, **named: Any) -> str:
        return _Fields(given, named, index).fill(text, _DEPTH)

    return format


def bound_format_map(text: str, *, index: bool) -> Callable[[Mapping[str, Any]], str]:
    """`text.format_map`."""
    text = str.__str__(text)

    def format_map(named: Mapping[str, Any], /) -> str:
        return _Fields((), named, index).fill(text, _DEPTH)

    return format_map


class _Fields:
    """Fills the fields of one format string."""

    def __init__(self, given: Sequence[Any], named: Mapping[str, Any], index: bool) -> None:
        self._given = given
        self._named = named
        self._index = index
        self._next: int | None = 0

    def fill(self, text: str, depth: int) -> str:
        if depth < 0:
            raise ValueError("Max string recursion exceeded")
        parts: list[str] = []
        size = 0
        for literal, field, spec, conversion in _string.formatter_parser(text):
            parts.append(literal)
            if field is not None:
                value = self._value(field)
                spec = self.fill(spec, depth - 1) if spec else ""
                parts.append(format(_converted(light(value), conversion), check_spec(spec)))
                size += len(parts[-1])
                bear(size)
        return joined(parts)

    def _value(self, field: str) -> Any:
        first, rest = _string.formatter_field_name_split(field)
        if first == "":
            first = self._count()
        elif isinstance(first, int):
            if self._next:
                raise ValueError("cannot switch from automatic field numbering to manual field specification")
            self._next = None
        value = self._positional(first) if isinstance(first, int) else self._named[first]
        for is_attribute, key in rest:
            if is_attribute:
                raise denied(_MESSAGE, "format")
            if not self._index:
                raise denied("Format string index access not allowed", "format")
            value = value[key]
        return value

    def _positional(self, number: int) -> Any:
        if number >= len(self._given):
            raise IndexError(f"Replacement index {number} out of range for positional args tuple")
        return self._given[number]

    def _count(self) -> int:
        if self._next is None:
            raise ValueError("cannot switch from manual field specification to automatic field numbering")
        self._next += 1
        return self._next - 1


def _converted(value: Any, conversion: str | None) -> Any:
    if conversion is None:
        return value
    if conversion not in _CONVERSIONS:
        raise ValueError(f"Unknown conversion specifier {conversion}")
    return _CONVERSIONS[conversion](value)
