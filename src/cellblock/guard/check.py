"""Source to `Program`: parsed, checked and rewritten whole before any of it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cellblock.guard.program import Program
from cellblock.guard.refusal import Refusal, rejection
from cellblock.guard.rewrite import Rewriter
from cellblock.guard.rules import BY_ID

MAX_SOURCE = 2_000_000
"""Characters of one source."""
_FUTURE_FLAGS = 0x1FF0000


def check(
    source: str,
    *,
    filename: str = "<cell>",
    modules: Callable[[str], bool] = lambda name: False,
    bound: frozenset[str] | set[str] = frozenset(),
    without: frozenset[str] = frozenset(),
    flags: int = 0,
) -> Program:
    """The program of a source; `SourceRejected` with all its refusals, or a SyntaxError as CPython words it.

    `modules` tells whether a module is granted. `bound` are names that stand for something already, `without` the
    features that are switched off. `flags` are those that earlier sources set by `from __future__`.
    """
    source = source.removeprefix("\ufeff")
    if len(source) > MAX_SOURCE:
        raise rejection([_whole("size", f"source of {len(source):,} characters")], source)
    flags = (flags & _FUTURE_FLAGS) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    except (MemoryError, RecursionError):
        raise rejection([_whole("nesting", "source that is nested too deeply")], source) from None
    except SyntaxError:
        raise
    except ValueError as error:
        raise SyntaxError(f"the source cannot be parsed: {error}", (filename, 1, 1, "")) from None
    rewriter = Rewriter(modules=modules, bound=bound, without=without)
    try:
        rewriter.rewrite(tree)
    except (RecursionError, MemoryError):
        raise rejection([_whole("nesting", "source that is nested too deeply")], source) from None
    except Exception as error:  # a fault of the guard's own must let nothing through
        raise rejection([_whole("node", f"source that the guard failed on: {error!r:.200}")], source) from error
    if rewriter.refusals:
        # what CPython itself would not compile is a syntax error first
        raise rejection(rewriter.refusals, source)
    return _compiled(tree, rewriter, source, filename, flags)


def _compiled(tree: ast.Module, rewriter: Rewriter, source: str, filename: str, flags: int) -> Program:
    last = None
    try:
        expression = None
        if tree.body and isinstance(ending := tree.body[-1], ast.Expr):
            expression = ast.Expression(ending.value)
            tree.body.pop()
        body = compile(tree, filename, "exec", flags, dont_inherit=True) if tree.body else None
        if body is not None:
            flags |= body.co_flags & _FUTURE_FLAGS
        if expression is not None:
            last = compile(expression, filename, "eval", flags, dont_inherit=True)
    except (MemoryError, RecursionError):
        raise rejection([_whole("nesting", "source that is nested too deeply")], source) from None
    return Program(
        filename=filename,
        body=body,
        last=last,
        reads=frozenset(rewriter.reads),
        writes=frozenset(rewriter.writes),
        reaches=frozenset(rewriter.reaches),
        swaps=frozenset(rewriter.swaps),
    )


def _whole(rule: str, what: str) -> Refusal:
    return Refusal(rule=rule, what=what, line=1, column=0, end_column=1, instead=BY_ID[rule].instead)
