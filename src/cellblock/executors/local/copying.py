"""Values of the host's on their way into a local session: deep copies, but for objects of classes that were granted.

Nothing is pickled. A copy is made by `copy.deepcopy`, which runs the value's own code; the host trusts its values.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from cellblock.errors import UnpicklableError
from cellblock.policy import Policy

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)
_WHOLE = (*_FUNCTIONS, type, ModuleType, str, bytes, int, float, complex, type(None))
"""Types that lead to objects that no copy is made of."""
_HOLDING = (list, tuple, set, frozenset)


def copied(name: str, value: object, policy: Policy) -> object:
    """A copy for the cells. Objects of classes that `policy.cls` grants, and of their heirs, stay the host's own.

    UnpicklableError for what cannot be copied: functions, classes and modules are granted, not bound.
    """
    live = frozenset(grant.cls for grant in policy.classes)
    _require_data(name, value, live)
    try:
        return copy.deepcopy(value, _kept(value, live) if live else None)
    except Exception as error:  # copying runs the value's own code
        raise UnpicklableError(
            f"{name}: {type(value).__name__} cannot be copied into the session: {error}",
            hint="give it as plain data, or register its class, so that it is not copied: policy.cls(C)",
        ) from error


def _kept(value: object, live: frozenset[type]) -> dict[int, Any]:
    """Memo that has `deepcopy` take these for copied already: each object of a granted class, by its identity."""

    def is_live(one: object) -> bool:
        return not live.isdisjoint(type(one).__mro__)

    def within(one: object) -> Iterable[object]:
        return () if is_live(one) or isinstance(one, _WHOLE) else gc.get_referents(one)

    return {id(one): one for one in _reached(value, within) if is_live(one)}


def _require_data(name: str, value: object, live: frozenset[type]) -> None:
    """Raise for what a deep copy would hand over as it is."""
    for one in _reached(value, _items):
        if isinstance(one, _FUNCTIONS):
            raise _live(name, f"the function {getattr(one, '__name__', '')}", "policy.fn(f)")
        if isinstance(one, ModuleType):
            raise _live(name, f"the module {one.__name__}", "policy.module(m)")
        if isinstance(one, type) and one.__module__ != "builtins" and one not in live:
            raise _live(name, f"the class {one.__name__}", "policy.cls(C)")


def _items(one: Any) -> Iterable[object]:
    if type(one) is dict:
        return [*one.keys(), *one.values()]
    return one if type(one) in _HOLDING else ()


def _reached(value: object, within: Callable[[object], Iterable[object]]) -> Iterator[object]:
    """A value and all that is within it, each once."""
    pending, seen = [value], set[int]()
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            pending.extend(within(one))


def _live(name: str, what: str, how: str) -> UnpicklableError:
    return UnpicklableError(
        f"{name}: {what} is the host's, and no copy can be made of it", hint=f"register it instead: {how}"
    )
