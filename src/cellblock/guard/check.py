"""Source to `Program`: parsed, checked and rewritten whole before any of it runs."""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import TypeGuard

from cellblock.guard.build import STORE, placed
from cellblock.guard.refusal import Refusal, rejection
from cellblock.guard.rewrite import Rewriter
from cellblock.guard.rules import BY_ID
from cellblock.guard.scopes import Group, Scope
from cellblock.guard.temporary import scoped


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Checked and compiled source: its statements, and its last expression where there is one.

    `reads`, `writes` and `groups` are the attributes that it names, whose sets a world must have before it runs;
    `swaps` those among them that are methods of the guard's own for some types. Each code is a function's without
    arguments, or a module's.
    """

    filename: str
    body: CodeType | None
    last: CodeType | None
    reads: frozenset[str]
    writes: frozenset[str]
    reaches: frozenset[str]
    groups: frozenset[Group]
    swaps: frozenset[str]


MAX_SOURCE = 2_000_000
"""Characters of one source."""
_FUTURE_FLAGS = 0x1FF0000
_WITHIN = "<module>.<locals>."


def check(
    source: str,
    *,
    filename: str = "<cell>",
    modules: Callable[[str], bool] = lambda name: False,
    bound: frozenset[str] | set[str] = frozenset(),
    without: frozenset[str] = frozenset(),
    flags: int = 0,
    plain: bool = False,
    scopes: bool = False,
    library: bool = False,
) -> Program:
    """The program of a source; `SourceRejected` with all its refusals, or a SyntaxError as CPython words it.

    `modules` tells whether a module is granted. `bound` are names that stand for something already, `without` the
    features that are switched off. `flags` are those that earlier sources set by `from __future__`. `plain` has it run
    as a module, with names of its own where it is given some. `scopes` makes a `with` at top level a temporary scope.
    `library` leaves more to be decided while it runs: it is source of Python's own library.
    """
    source = source.removeprefix("\ufeff")
    flags = (flags & _FUTURE_FLAGS) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    if len(source) > MAX_SOURCE:
        raise rejection([_whole("size", f"source of {len(source):,} characters")], source)
    try:
        tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    except (MemoryError, RecursionError):
        raise rejection([_whole("nesting", "source that is nested too deeply")], source) from None
    except SyntaxError:
        raise
    except ValueError as error:
        raise SyntaxError(f"the source cannot be parsed: {error}", (filename, 1, 1, "")) from None
    texts = bool(flags & __future__.annotations.compiler_flag)
    if scopes:
        scoped(tree)
    rewriter = Rewriter(modules=modules, bound=bound, without=without, texts=texts, library=library)
    try:
        rewriter.rewrite(tree)
    except (RecursionError, MemoryError):
        raise rejection([_whole("nesting", "source that is nested too deeply")], source) from None
    except Exception as error:  # a fault of the guard's own must let nothing through
        raise rejection([_whole("node", f"source that the guard failed on: {error!r:.200}")], source) from error
    if rewriter.refusals:
        # what CPython itself would not compile is a syntax error first
        raise rejection(rewriter.refusals, source)
    rewriter.module.plain |= plain
    return _compiled(tree, rewriter, source, filename, flags)


def _compiled(tree: ast.Module, rewriter: Rewriter, source: str, filename: str, flags: int) -> Program:
    try:
        make = _as_module if rewriter.module.plain else _as_function
        body, last = make(tree, rewriter.module, filename, flags)
    except (MemoryError, RecursionError):
        raise rejection([_whole("nesting", "source that is nested too deeply")], source) from None
    return Program(
        filename=filename,
        body=body,
        last=last,
        reads=frozenset(rewriter.reads),
        writes=frozenset(rewriter.writes),
        reaches=frozenset(rewriter.reaches),
        groups=frozenset(rewriter.groups),
        swaps=frozenset(rewriter.swaps),
    )


def _as_function(tree: ast.Module, module: Scope, filename: str, flags: int) -> tuple[CodeType | None, CodeType | None]:
    """One code, of a function in which all names of the module are global and the guard's own are local."""
    body = tree.body
    if not body:
        return None, None
    first, ending = body[0], body[-1]
    if isinstance(ending, ast.Expr):
        body[-1] = placed(ast.Return(ending.value), ending)
    if first is not ending and _is_text(first):
        module.bound["__doc__"] = []
        body[0] = placed(ast.Assign([placed(ast.Name("__doc__", STORE), first)], first.value), first)
    if module.bound:
        body.insert(0, placed(ast.Global(list(module.bound)), first))
    kind = ast.AsyncFunctionDef if module.suspends else ast.FunctionDef
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = placed(kind("<module>", arguments, body, [], None, None), first)
    if sys.version_info >= (3, 12):
        function.type_params = []
    made = compile(ast.Module([function], []), filename, "exec", flags, dont_inherit=True)
    code = next(one for one in made.co_consts if isinstance(one, CodeType))
    if module.unnamed:
        code = _called_after_module(code)
    return (None, code) if isinstance(ending, ast.Expr) else (code, None)


def _is_text(node: ast.stmt) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _called_after_module(code: CodeType) -> CodeType:
    """The code with what is made in it called after where it stands in the module, not in our function."""
    consts = tuple(
        _called_after_module(one.replace(co_qualname=one.co_qualname.removeprefix(_WITHIN)))
        if isinstance(one, CodeType) and one.co_qualname.startswith(_WITHIN)
        else one
        for one in code.co_consts
    )
    return code.replace(co_consts=consts)


def _as_module(tree: ast.Module, module: Scope, filename: str, flags: int) -> tuple[CodeType | None, CodeType | None]:
    """A code of the statements and one of the last expression, which bind names as modules do."""
    expression = None
    if tree.body and isinstance(ending := tree.body[-1], ast.Expr):
        expression = ast.Expression(ending.value)
        tree.body.pop()
    body = compile(tree, filename, "exec", flags, dont_inherit=True) if tree.body else None
    if body is not None:
        flags |= body.co_flags & _FUTURE_FLAGS
    return body, None if expression is None else compile(expression, filename, "eval", flags, dont_inherit=True)


def _whole(rule: str, what: str) -> Refusal:
    return Refusal(rule=rule, what=what, line=1, column=0, end_column=1, instead=BY_ID[rule].instead)
