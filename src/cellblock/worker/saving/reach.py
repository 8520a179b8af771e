"""Which names code can reach: those it mentions, and those that the functions it can call mention."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from types import CodeType

EVERYTHING = "*"
"""Stands for every name: what the code looks up is not written in it."""

_DYNAMIC = frozenset(
    (
        "globals", "locals", "vars", "dir", "eval", "exec", "compile", "__import__", "__main__", "__dict__",
        "__globals__", "f_globals", "f_locals", "f_back", "_getframe", "currentframe", "modules", "get_objects",
        "get_referrers", "run_module", "runpy", "pickle", "dill", "cloudpickle", "inspect", "sys", "gc", "code", "pdb",
        "breakpoint", "timeit", "doctest",
    )
)  # fmt: skip
_word = re.compile(r"[^\W\d]\w*").findall


def reached_by_source(source: str, known: Container[str]) -> set[str]:
    """The names that a cell's source mentions, in strings too; `EVERYTHING` where that cannot be told."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {EVERYTHING}
    found: set[str] = set()
    for node in ast.walk(tree):
        for word in _words(node):
            if word in _DYNAMIC:
                return {EVERYTHING}
            if word in known:
                found.add(word)
    return found


def reached_by_code(code: CodeType, known: Container[str]) -> set[str]:
    """The same of a function's code and of all that is nested in it."""
    found: set[str] = set()
    pending: list[object] = [code]
    while pending:
        one = pending.pop()
        if isinstance(one, CodeType):
            pending += one.co_consts
            words = list(one.co_names)
        elif isinstance(one, str):
            words = _word(one)
        elif isinstance(one, (tuple, frozenset)):
            pending += one
            continue
        else:
            continue
        if not _DYNAMIC.isdisjoint(words):
            return {EVERYTHING}
        found.update(word for word in words if word in known)
    return found


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _word(node.value)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for one in node.names:
            yield from one.name.split(".")
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.keyword) and node.arg is not None:
        yield node.arg
