"""Checks of the sizes of `*`, `**`, `<<` and `%`: none, inline, or by calling `sizes`.

    a * b   is   p * q if type(p := a) is type(q := b) is int and -S < p < S or type(p) is float or type(q) is float
                 else multiply(p, q)

What is known of an operand beforehand is not asked: see `magnitude`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cellblock.guard import build, spelling
from cellblock.guard.magnitude import FEW, bits_of
from cellblock.guard.scopes import TEMPORARIES, Scope, literal_type, plain_modulo

HARMLESS = 3
"""A constant that multiplies whatever it is given by no more than this needs no check."""
_SMALL = (1 << 30) - 1
"""Below this an int is one digit of CPython's, and compared at once."""
_SHIFTED = 4096
_EXPONENT = 1000

Again = Callable[[], ast.expr]

SIZED: dict[type, str] = {
    ast.Mult: spelling.MULTIPLY,
    ast.Pow: spelling.POWER,
    ast.LShift: spelling.SHIFT,
    ast.Mod: spelling.MODULO,
}


@dataclass(slots=True)
class Operation:
    """A binary operation or an augmented assignment that can make something large."""

    node: Any
    put: Callable[[ast.AST], None]
    scope: Scope
    flags: int
    left: int | None = None
    right: int | None = None
    present: list[ast.expr] = field(default_factory=list)
    """Of an augmented assignment: what its target is before it."""

    @property
    def kind(self) -> type:
        return type(self.node.op)


def harmless(kind: type, left: ast.expr | None, right: ast.expr) -> bool:
    """True if an operation's constants alone keep its result small."""
    if kind is ast.Mult:
        return _is_small(right) or (left is not None and _is_small(left))
    if kind is ast.Pow:
        return isinstance(right, ast.Constant) and (type(right.value) is float or right.value in (0, 1, 2, 3))
    if kind is ast.Mod:
        return isinstance(left, ast.Constant) and (not isinstance(left.value, str | bytes) or plain_modulo(left.value))
    return _is_small(right)


def _is_small(node: ast.expr) -> bool:
    if not isinstance(node, ast.Constant):
        return False
    value = node.value
    return type(value) in (float, complex, bool) or (type(value) is int and value <= HARMLESS)


def is_simple(node: ast.AST) -> bool:
    """True if an expression may be evaluated twice."""
    if isinstance(node, ast.Attribute):
        return is_simple(node.value)
    if isinstance(node, ast.Subscript):
        return is_simple(node.value) and is_simple(node.slice)
    if isinstance(node, ast.BinOp):
        return type(node.op) in (ast.Add, ast.Sub) and is_simple(node.left) and is_simple(node.right)
    if isinstance(node, ast.Tuple):
        return all(map(is_simple, node.elts))
    return isinstance(node, ast.Name | ast.Constant)


def measure(operation: Operation) -> None:
    """Note what is known of the operands, before any part of the tree is replaced."""
    node, scope = operation.node, operation.scope
    left, right = (node.target, node.value) if isinstance(node, ast.AugAssign) else (node.left, node.right)
    operation.left, operation.right = bits_of(left, scope), bits_of(right, scope)


def place(operation: Operation) -> None:
    """Put the check where it belongs; operations inside this one have theirs."""
    node, kind = operation.node, operation.kind
    if _is_known(operation):
        return
    augmented = isinstance(node, ast.AugAssign)
    left, right = (operation.present[0], node.value) if augmented else (node.left, node.right)
    function = SIZED[kind] + ("_by" if augmented else "")
    one, other = _kept(left, operation, before=right), _kept(right, operation)
    if one is None or other is None or _is_sequence(left) or _is_sequence(right):
        checked: ast.expr = build.call(node, function, left, right)
    else:
        (first, again), (second, then) = one, other
        test = _test(operation, first, second, again, then)
        if not augmented:
            node.left, node.right = again(), then()
        result = then() if augmented else node
        checked = build.either(node, test, result, build.call(node, function, again(), then()))
    if augmented:
        node.value = checked
    else:
        operation.put(checked)


def _is_known(operation: Operation) -> bool:
    left, right = operation.left, operation.right
    if operation.kind is ast.Mod:
        return left is not None
    return operation.kind is ast.Mult and left is not None and right is not None and min(left, right) <= FEW


def _test(operation: Operation, first: ast.expr, second: ast.expr, again: Again, then: Again) -> ast.expr:
    """Test that nothing large can come of two operands."""
    at, kind = operation.node, operation.kind
    fixed, few = _is_again(first) and _is_again(second), kind is ast.Mult
    if few and fixed and (operation.left or 0) <= FEW and operation.left is not None:
        return _is_number(at, second, then)
    if few and (isinstance(second, ast.Constant) or fixed) and operation.right is not None and operation.right <= FEW:
        return _is_number(at, first, again)
    if kind is ast.Mod and _is_again(second):
        return _is_number(at, first, again)
    kind_of, known = _kind(operation, first, again)
    other = build.call(at, spelling.TYPE, second)
    ints = [build.chain(at, kind_of, "is", other, "is", build.name(at, spelling.INT))]
    if kind in (ast.Mult, ast.Pow):
        ints.append(build.chain(at, build.constant(at, -_SMALL), "<", again(), "<", build.constant(at, _SMALL)))
    if kind in (ast.Pow, ast.LShift):
        most = _EXPONENT if kind is ast.Pow else _SHIFTED
        ints.append(build.chain(at, then(), "<", build.constant(at, most)))
    whole = build.all_of(at, *ints)
    if kind is ast.LShift:
        return whole
    if kind is ast.Mod:
        return build.any_of(at, whole, build.is_in(at, known(), spelling.NUMBERS))
    floats = build.chain(at, known(), "is", build.name(at, spelling.FLOAT))
    return build.any_of(at, whole, floats, _is_float(at, then()))


def _kind(operation: Operation, first: ast.expr, again: Again) -> tuple[ast.expr, Again]:
    """The type of what is evaluated first, and the same again."""
    at = operation.node
    kind = build.call(at, spelling.TYPE, first)
    if not operation.flags & TEMPORARIES:
        return kind, lambda: build.call(at, spelling.TYPE, again())
    spelled = operation.scope.temporary()
    return build.kept(at, spelled, kind), lambda: build.name(at, spelled)


def _is_number(at: ast.AST, first: ast.expr, again: Again) -> ast.expr:
    known = build.chain(at, build.call(at, spelling.TYPE, first), "is", build.name(at, spelling.INT))
    return build.any_of(at, known, _is_float(at, again()))


def _is_float(at: ast.AST, value: ast.expr) -> ast.expr:
    return build.chain(at, build.call(at, spelling.TYPE, value), "is", build.name(at, spelling.FLOAT))


def _is_again(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Constant)


def _is_sequence(node: ast.expr) -> bool:
    return literal_type(node) in (str, bytes, list, tuple)


def _kept(node: ast.expr, operation: Operation, before: ast.expr | None = None) -> tuple[ast.expr, Again] | None:
    """An expression to be evaluated first, and what it gave, to be read at will; None if it cannot be.

    `before` is what is evaluated between the two.
    """
    if isinstance(node, ast.Constant):
        return node, lambda: build.constant(node, node.value)
    if isinstance(node, ast.Name) and _is_settled(node.id, operation.scope) and not _binds(before, node.id):
        return build.name(node, node.id), lambda: build.name(node, node.id)
    if not operation.flags & TEMPORARIES:
        return None
    spelled = operation.scope.temporary()
    return build.kept(node, spelled, node), lambda: build.name(node, spelled)


def _is_settled(name: str, scope: Scope) -> bool:
    """True if nothing but the frame that an operation is in rebinds a name, or the one that its comprehension is in.
    """
    where = scope
    while where.kind == "comprehension" and name not in where.bound and where.outer is not None:
        where = where.outer
    return where.kind in ("function", "comprehension") and name in where.bound and name not in where.foreign


def _binds(node: ast.expr | None, name: str) -> bool:
    if node is None or isinstance(node, ast.Name | ast.Constant):
        return False
    return any(isinstance(one, ast.NamedExpr) and one.target.id == name for one in ast.walk(node))
