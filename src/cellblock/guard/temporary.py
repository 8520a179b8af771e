"""`with` at top level as a temporary scope, where names are to be kept: what cannot be is gone after the block.

Its `as` targets are unbound, whatever they hold and whether or not they were bound before. Of the other names that were
bound meanwhile those go whose values cannot be kept. So it is too where the block is left by an exception.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from cellblock.guard.spelling import SCOPED

Unkept = Callable[[Collection[str]], Iterable[str]]
"""Of some names, those whose values cannot be kept."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody")
_PARTED = ("handlers", "cases")
_PLAIN = frozenset(map(id, (type(None), bool, int, float, complex, str, bytes)))
_MISSING = object()


def scoped(tree: ast.Module) -> None:
    """Have each `with` that is in no function and no class stand in such a scope, in place."""
    pending = [tree.body]
    while pending:
        block = pending.pop()
        for place, node in enumerate(block):
            pending += _blocks(node)
            if isinstance(node, ast.With | ast.AsyncWith):
                block[place] = _within(node)


def entering(namespace: dict[str, Any], unkept: Unkept) -> Callable[[tuple[str, ...]], Temporary]:
    """The function that such source calls by the name `SCOPED`."""
    return partial(Temporary, namespace, unkept)


class Temporary:
    """One such block while it runs."""

    __slots__ = ("_before", "_namespace", "_targets", "_unkept")

    def __init__(self, namespace: dict[str, Any], unkept: Unkept, targets: tuple[str, ...]) -> None:
        self._namespace, self._unkept, self._targets = namespace, unkept, targets
        self._before: Mapping[str, Any] = {}

    def __enter__(self) -> None:
        self._before = dict(self._namespace)

    def __exit__(self, *_how: object) -> None:
        namespace, before = self._namespace, self._before
        for name in self._targets:
            namespace.pop(name, None)
        bound = [
            name
            for name, value in list(namespace.items())
            if id(type(value)) not in _PLAIN and type(name) is str and before.get(name, _MISSING) is not value
        ]
        for name in self._unkept([name for name in bound if not name.startswith("__")]) if bound else ():
            namespace.pop(name, None)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement that run where it stands."""
    if isinstance(node, _DEFINITIONS):
        return
    for field in _BLOCKS:
        if isinstance(block := getattr(node, field, None), list):
            yield block
    for field in _PARTED:
        for part in getattr(node, field, ()):
            yield part.body


def _within(node: ast.With | ast.AsyncWith) -> ast.With:
    targets = tuple(
        part.id
        for item in node.items
        if item.optional_vars is not None
        for part in ast.walk(item.optional_vars)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )
    told: Any = targets
    scope = ast.Call(ast.Name(SCOPED, ast.Load()), [ast.Constant(told)], [])
    outer = ast.With([ast.withitem(scope)], [node])
    for made in (outer, scope, scope.func, scope.args[0]):
        ast.copy_location(made, node)
    return outer
