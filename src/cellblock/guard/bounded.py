"""Bounded forms of C functions and methods that take time or memory beyond the number of what they are given.

They go through iterables in portions, between which a cell can be ended, and compare what may be large one by one in
Python. Each form does as its original; a form of a method takes the object first.
"""

from __future__ import annotations

import heapq
import operator
from bisect import bisect_left
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import cmp_to_key, partial
from io import BytesIO, StringIO
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from cellblock.guard.anatomy import exactly
from cellblock.guard.budget import afford
from cellblock.guard.sizes import LARGE_BITS, room
from cellblock.guard.steps import entry, fed, gathered, hashed, mixed, plain, ticking
from cellblock.guard.weights import PLAIN, hashable, holds, keyed, light, weigh

_COMPARED = 10_000_000
"""Parts that C code may compare in one go: a tenth of a second."""
_COPIED = 1_000_000_000
"""Bytes of the same."""
_TEXTS = frozenset((str, bytes))
_LINES = frozenset((list, tuple, deque))
_SORTED = 200_000
"""Items that are sorted in one go."""
_SAMPLED = 1000
_SHORT = 16
_POINTER = 8
_CHARACTER = 4


def _order(one: Any, other: Any) -> int:
    return -1 if light(one) < other else 0


_ascending = cmp_to_key(_order)


# ------------------------------------------------------------------------------ what makes containers


def _made(kind: type) -> Callable[..., Any]:
    def made(*given: Any, **named: Any) -> Any:
        return kind(hashed(given[0])) if len(given) == 1 and not named else kind(*given, **named)

    return made


def _copied(kind: type) -> Callable[..., Any]:
    """`list` and `tuple`, which neither hash nor compare."""

    def copied(*given: Any) -> Any:
        if len(given) != 1:
            return kind(*given)
        values = given[0]
        if type(values) is list or type(values) is tuple:
            afford(len(values) * _POINTER)
            return kind(values)
        return kind(_measured(values))

    return copied


def _measured(values: Any) -> Any:
    """The same as `fed`, for what asks how long its argument is, too, after its iterator."""
    found = fed(values)
    if found is not values:
        operator.length_hint(values, _SHORT)
    return found


def _pairs(values: Any) -> Any:
    """Argument that a mapping is made of, or updated with: a dict as it is."""
    if isinstance(values, dict):
        return values
    if hasattr(type(values), "keys"):
        return [(hashable(one), values[one]) for one in values.keys()]  # noqa: SIM118 - as C code asks it
    found = hashed(values, entry)
    return found if type(found) in (list, tuple) else iter(found)  # C code would look for `items`


def _counted(values: Any) -> Any:
    """Argument that a `Counter` is made of, or updated with: a mapping of counts, or what is counted."""
    return dict(_pairs(values)) if issubclass(type(values), Mapping) else hashed(values)


def _mapping(kind: type, place: int = 0) -> Callable[..., Any]:
    def mapping(*given: Any, **named: Any) -> Any:
        return kind(*given[:place], *map(_counted if kind is Counter else _pairs, given[place:]), **named)

    return mapping


def _sized(kind: type) -> Callable[..., Any]:
    def sized(*given: Any, **named: Any) -> Any:
        return kind(*(map(room, given) if len(given) == 1 else given), **named)

    return sized


def _filed(kind: type) -> Callable[..., Any]:
    """A file in memory, which holds a text of four bytes a character."""

    def filed(*given: Any, **named: Any) -> Any:
        for one in (*given[:1], *named.values()):
            if issubclass(type(one), str | bytes | bytearray):
                afford(len(one) * (_CHARACTER if kind is StringIO else 1))
        return kind(*given, **named)

    return filed


def _writing(kind: Any) -> Callable[..., int]:
    def write(self: Any, given: Any, /) -> int:
        if issubclass(type(given), str | bytes | bytearray):
            afford(len(given) * (_CHARACTER if kind is StringIO else 1))
        return kind.write(self, given)  # type: ignore[no-any-return]

    return write


# ---------------------------------------------------------------------------------- what goes through


def _through(function: Callable[..., Any]) -> Callable[..., Any]:
    def through(*given: Any, **named: Any) -> Any:
        return function(*map(fed, given), **named) if len(given) == 1 else function(*given, **named)

    return through


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*given: Any, **named: Any) -> Any:
        if not named and 1 < len(given) < 4 and type(given[1]) in PLAIN and type(given[-1]) in PLAIN:  # often
            return function(*given)
        if len(given) > _SHORT:
            given = (given,)
        if named.get("key") is not None:
            named["key"] = keyed(named["key"])
            return function(*map(fed, given), **named) if len(given) == 1 else function(*given, **named)
        return function(*map(_one_by_one if len(given) == 1 else light, given), **named)

    return extreme


def _one_by_one(values: Any) -> Any:
    """The same as `fed`, each by itself where decimal numbers stand among integers, of which some may be large."""
    if type(values) in _LINES and plain(values):
        return fed(values)
    if not hasattr(type(values), "__iter__"):
        return values
    return (light(one) for one in values) if mixed(values) else ticking(map(light, values))


def _sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    found = list(_measured(iterable))
    _sort(found, key=key, reverse=reverse)
    return found


def _sort(self: Any, /, *, key: Any = None, reverse: Any = False) -> None:
    values: list[Any] = self
    count = list.__len__(values)
    if count <= _SHORT:
        by = light if key is None and not plain(values) else keyed(key)
        list.sort(values, key=by, reverse=reverse)
        return
    keys = None if key is None else [key(one) for one in ticking(list.__iter__(values))]
    if keys is not None and len(keys) != list.__len__(values):
        raise ValueError("list modified during sort")
    if not _quick(values if keys is None else keys):
        list.sort(values, key=_ascending if keys is None else partial(_next_key, iter(keys)), reverse=reverse)
    elif count > _SORTED:
        values[:] = _in_parts(values[::-1] if reverse else values[:], keys and (keys[::-1] if reverse else keys))
        if reverse:
            list.reverse(values)
    else:
        list.sort(values, key=None if keys is None else partial(next, iter(keys)), reverse=reverse)


def _next_key(keys: Any, value: Any) -> Any:
    return _ascending(next(keys))


def _quick(values: list[Any]) -> bool:
    """True if these can be compared with each other, as often as sorting does, without delay."""
    steps, kinds = len(values) * len(values).bit_length(), set(map(type, values))
    if kinds <= {tuple} and max(map(len, values)) <= _SHORT:
        values = [*chain.from_iterable(values)]
        kinds = set(map(type, values))
    if Decimal in kinds and int in kinds:
        return False
    if kinds & _TEXTS and _longest(values, kinds) * steps > _COPIED:
        return False
    return not any(map(holds, kinds)) or all(
        steps * weigh(one) <= _COMPARED for one in ticking(values) if holds(type(one))
    )


def _longest(values: list[Any], kinds: set[type]) -> int:
    return max(map(len, values if kinds <= _TEXTS else [one for one in values if type(one) in _TEXTS]))


def _in_parts(values: list[Any], keys: list[Any] | None) -> list[Any]:
    """A long list sorted in runs, and what lies between two of some pivots taken from all runs and sorted again."""
    runs: list[tuple[list[Any], list[Any]]] = []
    for at in range(0, len(values), _SORTED):
        some = values[at : at + _SORTED]
        of = some if keys is None else keys[at : at + _SORTED]
        if keys is not None:
            some.sort(key=partial(next, iter(of)))
        of.sort()
        runs.append((some, of))
    sample = sorted(chain.from_iterable(of[::_SAMPLED] for _, of in runs))
    pivots = sample[len(sample) // len(runs) :: len(sample) // len(runs)]
    places = [[0, *(bisect_left(of, one) for one in pivots), len(of)] for _, of in runs]
    found: list[Any] = []
    for part in range(len(pivots) + 1):
        cuts = [slice(cut[part], cut[part + 1]) for cut in places]
        some = [*chain.from_iterable(one[cut] for (one, _), cut in zip(runs, cuts, strict=True))]
        of = [*chain.from_iterable(one[cut] for (_, one), cut in zip(runs, cuts, strict=True))] if keys else []
        some.sort(key=partial(next, iter(of)) if keys else None)
        found += some
    return found


def _heapify(x: Any, /) -> None:
    if type(x) is not list or (len(x) <= _SORTED and _quick(x)):
        heapq.heapify(x)
        return
    for at in reversed(range(len(x) // 2)):
        heapq._siftup(x, at)  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------ searching


def _searches(kind: Any, name: str) -> Callable[..., Any]:
    whole = getattr(kind, name)

    def search(self: Any, value: Any, /, *given: Any) -> Any:
        if type(value) in PLAIN and _is_short(value):
            return whole(self, value, *given)
        size = kind.__len__(self)
        light(value)
        if type(value) is not int and (size <= _SHORT or size * weigh(value) <= _COMPARED):
            return whole(self, value, *given)
        return _SLOWLY[name](self, kind, value, *given)

    return search


def _is_short(value: Any) -> bool:
    """True if a value without parts is compared with any other without delay."""
    kind = type(value)
    return len(value) <= _SORTED if kind is str else kind is not int or value.bit_length() <= LARGE_BITS


def _slow_count(self: Any, kind: Any, value: Any) -> int:
    return sum(1 for one in ticking(kind.__iter__(self)) if one is value or one == value)


def _slow_index(self: Any, kind: Any, value: Any, start: Any = 0, stop: Any = None) -> int:
    begin, end, _ = slice(start, stop).indices(kind.__len__(self))
    for place, one in enumerate(kind.__iter__(self)):
        if begin <= place < end and (one is value or one == value):
            return place
    raise ValueError(f"{kind.__name__}.index(x): x not in {kind.__name__}")


def _slow_remove(self: Any, kind: Any, value: Any) -> None:
    kind.__delitem__(self, _slow_index(self, kind, value))


def found_in(value: Any, where: Any) -> bool:
    """`value in where`, of a value that may be large."""
    size = len(where) if type(where) in _LINES else 0
    if size > _SHORT and size * weigh(light(value)) > _COMPARED:
        return any(one is value or one == value for one in where)
    return light(value) in where


def _count_of(a: Any, b: Any, /) -> int:
    if not hasattr(type(a), "__iter__") and not hasattr(type(a), "__getitem__"):
        return operator.countOf(a, b)  # which says what is wrong
    light(b)
    return sum(1 for one in ticking(a) if one is b or one == b)


_SLOWLY: dict[str, Callable[..., Any]] = {"count": _slow_count, "index": _slow_index, "remove": _slow_remove}


# -------------------------------------------------------------------------------------------- methods


def _feeding(kind: Any, name: str) -> Callable[..., Any]:
    whole = getattr(kind, name)

    def feeding(self: Any, /, *given: Any, **named: Any) -> Any:
        if len(given) == 1 and type(given[0]) is str and len(given[0]) <= _SHORT:
            return whole(self, *given, **named)
        return whole(self, *map(_counted if kind is Counter else _pairs, given), **named)

    return feeding


def _most_common(self: Any, n: Any = None) -> Any:
    for one in dict.values(self):
        light(one)
    return Counter.most_common(self, n)


def _extending(kind: Any, name: str) -> Callable[..., Any]:
    whole = getattr(kind, name)

    def extending(self: Any, values: Any, /) -> None:
        if type(values) is list or type(values) is tuple:
            afford(len(values) * _POINTER)
            return whole(self, values)  # type: ignore[no-any-return]
        return whole(self, _measured(values) if kind is list else fed(values))  # type: ignore[no-any-return]

    return extending


def _makers(kind: type, forms: dict[str, Callable[..., Any]]) -> dict[str, Callable[[Any], Callable[..., Any]]]:
    return {name: _maker(kind, name, form) for name, form in forms.items()}


def _maker(kind: type, name: str, form: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    def make(world: Any) -> Callable[..., Any]:
        def method(self: Any, /, *given: Any, **named: Any) -> Any:
            if named.get("key") is not None:
                named["key"] = world.calls.stepped(named["key"])
            return form(self, *given, **named)

        made = method if name == "sort" else form
        made.__name__, made.__qualname__, made.__doc__ = name, f"{kind.__name__}.{name}", getattr(kind, name).__doc__
        return made

    return make


def _joining(kind: Any, name: str) -> Callable[..., Any]:
    whole = getattr(kind, name)

    def joining(self: Any, /, *others: Any) -> Any:
        if len(others) <= _SHORT:
            return whole(self, *map(hashed, others))
        return gathered(kind, name, self, tuple(map(hashed, others)))

    return joining


_JOINING = ["union", "intersection", "difference", "symmetric_difference", "isdisjoint", "issubset", "issuperset"]
_CHANGING = ["update", "intersection_update", "difference_update", "symmetric_difference_update"]

_METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    list: {
        **{name: _searches(list, name) for name in _SLOWLY},
        "extend": _extending(list, "extend"),
        "sort": _sort,
    },
    tuple: {name: _searches(tuple, name) for name in ("count", "index")},
    deque: {
        **{name: _searches(deque, name) for name in _SLOWLY},
        **{name: _extending(deque, name) for name in ("extend", "extendleft")},
    },
    set: {name: _joining(set, name) for name in (*_JOINING, *_CHANGING)},
    frozenset: {name: _joining(frozenset, name) for name in _JOINING},
    **{kind: {"update": _feeding(kind, "update")} for kind in (dict, OrderedDict, defaultdict)},
    **{kind: {"write": _writing(kind)} for kind in (StringIO, BytesIO)},
    Counter: {
        **{name: _feeding(Counter, name) for name in ("update", "subtract")},
        "most_common": _most_common,
    },
}
METHODS = {kind: _makers(kind, forms) for kind, forms in _METHODS.items()}
"""By type, what makes for a world what stands in for its methods."""


def _keys_of(world: Any, kind: Any) -> Callable[..., Any]:
    def fromkeys(iterable: Iterable[Any], value: Any = None, /) -> Any:
        return kind.fromkeys(hashed(iterable), value)

    return fromkeys


STATICS: dict[type, dict[str, Callable[..., Any]]] = {
    kind: {"fromkeys": _keys_of} for kind in (dict, OrderedDict, defaultdict)
}
"""By type, what stands in for what is had of the class itself."""

_KINDS: tuple[tuple[tuple[Any, ...], Callable[[Any], Callable[..., Any]]], ...] = (
    ((set, frozenset), _made),
    ((list, tuple), _copied),
    ((dict, OrderedDict, Counter), _mapping),
    ((bytes, bytearray), _sized),
    ((StringIO, BytesIO), _filed),
    ((any, all), _through),
    ((min, max), _extreme),
)
FORMS: dict[Any, Callable[..., Any]] = {
    **{one: form(one) for some, form in _KINDS for one in some},
    defaultdict: _mapping(defaultdict, 1),
    deque: lambda *given, **named: deque(*map(fed, given[:1]), *given[1:], **named),
    sorted: _sorted,
    heapq.heapify: _heapify,
    operator.countOf: _count_of,
    ZoneInfo: exactly(ZoneInfo),
}
"""By the function or type that code calls, what is called in its place."""
for _of, _form in FORMS.items():
    _form.__name__ = _form.__qualname__ = _of.__name__
    _form.__module__, _form.__doc__ = _of.__module__, _of.__doc__
BY_NAME: dict[str, Callable[..., Any]] = {
    one.__name__: form for one, form in FORMS.items() if getattr(one, "__module__", "") == "builtins"
}
"""Those of them that are built in, by name."""
OF_MODULES = frozenset(form.__name__ for form in FORMS.values()) - BY_NAME.keys() | {"MappingProxyType"}
"""The names of the others, and of one whose form each world has of its own."""
