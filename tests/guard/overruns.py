"""Makes programs that call what the guard grants of C, with chosen sizes and shapes: seeded, one for each number."""

# ruff: noqa: E501 - tables of sources

from __future__ import annotations

import inspect
import io
import random
import re
from array import array
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction

from cellblock.guard.audits import STANDARD, audit_of
from cellblock.guard.names import names
from cellblock.guard.tables import TypeAudit
from cellblock.guard.world import World

_ELSEWHERE = names("asyncio argparse inspect logging doctest typing abc sys warnings timeit time contextlib types traceback")
"""Modules of which nothing goes through values of the code's own, or which wait."""
_UNCALLED = names("input exit quit help display print staticmethod classmethod property super type object")

SIZES = (3, 17, 300, 5_000, 40_000, 300_000, 2_000_000, 12_000_000)
INTS = ("-1", "0", "1", "7", "255", "{n}", "2**61 - 1", "1 << {m}", "(1 << {m}) - 1", "3 ** 9000")
TEXTS = (
    *("'a' * {n}", "'ab' + 'a' * {n}", "'a' * {n} + 'b'", "'\\ufdfa' * {n}", "'\\U0001f600' * {n}", "'\\t ' * {n}"),
    *("'%' + str({n}) + 'd'", "'{{:' + str({n}) + '}}'", "'x'", "'\\n' * {n}", "'1' * {n}", "'[' * {n}", "'utf-32'"),
)
BYTES = ("b'a' * {n}", "b'ab' + b'a' * {n}", "b'a' * {n} + b'b'", "bytes({n})", "b'\\t ' * {n}", "b'\\n'", "bytearray({n})")
LISTS = (
    *("[0] * {n}", "list(range({n}))", "[A, B] * {n}", "['a' * 5_000] * {n}", "[1.5] * {n}", "keys({c})", "[keys({c})] * 20"),
    *("[A] * {n}", "[[]] * {n}", "[('a', 1)] * {n}", "[[A], [B]] * {n}", "[b'a'] * {n}", "['a'] * {n}", "[C, D] * {n}"),
)
TUPLES = ("tuple(keys({c}))", "(0,) * {n}", "(A, B) * {n}", "A", "(C, D)")
SETS = ("set(range({n}))", "set(keys({c}))", "{{C, D}}", "{{A}}", "set()")
DICTS = ("dict.fromkeys(range({n}))", "{{A: A}}", "{{}}", "dict.fromkeys(keys({c}))", "{{'a': 'a' * {n}}}")
DEQUES = ("deque([A]) * {n}", "deque(range({n}))", "deque([0] * {n}, {n})", "deque([A, B] * {n})")
COUNTERS = ("Counter('abc')", "Counter(range({n}))", "Counter({{'a': {n}}})", "Counter(keys({c}))")
ARRAYS = ("array('b', [1]) * {n}", "array('d', [1.5]) * {n}")
DECIMALS = ("Decimal('1e74000')", "Decimal(3) ** 30_000", "Decimal('9' * 74_000)", "Decimal(2).sqrt()", "Decimal('1e-74000')")
PATTERNS = ("re.compile('(a|a)*b')", "re.compile('a')", "re.compile('(a*)*$')", "re.compile('.*?' * 9 + 'b')")
FILES = ("io.StringIO('a' * {n})", "io.BytesIO(b'a' * {n})", "io.StringIO()", "io.BytesIO()", "io.StringIO('a\\n' * {n})")
ENDLESS = (
    *("repeat(0)", "count()", "cycle([1])", "chain.from_iterable(repeat([0] * {n}))", "repeat('a' * 100)", "repeat(A)"),
    *("map(str, count())", "zip(count(), count())", "enumerate(repeat(A))", "product(range(9), repeat=90)", "repeat(B)"),
    *("(x for x in count())", "filter(None, repeat(0))", "chain(*[[0] * {n}] * 900)", "zip_longest(*[[1]] * 900, A)"),
    *("iter(keys({c}))", "islice(count(), {n})", "accumulate(repeat(1))", "map(tuple, repeat(A))", "range({n})"),
)
OTHERS = ("len", "str", "None", "lambda *x: x", "True", "Decimal('1e74000')", "1.5", "A", "B", "Fraction(1, 3)")
HELD = {
    str: TEXTS, bytes: BYTES, bytearray: ("bytearray({n})",), list: LISTS, tuple: TUPLES, set: SETS, frozenset: ("frozenset(range({n}))",),
    dict: DICTS, deque: DEQUES, Counter: COUNTERS, array: ARRAYS, Decimal: DECIMALS, int: INTS, re.Pattern: PATTERNS,
    io.StringIO: FILES[::2], io.BytesIO: FILES[1::2], Fraction: ("Fraction(1, 3)", "Fraction('1e-9000')"), float: ("1.5",),
    OrderedDict: ("OrderedDict.fromkeys(range({n}))",),
}  # fmt: skip
"""By type, what makes an object of it."""
POOLS = (*HELD.values(), TEXTS, TEXTS, BYTES, LISTS, LISTS, LISTS, INTS, INTS, ENDLESS, ENDLESS, ENDLESS, OTHERS)
CONSUMERS = ("r", "r", "list(r)", "set(r)", "sum(r)", "sorted(r)", "str(r)", "hash(r)", "len(r)", "deque(r, maxlen=0)")
HEAD = """\
import io
import re
from itertools import *
from collections import *
from decimal import Decimal
from fractions import Fraction
from array import array
A, B = tuple(range(200_000)), tuple(range(200_000))
C, D = 'a' * 3_000_000, 'a' * 3_000_000 + 'b'
C += 'c'
def keys(n):
    return [one * (2**61 - 1) for one in range(n)]
"""


def calls() -> list[tuple[str, str, tuple[str, ...], int]]:
    """What may be called: what imports it, the call as far as its bracket, what makes `x`, and the most arguments."""
    world = World(write=lambda stream, text: None)
    found: list[tuple[str, str, tuple[str, ...], int]] = []
    for name in sorted(STANDARD):
        if name.partition(".")[0] not in _ELSEWHERE:
            for member, value in sorted(vars(world.importer.module(name)).items()):
                if _is_called(value):
                    found.append((f"import {name}", f"{name}.{member}", (), _most(value)))
    for name, value in sorted(world.builtins.items()):
        if name.isidentifier() and not name.startswith("_") and name not in _UNCALLED and _is_called(value):
            found += [("", name, (), _most(value))] * 3
    for kind, makers in HELD.items():
        audit = world.types.get(kind) or next(one for one in _audits() if one.type is kind)
        for name in sorted(audit.reads | audit.replaced.keys()):
            found += [("", f"x.{name}", makers, _most(getattr(kind, name, None)) - 1)] * 2
    return sorted(found)


def _is_called(value: object) -> bool:
    return callable(value) and not (isinstance(value, type) and issubclass(value, BaseException))


def _audits() -> list[TypeAudit]:
    return [one for name in sorted(STANDARD) for one in audit_of(name).types]  # type: ignore[union-attr]


def _most(function: object) -> int:
    try:
        named = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return 3
    return min(sum(4 if one.kind is one.VAR_POSITIONAL else one.kind < one.KEYWORD_ONLY for one in named), 4)


def program(number: int, granted: list[tuple[str, str, tuple[str, ...], int]]) -> str:
    """The program of a number."""
    chance = random.Random(number)

    def value(*pools: tuple[str, ...]) -> str:
        form = chance.choice(chance.choice(pools or POOLS))
        n, c = chance.choice(SIZES), chance.choice((3, 900, 12_000))
        return form.format(n=n, m=chance.choice((30, 9_000, 120_000, 260_000)), c=c)

    imports, called, makers, most = chance.choice(granted)
    given = ", ".join("*a" if chance.random() < 0.05 else name for name in "abcd"[: chance.randint(min(most, 1), max(most, 0))])
    lines = [imports, *(f"{name} = {value()}" for name in "abcd" if name in given)]
    if chance.random() < 0.1:
        operator = chance.choice(("+", "*", "%", "//", "in", "==", "<", "|", "&", "**", "<<", "-", "not in"))
        lines = [f"a = {value()}", f"b = {value()}", f"r = a {operator} b"]
    else:
        lines += [*([f"x = {value(makers)}"] if makers else []), f"r = {called}({given})"]
    return HEAD + "\n".join([*lines, chance.choice(CONSUMERS)])
