"""No call of C code holds the host past the time limit, or takes its memory past the memory limit.

Each program runs in a process of its own with outer limits: see `outer`.
"""

# ruff: noqa: E501 - tables of sources

from __future__ import annotations

import os
import random
import textwrap
from collections.abc import Iterator

import pytest
from outer import Outer
from overruns import calls, program

from cellblock import ExecutionLimits, Session
from cellblock.guard import bounded

PROGRAMS = int(os.environ.get("CELLBLOCK_OVERRUNS", "300"))
_QUICK = 25
_KEYS = "keys = [n * (2**61 - 1) for n in range(30_000)]\n"
_ROWS = "a, b = tuple(range(300_000)), tuple(range(300_000))\nrows = [(a if n % 2 else b, -n) for n in range(10_000)]\n"

_LARGE = "import decimal\na, x = (1 << 262_143) - 1, decimal.Decimal(2).sqrt()\n"

CASES = {
    "searching from the end": "('a' * 480_000).rfind('ab' + 'a' * 240_000)",
    "searching from the end for its place": "('a' * 480_000).rindex('ab' + 'a' * 240_000)",
    "splitting from the end": "('a' * 480_000).rsplit('ab' + 'a' * 240_000)",
    "parting from the end": "('a' * 480_000).rpartition('ab' + 'a' * 240_000)",
    "searching bytes from the end": "(b'a' * 480_000).rfind(b'ab' + b'a' * 240_000)",
    "keys that collide in a set": _KEYS + "set(keys)",
    "in a set by another name": _KEYS + "made = frozenset\nmade(keys)",
    "in a set that C code makes": _KEYS + "list(map(set, [keys]))",
    "in a set that is displayed": _KEYS + "{*keys}",
    "in a set that is added to": _KEYS + "set().update(keys)",
    "in sets that are joined": _KEYS + "set().union(keys)",
    "in a dict": _KEYS + "dict(zip(keys, keys))",
    "in a dict of keys": _KEYS + "dict.fromkeys(keys)",
    "in a dict that is added to": _KEYS + "{}.update(zip(keys, keys))",
    "in what is counted": _KEYS + "import collections\ncollections.Counter(keys)",
    "in statistics": _KEYS + "import statistics\nstatistics.mode(keys)",
    "the hash of many large tuples": _ROWS + "set([a] * 10_000)",
    "iterators in a row, gone through": "from itertools import chain\nany(chain.from_iterable([[0] * 1_000_000] * 2_000))",
    "iterators in a row, held": "from itertools import chain\nlist(chain.from_iterable([[0] * 1_000_000] * 1_000_000))",
    "iterators in a row, dropped": "from collections import deque\nfrom itertools import chain\ndeque(chain(*[[0] * 1_000_000] * 5_000), maxlen=0)",
    "many columns": "from itertools import zip_longest\nlist(zip_longest(*[[1]] * 1000, [0] * 400_000))",
    "many small structures": "import struct\nlist(struct.iter_unpack('c', bytes(30_000_000)))",
    "characters that become many": "import unicodedata\nunicodedata.normalize('NFKD', '\\ufdfa' * 3_000_000)",
    "digests of any length": "import hashlib\nhashlib.new('shake_256').hexdigest(1_000_000_000)",
    "widths of a format": "'%999999d' * 200 % ((1,) * 200)",
    "tabs of a table": "import difflib\ndifflib.HtmlDiff(tabsize=10**9).make_table(['\\t\\t'], ['x'])",
    "sorting what is slow to compare": _ROWS + "sorted(rows)",
    "sorting by it": _ROWS + "rows.sort(key=lambda row: row)",
    "sorting long texts": "a, b = 'a' * 2_000_000 + 'a', 'a' * 2_000_000 + 'b'\nsorted([a, b] * 20_000)",
    "sorting many": "import random\nsorted([random.random() for _ in range(1000)] * 3_000)",
    "the largest of what is slow to compare": _ROWS + "max(rows)",
    "a heap of it": _ROWS + "import heapq\nheapq.heapify(rows)",
    "counting it": _ROWS + "([a] * 10_000).count(b)",
    "looking for it": _ROWS + "([a] * 10_000 + [b + (1,)]).index(b + (1,))",
    "looking whether it is there": _ROWS + "def f(a, b): return b in a\nf([a + (1,)] * 10_000, b + (2,))",
    "bytes that become a list": "list(b'x' * 20_000_000)",
    "bytes by another name": "made = bytearray\nmade(200_000_000)",
    "a decimal number that becomes an integer": "import decimal\nint(decimal.Decimal('1e74000') ** 9)",
    "dividing large integers": "((1 << 262_000) - 1) // ((1 << 131_000) - 1)",
    "an integer that becomes a decimal number": _LARGE + "x.shift(a)",
    "integers that become decimal numbers": _LARGE + "x.fma(a, a)",
    "in a context": _LARGE + "decimal.getcontext().fma(a, a, a)",
    "by an operator": _LARGE + "x + a",
    "by a comparison": _LARGE + "x < a",
    "by a constructor": _LARGE + "decimal.Decimal(a)",
    "a sum of them": _LARGE + "sum([x] + [0] * 200_000 + [a] * 900)",
    "a sum that begins with one": _LARGE + "sum([0] * 200_000 + [a] * 900, x)",
    "the largest of them": _LARGE + "max([x] + [a] * 900)",
    "sorting them": _LARGE + "sorted([x, a] * 900)",
    "counting one among them": _LARGE + "([x] * 900).count(a)",
    "integers made by shifts and powers": "import decimal\nfor n in (999_999, 500_000, 262_143):\n    try:\n        decimal.Decimal(2) + 2 ** n\n    except OverflowError:\n        pass",
    "integers made of sums of products": "import math, decimal\na = (1 << 260_000) - 1\na = math.sumprod([a] * 2, [a] * 2) if hasattr(math, 'sumprod') else a\ndecimal.Decimal(a)",
    "rounding to many zeros": "round(1, -10**8)",
    "arguments in a row": "x = bytearray(12_000_000)\nx.title(*x)",
    "a view of what is large": "from collections.abc import ValuesView\na = tuple(range(200_000))\nstr(ValuesView([[a], [a]] * 2_000_000))",
    "a list of one's own that is large": "from collections import UserList\na = tuple(range(200_000))\nstr(UserList([[a], [a]] * 2_000_000))",
    "a dict of one's own that is large": "from collections import UserDict\na = tuple(range(200_000))\nrepr(UserDict(dict.fromkeys(range(1_000_000), [a, a])))",
    "maps in a row that are large": "from collections import ChainMap\na = tuple(range(200_000))\nf'{ChainMap(dict.fromkeys(range(1_000_000), [a, a]))}'",
    "a file in memory": "import io\nio.StringIO('a' * 40_000_000)",
}
"""Calls that once froze the host for minutes or filled its memory."""

SHARING = """\
a = b = x = y = v = w = 1
for _ in range(60):
    a, b, x, y, v, w = (a, a), (b, b), [x, x], [y, y], {1: v, 2: v}, {1: w, 2: w}
"""
WAYS = {
    "operators": ["x == y", "x != y", "x < y", "[[x]] > [[y]]", "(1, x) == (1, y)", "x in [y]"],
    "methods": ["[y].index(x)", "[y].remove(x)", "(y,).count(x)", "[x, y].sort()", "{}.get(a)", "{}.setdefault(a)", "{}.pop(a)", "set().add(a)"],
    "sorting": ["sorted([x, y])", "max(x, y)", "max(1, 2, x, y)", "min([x, y])", "max([1, 2], key=[x, y, x].pop)", "sorted([1, 2], key=[x, y].__getitem__)"],
    "operator": [f"import operator\noperator.{call}" for call in ("eq(x, y)", "lt(x, y)", "countOf([y], x)", "indexOf([y], x)", "contains([y], x)", "getitem({}, a)")],
    "itertools": ["from itertools import groupby\nlist(groupby([x, y]))", "from itertools import groupby\nlist(groupby([1, 2], [x, y].pop))"],
    "bisect": ["import bisect\nbisect.bisect([y], x)", "import bisect\nbisect.insort([y], x)", "import bisect\nbisect.bisect_left([y], x)"],
    "heapq": [f"import heapq\nheapq.{call}" for call in ("heappush([y], x)", "heapify([y, x])", "nsmallest(1, [y, x])", "merge([y], [x]).__next__()", "heapreplace([1, y], x)")],
    "keys": ["{a}", "{a: 1}", "{}[a]", "{}[1, a] = 2", "{z for z in [a]}", "{z: 1 for z in [a]}", "{**{}, a: 1}", "def f(): return {a}\nf()"],
    "collections": ["set([a])", "set(z for z in [a])", "frozenset([a])", "dict.fromkeys([a])", "dict([(a, 1)])", "{}.update([(a, 1)])", "set().union([a])"],
    "counters": [f"from collections import Counter\n{call}" for call in ("Counter([a])", "Counter().update([a])", "Counter({1: x, 2: y}).most_common()")],
    "reports": ["import traceback\ntry: raise ValueError(x)\nexcept ValueError: traceback.format_exc()", "repr(x)", "f'{x}'"],
    "iterators": ["next(iter([y].pop, x))"],
}  # fmt: skip
"""Ways to have C code compare or hash a structure that shares its parts."""


@pytest.fixture(scope="module")
def outer() -> Iterator[Outer]:
    with Outer() as running:
        yield running


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", CASES)
def test_call_ends_with_its_cell_and_within_its_memory(case: str, outer: Outer) -> None:
    assert outer.past(CASES[case]) == ""


@pytest.mark.parametrize("way", WAYS)
def test_structures_that_share_their_parts_are_not_gone_through(way: str, outer: Outer) -> None:
    tries = (f"try:\n{textwrap.indent(one, '    ')}\nexcept Exception: pass\n" for one in WAYS[way])
    assert outer.past(SHARING + "".join(tries)) == ""


@pytest.mark.sampled(0)
def test_made_programs_end_with_their_cells_and_within_their_memory(outer: Outer) -> None:
    _run_made(0, _QUICK, outer)


@pytest.mark.thorough
def test_more_made_programs_end_with_their_cells_and_within_their_memory(thorough_seed: int, outer: Outer) -> None:
    _run_made(thorough_seed * 1_000_000, PROGRAMS, outer)


def _run_made(first: int, count: int, outer: Outer) -> None:
    granted = calls()
    for number in range(first, first + count):
        told = outer.past(program(number, granted))
        assert told == "", f"program {number}:\n{program(number, granted)}\n{told}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [17, 400, 1001, 20_011])
def test_sorting_in_parts_is_sorting(count: int, reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_SORTED", 500)
    monkeypatch.setattr(bounded, "_SAMPLED", 7)
    chance = random.Random(count)
    for span in (2, 50, 10**6):
        rows = [(chance.randrange(span), place) for place in range(count)]
        for key in (lambda row: row[0], lambda row: str(row[0]), lambda row: (row[0] % 7, "x"), lambda row: [row[0]]):
            assert bounded.FORMS[sorted](rows, key=key, reverse=reverse) == sorted(rows, key=key, reverse=reverse)
        assert bounded.FORMS[sorted](rows, reverse=reverse) == sorted(rows, reverse=reverse)


@pytest.mark.parametrize(
    ("text", "part"), [("ab" * 9_000, "ba" * 3_000), ("a" * 9_000, "b" + "a" * 4_000), ("xab" * 5_000, "ab" * 2_000 + "x")]
)
def test_searching_from_the_end_finds_what_python_finds(text: str, part: str) -> None:
    with Session(trust_level="local") as session:
        for one, other in ((text, part), (text.encode(), part.encode()), (text + part + text, part)):
            session["text"], session["part"] = one, other
            for call in ("rfind(part)", "rsplit(part)", "rsplit(part, 2)", "rpartition(part)", "rfind(part, 9, 8_000)"):
                assert session.run(f"text.{call}").value == eval(f"text.{call}", {"text": one, "part": other})


def test_memory_limit_is_that_of_the_session() -> None:
    with Session(trust_level="local", limits=ExecutionLimits(max_memory_mb=32)) as session:
        assert session.run("len('x' * 50_000_000)").error.kind == "memory"
    with Session(trust_level="local", limits=ExecutionLimits(max_memory_mb=512)) as session:
        assert session.run("len('x' * 50_000_000)").value == 50_000_000
