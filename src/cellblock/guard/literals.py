"""Facts that a literal in source tells by itself: its type, and whether a format in it is plain."""

from __future__ import annotations

import ast
import re

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
