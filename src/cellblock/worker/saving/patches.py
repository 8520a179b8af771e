"""Changes of cells to modules and classes of modules: found in the cells' sources, saved as values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cellblock.worker.saving.facts import attributes_of, is_a, names_in, own_attributes, qualname_of
from cellblock.worker.saving.origins import Origins

_ABSENT = object()
_MAIN = ("__main__", "__mp_main__")


@dataclass(frozen=True, slots=True)
class Patch:
    """An attribute of a module, or of a class in it, at a dotted path."""

    module: str
    path: str


def find(chains: Iterable[list[str]], namespace: dict[str, Any], origins: Origins) -> list[Patch]:
    """Those of the chains that lead into a module or a class of one."""
    aliases: dict[str, list[str]] = {}
    attributes = []
    for chain in chains:
        if chain[0] == "as":
            aliases.setdefault(chain[1], []).append(chain[2] or chain[1])
        else:
            attributes.append(chain)
    found: dict[Patch, None] = {}
    for first, *way in attributes:
        for start in _starts(first, aliases, namespace):
            patch = _resolve(start, way, origins)
            if patch is not None:
                found[patch] = None
    return list(found)


def value_of(patch: Patch) -> tuple[Any, ...]:
    """The present value; empty where it was deleted."""
    found: Any = sys.modules.get(patch.module)
    for part in patch.path.split("."):
        found = _held(found).get(part, _ABSENT)
        if found is _ABSENT:
            return ()
    return (found,)


def _held(holder: Any) -> Mapping[str, Any]:
    """Attributes that a module or a class holds itself."""
    if is_a(holder, type):
        return attributes_of(holder)
    return names_in(holder) if is_a(holder, ModuleType) else own_attributes(holder) or {}


def apply(patch: Patch, value: tuple[Any, ...]) -> Any:
    """Set, or delete, what a cell did; what was there before, `_ABSENT` for nothing."""
    if patch.module not in sys.modules:
        __import__(patch.module)
    holder: Any = sys.modules[patch.module]
    *way, last = patch.path.split(".")
    for part in way:
        holder = getattr(holder, part)
    before = vars(holder).get(last, _ABSENT)
    if value:
        if before is not value[0]:
            setattr(holder, last, value[0])
    elif before is not _ABSENT:
        delattr(holder, last)
    return before


def _starts(first: str, aliases: dict[str, list[str]], namespace: dict[str, Any]) -> Iterator[Any]:
    if first in namespace:
        yield namespace[first]
    for module in aliases.get(first, ()):
        if module in sys.modules:
            yield sys.modules[module]
        else:
            holder, _, attribute = module.rpartition(".")
            if holder in sys.modules:
                yield _held(sys.modules[holder]).get(attribute)


def _resolve(start: Any, way: list[str], origins: Origins) -> Patch | None:
    *through, last = way
    held = start
    for part in through:
        if not is_a(held, ModuleType, type):
            return None
        held = _held(held).get(part)
    if is_a(held, ModuleType):
        name = names_in(held).get("__name__")
        return Patch(name, last) if type(name) is str and name not in _MAIN and sys.modules.get(name) is held else None
    if is_a(held, type):
        module = origins.of(held)
        return Patch(module, f"{qualname_of(held)}.{last}") if module is not None else None
    return None
