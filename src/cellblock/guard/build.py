"""Pieces of trees that rewriting puts in, each at the place of what it stands for."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from cellblock.guard import spelling

Node = TypeVar("Node", bound=ast.AST)

LOAD, STORE = ast.Load(), ast.Store()
_IN, _IS, _AND, _OR = ast.In(), ast.Is(), ast.And(), ast.Or()


def placed(node: Node, at: Any) -> Node:
    """A new node at the place of another."""
    placing: Any = node
    placing.lineno, placing.col_offset = at.lineno, at.col_offset
    placing.end_lineno, placing.end_col_offset = at.end_lineno, at.end_col_offset
    return node


def name(at: ast.AST, spelled: str) -> ast.Name:
    """A name that is read."""
    return placed(ast.Name(spelled, LOAD), at)


def constant(at: ast.AST, value: Any) -> ast.Constant:
    """A constant."""
    return placed(ast.Constant(value), at)


def call(at: ast.AST, function: str, *arguments: ast.expr) -> ast.Call:
    """A call of one of the guard's functions."""
    return placed(ast.Call(name(at, function), list(arguments), []), at)


def item(at: ast.AST, collection: str, key: ast.expr) -> ast.Subscript:
    """An item of one of the guard's tables."""
    return placed(ast.Subscript(name(at, collection), key, LOAD), at)


def kept(at: ast.AST, spelled: str, value: ast.expr) -> ast.NamedExpr:
    """A value that is kept under a name."""
    return placed(ast.NamedExpr(placed(ast.Name(spelled, STORE), at), value), at)


def is_in(at: ast.AST, value: ast.expr, collection: str) -> ast.Compare:
    """Test if a value is in one of the guard's sets."""
    return placed(ast.Compare(value, [_IN], [name(at, collection)]), at)


_COMPARISONS: dict[str, ast.cmpop] = {"is": _IS, "is not": ast.IsNot(), "<": ast.Lt()}


def chain(at: ast.AST, first: ast.expr, *rest: Any) -> ast.Compare:
    """A comparison of several values: value, operator, value, operator, value."""
    ops = [_COMPARISONS[op] for op in rest[::2]]
    return placed(ast.Compare(first, ops, list(rest[1::2])), at)


def all_of(at: ast.AST, *tests: ast.expr) -> ast.expr:
    """Test if all of these hold."""
    return tests[0] if len(tests) == 1 else placed(ast.BoolOp(_AND, list(tests)), at)


def any_of(at: ast.AST, *tests: ast.expr) -> ast.expr:
    """Test if one of these holds."""
    return tests[0] if len(tests) == 1 else placed(ast.BoolOp(_OR, list(tests)), at)


def short_text(at: ast.AST, kept: ast.expr, spelled: str, attribute: str, most: int) -> ast.IfExp:
    """The value kept under a name if it is a text of less than so many characters, or else what the gate gives."""
    is_text = chain(at, call(at, spelling.TYPE, kept), "is", name(at, spelling.STR))
    is_short = chain(at, call(at, spelling.LENGTH, name(at, spelled)), "<", constant(at, most))
    gate = call(at, spelling.GATE, name(at, spelled), constant(at, attribute))
    return either(at, all_of(at, is_text, is_short), name(at, spelled), gate)


def is_same(at: ast.AST, one: ast.expr, other: ast.expr) -> ast.Compare:
    """Test if two values are one."""
    return placed(ast.Compare(one, [_IS], [other]), at)


def either(at: ast.AST, test: ast.expr, yes: ast.expr, no: ast.expr) -> ast.IfExp:
    """One of two values."""
    return placed(ast.IfExp(test, yes, no), at)


def unless(at: ast.AST, test: ast.expr, body: list[ast.stmt]) -> ast.If:
    """Statements that are left out where `test` holds."""
    return placed(ast.If(test, [placed(ast.Pass(), at)], body), at)
