"""Attributes in which objects of packages keep what was worked out as they were looked at: looking is no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cellblock.worker.saving.facts import full_name, is_a, mro_of

_LEFT_OUT: Any = object()
CACHES: dict[str, dict[str, Any]] = {
    "pandas.core.base.PandasObject": {"_cache": _LEFT_OUT},
    "pandas.core.base.SelectionMixin": {"_cache": _LEFT_OUT},
    "pandas.core.arrays.base.ExtensionArray": {"_cache": _LEFT_OUT},
    "pandas.api.extensions.ExtensionArray": {"_cache": _LEFT_OUT},
    "pandas.core.dtypes.base.ExtensionDtype": {"_cache": _LEFT_OUT},
    "pandas.api.extensions.ExtensionDtype": {"_cache": _LEFT_OUT},
}
"""Of types and those derived from them, by full names: what is saved of an attribute, wherever an object has it."""


def without_caches(kind: type, way: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """From an object of this type to what `__reduce__` gives, without what its caches hold."""
    saved = {name: one for base in mro_of(kind) for name, one in CACHES.get(full_name(base), {}).items()}
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
