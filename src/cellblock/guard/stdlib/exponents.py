"""`Decimal` and `Fraction` as code sees them: an exponent is not taken where its digits could not be borne.

Each is a class that makes instances of the real one, and counts them as its own. What a calculation gives is bounded by
its context, or by `sizes`; what a text says is bounded here.
"""

from __future__ import annotations

import decimal
import fractions
import re
from abc import ABCMeta
from typing import Any

from cellblock.guard.anatomy import exact
from cellblock.guard.sizes import MAX_RATIO_BITS

LARGEST_EXPONENT = 75_000
"""Of an integer with so many digits: making one of a decimal number takes the square of them, a fifth of a second."""
_EXPONENT = re.compile(r"[eE]([+-]?\d[\d_]*)\s*$")


def _too_large(what: str, size: int) -> OverflowError:
    return OverflowError(f"{what} of {size:,}: it could not be calculated with [size]")


class DecimalType(type):
    """The class of `Decimal`."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        made: Any = decimal.Decimal(*given, **named) if cls is Decimal else type.__call__(cls, *given, **named)
        known = decimal.Decimal
        if issubclass(type(made), known) and known.is_finite(made) and known.__bool__(made):
            _, figures, exponent = decimal.Decimal.as_tuple(made)
            for one in (int(exponent), int(exponent) + len(figures)):
                if abs(one) > LARGEST_EXPONENT + 1:
                    raise _too_large("an exponent", one)
        return made

    def __instancecheck__(cls, value: Any) -> bool:
        return decimal.Decimal in type(value).__mro__ if cls is Decimal else type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return decimal.Decimal in kind.__mro__ if cls is Decimal else type.__subclasscheck__(cls, kind)


class Decimal(decimal.Decimal, metaclass=DecimalType):
    """`decimal.Decimal` as code sees it."""

    __slots__ = ()


class FractionType(ABCMeta):
    """The class of `Fraction`."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if cls is Fraction:
            given, named = tuple(map(exact, given)), {name: exact(one) for name, one in named.items()}
        for one in map(exact, (*given, *named.values())):
            kind = type(one)
            if issubclass(kind, str):
                found = _EXPONENT.search(one[-40:])
                if len(one) > MAX_RATIO_BITS // 3 or (found and abs(int(found[1])) > MAX_RATIO_BITS // 4):
                    raise _too_large("an exponent or number of digits", int(found[1]) if found else len(one))
            elif issubclass(kind, decimal.Decimal) and decimal.Decimal.is_finite(one):
                if abs(exponent := decimal.Decimal.adjusted(one)) > MAX_RATIO_BITS // 4:
                    raise _too_large("an exponent", exponent)
            elif issubclass(kind, int) and int.bit_length(one) > MAX_RATIO_BITS:
                raise _too_large("an integer of bits", int.bit_length(one))
        return fractions.Fraction(*given, **named) if cls is Fraction else super().__call__(*given, **named)

    def __instancecheck__(cls, value: Any) -> bool:
        return fractions.Fraction in type(value).__mro__ if cls is Fraction else super().__instancecheck__(value)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return fractions.Fraction in kind.__mro__ if cls is Fraction else super().__subclasscheck__(kind)


class Fraction(fractions.Fraction, metaclass=FractionType):
    """`fractions.Fraction` as code sees it."""

    __slots__ = ()


for _kind, _real in ((Decimal, decimal.Decimal), (Fraction, fractions.Fraction)):
    _kind.__name__ = _kind.__qualname__ = _real.__name__
    _kind.__module__ = _real.__module__
