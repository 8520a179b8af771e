"""Attributes that a source sets in other objects, as its syntax tells them."""

from __future__ import annotations

import ast
from collections.abc import Iterable


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
