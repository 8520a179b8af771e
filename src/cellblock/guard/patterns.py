"""Checks before a pattern of `match` is tried: patterns read attributes without an attribute's syntax.

Classes and values that a pattern names are looked up once, when they are asked about, and the pattern then has what was
found: while it is tried, code of the subject's runs, which may bind the names anew.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from cellblock.guard import build, spelling
from cellblock.guard.names import is_dunder, never_read

Refuse = Callable[[str, str, ast.AST], None]


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
