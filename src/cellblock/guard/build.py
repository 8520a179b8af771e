"""Pieces of trees that rewriting puts in, each at the place of what it stands for."""

from __future__ import annotations

import ast
from typing import Any

LOAD, STORE = ast.Load(), ast.Store()
_IN, _IS = ast.In(), ast.Is()


def name(at: ast.AST, spelled: str) -> ast.Name:
    """A name that is read."""
    return ast.copy_location(ast.Name(spelled, LOAD), at)


def constant(at: ast.AST, value: Any) -> ast.Constant:
    """A constant."""
    return ast.copy_location(ast.Constant(value), at)


def call(at: ast.AST, function: str, *arguments: ast.expr) -> ast.Call:
    """A call of one of the guard's functions."""
    return ast.copy_location(ast.Call(name(at, function), list(arguments), []), at)


def item(at: ast.AST, collection: str, key: ast.expr) -> ast.Subscript:
    """What one of the guard's tables holds."""
    return ast.copy_location(ast.Subscript(name(at, collection), key, LOAD), at)


def kept(at: ast.AST, spelled: str, value: ast.expr) -> ast.NamedExpr:
    """A value that is kept under a name."""
    return ast.copy_location(ast.NamedExpr(ast.copy_location(ast.Name(spelled, STORE), at), value), at)


def is_in(at: ast.AST, value: ast.expr, collection: str) -> ast.Compare:
    """Whether a value is in one of the guard's sets."""
    return ast.copy_location(ast.Compare(value, [_IN], [name(at, collection)]), at)


def is_same(at: ast.AST, one: ast.expr, other: ast.expr) -> ast.Compare:
    """Whether two values are one."""
    return ast.copy_location(ast.Compare(one, [_IS], [other]), at)


def same_in(at: ast.AST, one: ast.expr, other: ast.expr, collection: str) -> ast.Compare:
    """Whether two values are one, which is in one of the guard's sets."""
    return ast.copy_location(ast.Compare(one, [_IS, _IN], [other, name(at, collection)]), at)


def either(at: ast.AST, test: ast.expr, yes: ast.expr, no: ast.expr) -> ast.IfExp:
    """One of two values."""
    return ast.copy_location(ast.IfExp(test, yes, no), at)


def unless(at: ast.AST, test: ast.expr, body: list[ast.stmt]) -> ast.If:
    """Statements that are left out where `test` holds."""
    return ast.copy_location(ast.If(test, [ast.copy_location(ast.Pass(), at)], body), at)
