"""Longest text that a regular expression may be tried on: a bound on the steps that matching takes, from the pattern
alone.

`re` backtracks: at each choice it takes the first way, and comes back for the others if the rest does not match. Where
the next character decides each choice, coming back fails at once, and the time is linear in the text. Every choice
that is not decided so multiplies the ways, and a repeat of something undecided multiplies them with each round. The
number of ways is bounded by `2 ** (constant + degree * log2(n) + rate * n)` for a text of n characters; the bound is
never too low, often too high. What it takes for too much is not refused but tried elsewhere first: `rehearsal`.

The characters that a choice looks at are sets over an alphabet of ASCII and, for the rest, of four kinds: digit,
letter, space, other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import inf, log2
from typing import Any, NamedTuple

_parser: Any = re._parser  # type: ignore[attr-defined]
_c: Any = re._constants  # type: ignore[attr-defined]

BUDGET = 24
"""Steps, as a power of two, that may be taken at once: half a second at worst."""
_LONGEST = 28
"""Of a text, as a power of two."""
_MANY = 40
"""A repeat that may go on for longer is taken for endless."""

_REPEATS = tuple(getattr(_c, name) for name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") if hasattr(_c, name))
_SINGLE = (_c.LITERAL, _c.NOT_LITERAL, _c.IN, _c.ANY)
_BEGINNINGS = (_c.AT_BEGINNING, _c.AT_BEGINNING_STRING)
_LOOKS = (_c.ASSERT, _c.ASSERT_NOT)


class Bound(NamedTuple):
    """A power of two: `constant + degree * log2(n) + rate * n`."""

    constant: float = 0.0
    degree: float = 0.0
    rate: float = 0.0

    def __mul__(self, other: Any) -> Bound:
        return Bound(*(one + another for one, another in zip(self, other, strict=True)))

    def either(self, other: Bound) -> Bound:
        """No less than the sum of both."""
        return Bound(*map(max, self, other))

    def at(self, n: int) -> float:
        return self.constant + self.degree * log2(max(n, 1)) + self.rate * n


_ONE = Bound()
_LINEAR = Bound(degree=1.0)


class _Follow(NamedTuple):
    """The set of what may come next: characters, and whether the match may be over there."""

    characters: int
    undecided: bool = False
    """Something that looks further than the next character."""


@lru_cache(maxsize=1000)
def longest(pattern: str | bytes, flags: int, *, anchored: bool = False) -> float:
    """The longest text, in characters, that may be matched at once; `anchored`: with one place to begin at."""
    try:
        tree = _parser.parse(pattern, flags)
    except (re.error, RecursionError, OverflowError, ValueError, TypeError):
        return inf  # `re` says what is wrong
    try:
        steps = _Judge(tree.state.flags).steps(tree, anchored)
    except RecursionError:
        return 0
    fitting = [power for power in range(_LONGEST + 1) if steps.at(1 << power) <= BUDGET]
    if not fitting:
        return 0
    low, high = 1 << fitting[-1], 1 << (fitting[-1] + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if steps.at(middle) <= BUDGET else (low, middle)
    return low


class _Judge:
    """Bounds the steps of one pattern."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._leaves = 1

    def steps(self, tree: Any, anchored: bool) -> Bound:
        """Of finding it in a text."""
        self._leaves += sum(1 for _ in _walk(tree))
        branches = sum(len(item[1][1]) for item in _walk(tree) if item[0] is _c.BRANCH)
        items = list(tree)
        ways, cost = self._sequence(items, _Follow(0), self._flags)
        cost = cost.either(ways)
        cost = cost * Bound(constant=log2(branches + 1))
        if anchored:
            return cost
        if items and items[0][0] is _c.AT and items[0][1] in _BEGINNINGS and not self._flags & re.MULTILINE:
            return cost.either(_LINEAR)
        return cost * _LINEAR if cost.degree < 1 or _fails_late(items) else cost

    # ------------------------------------------------------------------------ ways and steps

    def _sequence(self, items: list[Any], follow: _Follow, flags: int) -> tuple[Bound, Bound]:
        """In how many ways a sequence can be gone through, and in how many steps, with `follow` after it."""
        if not items:
            return _ONE, _ONE
        follows = [follow]
        for item in reversed(items[1:]):
            follows.append(self._before(item, follows[-1], flags))
        ways, cost = _ONE, _ONE
        for item, after in zip(items, reversed(follows), strict=True):
            of_item, taken = self._item(item, after, flags)
            cost = cost.either(ways * taken)
            ways = ways * of_item
        return ways, cost

    def _item(self, item: Any, follow: _Follow, flags: int) -> tuple[Bound, Bound]:
        op, value = item
        if op in _REPEATS:
            return self._repeat(op, value, follow, flags)
        if op is _c.SUBPATTERN:
            return self._sequence(list(value[3]), follow, (flags | value[1]) & ~value[2])
        if op is getattr(_c, "ATOMIC_GROUP", None):
            return _ONE, self._sequence(list(value), _Follow(_EVERY, True), flags)[1]
        if op is _c.BRANCH:
            return self._branches([list(one) for one in value[1]], follow, flags)
        if op in _LOOKS:
            return _ONE, self._sequence(list(value[1]), _Follow(_EVERY, True), flags)[1]
        if op is _c.GROUPREF_EXISTS:
            return self._branches([list(one) for one in value[1:] if one is not None], follow, flags)
        return _ONE, _LINEAR if op is _c.GROUPREF else _ONE

    def _branches(self, branches: list[list[Any]], follow: _Follow, flags: int) -> tuple[Bound, Bound]:
        starts = [self._first(one, flags, follow) for one in branches]
        decided = not any(self._meet(one, other) for index, one in enumerate(starts) for other in starts[:index])
        ways, cost = _ONE, _ONE
        for one in branches:
            through, taken = self._sequence(one, follow, flags)
            ways, cost = ways.either(through), cost.either(taken)
        return (ways if decided else ways * Bound(constant=log2(len(branches)))), cost

    def _repeat(self, op: Any, value: Any, follow: _Follow, flags: int) -> tuple[Bound, Bound]:
        least, most, body = value[0], value[1], list(value[2])
        endless = most > _MANY
        start = self._first(body, flags, _Follow(0))
        stops = Bound(degree=1.0) if endless else Bound(constant=log2(most - least + 1))
        if least == most or not self._meet(start, follow):
            stops = _ONE
        if len(body) == 1 and body[0][0] in _SINGLE:
            return (_ONE if op is not _REPEATS[0] and op is not _REPEATS[1] else stops), (
                _LINEAR if endless else Bound(constant=log2(most + 1))
            )
        round_ = _Follow(start.characters | follow.characters, start.undecided or follow.undecided)
        ways, cost = self._sequence(body, round_ if most > 1 else follow, flags)
        empty = most > 1 and all(map(_is_nullable, body))
        if ways == _ONE and not empty:
            looks = any(one[0] in _LOOKS or one[0] is _c.GROUPREF for one in _walk(body))
            length = _LINEAR if endless else Bound(constant=log2(most + 1))
            cost = cost * length if looks or not endless else cost.either(_LINEAR)
            return (stops if op in _REPEATS[:2] else _ONE), cost
        if endless:  # each round may multiply the ways
            rate = Bound(rate=log2(self._leaves + 1))
            return (rate if op in _REPEATS[:2] else _ONE), rate * cost
        rounds = Bound(*(part * most for part in ways)) * stops * Bound(constant=1.0 if empty else 0.0)
        return (rounds if op in _REPEATS[:2] else _ONE), rounds * cost

    # ------------------------------------------------------------------------ what comes next

    def _meet(self, one: _Follow, other: _Follow) -> bool:
        return bool(one.characters & other.characters) or one.undecided or other.undecided

    def _first(self, items: list[Any], flags: int, follow: _Follow) -> _Follow:
        for item in reversed(items):
            follow = self._before(item, follow, flags)
        return follow

    def _before(self, item: Any, follow: _Follow, flags: int) -> _Follow:
        """The set of what may come next before an item, given what may come after it."""
        op, value = item
        if op in _SINGLE:
            return _Follow(self._set(op, value, flags))
        if op in _REPEATS:
            inner = self._first(list(value[2]), flags, follow)
            if value[0] == 0:
                return _Follow(inner.characters | follow.characters, inner.undecided or follow.undecided)
            return inner
        if op is _c.SUBPATTERN:
            return self._first(list(value[3]), (flags | value[1]) & ~value[2], follow)
        if op is getattr(_c, "ATOMIC_GROUP", None):
            return self._first(list(value), flags, follow)
        if op is _c.BRANCH:
            found = [self._first(list(one), flags, follow) for one in value[1]]
            characters = 0
            for one in found:
                characters |= one.characters
            return _Follow(characters, any(one.undecided for one in found))
        if op is _c.AT:
            return follow
        if op is getattr(_c, "FAILURE", None):
            return _Follow(0)
        return _Follow(_EVERY, True)

    # ------------------------------------------------------------------------------ characters

    def _set(self, op: Any, value: Any, flags: int) -> int:
        """No fewer than the characters that an item matches."""
        if op is _c.ANY:
            return _EVERY if flags & re.DOTALL else _EVERY & ~(1 << 10)
        if op is _c.LITERAL:
            return self._folded(self._of(value, value), flags)
        if op is _c.NOT_LITERAL:
            return _EVERY & ~(self._of(value, value) if value < 128 else 0)
        parts = list(value)
        if parts and parts[0][0] is _c.NEGATE:
            return _EVERY & ~self._surely(parts[1:], flags)
        found = 0
        for kind, part in parts:
            if kind is _c.LITERAL:
                found |= self._of(part, part)
            elif kind is _c.RANGE:
                found |= self._of(*part)
            else:
                found |= self._category(part, flags)
        return self._folded(found, flags)

    def _surely(self, parts: list[Any], flags: int) -> int:
        """No more than the characters that the parts of a class match."""
        found = 0
        for kind, part in parts:
            if kind is _c.LITERAL and part < 128:
                found |= 1 << part
            elif kind is _c.RANGE:
                found |= self._ascii(part[0], part[1])
            elif kind is _c.CATEGORY and not flags & re.LOCALE:
                found |= self._category(part, flags)
        return found

    def _ascii(self, low: int, high: int) -> int:
        return ((1 << (min(high, 127) + 1)) - 1) & ~((1 << low) - 1) if low < 128 else 0

    def _of(self, low: int, high: int) -> int:
        found = self._ascii(low, high)
        if high < 128:
            return found
        return found | (_kind_of(chr(high)) if low == high and self._flags & re.UNICODE else _BEYOND)

    def _category(self, category: Any, flags: int) -> int:
        name = str(category).rpartition("CATEGORY_")[2].replace("UNI_", "").replace("LOC_", "")
        bare = name.replace("NOT_", "")
        if flags & re.LOCALE or bare not in _ASCII:
            return _EVERY
        found = _ASCII[bare]
        if not flags & re.ASCII:
            found |= _KINDS[bare]
        return _EVERY & ~found if "NOT_" in name else found

    def _folded(self, characters: int, flags: int) -> int:
        if not flags & re.IGNORECASE:
            return characters
        letters = characters & _LETTERS
        if letters:
            characters |= (letters & _UPPER) << 32 | (letters & _LOWER) >> 32 | _BEYOND
        return characters | _BEYOND | _LETTERS if characters & _BEYOND else characters


def _mask(test: Any) -> int:
    return sum(1 << code for code in range(128) if test(chr(code)))


_UPPER, _LOWER = _mask(str.isupper), _mask(str.islower)
_LETTERS = _UPPER | _LOWER
_ASCII = {
    "DIGIT": _mask(str.isdigit),
    "SPACE": _mask(str.isspace),
    "WORD": _mask(lambda one: one.isalnum() or one == "_"),
}
_DIGIT, _LETTER, _SPACE, _OTHER = (1 << place for place in range(128, 132))
"""The kinds beyond ASCII."""
_BEYOND = _DIGIT | _LETTER | _SPACE | _OTHER
_EVERY = (1 << 132) - 1
_KINDS = {"DIGIT": _DIGIT, "WORD": _DIGIT | _LETTER, "SPACE": _SPACE}


def _kind_of(character: str) -> int:
    if character.isdecimal():
        return _DIGIT
    return _LETTER if character.isalnum() else _SPACE if character.isspace() else _OTHER


def _is_nullable(item: Any) -> bool:
    op, value = item
    if op in _REPEATS:
        return value[0] == 0 or all(map(_is_nullable, value[2]))
    if op is _c.SUBPATTERN:
        return all(map(_is_nullable, value[3]))
    if op is getattr(_c, "ATOMIC_GROUP", None):
        return all(map(_is_nullable, value))
    if op is _c.BRANCH:
        return any(all(map(_is_nullable, one)) for one in value[1])
    return op not in _SINGLE


def _inner(item: Any) -> list[Any]:
    op, value = item
    if op in _REPEATS:
        return [value[2]]
    if op is _c.SUBPATTERN:
        return [value[3]]
    if op is _c.BRANCH:
        return list(value[1])
    if op in _LOOKS:
        return [value[1]]
    if op is getattr(_c, "ATOMIC_GROUP", None):
        return [value]
    if op is _c.GROUPREF_EXISTS:
        return [one for one in value[1:] if one is not None]
    return []


def _walk(items: Any) -> Iterator[Any]:
    """All items, with those within."""
    for item in items:
        yield item
        for inner in _inner(item):
            yield from _walk(inner)


def _fails_late(items: list[Any]) -> bool:
    """True if a try may go far and fail, so that the next one begins where it did: at the next character."""
    long = False
    for item in items:
        if long and (not _is_nullable(item) or item[0] in (_c.AT, *_LOOKS, _c.GROUPREF)):
            return True
        if item[0] in _LOOKS or any(_fails_late(list(inner)) for inner in _inner(item)):
            return True
        long = long or any(one[0] in _REPEATS and one[1][1] > _MANY for one in _walk([item])) or item[0] is _c.GROUPREF
    return False
