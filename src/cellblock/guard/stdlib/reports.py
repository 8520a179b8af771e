"""Stand-ins for modules that report on a program: traceback, inspect, timeit."""

from __future__ import annotations

import inspect
import sys
import textwrap
import time
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.names import names
from cellblock.guard.signatures import signature_of
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, naming
from cellblock.guard.weights import light

if TYPE_CHECKING:
    from cellblock.guard.world import World

# ---------------------------------------------------------------------------------- traceback


def shown(error: BaseException | None, *, chain: bool = True) -> str:
    """An exception as text: the lines of the cell's own frames, with nothing of those between."""
    if error is None:
        return "NoneType: None\n"
    found = traceback.TracebackException.from_exception(light(error), lookup_lines=False)
    waiting = [found]
    while waiting:
        one = waiting.pop()
        one.stack[:] = [frame for frame in one.stack if frame.filename.startswith("<cell")]
        waiting += [link for link in (one.__cause__, one.__context__) if link is not None]
        waiting += one.exceptions or []
    return "".join(found.format(chain=chain))


def _error(given: tuple[Any, ...]) -> BaseException | None:
    return next((one for one in given if isinstance(one, BaseException)), None)


def _print(world: World, text: str, file: Any) -> None:
    world.builtins["print"](text, end="", file=world.streams["stderr"] if file is None else file)


def _print_exc(world: World) -> Callable[..., None]:
    def print_exc(*_: Any, file: Any = None, chain: bool = True) -> None:
        _print(world, shown(sys.exception(), chain=chain), file)

    return print_exc


def _print_exception(world: World) -> Callable[..., None]:
    def print_exception(*given: Any, file: Any = None, chain: bool = True, **_: Any) -> None:
        _print(world, shown(_error(given), chain=chain), file)

    return print_exception


# ------------------------------------------------------------------------------------ inspect


def _signature(world: World) -> Callable[..., inspect.Signature]:
    return lambda obj, **_: signature_of(world, obj)


def _getmembers(world: World) -> Callable[..., list[tuple[str, Any]]]:
    get = world.builtins["getattr"]

    def getmembers(obj: Any, predicate: Any = None) -> list[tuple[str, Any]]:
        found = [(name, get(obj, name, None)) for name in world.builtins["dir"](obj)]
        return [(name, value) for name, value in found if predicate is None or world.calls(predicate)(value)]

    return getmembers


def _getdoc(world: World) -> Callable[[Any], str | None]:
    get = world.builtins["getattr"]

    def getdoc(obj: Any) -> str | None:
        doc = get(obj, "__doc__", None)
        return inspect.cleandoc(doc) if isinstance(doc, str) else None

    return getdoc


_ASKS = names(
    "isgenerator isgeneratorfunction iscoroutine iscoroutinefunction isawaitable isasyncgen isasyncgenfunction "
    "isfunction ismethod isbuiltin isroutine isabstract cleandoc"
)

# ------------------------------------------------------------------------------------- timeit


_TIMED = """def timed(number, clock, statement, prepare):
{setup}
    began = clock()
    for _ in range(number):
{statement}
    return clock() - began
"""


def _timer(world: World, stmt: Any, setup: Any) -> Callable[[int], float]:
    """A function that runs a statement so many times and returns the seconds taken. Texts are checked as cells are."""
    texts = {"setup": setup or "pass", "statement": stmt or "pass"}
    parts = {
        "setup": "prepare()" if callable(setup) else texts["setup"],
        "statement": "statement()" if callable(stmt) else texts["statement"],
    }
    if not all(isinstance(one, str) for one in parts.values()):
        raise ValueError("stmt is neither a string nor callable")
    source = _TIMED.format(
        setup=textwrap.indent(parts["setup"], " " * 4), statement=textwrap.indent(parts["statement"], " " * 8)
    )
    timed = world.bound_by(source, "<timeit>")["timed"]
    return lambda number: float(timed(number, time.perf_counter, stmt, setup))


def _timeit(world: World) -> Callable[..., float]:
    def timeit(stmt: Any = "pass", setup: Any = "pass", timer: Any = None, number: int = 1_000_000, **_: Any) -> float:
        return _timer(world, stmt, setup)(number)

    return timeit


def _repeat(world: World) -> Callable[..., list[float]]:
    def repeat(
        stmt: Any = "pass", setup: Any = "pass", timer: Any = None, repeat: int = 5, number: int = 1_000_000, **_: Any
    ) -> list[float]:
        found = _timer(world, stmt, setup)
        return [found(number) for _ in range(repeat)]

    return repeat


AUDITS = (
    ModuleAudit(
        name="traceback",
        instead={
            "format_exc": lambda *_, chain=True: shown(sys.exception(), chain=chain),
            "format_exception": lambda *given, chain=True, **_: shown(_error(given), chain=chain).splitlines(True),
            "format_exception_only": lambda *given: traceback.format_exception_only(light(_error(given))),
        },
        replaced={"print_exc": _print_exc, "print_exception": _print_exception},
        note="texts of the code's own lines: never a frame",
    ),
    ModuleAudit(
        name="inspect",
        members=_ASKS | names("Parameter Signature"),
        naming=names("Parameter Signature cleandoc"),
        instead={
            "isclass": lambda value: isinstance(value, type),
            "ismodule": lambda value: isinstance(value, types.ModuleType),
        },
        replaced={"signature": _signature, "getmembers": _getmembers, "getdoc": _getdoc},
        types=(
            audit(inspect.Signature, but=names("from_callable replace"), replaced=naming("replace")),
            audit(inspect.Parameter),
            TypeAudit(type=type(inspect.Parameter.POSITIONAL_ONLY), reads=names("name value description")),
        ),
        note="no frames, no sources, no closures; defaults of the host's functions that are objects are left out",
    ),
    ModuleAudit(
        name="timeit",
        instead={"default_timer": time.perf_counter},
        replaced={"timeit": _timeit, "repeat": _repeat},
        note="texts are checked as cells are, and see the names of the code, whatever globals are given",
    ),
)
