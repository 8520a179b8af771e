"""Changes of cells to modules and classes of modules: found in the cells' sources, saved as values."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cellblock.worker.saving.facts import attributes_of, is_a, names_in, own_attributes, qualname_of

_ABSENT = object()
_MAIN = ("__main__", "__mp_main__")


@dataclass(frozen=True, slots=True)
class Patch:
    """An attribute of a module, or of a class in it, at a dotted path."""

    module: str
    path: str


def find(
    chains: Iterable[list[str]], namespace: dict[str, Any], origin_of: Callable[[Any], str | None]
) -> list[Patch]:
    """Those of the chains that lead into a module or a class of one; `origin_of` tells the module of a class."""
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
            patch = _resolve(start, way, origin_of)
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


def _resolve(start: Any, way: list[str], origin_of: Callable[[Any], str | None]) -> Patch | None:
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
        module = origin_of(held)
        return Patch(module, f"{qualname_of(held)}.{last}") if module is not None else None
    return None


def targets_of(sources: Iterable[str]) -> list[list[str]]:
    """The attributes that these cells set in other objects; imports only where one of them does."""
    found = [chain for source in sources for chain in targets(source)]
    return [list(one) for one in dict.fromkeys(map(tuple, found))]


def targets(source: str) -> list[list[str]]:
    """The attributes that a cell's source sets or deletes, each as the names on the way; imports as `as`, name, module.

    Nothing for a source that does not parse.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    found: list[list[str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.append(_chain(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str):
                chain = _chain(node.args[0])
                found.append([*chain, node.args[1].value] if chain else [])
        elif isinstance(node, ast.Import):
            found += [["as", one.asname or one.name.partition(".")[0], one.name if one.asname else ""]
                      for one in node.names]  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [["as", one.asname or one.name, f"{node.module}.{one.name}"] for one in node.names]
    return [list(one) for one in dict.fromkeys(map(tuple, found)) if one]


def _chain(node: ast.expr) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    return [node.id, *reversed(names)]
