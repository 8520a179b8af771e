"""What must be asked before a pattern of `match` is tried: patterns read attributes without an attribute's syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from cellblock.guard import build, spelling
from cellblock.guard.names import is_dunder, never_read


def checks_of(pattern: ast.pattern, refuse: Callable[[str, str, ast.AST], None]) -> list[ast.Call]:
    """Calls that raise where a part of the pattern would read what is not granted, and otherwise give False.

    Each is `guard.match(root, names, keywords, positions)`: `root.names…` is the class or the value, `keywords` and
    `positions` are the attributes that a class pattern reads, None for a value.
    """
    found: list[ast.Call] = []
    for part in ast.walk(pattern):
        if isinstance(part, ast.MatchClass):
            for keyword in part.kwd_attrs:
                rule = never_read(keyword)
                if rule or keyword.startswith("_"):
                    refuse(rule or "pattern", f"attribute {keyword} is not granted in a pattern", part)
            if part.kwd_attrs or part.patterns or isinstance(part.cls, ast.Attribute):
                reads = build.constant(part, tuple(part.kwd_attrs))
                found.append(_check(part.cls, reads, len(part.patterns), refuse))
        elif isinstance(part, ast.MatchValue | ast.MatchMapping):
            for value in _values(part):
                found.append(_check(value, build.constant(value, None), 0, refuse))
    return found


def _values(part: ast.MatchValue | ast.MatchMapping) -> Iterator[ast.expr]:
    for value in [part.value] if isinstance(part, ast.MatchValue) else part.keys:
        if isinstance(value, ast.Attribute):
            yield value


def _check(value: ast.expr, reads: ast.expr, positions: int, refuse: Callable[[str, str, ast.AST], None]) -> ast.Call:
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
