"""Patterns of the host take time in proportion to a text, whatever it is: `re` holds the GIL until it has an answer."""

from __future__ import annotations

import ast
import importlib
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import cellblock

PACKAGE = Path(cellblock.__file__).parent
ELSEWHERE = ("worker", "guard")
"""Runs inside the walls, or reads texts of its own; the guard has a rule of its own."""
GIVEN = {
    "observe/redaction.py": {
        "rule",
        "''.join(_parts(value)) if len(value) <= _LONG else '|'.join(map(re.escape, _forms(value)))",
    },
}
"""Patterns that the host's own program gives: what is compiled."""
ANCHORED = frozenset({"match", "fullmatch"})
FUNCTIONS = ANCHORED | {"compile", "search", "sub", "subn", "split", "findall", "finditer"}
SHORT = 64
"""A repeat of at most so many is none here."""
ALPHABET = frozenset(string.printable) | frozenset("\x00\x1b\x9b\xa0é٣\u2028日")

# ------------------------------------------------------------------------------- the rule


@dataclass(frozen=True)
class Item:
    """A part of a pattern: its characters, and whether it repeats, can be empty, can fail, and keeps what it took."""

    chars: frozenset[str]
    repeats: bool = False
    is_empty: bool = False
    can_fail: bool = True
    is_kept: bool = False
    bars: bool = False
    """No place of a search is after one of these characters."""
    turns: tuple[tuple[frozenset[str], ...], ...] = ()
    """Of each way through what is repeated: what a turn cannot be without."""


Path_ = tuple[Item, ...]


def complaint(pattern: str | bytes, flags: int = 0, *, is_searched: bool = True) -> str:
    """Why a pattern may take more than linear time; "" where it does not.

    Two repeats that nothing parts share a text in as many ways as it is long. A repeat within which a search can begin
    anew is read again from each place, where what follows it fails.
    """
    tree = parser.parse(pattern, flags)
    inner: list[Path_] = []
    paths = list(_paths(tree, tree.state.flags, inner))
    for path in (*paths, *inner):
        for at, one in enumerate(path):
            if one.repeats and not one.is_kept and (other := _overlap(one, path[at + 1 :])):
                return f"two repeats overlap in {_named(other)}"
    for path in paths if is_searched else ():
        for at, one in enumerate(path):
            if one.repeats and any(item.can_fail for item in path[at + 1 :]) and _begins_within(one, path[:at]):
                return f"a search begins anew within a repeat of {_named(one.chars)}"
    return next(_alike(tree, tree.state.flags), "")


def _overlap(one: Item, after: Path_) -> frozenset[str]:
    between: list[Item] = []
    for other in after:
        shared = one.chars & other.chars
        is_both = other.repeats and all(_turns_within(item, shared) for item in (one, other))
        if is_both and all(item.is_empty or item.chars & shared for item in between):
            return shared
        between.append(other)
    return frozenset()


def _turns_within(one: Item, chars: frozenset[str]) -> bool:
    return bool(chars) and any(all(needed & chars for needed in turn) for turn in one.turns)


def _begins_within(one: Item, before: Path_) -> bool:
    return not any(item.bars and one.chars <= item.chars for item in before) and all(
        item.bars or item.is_empty or item.chars & one.chars for item in before
    )


def _paths(nodes: Any, flags: int, inner: list[Path_]) -> Iterator[Path_]:
    """Each way through a pattern; into `inner` what is repeated, twice."""
    parts = [list(_ways(kind, given, flags, inner)) for kind, given in nodes]
    for ways in product(*parts):
        yield tuple(item for way in ways for item in way)


def _ways(kind: Any, given: Any, flags: int, inner: list[Path_]) -> Iterator[Path_]:
    if (chars := _chars(kind, given, flags)) is not None:
        yield (Item(chars),)
    elif kind is op.BRANCH:
        for one in given[1]:
            yield from _paths(one, flags, inner)
    elif kind is op.SUBPATTERN:
        yield from _paths(given[3], (flags | given[1]) & ~given[2], inner)
    elif kind is op.ATOMIC_GROUP:
        yield from _paths(given, flags, inner)
    elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, body = given
        ways = list(_paths(body, flags, inner))
        if most == 1:
            yield from ways if least else [(), *(tuple(replace(item, can_fail=False) for item in way) for way in ways)]
            return
        if most > SHORT:
            inner.extend(a + b for a, b in product(ways, ways) if any(item.repeats for item in a + b))
        chars = frozenset().union(*(item.chars for way in ways for item in way if not item.bars))
        kept = kind is op.POSSESSIVE_REPEAT
        turns = tuple(tuple(item.chars for item in way if not item.is_empty) for way in ways)
        yield (Item(chars, most > SHORT, least == 0, can_fail=bool(least), is_kept=kept, turns=turns),)
    elif kind in (op.ASSERT, op.ASSERT_NOT) and given[0] > 0:
        inner.extend(_paths(given[1], flags, inner))
        yield (Item(frozenset(), is_empty=True),)
    elif kind is op.ASSERT:  # what stands before
        yield from _paths(given[1], flags, inner)
    elif kind is op.ASSERT_NOT:
        for way in _paths(given[1], flags, inner):
            yield tuple(Item(item.chars, bars=True, is_empty=True) for item in way[-1:])
    elif kind is op.AT:
        if given in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):  # nothing, or the end of a line, stands before it
            at_line = given is op.AT_BEGINNING and flags & re.MULTILINE
            yield (Item(frozenset("\n" if at_line else "")),)
        else:
            yield (Item(frozenset(), is_empty=True),)
    else:
        raise NotImplementedError(f"{kind} in a pattern")


def _alike(nodes: Any, flags: int) -> Iterator[str]:
    """Alternatives of a repeat that begin alike: the same text is read in more than one way, again and again."""
    for kind, given in nodes:
        if kind is op.BRANCH:
            for one in given[1]:
                yield from _alike(one, flags)
        elif kind is op.SUBPATTERN:
            yield from _alike(given[3], (flags | given[1]) & ~given[2])
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            yield from _alike(given[2], flags)
            body = given[2]
            while len(body) == 1 and body[0][0] is op.SUBPATTERN:
                body = body[0][1][3]
            if len(body) == 1 and body[0][0] is op.BRANCH and given[1] > SHORT and kind is not op.POSSESSIVE_REPEAT:
                branches = [list(_paths(one, flags, [])) for one in body[0][1][1]]
                firsts = [frozenset().union(*(way[0].chars for way in ways if way)) for ways in branches]
                for at, first in enumerate(firsts):
                    if shared := first & frozenset().union(*firsts[at + 1 :]):
                        yield f"alternatives of a repeat begin alike, with {_named(shared)}"


_CLASSES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _chars(kind: Any, given: Any, flags: int) -> frozenset[str] | None:
    """The characters that a node is one of; None where it is no single character."""
    if kind is op.LITERAL:
        found = {chr(given)}
        return frozenset(found | {chr(given).swapcase()} if flags & re.IGNORECASE else found)
    if kind is op.NOT_LITERAL:
        return ALPHABET - {chr(given)}
    if kind is op.ANY:
        return ALPHABET if flags & re.DOTALL else ALPHABET - {"\n"}
    if kind is op.RANGE:
        found = {one for one in ALPHABET if given[0] <= ord(one) <= given[1]}
        return frozenset(found | {one.swapcase() for one in found} if flags & re.IGNORECASE else found)
    if kind is op.CATEGORY:
        return frozenset(one for one in ALPHABET if re.match(_CLASSES[given], one, flags & re.ASCII))
    if kind is op.IN:
        chars = frozenset().union(*(_chars(*one, flags) or () for one in given if one[0] is not op.NEGATE))
        return ALPHABET - chars if given[0][0] is op.NEGATE else chars
    return None


def _named(chars: frozenset[str]) -> str:
    return ascii("".join(sorted(chars))[:20])


@pytest.mark.parametrize(
    ("pattern", "is_bad"),
    [
        (r"^\s*(%%?[a-z]|![^=])", True),
        (r"^[ \t]*+(?:%%?[a-z]|![^=])", False),
        (r"```py[ \t]+([^`\n]+)```", True),
        (r"```py[ \t]++([^`\n]++)```", False),
        (r"eyJ[\w-]{10,}\.[\w-]{10,}", True),
        (r"(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}", False),
        (r"([\w.:-]{1,300}) is not in", True),
        (r"(a+)+b", True),
        (r"(?:ab|a[^c])*d", True),
        (r"<[^>]*>", True),
        (r"<[^<>]*>", False),
        (r"x.*y.*z", True),
        (r"x[^y]*y", True),
        (r"a+", False),
        (r"a+$", True),
        (r"'(?:[^'\\]|\\.)*+'", True),
        (r"\d{1,9} of \d{1,9}", False),
        (r"(?i)a+B*A+c", True),
    ],
)
def test_rule_tells_linear_patterns_from_others(pattern: str, is_bad: bool) -> None:
    assert bool(complaint(pattern, re.MULTILINE)) is is_bad, complaint(pattern, re.MULTILINE)


# ------------------------------------------------------------------------------- the patterns


def patterns(path: Path) -> Iterator[tuple[str | bytes, int, bool]]:
    """The patterns of a module with their flags, and whether a text is searched for them. AssertionError for others."""
    name = str(path.relative_to(PACKAGE))
    tree = ast.parse(path.read_text())
    at_top = {id(node) for statement in tree.body if _binds(statement) for node in ast.walk(statement)}
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) in {f"re.{one}" for one in FUNCTIONS}):
            continue
        if id(call) in at_top or ast.unparse(call.args[0]) in GIVEN.get(name, ()):
            continue
        assert isinstance(call.args[0], ast.Constant), f"{name}:{call.lineno}: a pattern that is made while it runs"
        assert isinstance(call.func, ast.Attribute)
        yield call.args[0].value, 0, call.func.attr not in ANCHORED
    for statement in tree.body:
        if _binds(statement) and any(ast.unparse(node) == "re.compile" for node in ast.walk(statement)):
            assert isinstance(statement, ast.Assign)
            bound = ast.unparse(statement.targets[0])
            module = importlib.import_module(".".join(("cellblock", *Path(name).with_suffix("").parts)))
            for found in _held(vars(module)[bound]):
                yield found.pattern, found.flags, not _only_anchored(tree, bound)


def _binds(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)


def _held(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _held(one)


def _only_anchored(tree: ast.AST, name: str) -> bool:
    """Whether all that is done with a pattern is to match it where a text begins."""
    called = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).partition("[")[0] == name
    }
    return bool(called) and called <= ANCHORED


HOST = sorted(
    path for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in ELSEWHERE and "import re\n" in path.read_text()
)  # fmt: skip


@pytest.mark.parametrize("path", HOST, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_patterns_of_the_host_take_linear_time(path: Path) -> None:
    found = {pattern: complaint(pattern, flags, is_searched=searched) for pattern, flags, searched in patterns(path)}
    assert {pattern: why for pattern, why in found.items() if why} == {}
