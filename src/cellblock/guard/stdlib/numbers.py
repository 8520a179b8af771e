"""Audits of modules about numbers."""

from __future__ import annotations

import cmath
import decimal
import fractions
import math
import numbers
import random
import statistics
from collections.abc import Callable
from typing import Any

from cellblock.guard.tables import ModuleAudit, audit, names

_LARGEST_FACTORIAL = 20_000
_TOWER = "Number Complex Real Rational Integral"


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ArithmeticError)


def _bounded(function: Callable[..., Any], largest: int) -> Callable[[Any], object]:
    """A function whose integer arguments are no larger than this."""

    def make(world: Any) -> object:
        def bounded(*given: Any) -> Any:
            for one in given:
                if isinstance(one, int) and one > largest:
                    raise OverflowError(f"{function.__name__}() of {one:,}: the largest here is {largest:,} [size]")
            return function(*given)

        bounded.__name__ = bounded.__qualname__ = function.__name__
        bounded.__doc__ = function.__doc__
        return bounded

    return make


_MATH = {name: _bounded(getattr(math, name), _LARGEST_FACTORIAL) for name in ("factorial", "comb", "perm")}

_RANDOM = names(
    "random uniform triangular randint randrange choice choices shuffle sample gauss normalvariate lognormvariate "
    "expovariate vonmisesvariate gammavariate betavariate paretovariate weibullvariate getrandbits seed randbytes"
)


def _random(name: str) -> Callable[[Any], object]:
    """A function of the world's own generator: that of the host's module is the host's."""

    def make(world: Any) -> object:
        generator = world.values.setdefault("random", random.Random())  # noqa: S311
        return getattr(generator, name)

    return make


AUDITS = (
    ModuleAudit(
        name="math",
        members=frozenset(name for name in dir(math) if not name.startswith("_") and name not in _MATH),
        replaced=_MATH,
    ),
    ModuleAudit(name="cmath", members=frozenset(name for name in dir(cmath) if not name.startswith("_"))),
    ModuleAudit(
        name="statistics",
        members=frozenset(statistics.__all__),
        types=(audit(statistics.NormalDist, subclassable=True), audit(statistics.StatisticsError, subclassable=True)),
    ),
    ModuleAudit(
        name="fractions",
        members=names("Fraction"),
        types=(audit(fractions.Fraction, subclassable=True),),
    ),
    ModuleAudit(
        name="decimal",
        members=names(
            "Decimal Context DecimalTuple localcontext DecimalException Clamped InvalidOperation DivisionByZero "
            "Inexact "
            "Rounded Subnormal Overflow Underflow FloatOperation DivisionImpossible InvalidContext ConversionSyntax "
            "DivisionUndefined ROUND_DOWN ROUND_HALF_UP ROUND_HALF_EVEN ROUND_CEILING ROUND_FLOOR ROUND_UP "
            "ROUND_HALF_DOWN ROUND_05UP MAX_PREC MAX_EMAX MIN_EMIN MIN_ETINY getcontext setcontext"
        ),
        types=(
            audit(decimal.Decimal, subclassable=True),
            audit(decimal.Context, writes=["prec", "rounding", "Emin", "Emax", "capitals", "clamp"]),
            audit(type(decimal.localcontext())),
            *(audit(kind, subclassable=True) for kind in vars(decimal).values() if _is_error(kind)),
        ),
        note="contexts belong to threads, and a session has its own",
    ),
    ModuleAudit(
        name="random",
        members=names("Random"),
        replaced={name: _random(name) for name in _RANDOM if hasattr(random.Random, name)},
        types=(audit(random.Random),),
        note="getstate and setstate are left out; SystemRandom reads the host's entropy without need",
    ),
    ModuleAudit(
        name="numbers",
        members=names(_TOWER),
        types=tuple(audit(getattr(numbers, name), subclassable=True) for name in _TOWER.split()),
    ),
)
