"""Bounds on single operations in C that nothing could interrupt: checked before they begin."""

from __future__ import annotations

import builtins
import operator
import re
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, getcontext
from fractions import Fraction
from typing import Any

from cellblock.guard.anatomy import exact, lineage
from cellblock.guard.budget import afford
from cellblock.guard.refusal import denied
from cellblock.guard.weights import light

MAX_BITS = 262_144
"""Of an integer that one operation makes: making a decimal number of it takes a tenth of a second, and the square of
its length, and methods of these take three. No operator and no method of them has to look for larger ones.
"""
LARGE_BITS = 4096
"""Above which comparing an integer with many decimal numbers takes long."""
MAX_RATIO_BITS = 100_000
"""Of the parts of a fraction, whose common divisor is looked for each time."""
_POWER_STEPS = 500_000_000_000
MAX_ITEMS = 10_000_000
"""Of a sequence that one operation makes; `MAX_BYTES` bounds texts."""
MAX_BYTES = 100_000_000
MAX_WIDTH = 1_000_000
MAX_SPEC = 10_000
"""Characters of a format."""
MAX_DIGITS = 1_000
"""Of decimal logarithms and powers with a fraction: a tenth of a second, and ten times that for twice as many."""
_FEW_ITEMS = 100_000
_COUNTED_BITS = 64
_FEW_BITS = 20_000

NUMBERS = frozenset((int, float, complex, bool, Decimal))
"""Types whose product or remainder with their like is a number; that of two integers is no longer than both."""

_TEXTS = (str, bytes, bytearray)
_SEQUENCES = (*_TEXTS, list, tuple, deque, array)
_CONVERSIONS: dict[int, Callable[[Any], str]] = {115: str, 114: repr, 97: ascii}
_WIDTH = re.compile(r"(\d{5,})")


def counted(value: Any) -> Any:
    """A number as C code takes it, asked for once; anything else as it is."""
    kind = type(value)
    if kind is int or not hasattr(kind, "__index__"):
        return value
    try:
        found = operator.index(value)
    except TypeError:  # no number after all, as an array of several is none
        return value
    return found if type(found) is bool else int.__pos__(found)


def multiply(left: Any, right: Any) -> Any:
    """`left * right`."""
    one, other = type(left), type(right)
    if one is int and other is int:
        return left * (right if left.bit_length() < _FEW_BITS else _factor(left, right))
    if one in NUMBERS and other in NUMBERS:
        return left * right
    if issubclass(one, int) and issubclass(other, int):
        _factor(left, right)
    if Fraction in lineage(one) or Fraction in lineage(other):
        _require_ratio(left, right)
        return left * right
    if issubclass(one, _SEQUENCES) and hasattr(other, "__index__"):
        return left * _times(left, right)
    if issubclass(other, _SEQUENCES) and hasattr(one, "__index__"):
        return _times(right, left) * right
    return left * right


def multiply_by(present: Any, factor: Any) -> Any:
    """The factor of `present *= factor`."""
    one, other = type(present), type(factor)
    if issubclass(one, int) and issubclass(other, int):
        return _factor(present, factor)
    if Fraction in lineage(one) or Fraction in lineage(other):
        _require_ratio(present, factor)
    if issubclass(one, _SEQUENCES) and hasattr(other, "__index__"):
        return _times(present, factor)
    if issubclass(other, _SEQUENCES) and hasattr(one, "__index__"):
        _times(factor, present)
    return factor


def _factor(present: int, factor: int) -> int:
    if (bits := int.bit_length(present) + int.bit_length(factor)) > MAX_BITS:
        raise _too_large("a product", bits)
    return factor


def _times(sequence: Any, count: Any) -> Any:
    """A number of repetitions, once it is known to be bearable."""
    count = counted(count)
    kind = next(kind for kind in _SEQUENCES if issubclass(type(sequence), kind))
    size = kind.__len__(sequence) * count
    if size > (MAX_BYTES if kind in _TEXTS else MAX_ITEMS):
        raise MemoryError(f"a repetition to {size:,} items")
    afford(size * _unit(kind, sequence))
    return count


def _unit(kind: Any, sequence: Any) -> int:
    """Bytes of an item of a sequence, at most."""
    if kind is str:
        return 1 if str.isascii(sequence) else 4
    return 1 if kind in _TEXTS else 8


def power(base: Any, exponent: Any, modulus: Any = None) -> Any:
    """`base ** exponent`, or `pow` with a modulus."""
    if modulus is not None:
        if issubclass(type(base), int) and issubclass(type(exponent), int) and issubclass(type(modulus), int):
            most = max(int.bit_length(modulus), 30)
            steps = max(int.bit_length(exponent), 1) * most * most + int.bit_length(base) * most
            if steps > _POWER_STEPS:
                raise _too_large("a power", int.bit_length(modulus))
        return pow(base, exponent, modulus)
    return base ** power_by(base, exponent)


def power_by(base: Any, exponent: Any) -> Any:
    """The exponent of `base **= exponent`."""
    if issubclass(type(exponent), int):
        bits = 0
        if issubclass(type(base), int):
            bits = int.bit_length(base)
        elif Fraction in lineage(type(base)):
            bits = max(int(base.numerator).bit_length(), int(base.denominator).bit_length())
            if bits * abs(int.__index__(exponent)) > MAX_RATIO_BITS:
                raise _too_large("a power", bits * abs(int.__index__(exponent)), MAX_RATIO_BITS)
        if bits > 1 and bits * abs(int.__index__(exponent)) > MAX_BITS:
            raise _too_large("a power", bits * abs(int.__index__(exponent)))
    elif issubclass(type(exponent), Decimal) and exponent.is_finite() and exponent != exponent.to_integral_value():
        require_digits()
    return exponent


_LENGTHS: dict[type, tuple[Callable[[Any], int], int]] = {
    kind: (kind.__len__, MAX_BYTES if kind in _TEXTS else MAX_ITEMS) for kind in _SEQUENCES
}


def add(left: Any, right: Any) -> Any:
    """`left + right`."""
    known = _LENGTHS.get(type(left))
    if known is not None and type(left) is type(right):
        length, most = known
        if length(left) + length(right) > most:
            raise MemoryError(f"{length(left) + length(right):,} items in one [size]")
        if length(left) + length(right) > _FEW_ITEMS:
            afford(left.__sizeof__() + right.__sizeof__())
    elif Fraction in lineage(type(left)) or Fraction in lineage(type(right)):
        _require_ratio(left, right)
    return left + right


def add_by(present: Any, more: Any) -> Any:
    """The right operand for `present += more`."""
    known = _LENGTHS.get(type(present))
    if known is not None and type(more) in _LENGTHS:
        length, most = known
        if length(present) + len(more) > most:
            raise MemoryError(f"{length(present) + len(more):,} items in one [size]")
        if length(present) + len(more) > _FEW_ITEMS:
            afford(present.__sizeof__() + len(more) * 8)
    return more


def added(more: Any) -> Any:
    """The right operand for `place.present += more`, whose present value would have to be read once more."""
    return add_by(more, more)


def _require_ratio(*numbers: Any) -> None:
    bits = 0
    for one in numbers:
        if Fraction in lineage(type(one)):
            bits += int(one.numerator).bit_length() + int(one.denominator).bit_length()
        elif issubclass(type(one), int):
            bits += int.bit_length(one)
    if bits > MAX_RATIO_BITS:
        raise _too_large("a fraction", bits, MAX_RATIO_BITS)


def room(size: Any) -> Any:
    """The argument of `bytes` or `bytearray`: where that is a number, no more than a text may hold."""
    kind = type(size)
    if hasattr(kind, "__bytes__") or hasattr(kind, "__buffer__"):
        return size
    size = counted(size)
    if type(size) is int or type(size) is bool:
        bear(size)
    return size


def integer(*given: Any, **named: Any) -> int:
    """`int`, of a text that may be read in a base."""
    if len(given) + len(named) == 2 and given:
        digits(given[0])
    return int(*given, **named)


def digits_of_all(given: Any) -> tuple[Any, ...]:
    """The same for arguments that are given as one iterable."""
    return tuple(map(digits, given))


def digits(text: Any) -> Any:
    """A text that is to be read as an integer, in any base."""
    kind = type(text)
    size = str.__len__(text) if issubclass(kind, str) else len(text) if issubclass(kind, bytes | bytearray) else 0
    if size > MAX_BITS // 5:
        raise OverflowError("an integer of so many digits [size]")
    return text


def shift(value: Any, by: Any) -> Any:
    """`value << by`."""
    return value << shift_by(value, by)


def shift_by(value: Any, by: Any) -> Any:
    """The number of bits of `value <<= by`."""
    if issubclass(type(by), int) and issubclass(type(value), int) and value:
        bits = int.bit_length(value) + int.__index__(by)
        if bits > MAX_BITS:
            raise _too_large("a shift", bits)
    return by


def ordinary(function: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Stand-in for `range` for loops that count on numbers: it gives no sequences and no large ints."""

    def counted(*given: Any, **named: Any) -> Iterator[Any]:
        for one in function(*given, **named):
            if issubclass(type(one), _SEQUENCES) or (
                issubclass(type(one), int) and int.bit_length(one) > _COUNTED_BITS
            ):
                raise denied("a loop over a range of the code's own that gives other than numbers", "size")
            yield one

    return counted


def modulo(left: Any, right: Any) -> Any:
    """`left % right`: a remainder, or a text that is formatted."""
    return left % modulo_by(left, right)


def modulo_by(left: Any, right: Any) -> Any:
    """The right operand for `left %= right`."""
    if issubclass(type(left), _TEXTS):
        _require_fields(left, right)
        text = str.__str__(left) if issubclass(type(left), str) else bytes(left).decode("latin-1")
        widths = _check_widths(text)
        if "*" in text and issubclass(type(right), tuple):
            for one in tuple.__iter__(right):
                if issubclass(type(one), int):
                    widths += abs(size := int.__pos__(one))
                    if abs(size) > MAX_WIDTH:
                        raise _too_large("a width", abs(size))
        bear(widths)
    return right


def _require_fields(text: Any, given: Any) -> None:
    """That what is put into a text is light, and not too large in all."""
    light(given)
    if issubclass(type(given), tuple):
        size = sum(len(one) for one in tuple.__iter__(given) if type(one) in _TEXTS)
    elif issubclass(type(given), dict):
        longest = max((len(one) for one in dict.values(given) if type(one) in _TEXTS), default=0)
        size = longest * text.count("%" if issubclass(type(text), str) else b"%")
    else:
        return
    bear(size)


def bear(size: int) -> None:
    """Raise MemoryError where a text of so many characters is too long, or there is no memory left for it."""
    if size > MAX_BYTES:
        raise MemoryError(f"a text of {size:,} characters [size]")
    afford(size)


def check_spec(spec: str) -> str:
    """A format specification, once its widths are known to be bearable, and its length where it is one of dates."""
    if len(spec) > MAX_SPEC:
        raise MemoryError(f"a format of {len(spec):,} characters [size]")
    afford(_check_widths(spec))
    return spec


def narrow(function: Callable[..., Any], most: int = 10_000) -> Callable[..., Any]:
    """A function whose integers are widths, counts and the like, and no larger than this."""

    def bounded(*given: Any, **named: Any) -> Any:
        given, named = tuple(map(counted, given)), {name: counted(one) for name, one in named.items()}
        for one in (*given, *named.values()):
            require_narrow(one, most)
        return function(*given, **named)

    for part in ("__name__", "__qualname__", "__doc__"):
        setattr(bounded, part, getattr(function, part, None) or "function")
    return bounded


def require_narrow(value: Any, most: int = 10_000) -> None:
    """That a width is no larger than this, or a text that stands for one no longer."""
    value = exact(value)
    size = value if type(value) is int else len(value) if type(value) is str else 0
    if size > most:
        raise MemoryError(f"a width of {size:,} [size]")


def require_digits(context: Context | None = None) -> None:
    """That a logarithm or a power in a decimal context ends soon."""
    found = getcontext() if context is None else context
    if found.prec > MAX_DIGITS:
        raise OverflowError(f"a logarithm or power of {found.prec:,} digits: the most are {MAX_DIGITS:,} [size]")


def _check_widths(text: str) -> int:
    """The sum of the large widths in a text; MemoryError where one is too large."""
    found = 0
    for digits in _WIDTH.findall(text):
        if len(digits) > 18 or int(digits) > MAX_WIDTH:
            raise MemoryError(f"a width of {digits[:30]}")
        found += int(digits)
    return found


def formatted(value: object, conversion: int, spec: str) -> str:
    """The text of `{value!conversion:spec}` in an f-string."""
    if conversion != -1:
        value = _CONVERSIONS[conversion](value)
    return format(light(value), check_spec(spec))


_from_bytes: Any = vars(int)["from_bytes"].__get__


def from_bytes(kind: type[int]) -> Callable[..., int]:
    """`from_bytes` of `int` or an heir."""

    def bounded(bytes: Any, byteorder: Any = "big", *, signed: Any = False) -> int:
        found = bytes if issubclass(type(bytes), (builtins.bytes, bytearray)) else builtins.bytes(bytes)
        if len(found) > MAX_BITS // 8:
            raise OverflowError(
                f"an integer of {len(found) * 8:,} bits: more than {MAX_BITS:,} cannot be interrupted [size]"
            )
        made: int = _from_bytes(None, kind)(found, byteorder, signed=signed)
        return made

    bounded.__name__ = bounded.__qualname__ = "from_bytes"
    return bounded


def width(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes a width after its object."""

    def bounded(self: Any, /, *given: Any, **named: Any) -> Any:
        given, named = tuple(map(counted, given)), {name: counted(one) for name, one in named.items()}
        for one in (*given[:1], *named.values()):
            if type(one) is int and one > MAX_WIDTH:
                raise MemoryError(f"a width of {one:,} [size]")
        return function(self, *given, **named)

    bounded.__name__ = bounded.__qualname__ = getattr(function, "__name__", "method")
    return bounded


def _too_large(what: str, bits: int, most: int = MAX_BITS) -> Exception:
    return OverflowError(f"{what} of {bits:,} bits: more than {most:,} cannot be interrupted [size]")
