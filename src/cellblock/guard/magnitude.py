"""Sizes of numbers as far as source tells, to leave out checks before multiplying.

A value's bits are those of an exact int; 0 of any other number of Python's own; `ANY` where there is no telling; None
for what may not be a number. They are known of literals, of arithmetic over what is known, and of local names all of
whose bindings are known, which hold at any time then, in the functions inside as well.
"""

from __future__ import annotations

import ast
from typing import Any

from cellblock.guard.scopes import Ranged, Scope

ANY = 1 << 40
FEW = 20_000
"""Bits of a factor that multiplies whatever number it is given in linear time."""
_COUNTED = 64
"""Bits of how often a loop can run."""
_ROUNDS = 4

_LONGER = (ast.Add, ast.Sub, ast.BitOr, ast.BitXor, ast.BitAnd)
_TOLD = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def infer(scope: Scope, *, ranges: bool) -> None:
    """Find the bits of a scope's own names, after those of the scopes around it. `ranges`: `range` is Python's own."""
    if scope.kind not in ("function", "comprehension"):
        return
    names = [name for name in scope.bound if name not in scope.foreign]
    bits = scope.bits
    bits.update(dict.fromkeys(names, 0))
    changed, round = True, 0
    while changed:
        changed, round = False, round + 1
        for name in names:
            before = bits[name]
            if before is None:
                continue
            found = _most(_of_binder(one, name, scope, ranges) for one in scope.bound[name])
            if found is not None:
                found = max(found, before) if round < _ROUNDS or found <= before else ANY
            if found != before:
                bits[name] = found
                changed = True


def _of_binder(binder: Any, name: str, scope: Scope, ranges: bool) -> int | None:
    if isinstance(binder, Ranged):
        if not ranges or binder.call.keywords or any(isinstance(one, ast.Starred) for one in binder.call.args):
            return None
        if len(binder.call.args) == 1:
            return _COUNTED
        ends = _most(bits_of(one, scope) for one in (*binder.call.args[:1], *binder.call.args[2:]))
        return ANY if ends is None else _capped(ends + _COUNTED)
    if isinstance(binder, ast.AugAssign):
        return _of_operation(binder.op, bits_of(ast.Name(name, ast.Load()), scope), binder.value, scope)
    return bits_of(binder, scope) if isinstance(binder, ast.expr) else None


def bits_of(node: ast.expr, scope: Scope) -> int | None:
    """The bits of what an expression gives."""
    if (of := getattr(node, "of", None)) is not None:
        return bits_of(of, scope)
    match node:
        case ast.Constant(value):
            if type(value) is int:
                return _capped(value.bit_length())
            return 0 if type(value) in (float, complex, bool) else None
        case ast.Name(name):
            return _of_name(name, scope)
        case ast.BinOp(left, op, right):
            return _of_operation(op, bits_of(left, scope), right, scope)
        case ast.UnaryOp(ast.Not()):
            return 1
        case ast.UnaryOp(_, operand):
            bits = bits_of(operand, scope)
            return None if bits is None else _capped(bits + 1)
        case ast.BoolOp(_, values):
            return _most(bits_of(value, scope) for value in values)
        case ast.IfExp(_, body, orelse):
            return _most(bits_of(value, scope) for value in (body, orelse))
        case ast.Compare(left, ops, comparators):
            if all(isinstance(op, _TOLD) for op in ops):
                return 1
            return None if _most(bits_of(one, scope) for one in (left, *comparators)) is None else 1
    return None


def _of_name(name: str, scope: Scope) -> int | None:
    where: Scope | None = scope
    while where is not None and (name not in where.bound or (where.kind == "class" and where is not scope)):
        if name in where.foreign:
            return None
        where = where.outer
    return None if where is None else where.bits.get(name)


def _of_operation(op: ast.operator, left: int | None, right_node: ast.expr, scope: Scope) -> int | None:
    right = bits_of(right_node, scope)
    if left is None or right is None:
        return None
    constant = right_node.value if isinstance(right_node, ast.Constant) else None
    if isinstance(op, _LONGER):
        return _capped(max(left, right) + 1)
    if isinstance(op, ast.Mult):
        return _capped(left + right)
    if isinstance(op, ast.Div):
        return 0
    if isinstance(op, ast.FloorDiv | ast.RShift):
        return _capped(left + 1)
    if isinstance(op, ast.Mod):
        return _capped(right + 1)
    if isinstance(op, ast.Pow) and type(constant) is int:
        return _capped(left * constant + 1)
    if isinstance(op, ast.Pow) and type(constant) is float:
        return 0
    if isinstance(op, ast.LShift) and type(constant) is int:
        return _capped(left + constant)
    return None


def _most(found: Any) -> int | None:
    most = 0
    for bits in found:
        if bits is None:
            return None
        most = max(most, bits)
    return most


def _capped(bits: int) -> int:
    return bits if bits <= FEW else ANY
