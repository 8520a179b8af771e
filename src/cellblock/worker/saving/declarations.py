"""The imports and definitions of cells, in order, each once: what a session is rebuilt from without its values."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class _Declared:
    text: str
    names: frozenset[str]
    uses: frozenset[str]
    is_import: bool


def declarations(sources: Iterable[str]) -> list[str]:
    """The texts of `declared`."""
    return [text for text, _ in declared(sources)]


def declared(sources: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    """Of cells in the order they ran: their imports and definitions, as source, each with the names it binds.

    The same import is told once. A definition that a later one replaces is left out, unless something between the
    two needs it, such as a class derived from the older one. Cells that do not parse have none.
    """
    found: list[_Declared] = []
    for source in sources:
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        found += [one for node in body if (one := _declared(node, source)) is not None]
    kept: list[_Declared] = []
    seen: set[str] = set()
    for place, one in enumerate(found):
        if one.is_import:
            if one.text in seen:
                continue
            seen.add(one.text)
        elif _is_replaced(one, found[place + 1 :]):
            continue
        kept.append(one)
    return [(one.text, one.names) for one in kept]


def _is_replaced(one: _Declared, later: list[_Declared]) -> bool:
    for other in later:
        if one.names & other.uses:
            return False
        if one.names <= other.names and not other.is_import:
            return True
    return False


def _declared(node: ast.stmt, source: str) -> _Declared | None:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = frozenset((one.asname or one.name).partition(".")[0] for one in node.names)
        return _Declared(ast.unparse(node), names, frozenset(), is_import=True)
    if isinstance(node, _DEFINED):
        text = ast.get_source_segment(source, node, padded=True) or ast.unparse(node)
        if node.decorator_list:
            first = node.decorator_list[0].lineno
            text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
        return _Declared(text, frozenset((node.name,)), _used_at_once(node), is_import=False)
    return None


def _used_at_once(node: ast.stmt) -> frozenset[str]:
    """Names that are looked up while the definition is made, not when what it defines is called."""
    assert isinstance(node, _DEFINED)
    found: set[str] = set()
    pending: list[ast.AST] = [*node.decorator_list]
    if isinstance(node, ast.ClassDef):
        pending += [*node.bases, *node.keywords, *node.body]
    else:
        pending += [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
    while pending:
        here = pending.pop()
        if isinstance(here, ast.Name):
            found.add(here.id)
        elif isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [*here.decorator_list, *here.args.defaults]
            continue
        pending += ast.iter_child_nodes(here)
    return frozenset(found)
