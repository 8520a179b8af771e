"""Regular expressions that may take time exponential in the text: recognised by their form, before they run.

A repeat without a bound is refused where what it repeats can match one text in several ways: because an unbounded
repeat within it can border on itself, or because alternatives within it can begin alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cellblock.guard.refusal import denied

_parser: Any = re._parser  # type: ignore[attr-defined]
_constants: Any = re._constants  # type: ignore[attr-defined]
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_MANY = 50
_ALPHABET = (*map(chr, range(128)), "é", "ß", "中", "\u00a0", "Ω", "٣")
_EVERY = frozenset(_ALPHABET)


def require_bearable(pattern: Any, flags: Any = 0) -> None:
    """That matching it does not take time exponential in the text. What is no pattern is left to `re`."""
    if isinstance(pattern, str | bytes):
        exact = str.__str__(pattern) if isinstance(pattern, str) else bytes(pattern)
        if _is_unbearable(exact, int(flags)):
            raise denied(
                "this pattern may take time exponential in the text: a repeat of something that repeats itself", "size"
            )


@lru_cache(maxsize=500)
def _is_unbearable(pattern: str | bytes, flags: int) -> bool:
    try:
        return _unbearable(_parser.parse(pattern, flags))
    except (re.error, RecursionError, OverflowError, ValueError, TypeError):
        return False  # `re` says what is wrong


def _unbearable(items: Any) -> bool:
    for op, value in items:
        if op in _REPEATS and value[1] > _MANY and _is_ambiguous(list(value[2])):
            return True
        if any(_unbearable(inner) for inner in _inner(op, value)):
            return True
    return False


def _inner(op: Any, value: Any) -> list[Any]:
    if op in _REPEATS or op is getattr(_constants, "POSSESSIVE_REPEAT", None):
        return [value[2]]
    if op is _constants.SUBPATTERN:
        return [value[-1]]
    if op is _constants.BRANCH:
        return list(value[1])
    if op in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [value[1]]
    if op is getattr(_constants, "ATOMIC_GROUP", None):
        return [value]
    if op is _constants.GROUPREF_EXISTS:
        return [one for one in value[1:] if one is not None]
    return []


def _is_ambiguous(body: list[Any]) -> bool:
    """Whether a sequence that is repeated can match one text in several ways."""
    flat = _flattened(body)
    for index, (op, value) in enumerate(flat):
        if op is _constants.BRANCH:
            starts = [_first(list(one)) for one in value[1]]
            if any(one & other for i, one in enumerate(starts) for other in starts[:i]):
                return True
            follow = _first(flat[index + 1 :] + flat[:index])
            empty = [all(map(_is_nullable, one)) for one in value[1]]
            if any(empty) and any(start & follow for start, none in zip(starts, empty, strict=True) if not none):
                return True
            if sum(all(map(_is_nullable, one)) for one in value[1]) > 1:
                return True
            if any(_is_ambiguous(list(one)) for one in value[1]):
                return True
        if op in _REPEATS and value[1] > _MANY:
            inner = _first(list(value[2]))
            around = flat[index + 1 :] + flat[:index]
            if not any(not _is_nullable(one) and not (_first([one]) & inner) for one in around):
                return True
    return False


def _flattened(items: list[Any]) -> list[Any]:
    flat: list[Any] = []
    for op, value in items:
        if op is _constants.SUBPATTERN:
            flat.extend(_flattened(list(value[-1])))
        elif op is not _constants.AT:
            flat.append((op, value))
    return flat


def _is_nullable(item: Any) -> bool:
    op, value = item
    if op in _REPEATS:
        return value[0] == 0 or all(map(_is_nullable, value[2]))
    if op is _constants.SUBPATTERN:
        return all(map(_is_nullable, value[-1]))
    if op is _constants.BRANCH:
        return any(all(map(_is_nullable, one)) for one in value[1])
    return op not in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY)


def _first(items: list[Any]) -> frozenset[str]:
    """The characters, of a sample, that a match may begin with."""
    found: frozenset[str] = frozenset()
    for item in items:
        found |= _first_of(item)
        if not _is_nullable(item):
            break
    return found


def _first_of(item: Any) -> frozenset[str]:
    op, value = item
    if op is _constants.LITERAL:
        return frozenset((chr(value),))
    if op is _constants.NOT_LITERAL:
        return _EVERY - {chr(value)}
    if op is _constants.ANY:
        return _EVERY
    if op is _constants.IN:
        return _of_class(value)
    if op in _REPEATS:
        return _first(list(value[2]))
    if op is _constants.SUBPATTERN:
        return _first(list(value[-1]))
    if op is _constants.BRANCH:
        return frozenset().union(*(_first(list(one)) for one in value[1]))
    if op in (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT):
        return frozenset()
    return _EVERY


def _of_class(parts: Any) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    negated = False
    for op, value in parts:
        if op is _constants.NEGATE:
            negated = True
        elif op is _constants.LITERAL:
            found |= {chr(value)}
        elif op is _constants.RANGE:
            found |= {one for one in _ALPHABET if value[0] <= ord(one) <= value[1]}
        elif op is _constants.CATEGORY:
            found |= _of_category(value)
    return _EVERY - found if negated else found


def _of_category(category: Any) -> frozenset[str]:
    tests: dict[str, Callable[[str], bool]] = {
        "DIGIT": str.isdigit,
        "SPACE": str.isspace,
        "WORD": lambda one: one.isalnum() or one == "_",
    }
    name = str(category).rpartition("CATEGORY_")[2].replace("UNI_", "").replace("LOC_", "")
    test = tests.get(name.replace("NOT_", ""))
    if test is None:
        return _EVERY
    matching = frozenset(one for one in _ALPHABET if test(one))
    return _EVERY - matching if "NOT_" in name else matching
