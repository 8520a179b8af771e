"""Attributes in which objects of packages keep what was worked out as they were looked at: looking is no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cellblock.worker.saving.facts import full_name, is_a, mro_of

_LEFT_OUT: Any = object()
CACHES: dict[str, dict[str, Any]] = {
    "pandas": {"_cache": _LEFT_OUT},
    "matplotlib": {
        "_stale": True, "_invalid": 2, "_inverted": None, "_transformed_path": None, "_transformed_points": None,
    },
}  # fmt: skip
"""Of packages: what is saved of attributes of these names, wherever an object of their types has them."""


def without_caches(kind: type, way: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """From an object of this type to what `__reduce__` gives, without what its caches hold."""
    packages = {full_name(base).partition(".")[0] for base in mro_of(kind)}
    saved = {name: one for package in packages & CACHES.keys() for name, one in CACHES[package].items()}
    if not saved:
        return way

    def fixed(part: Any) -> Any:
        if not is_a(part, dict) or saved.keys().isdisjoint(part):
            return part
        items = ((name, saved.get(name, one)) for name, one in part.items())
        return {name: one for name, one in items if one is not _LEFT_OUT}

    def reduce(value: Any) -> Any:
        reduced = way(value)
        if reduced is NotImplemented:
            reduced = value.__reduce_ex__(5)
        if not is_a(reduced, tuple) or len(reduced) < 3:
            return reduced
        made, arguments, state, *rest = reduced
        if type(state) is tuple:
            *parts, last = map(fixed, state)
            state = tuple(parts) if is_a(last, dict) and not last and state[-1] else (*parts, last)
        return made, arguments, fixed(state), *rest

    return reduce
