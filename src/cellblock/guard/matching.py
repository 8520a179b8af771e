"""What is asked before a pattern of `match` is tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import holder, lineage, name_of, namespace
from cellblock.guard.names import never_read
from cellblock.guard.refusal import denied
from cellblock.guard.standins import Module

if TYPE_CHECKING:
    from cellblock.guard.world import World

_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Types that a positional pattern matches whole."""


def matcher(world: World) -> Callable[..., bool]:
    """`guard.match`: False, or raises where the pattern after it would read what is not granted."""

    def match(root: Any, names: tuple[str, ...], keywords: tuple[str, ...] | None, positions: int) -> bool:
        value = root
        for depth, name in enumerate(names):
            if keywords is None and depth == len(names) - 1:
                world.gates.read(value, name)
                return False
            value = _settled(world, value, name)
        if keywords is not None and (keywords or positions):
            _require(world, value, keywords, positions)
        return False

    return match


def _settled(world: World, value: Any, name: str) -> Any:
    """An attribute that is the same when it is read again: one of a module or a class, that is no property."""
    world.gates.read(value, name)
    if type(value) is Module:
        return getattr(value, name)
    if isinstance(value, type) and (where := holder(lineage(value), name)) is not None:
        found = namespace(where)[name]
        if isinstance(found, type):
            return found
    raise denied(f"attribute {name!r} cannot be part of a pattern: bind it to a name first", "pattern")


def _require(world: World, kind: Any, keywords: tuple[str, ...], positions: int) -> None:
    """That the attributes which a class pattern reads may be read on every object that it can match."""
    if not isinstance(kind, type):
        return  # CPython says that it is no class
    if not keywords and positions == 1 and any(kind is one for one in _SELF):
        return
    for one in lineage(type(kind)):
        if one is not type and ("__instancecheck__" in namespace(one)) and not _is_abc(one):
            raise denied(f"{name_of(kind)} decides by itself what it matches", "pattern")
    if _is_abc(type(kind)) and not world.classes.own(kind):
        raise denied(f"{name_of(kind)} matches what it does not know", "pattern")
    self_matching = issubclass(kind, _SELF) and holder(lineage(kind), "__match_args__") is None
    where = holder(lineage(kind), "__match_args__")
    positional = namespace(where)["__match_args__"] if where is not None and not self_matching else ()
    if type(positional) is not tuple:
        return  # CPython says so
    for name in (*positional[:positions], *keywords):
        if type(name) is not str or name.startswith("_") or never_read(name):
            raise denied(f"attribute {name!r:.100} is not granted in a pattern", "pattern")
        _require_read(world, kind, name)


def _require_read(world: World, kind: type, name: str) -> None:
    for one in lineage(kind):
        if name in namespace(one) and world.classes.own(one):
            return
        audit = world.types.get(one)
        if audit is not None and name in audit.reads:
            return
        if name in namespace(one):
            break
    else:
        if world.classes.own(kind) and not any(one in world.host_types for one in lineage(kind)):
            return
    raise denied(f"attribute {name!r} of {name_of(kind)!r} is not granted in a pattern", "pattern")


def _is_abc(kind: type) -> bool:
    return kind.__module__ == "abc" and kind.__name__ == "ABCMeta"
