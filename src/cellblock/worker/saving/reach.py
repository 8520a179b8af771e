"""Names that a function can reach: those it mentions, and those that the functions it can call mention."""

from __future__ import annotations

import re
from collections.abc import Container
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


def reached_by_code(code: CodeType, known: Container[str]) -> set[str]:
    """The names that a function's code mentions, in strings too, and all that is nested in it; `EVERYTHING` where that
    cannot be told."""
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
