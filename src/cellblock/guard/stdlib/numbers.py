"""Audits of modules about numbers."""

from __future__ import annotations

import decimal
import fractions
import math
import numbers
import operator
import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from itertools import starmap
from typing import Any

from cellblock.guard.bounded import FORMS
from cellblock.guard.names import names
from cellblock.guard.sizes import LARGE_BITS, MAX_BITS, counted, multiply, require_digits
from cellblock.guard.stdlib.exponents import LARGEST_EXPONENT, Decimal, DecimalType, Fraction, FractionType
from cellblock.guard.steps import fed, ticking
from cellblock.guard.tables import Method, ModuleAudit, TypeAudit, audit, listed, naming

_LARGEST_FACTORIAL = 20_000
_TOWER = "Number Complex Real Rational Integral"


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ArithmeticError)


def _bounded(function: Callable[..., Any], largest: int) -> Callable[..., Any]:
    """A function whose integer arguments are no larger than this."""

    def bounded(*given: Any) -> Any:
        given = tuple(map(counted, given))
        for one in given:
            if type(one) is int and one > largest:
                raise OverflowError(f"{function.__name__}() of {one:,}: the largest here is {largest:,} [size]")
        return function(*given)

    bounded.__doc__ = function.__doc__
    return bounded


_MATH = {name: _bounded(getattr(math, name), _LARGEST_FACTORIAL) for name in ("factorial", "comb", "perm")}

_DIVISOR_STEPS = 100_000_000_000


def _divisors(name: str) -> Callable[..., int]:
    """`gcd` and `lcm`, two numbers at a time."""
    function = getattr(math, name)

    def pairwise(*integers: Any) -> int:
        found = 0 if name == "gcd" else 1
        for one in map(operator.index, integers):
            bits = found.bit_length(), one.bit_length()
            if bits[0] * bits[1] > _DIVISOR_STEPS or (name == "lcm" and sum(bits) > MAX_BITS):
                raise OverflowError(f"{name}() of {max(bits):,} bits [size]")
            found = function(found, one)
        return found

    return pairwise


def _prod(iterable: Any, /, *, start: Any = 1) -> Any:
    total = start
    for one in iterable:
        total = multiply(total, one)
    return total


def _walked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that goes through its first argument, which passes through Python."""
    return lambda values, /, *given: function(ticking(values), *given)


def _many(name: str, which: int) -> Callable[[Any], object]:
    """A function of the generator that makes a list of so many."""

    def make(world: Any) -> object:
        def made(*given: Any, **named: Any) -> Any:
            if len(given) > which:
                given = (*given[:which], counted(given[which]), *given[which + 1 :])
            elif "k" in named:
                named["k"] = counted(named["k"])
            count = named.get("k", given[which] if len(given) > which else 1)
            if type(count) is int and count > MAX_DRAWN:
                raise MemoryError(f"{name}() of {count:,} [size]")
            return getattr(world.values["random"], name)(*given, **named)

        return made

    return make


def _ordered(name: str) -> Callable[..., Any]:
    """A function of statistics that sorts its data in C, which is sorted in steps before."""
    function = getattr(statistics, name)
    return lambda data, *given, **named: function(FORMS[sorted](data), *given, **named)


def _sumprod(p: Any, q: Any, /) -> Any:
    p, q = [*fed(p)], [*fed(q)]
    if all(type(one) is not int or one.bit_length() < LARGE_BITS for one in (*p, *q)):
        return math.sumprod(p, q)  # type: ignore[attr-defined,unused-ignore]
    return sum(starmap(multiply, zip(p, q, strict=True)))


_STATISTICS = {
    **{name: _walked(getattr(statistics, name)) for name in ("mode", "multimode")},
    **{name: _ordered(name) for name in ("median", "median_low", "median_high", "median_grouped", "quantiles")},
}
MAX_DRAWN = 3_000_000
_MATH |= {name: _divisors(name) for name in ("gcd", "lcm")} | {"prod": _prod, "fsum": _walked(math.fsum)}
if hasattr(math, "sumprod"):
    _MATH["sumprod"] = _sumprod

_RANDOM = names(
    "random uniform triangular randint randrange choice choices shuffle sample gauss normalvariate lognormvariate "
    "expovariate vonmisesvariate gammavariate betavariate paretovariate weibullvariate getrandbits seed randbytes"
)


def _random(name: str) -> Callable[[Any], object]:
    """A function of the world's own generator: that of the host's module is the host's."""

    def make(world: Any) -> object:
        return getattr(world.values["random"], name)

    return make


_DIGITS = 50_000
"""The most digits of a decimal context."""


def _require_bounded(name: str, value: object) -> None:
    largest = {"prec": _DIGITS, "Emax": LARGEST_EXPONENT, "Emin": LARGEST_EXPONENT}.get(name)
    if largest is not None and type(value) is int and abs(value) > largest:
        raise OverflowError(f"{name} of {value:,}: the largest here is {largest:,} [size]")


class BoundedContext(decimal.Context):
    """A context whose operations end in reasonable time."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for name, most in (("Emin", -LARGEST_EXPONENT), ("Emax", LARGEST_EXPONENT)):
            if getattr(self, name) == getattr(decimal.DefaultContext, name):
                super().__setattr__(name, most)
        for name in ("prec", "Emax", "Emin"):
            _require_bounded(name, getattr(self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        value = counted(value)
        _require_bounded(name, value)
        super().__setattr__(name, value)

    def copy(self) -> BoundedContext:
        return _bounded_context(self)

    def ln(self, x: Any, /) -> decimal.Decimal:
        require_digits(self)
        return super().ln(x)

    def log10(self, x: Any, /) -> decimal.Decimal:
        require_digits(self)
        return super().log10(x)

    def exp(self, x: Any, /) -> decimal.Decimal:
        require_digits(self)
        return super().exp(x)

    def power(self, a: Any, b: Any, modulo: Any = None) -> decimal.Decimal:
        if modulo is None and isinstance(b, decimal.Decimal) and b != b.to_integral_value():
            require_digits(self)
        return super().power(a, b, modulo)

    __copy__ = copy


BoundedContext.__name__ = BoundedContext.__qualname__ = "Context"
BoundedContext.__module__ = "decimal"


def _of_digits(name: str) -> Method:
    """A method of `Decimal` that takes long for many digits."""
    function = getattr(decimal.Decimal, name)

    def bounded(self: Any, context: Any = None) -> Any:
        require_digits(context)
        return function(self, context)

    bounded.__name__ = bounded.__qualname__ = name
    return Method(f"Decimal.{name}", lambda world: bounded)


_LONG = {name: _of_digits(name) for name in ("ln", "log10", "exp")}


def _bounded_context(found: decimal.Context) -> BoundedContext:
    if not issubclass(type(found), decimal.Context):
        raise TypeError("optional argument must be a context")
    parts = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    given = {name: getattr(found, name) for name in parts}
    given["Emin"], given["Emax"] = max(found.Emin, -LARGEST_EXPONENT), min(found.Emax, LARGEST_EXPONENT)
    made = BoundedContext(**given)
    for name in ("flags", "traps"):
        setattr(made, name, dict(getattr(found, name)))
    return made


def bound_decimals() -> None:
    """Have decimal numbers of this thread end in reasonable time, also where code asks for no context."""
    decimal.setcontext(_bounded_context(decimal.getcontext()))


def _getcontext() -> BoundedContext:
    found = decimal.getcontext()
    if type(found) is not BoundedContext:
        decimal.setcontext(_bounded_context(found))
    return decimal.getcontext()  # type: ignore[return-value]


def _setcontext(context: Any, /) -> None:
    if type(context) is not BoundedContext:
        raise TypeError("optional argument must be a context")
    decimal.setcontext(context)


def _localcontext(ctx: Any = None, **changes: Any) -> Any:
    inner = _bounded_context(_getcontext() if ctx is None else ctx)
    for name, value in changes.items():
        if name not in _OF_CONTEXTS:
            raise TypeError(f"{name!r} is an invalid keyword argument for this function")
        setattr(inner, name, value)
    return ContextManager(inner)


_OF_CONTEXTS = names("prec rounding Emin Emax capitals clamp flags traps")


class ContextManager:
    """Has a context in force for a block, and nothing happen where it is dropped within."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, inner: BoundedContext) -> None:
        self._inner = inner

    def __enter__(self) -> BoundedContext:
        self._outer = _getcontext()
        decimal.setcontext(self._inner)
        return self._inner

    def __exit__(self, *_: object) -> None:
        decimal.setcontext(self._outer)


ContextManager.__module__ = "decimal"


def _samples(world: Any, distribution: Any) -> Callable[..., list[float]]:
    def samples(n: int, *, seed: Any = None) -> list[float]:
        found: list[float] = distribution.samples(n, seed=world.values["random"].random() if seed is None else seed)
        return found

    return samples


def _few_bits(name: str, count: Any, per: int) -> int:
    """A count of what is drawn, each of so many bits, that can be borne."""
    found: int = counted(operator.index(count))
    if found * per > MAX_BITS:
        raise OverflowError(f"{name}() of {found:,} [size]")
    return found


def _bits(name: str, per: int) -> Callable[[Any], object]:
    def make(world: Any) -> object:
        def drawn(n: Any, /) -> Any:
            return getattr(world.values["random"], name)(_few_bits(name, n, per))

        return drawn

    return make


def _bits_of(name: str, per: int) -> Method:
    function = getattr(random.Random, name)

    def drawn(self: Any, n: Any, /) -> Any:
        return function(self, _few_bits(name, n, per))

    drawn.__name__, drawn.__qualname__ = name, f"Random.{name}"
    return Method(f"random.Random.{name}", lambda world: drawn)


_DRAWN = {"getrandbits": _bits_of("getrandbits", 1), "randbytes": _bits_of("randbytes", 8)}

AUDITS = (
    ModuleAudit(
        name="math",
        members=listed("math") - {"sumprod"},
        refused=frozenset(),
        instead=_MATH,
    ),
    ModuleAudit(name="cmath", members=listed("cmath"), refused=frozenset()),
    ModuleAudit(
        name="statistics",
        members=listed("statistics") - _STATISTICS.keys(),
        instead=_STATISTICS,
        naming=listed("statistics") | _STATISTICS.keys(),
        refused=names("kde_random"),
        note="what draws from the host's generator draws from the world's, or is left out",
        types=(
            audit(
                statistics.NormalDist,
                but=["samples", "from_samples"],
                replaced={"samples": _samples},
                static_replaced=naming("from_samples"),
                subclassable=True,
            ),
            audit(statistics.StatisticsError, subclassable=True),
        ),
    ),
    ModuleAudit(
        name="fractions",
        instead={"Fraction": Fraction},
        types=(
            audit(fractions.Fraction, constructable=False),
            replace(audit(fractions.Fraction, subclassable=True), type=Fraction),
            TypeAudit(type=FractionType),
        ),
        note="numbers of more digits than their common divisor can be found for are refused",
    ),
    ModuleAudit(
        name="decimal",
        members=names(
            "DecimalTuple DecimalException Clamped InvalidOperation DivisionByZero Inexact Rounded Subnormal "
            "Overflow Underflow FloatOperation DivisionImpossible InvalidContext ConversionSyntax DivisionUndefined "
            "ROUND_DOWN ROUND_HALF_UP ROUND_HALF_EVEN ROUND_CEILING ROUND_FLOOR ROUND_UP ROUND_HALF_DOWN "
            "ROUND_05UP MAX_PREC MAX_EMAX MIN_EMIN MIN_ETINY"
        ),
        instead={
            "Decimal": Decimal,
            "Context": BoundedContext,
            "getcontext": _getcontext,
            "setcontext": _setcontext,
            "localcontext": _localcontext,
        },
        types=(
            audit(decimal.Decimal, but=_LONG, constructable=False, replaced=_LONG),
            replace(audit(decimal.Decimal, but=_LONG, subclassable=True, replaced=_LONG), type=Decimal),
            TypeAudit(type=DecimalType),
            audit(
                BoundedContext,
                also=names("flags traps"),
                writes=names("prec rounding Emin Emax capitals clamp"),
            ),
            audit(vars(decimal)["DecimalTuple"]),
            *(audit(kind, subclassable=True) for kind in vars(decimal).values() if _is_error(kind)),
            TypeAudit(type=ContextManager, constructable=False),
        ),
        note="contexts belong to threads, and a session has its own; digits and exponents are bounded",
    ),
    ModuleAudit(
        name="random",
        members=names("Random"),
        replaced={
            **{name: _random(name) for name in _RANDOM if hasattr(random.Random, name)},
            "choices": _many("choices", 3),
            "sample": _many("sample", 1),
            "getrandbits": _bits("getrandbits", 1),
            "randbytes": _bits("randbytes", 8),
        },
        types=(audit(random.Random, but=_DRAWN, replaced=_DRAWN),),
        note="getstate and setstate are left out; SystemRandom reads the host's entropy without need",
    ),
    ModuleAudit(
        name="numbers",
        members=names(_TOWER),
        types=tuple(audit(getattr(numbers, name), subclassable=True) for name in _TOWER.split()),
    ),
)
