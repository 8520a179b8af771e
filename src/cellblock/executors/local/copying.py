"""Values of the host's on their way into a local session: deep copies, but for objects of classes that were granted.

Nothing is pickled. A copy is made by `copy.deepcopy`, which runs the value's own code; the host trusts its values.
"""

from __future__ import annotations

import copy
import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from cellblock.errors import UnpicklableError
from cellblock.policy import Policy

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)
_WHOLE = (*_FUNCTIONS, type, ModuleType, str, bytes, int, float, complex, type(None))
"""What leads to objects that no copy is made of."""
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
    """What `deepcopy` is to take for copied already: each object of a granted class, by its identity."""
    kept: dict[int, Any] = {}
    pending, seen = [value], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if not live.isdisjoint(type(one).__mro__):
            kept[id(one)] = one
        elif not isinstance(one, _WHOLE):
            pending.extend(gc.get_referents(one))
    return kept


def _require_data(name: str, value: object, live: frozenset[type]) -> None:
    """Raise for what a deep copy would hand over as it is."""
    pending, seen = [value], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, _FUNCTIONS):
            raise _live(name, f"the function {getattr(one, '__name__', '')}", "policy.fn(f)")
        if isinstance(one, ModuleType):
            raise _live(name, f"the module {one.__name__}", "policy.module(m)")
        if isinstance(one, type) and one.__module__ != "builtins" and one not in live:
            raise _live(name, f"the class {one.__name__}", "policy.cls(C)")
        if type(one) in _HOLDING:
            pending.extend(one)  # type: ignore[arg-type]
        elif type(one) is dict:
            pending += [*one.keys(), *one.values()]


def _live(name: str, what: str, how: str) -> UnpicklableError:
    return UnpicklableError(
        f"{name}: {what} is the host's, and no copy can be made of it", hint=f"register it instead: {how}"
    )
