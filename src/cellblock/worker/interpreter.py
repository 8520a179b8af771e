"""Runs cells in one namespace, as a notebook does: statements, then the last expression's value."""

from __future__ import annotations

import builtins
import linecache
import os
import sys
import traceback
import types
from ast import Expr, Expression, Module, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from contextlib import suppress
from inspect import CO_COROUTINE
from selectors import DefaultSelector
from typing import TYPE_CHECKING, Any

from cellblock.text import exact, type_name, valid
from cellblock.wire.messages import Failure
from cellblock.worker.integrity import ours
from cellblock.worker.interrupts import Interrupted
from cellblock.worker.wrecked import lacks_python

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_RUNNER = os.path.dirname(__file__) + os.sep
"""Directory of files whose frames stand above a cell's and are not shown."""

_FUTURE_FLAGS = 0x1FF0000
"""The bits of `co_flags` that `from __future__` sets; they hold for every later cell."""

_OF_LOOP = frozenset(("create_task", "get_running_loop"))
_OWN_LOOP = frozenset(("run", "run_until_complete", "Runner"))
"""Functions of asyncio that want a running loop, and those that want none."""

_LONG_SOURCE = 500_000

NO_VALUE = object()
"""Value of a cell without a last expression, or with None for its value."""


class Interpreter:
    """One namespace and the cells run in it. The module `__main__` of its process is that namespace.

    Cells and what they import by name get a copy of `builtins`: one that replaces `len` or `print` there changes
    its own world, not the runner's.
    """

    __slots__ = ("_flags", "_hidden", "_loop", "_scoped", "builtins", "known", "module", "namespace")

    rehearsal = """
if 0:  # what cells are made of: parsed and compiled, and not run
    import a
    x = y.z(1, key="s")[0] + 2.0
    x.w, v = [i for i in x if not i], {1: x}
    for i in x: print(f"{i}")
    def f(e): return e
None
"""

    def __init__(self) -> None:
        module = types.ModuleType("__main__")
        self.builtins = types.ModuleType("builtins")
        self.builtins.__dict__.update(builtins.__dict__)
        sys.modules["builtins"] = self.builtins
        module.__dict__["__builtins__"] = self.builtins
        sys.modules["__main__"] = module
        self.module = module
        self.namespace = module.__dict__
        self.known = self.builtins.__dict__
        self._hidden = frozenset(self.namespace)
        self._flags = 0
        self._loop: AbstractEventLoop | None = None
        self._scoped: Callable[[Module], None] | None = None

    def names(self) -> list[str]:
        """The names that cells have bound. Runs no code of a key's class, which `globals()` lets be any object."""
        hidden = self._hidden
        return [
            name
            for name in list(self.namespace)
            if type(name) is str and name not in hidden and not (name.startswith("__") and name.endswith("__"))
        ]

    def clear(self) -> None:
        """Unbind every name that cells have bound, those between underscores too, and the last value."""
        for name in list(self.namespace):
            if type(name) is str and name not in self._hidden:
                self.namespace.pop(name, None)
        self.known.pop("_", None)
        self._flags = 0

    def offer(self, name: str, value: object) -> None:
        """Have a name known everywhere, as Python's own are; it is none of the session's."""
        self.known[name] = value

    def scope(self, temporary: types.ModuleType, unkept: Callable[[Collection[str]], Iterable[str]]) -> None:
        """Have a `with` at top level be a temporary scope, by the guard's module for that; `unkept` judges names."""
        self._scoped = temporary.scoped
        self.offer(temporary.SCOPED, temporary.entering(self.namespace, unkept))

    def bound(self, name: str) -> object:
        """Value that cells have bound a name to; KeyError where they have not."""
        return self.namespace[name]

    def describe(self, error: BaseException, max_text: int) -> Failure:
        """The failure that a cell's error is told as."""
        held = self.namespace.get("__builtins__")
        known = held if type(held) is dict else self.known
        return describe(error, max_text, is_wrecked=lacks_python(error, known))

    def run(self, source: str, filename: str) -> object:
        """Run one cell; its last expression's value, or `NO_VALUE`. What the cell raises is raised."""
        parts = self._compile(source, filename)
        value: object = None
        if any(map(_awaits, parts)) or self._wants_loop({name for part in parts for name in part.co_names}):
            value = self._await(self._on_loop(parts))
        else:
            for part in parts:
                value = eval(part, self.namespace)
        if value is None:
            return NO_VALUE
        if type(value) is not types.CoroutineType:  # which is told as not run, and not kept
            self.known["_"] = value
        return value

    def _compile(self, source: str, filename: str) -> list[types.CodeType]:
        """The cell's statements and its last expression, each where there is one; both evaluate, statements to None."""
        source, lines = ours(lines_of, source)
        _keep_lines((len(source), None, lines, filename))
        flags = self._flags | PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = _parse(source, filename, self._flags)
        if self._scoped is not None:
            self._scoped(tree)
        last: list[types.CodeType] = []
        if tree.body and isinstance(tree.body[-1], Expr):
            expression = Expression(tree.body.pop().value)  # type: ignore[attr-defined]
            last.append(compile(expression, filename, "eval", flags, dont_inherit=True))
        if not tree.body:
            return last
        body = compile(tree, filename, "exec", flags, dont_inherit=True)
        self._flags |= body.co_flags & _FUTURE_FLAGS
        return [body, *last]

    def recall(self) -> None:
        """Have what the cells of a loaded session imported from `__future__` hold for later ones, by their sources."""
        for name, entry in list(linecache.cache.items()):
            lines = entry[2] if name.startswith("<cell ") and len(entry) == 4 else ()
            if any("__future__" in line for line in lines):
                with suppress(SyntaxError):  # such a cell did not run
                    body = compile("".join(lines), name, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
                    self._flags |= body.co_flags & _FUTURE_FLAGS

    def _wants_loop(self, named: set[str]) -> bool:
        """True if a cell that awaits nothing asks asyncio for the running loop, which it finds as in Jupyter."""
        if named.isdisjoint(_OF_LOOP) or not named.isdisjoint(_OWN_LOOP):
            return False
        module: Any = sys.modules.get("asyncio")
        known = [module, *(getattr(module, name, None) for name in _OF_LOOP)]
        bound = [self.namespace.get(name) for name in named]
        return "asyncio" in named or any(one is other for one in bound for other in known if one is not None)

    def rebuild_loop(self) -> frozenset[str]:
        """Give the session's event loop what a copy of the process does not have; the threads that it had."""
        if self._loop is not None and not self._loop.is_closed():
            return _renew(self._loop)
        return frozenset()

    async def _on_loop(self, parts: list[types.CodeType]) -> object:
        """Both parts where either awaits: what the statements start is on the loop that the expression awaits on."""
        value: object = None
        for part in parts:
            value = eval(part, self.namespace)
            if _awaits(part):
                value = await value  # type: ignore[misc]
        return value

    def _await(self, coroutine: Coroutine[Any, Any, object]) -> object:
        """Run a top-level `await` on the session's event loop, which lives on between cells."""
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        except BaseException as error:
            if task.done():
                raise
            task.cancel()  # interrupted: the cell's own task must not go on in a later cell
            self._loop.run_until_complete(asyncio.wait([task]))
            try:
                task.result()
            except asyncio.CancelledError as cancelled:  # its frames are the cell's, and lead to what was awaited
                raise error.with_traceback(cancelled.__traceback__) from None
            raise


def _renew(loop: AbstractEventLoop) -> frozenset[str]:
    """In a copy: give a loop descriptors of its own, and threads where it is asked for them; the names of those it had.

    What it waited for over the old ones is gone, its timers and tasks stay.
    """
    selector_loop: Any = loop  # what follows is of selector loops, and has no public name
    threads = frozenset(thread.name for thread in getattr(selector_loop._default_executor, "_threads", ()))
    selector_loop._default_executor = None  # else it would wait for threads that are not here
    selector_loop._selector = DefaultSelector()
    selector_loop._internal_fds = 0
    selector_loop._make_self_pipe()
    return threads


def lines_of(source: str) -> tuple[str, list[str]]:
    """The source without its mark of the byte order, and its lines."""
    source = source.removeprefix("\ufeff")
    return source, [line + "\n" for line in source.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def _keep_lines(entry: tuple[int, None, list[str], str]) -> None:
    """For the tracebacks of this cell and of what it defines."""
    try:
        linecache.cache[entry[-1]] = entry
    except Interrupted:
        raise
    except BaseException:  # a cell has put something else in its place: tracebacks show no lines
        return


def _awaits(code: types.CodeType) -> bool:
    return bool(code.co_flags & CO_COROUTINE)


def _parse(source: str, filename: str, flags: int) -> Module:
    """The cell's tree; everything wrong with the source's text is a SyntaxError.

    For nesting that is too deep the parser raises MemoryError; from a long source it is what it says.
    """
    try:
        return compile(  # type: ignore[no-any-return]
            source,
            filename,
            "exec",
            flags | PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
    except (ValueError, MemoryError, RecursionError) as error:
        if isinstance(error, SyntaxError) or (isinstance(error, MemoryError) and len(source) > _LONG_SOURCE):
            raise
        reason = str(error) or "too deeply nested"
        raise SyntaxError(f"the source cannot be parsed: {reason}", (filename, 1, 1, "")) from None


def describe(error: BaseException, max_text: int, *, is_wrecked: bool = False) -> Failure:
    """A failure as text: the traceback starts at the cell, also for the errors it was raised from."""
    kind = "memory" if lacks_memory(error) else "raised"
    name = type_name(error)
    try:
        summary = traceback.TracebackException.from_exception(error)
        _start_at_cell(summary)
        text = "".join(summary.format())
        message = exact(str(error), None) if isinstance(error, SyntaxError) else str(summary)
    except BaseException as broken:  # the cell's exception class may raise anything from what it overrides
        text, message = f"{name}: <no traceback: {type_name(broken)}>\n", _own_message(error)
    return Failure(
        type=valid(name),
        message=valid(cut(message, max_text)),
        traceback=valid(cut(text, max_text)),
        kind=kind,
        is_wrecked=is_wrecked,
    )


class ToolError(Exception):
    """Error of a host function whose type is not one of Python's own, or is that of a limit of the session."""

    __module__ = "cellblock"


def lacks_memory(error: BaseException) -> bool:
    """True if the session met its memory limit: a host function's MemoryError is an error like any other."""
    return isinstance(error, MemoryError) and not isinstance(error, ToolError)


def _own_message(error: BaseException) -> str:
    """An error's message, past what its class says of itself."""
    try:
        return exact(BaseException.__str__(error), None)
    except BaseException:  # from what it was raised with
        return ""


def linked(summary: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """A summary, and those of all that it was raised from, during or together with, each once."""
    pending, seen = [summary], set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [link for link in (one.__cause__, one.__context__) if link is not None]
        pending += getattr(one, "exceptions", None) or []


def _start_at_cell(summary: traceback.TracebackException) -> None:
    for one in linked(summary):
        ours = [i for i, frame in enumerate(one.stack) if frame.filename.startswith("<cell")]
        if ours:
            del one.stack[: ours[0]]
        # ours are between theirs too: where an interrupt was raised, where `display` and a signal's handler were called
        one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(_RUNNER)]


def cut(text: str, limit: int) -> str:
    """The head and the tail of a text longer than `limit` characters, and how much is missing between."""
    if len(text) <= limit:
        return text
    half = max(limit // 2, 1)
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters cut ...]\n{text[-half:]}"
