"""Checks of the patterns of `match`, which read attributes without an attribute's syntax.

Before a pattern is tried, the classes and values that it names are looked up once, when they are asked about, and the
pattern then has what was found: while it is tried, code of the subject's runs, which may bind the names anew. What
stands in a class pattern asks the gates about each object that it is tried on.
"""

from __future__ import annotations

import ast
from abc import ABCMeta
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard import build, spelling
from cellblock.guard.anatomy import holder, lineage, name_of, namespace
from cellblock.guard.names import is_dunder, never_read
from cellblock.guard.refusal import denied
from cellblock.guard.standins import Module

if TYPE_CHECKING:
    from cellblock.guard.world import World

Refuse = Callable[[str, str, ast.AST], None]

_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Types that a positional pattern matches whole."""
_MANY = 1000
"""Class patterns that are known at a time."""


def checks_of(pattern: ast.pattern, refuse: Refuse, temporary: Callable[[], str]) -> list[ast.NamedExpr]:
    """Expressions to be evaluated before the pattern: each raises where it would read what is not granted.

    Each is a call, `guard.match(root, names, keywords, positions)`: `root.names…` is the class or the value, `keywords`
    and `positions` are the attributes that a class pattern reads, None for a value. What it gives is kept under a
    `temporary` name, which the pattern is changed to use.
    """
    found: list[ast.NamedExpr] = []

    def kept(value: ast.expr, reads: ast.expr, positions: int) -> str:
        spelled = temporary()
        found.append(build.kept(value, spelled, _check(value, reads, positions, refuse)))
        return spelled

    def kept_value(value: ast.expr) -> ast.expr:
        if not isinstance(value, ast.Attribute):
            return value
        held = build.name(value, kept(value, build.constant(value, None), 0))
        return build.placed(ast.Attribute(held, "value", build.LOAD), value)

    for part in ast.walk(pattern):
        if isinstance(part, ast.MatchClass):
            for keyword in part.kwd_attrs:
                rule = never_read(keyword)
                if rule or keyword.startswith("_"):
                    refuse(rule or "pattern", f"attribute {keyword} is not granted in a pattern", part)
            if part.kwd_attrs or part.patterns or isinstance(part.cls, ast.Attribute):
                reads = build.constant(part, tuple(part.kwd_attrs))
                part.cls = build.name(part.cls, kept(part.cls, reads, len(part.patterns)))
        elif isinstance(part, ast.MatchValue):
            part.value = kept_value(part.value)
        elif isinstance(part, ast.MatchMapping):
            part.keys = [kept_value(key) for key in part.keys]
    return found


def _check(value: ast.expr, reads: ast.expr, positions: int, refuse: Refuse) -> ast.Call:
    names: list[str] = []
    root = value
    while isinstance(root, ast.Attribute):
        if (rule := never_read(root.attr)) or root.attr.startswith("_"):
            refuse(rule or "attribute", f"attribute {root.attr} is not granted in a pattern", root)
        names.append(root.attr)
        root = root.value
    if isinstance(root, ast.Name):
        if is_dunder(root.id) or "." in root.id:
            refuse("name", f"{root.id} is not granted", root)
        root = build.name(root, root.id)
    return build.call(
        value,
        spelling.MATCH,
        root,
        build.constant(value, tuple(reversed(names))),
        reads,
        build.constant(value, positions),
    )


class Value:
    """The value that a value pattern compares with."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Checking(type):
    """The class of what stands in a class pattern for the class that is named there.

    It has the instances which that has, and asks the gates about each object before its attributes are read: which
    those will be is not told by the class, whose `__subclasshook__` and registry may take in any other.
    """

    kind: type
    positional: object
    reads: tuple[str, ...]
    world: World

    def __instancecheck__(cls, value: object) -> bool:
        if not isinstance(value, cls.kind):
            return False
        gates = cls.world.gates
        for name in cls.reads:
            if type(value) not in gates.known_reads(name) and gates.read(value, name) is not value:
                raise denied(f"attribute {name!r} of {name_of(type(value))!r} is not granted in a pattern", "pattern")
        return True


def matcher(world: World) -> Callable[..., object]:
    """`guard.match`: what a pattern is to use for the class or the value that it names.

    Raises where the pattern would read what is not granted.
    """
    known: dict[tuple[int, tuple[str, ...], int], Checking] = {}

    def match(root: Any, names: tuple[str, ...], keywords: tuple[str, ...] | None, positions: int) -> object:
        value = root
        for depth, name in enumerate(names):
            if keywords is None and depth == len(names) - 1:
                return Value(getattr(world.gates.read(value, name), name))
            value = _settled(world, value, name)
        if not isinstance(value, type) or keywords is None or not (keywords or positions):
            return value  # where it is no class, CPython says so
        key = (id(value), keywords, positions)
        found = known.get(key)
        if found is None or found.kind is not value or found.positional is not _positional(value):
            if len(known) >= _MANY:
                known.clear()
            found = known[key] = _checking(world, value, keywords, positions)
        return found

    return match


def _checking(world: World, kind: type, keywords: tuple[str, ...], positions: int) -> Checking:
    """Stand-in for a class in a pattern that reads these attributes, and so many more by position."""
    _require(world, kind, keywords, positions)
    positional = _positional(kind)
    base = next((one for one in _SELF if issubclass(kind, one)), object) if positional is None else object
    defined: dict[str, Any] = {} if positional is None else {"__match_args__": positional}
    found: Any = Checking(name_of(kind), (int if base is bool else base,), defined)
    found.world, found.kind, found.positional = world, kind, positional
    by_place = positional[:positions] if type(positional) is tuple else ()
    found.reads = (*by_place, *keywords)
    return found  # type: ignore[no-any-return]


def _positional(kind: type) -> Any:
    """`__match_args__` as the class or one it inherits from defines it; None where none does."""
    where = holder(lineage(kind), "__match_args__")
    return None if where is None else namespace(where)["__match_args__"]


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


def _require(world: World, kind: type, keywords: tuple[str, ...], positions: int) -> None:
    """That the attributes which a class pattern reads may be read on every object that it can match."""
    if not keywords and positions == 1 and any(kind is one for one in _SELF):
        return
    for one in lineage(type(kind)):
        if one is not type and ("__instancecheck__" in namespace(one)) and not _is_abc(one):
            raise denied(f"{name_of(kind)} decides by itself what it matches", "pattern")
    if _is_abc(type(kind)) and not world.classes.own(kind):
        raise denied(f"{name_of(kind)} matches what it does not know", "pattern")
    positional = _positional(kind)
    if type(positional) is not tuple:
        positional = ()  # CPython says so
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
    return kind is ABCMeta
