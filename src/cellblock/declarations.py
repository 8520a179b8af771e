"""The imports and definitions of cells, in order, each once: what a session is rebuilt from without its values.

No commit holds them: they are worked out from the sources of its cells, where somebody asks. Parses what cells said,
runs none of it, and takes time in proportion to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

_LINE_END = re.compile(r"\r\n|\r|\n")
"""As Python's parser takes it."""
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class _Declared:
    text: str
    names: frozenset[str]
    uses: frozenset[str]
    is_import: bool


def declared(sources: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    """Of cells in the order they ran: their imports and definitions, as source, each with the names it binds.

    The same import is told once. A definition that a later one replaces is left out, unless something between the
    two needs it, such as a class derived from the older one. Cells that do not parse have none.
    """
    found: list[_Declared] = []
    for source in sources:
        try:
            with catch_warnings():
                simplefilter("ignore")  # such as those of escapes that are none
                body = ast.parse(source).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        lines = _LINE_END.split(source)
        found += [one for node in body if (one := _declared(node, lines)) is not None]
    imports = {one.text: one for one in reversed(found) if one.is_import}
    kept = [one for one in _not_replaced(found) if not one.is_import or imports[one.text] is one]
    return [(one.text, one.names) for one in kept]


def _not_replaced(found: list[_Declared]) -> list[_Declared]:
    kept: list[_Declared] = []
    replaced: set[str] = set()
    """Names that are defined further on, before anything uses them."""
    for one in reversed(found):
        if one.is_import or not one.names <= replaced:
            kept.append(one)
        if not one.is_import:
            replaced |= one.names
            replaced -= one.uses
    return kept[::-1]


def _declared(node: ast.stmt, lines: list[str]) -> _Declared | None:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = frozenset((one.asname or one.name).partition(".")[0] for one in node.names)
        return _Declared(ast.unparse(node), names, frozenset(), is_import=True)
    if isinstance(node, _DEFINED):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        text = "\n".join(lines[first - 1 : node.end_lineno])
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
