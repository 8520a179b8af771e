"""Facts about the names of a function while its source is rewritten, and places where attributes of them are checked.

Only a frame's own code rebinds its local names, unless a function inside says `nonlocal`. So a local name may be looked
at and then read again, and what was found of it holds until it is bound anew. Attributes of a local name are asked for

- not at all, where all that is bound to it are literals of one type that grants them;
- once, where it is bound, where that is as an argument or by a `for` loop, and it is used more than once. A checked
  name `own.x` then stands for `x`: the same object, or a `Watched` one that asks the gates each time;
- where they are read, otherwise.

A module is no such scope: its names are global. A comprehension is, for the names of its own `for`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from cellblock.guard import build, spelling
from cellblock.guard.names import is_dunder
from cellblock.guard.tables import READS, SPECIAL

PARAMETER = object()
"""The binding of an argument's name."""
TEMPORARIES, LOOP = 1, 8
"""Flags of a place: names may be bound in it for a moment; it is run more than once."""
_WEIGHT = 8
_FIELD = re.compile(r"\{\{|\}\}|\{(?:[A-Za-z_]\w*|\d{0,9})?(?:![rsa])?(?::[^{}]*)?\}|[^{}]")
_WIDE = re.compile(r"\d{5}")
_TYPES: dict[type, type] = {
    ast.JoinedStr: str,
    ast.List: list,
    ast.ListComp: list,
    ast.Dict: dict,
    ast.DictComp: dict,
    ast.Set: set,
    ast.SetComp: set,
    ast.Tuple: tuple,
}


@dataclass(frozen=True, slots=True)
class Group:
    """Names of attributes that are asked for at once: those that are read and those that are set."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def spelled(self) -> str:
        return f"{','.join(self.reads)}={','.join(self.writes)}"


@dataclass(frozen=True, slots=True)
class Ranged:
    """Binds the name that a loop over `range(…)` counts with."""

    call: ast.Call


class Site:
    """A place where an attribute of a name is read or set. `name` tells as well if it is called there, or read and set.

    A special one is looked at where it stands: what is called may be a function that the object holds.
    """

    __slots__ = ("changed", "flags", "is_special", "name", "node", "plain", "stored")

    def __init__(self, node: ast.Attribute, name: str, flags: int) -> None:
        self.node = node
        self.name = name
        self.plain = name.partition("(")[0].removesuffix(spelling.AUGMENTED)
        self.is_special = self.plain in SPECIAL or name[-1] == ")"
        self.flags = flags
        self.stored = type(node.ctx) is not ast.Load
        self.changed = name.endswith(spelling.AUGMENTED)


class Scope:
    """Facts about the function, class, module or comprehension that a node stands in.

    `bound` has for each name what binds it: an expression, a loop, a range, an augmented assignment, `PARAMETER`, or
    None for anything else. `bits` are those of names that are numbers: see `magnitude`. `plain` is a module that is
    compiled as one, and `unnamed` one with lambdas or comprehensions of its own.
    """

    __slots__ = (
        "adds", "bits", "body", "bound", "count", "foreign", "home", "kind", "outer", "owner", "plain", "sites",
        "suspends",
        "tries", "unnamed", "withs",
    )  # fmt: skip

    def __init__(self, kind: str, owner: str | None, outer: Scope | None) -> None:
        self.kind = kind
        self.owner = owner
        self.outer = outer
        self.home: Scope = outer.home if kind == "comprehension" and outer is not None else self
        self.suspends = self.plain = self.unnamed = False
        self.count = self.adds = 0
        self.body: list[ast.stmt] | None = None
        self.tries: list[ast.Try] = []
        self.withs: list[tuple[ast.withitem, bool]] = []
        self.bound: dict[str, list[Any]] = {}
        self.foreign: set[str] = set()
        self.bits: dict[str, int | None] = {}
        self.sites: dict[str, list[Site]] = {}

    def temporary(self) -> str:
        """A new name for a value to be kept for a moment."""
        self.count += 1
        return f"{spelling.TEMPORARY}{self.count}"

    def declare(self, names: Iterable[str], *, shared: bool) -> None:
        """Names that are `global` here, or of a function around this one, which then are not its own either."""
        self.foreign.update(names)
        if not shared:
            return
        if self.kind == "module":
            self.plain = True
        outer = self.outer
        while outer is not None:
            outer.foreign.update(names)
            outer = outer.outer

    def decides(self, name: str, *, stored: bool) -> bool:
        """True if how attributes of a name are checked is decided once the whole scope is known."""
        return self.kind == "function" or (self.kind == "comprehension" and name in self.bound and not stored)


class Check(Protocol):
    """Has an attribute asked for where it is read or set."""

    def __call__(self, site: Site, *, own: bool) -> object: ...


def targets(target: ast.expr) -> list[ast.Name]:
    """The names of a target that consists of nothing but names."""
    if isinstance(target, ast.Name):
        return [target]
    if isinstance(target, ast.Tuple | ast.List) and all(isinstance(one, ast.Name) for one in target.elts):
        return [one for one in target.elts if isinstance(one, ast.Name)]
    return []


def settle(scope: Scope, check: Check, groups: set[Group]) -> None:
    """Put the checks of a scope's names where they belong. `check` puts one where an attribute is read or set."""
    for name, sites in scope.sites.items():
        binders = scope.bound.get(name)
        if binders is None or name in scope.foreign:
            for site in sites:
                check(site, own=False)
            continue
        kinds = {literal_type(one) if isinstance(one, ast.expr) else None for one in binders}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is not None:
            granted = READS.get(kind, frozenset())
            sites = [site for site in sites if site.stored or site.plain not in granted]
        else:
            grouped = [site for site in sites if not is_dunder(site.plain) and not site.is_special]
            if _is_bound_once(scope, name, binders, grouped):
                _check_where_bound(scope, name, binders, grouped, groups)
                sites = [site for site in sites if site not in grouped]
        for site in sites:
            check(site, own=True)


def _is_bound_once(scope: Scope, name: str, binders: list[Any], sites: list[Site]) -> bool:
    """True if one check where a name is bound does for what would be several."""
    if scope.body is None or name == "cls" or sum(_WEIGHT if site.flags & LOOP else 1 for site in sites) < 2:
        return False
    if all(one is PARAMETER for one in binders):
        return True
    if len(sites) < 2 or not all(isinstance(one, ast.For) for one in binders):
        return False
    return all(any(_is_inside(site.node, one.body) for one in binders) for site in sites)


def _is_inside(node: ast.Attribute, body: list[ast.stmt]) -> bool:
    first, last = body[0], body[-1]
    start, end = (first.lineno, first.col_offset), (last.end_lineno or 0, last.end_col_offset or 0)
    return start <= (node.lineno, node.col_offset) < end


def _check_where_bound(scope: Scope, name: str, binders: list[Any], sites: list[Site], groups: set[Group]) -> None:
    group = Group(
        tuple(sorted({site.name for site in sites if not site.stored})),
        tuple(sorted({site.name for site in sites if site.stored})),
    )
    groups.add(group)
    spelled = spelling.OWN + name
    for one in binders:
        body = scope.body if one is PARAMETER else one.body
        if body is not None:
            _insert(body, name, spelled, group)
    for site in sites:
        site.node.value = build.name(site.node.value, spelled)


def _insert(body: list[ast.stmt], name: str, spelled: str, group: Group) -> None:
    """Put the check of a name at the beginning of a body, after the text that documents it."""
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    known = build.is_in(first, build.call(first, spelling.TYPE, build.name(first, name)), spelling.ALL + group.spelled)
    watched = build.call(first, spelling.WATCH + group.spelled, build.name(first, name))
    value = build.either(first, known, build.name(first, name), watched)
    target = build.placed(ast.Name(spelled, build.STORE), first)
    body.insert(1 if documented else 0, build.placed(ast.Assign([target], value), first))


def literal_type(node: ast.expr) -> type | None:
    """The exact type of what an expression gives, where its form alone tells."""
    if type(node) is ast.Constant:
        return type(node.value)
    return _TYPES.get(type(node))


def plain_format(node: ast.expr) -> bool:
    """True if a literal format string has plain fields: no attributes, no items, nothing nested, nothing wide."""
    if not isinstance(node, ast.Constant) or type(node.value) is not str or _WIDE.search(node.value):
        return False
    return "".join(_FIELD.findall(node.value)) == node.value


def plain_modulo(text: str | bytes) -> bool:
    """True if a literal left of `%` asks for no large width."""
    shown = text.decode("latin-1") if isinstance(text, bytes) else text
    return "*" not in shown and not _WIDE.search(shown)


def plain_spec(spec: ast.expr) -> bool:
    """True if a format specification is literal and not wide."""
    if not isinstance(spec, ast.JoinedStr):
        return False
    return all(isinstance(one, ast.Constant) and not _WIDE.search(str(one.value)) for one in spec.values)
