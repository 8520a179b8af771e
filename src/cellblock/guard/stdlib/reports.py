"""Stand-ins for modules that report on a program: logging, traceback, inspect, timeit."""

from __future__ import annotations

import inspect
import logging
import sys
import textwrap
import time
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard import sizes
from cellblock.guard.refusal import denied
from cellblock.guard.signatures import signature_of
from cellblock.guard.standins import TypeStandIn
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, names

if TYPE_CHECKING:
    from cellblock.guard.world import World

# ------------------------------------------------------------------------------------ logging

_LEVELS = names("CRITICAL ERROR WARNING WARN INFO DEBUG NOTSET FATAL")
_BASIC = "%(levelname)s:%(name)s:%(message)s"


def _level(value: Any) -> int:
    if isinstance(value, str):
        found = logging.getLevelNamesMapping().get(str.__str__(value))
        if found is None:
            raise ValueError(f"Unknown level: {value!r}")
        return found
    return int(value)


class Formatter:
    """Formats records. The `%` style alone: the others read attributes from text."""

    def __init__(self, fmt: str | None = None, datefmt: str | None = None, style: str = "%", **_: Any) -> None:
        if style != "%":
            raise denied("a log format reads attributes by text: use style='%'", "format")
        self._form = str.__str__(fmt) if fmt is not None else "%(message)s"
        self._date = datefmt

    def format(self, record: dict[str, Any]) -> str:
        when = time.localtime(record["created"])
        shown = time.strftime(self._date or "%Y-%m-%d %H:%M:%S", when)
        if self._date is None:
            shown += f",{record['msecs']:03.0f}"
        text: str = sizes.modulo(self._form, {**record, "asctime": shown})
        return f"{text}{record['traceback']}"


class Handler:
    """Writes records to a stream; the session's own where none is given."""

    def __init__(self, world: World, stream: Any = None) -> None:
        self._world = world
        self._stream = world.streams["stderr"] if stream is None else stream
        self._formatter = Formatter()
        self.level = 0

    def setLevel(self, level: Any) -> None:
        self.level = _level(level)

    def setFormatter(self, formatter: Any) -> None:
        if not isinstance(formatter, Formatter):
            raise TypeError("a Formatter is needed")
        self._formatter = formatter

    def emit(self, record: dict[str, Any]) -> None:
        if record["levelno"] >= self.level:
            self._world.gates.read(self._stream, "write").write(self._formatter.format(record) + "\n")

    def flush(self) -> None:
        return None

    close = flush


class Logger:
    """A logger of one world, found by its name."""

    def __init__(self, world: World, name: str, parent: Logger | None) -> None:
        self._world = world
        self._parent = parent
        self.name = name
        self.level = logging.WARNING if parent is None else logging.NOTSET
        self.handlers: list[Handler] = []
        self.propagate = True
        self.disabled = False

    @property
    def parent(self) -> Logger | None:
        return self._parent

    def setLevel(self, level: Any) -> None:
        self.level = _level(level)

    def getEffectiveLevel(self) -> int:
        found: Logger | None = self
        while found is not None:
            if found.level:
                return found.level
            found = found._parent
        return logging.NOTSET

    def isEnabledFor(self, level: int) -> bool:
        lowest: int = self._world.values.get("logging disabled", 0)
        return not self.disabled and level > lowest and level >= self.getEffectiveLevel()

    def addHandler(self, handler: Any) -> None:
        if not isinstance(handler, Handler):
            raise TypeError("a StreamHandler or NullHandler is needed")
        if handler not in self.handlers:
            self.handlers.append(handler)

    def removeHandler(self, handler: Any) -> None:
        if handler in self.handlers:
            self.handlers.remove(handler)

    def hasHandlers(self) -> bool:
        return bool(self._found())

    def getChild(self, suffix: str) -> Logger:
        return _logger(self._world, suffix if self._parent is None else f"{self.name}.{suffix}")

    def _found(self) -> list[Handler]:
        found: list[Handler] = []
        at: Logger | None = self
        while at is not None:
            found += at.handlers
            at = at._parent if at.propagate else None
        return found

    def log(self, level: int, msg: Any, *args: Any, exc_info: Any = None, **_: Any) -> None:
        if not self.isEnabledFor(level):
            return
        text = str(msg)
        if args:
            text = sizes.modulo(text, args[0] if len(args) == 1 and isinstance(args[0], dict) and args[0] else args)
        now = time.time()
        record = {
            "name": self.name,
            "levelname": logging.getLevelName(level),
            "levelno": level,
            "message": text,
            "msg": text,
            "created": now,
            "msecs": now % 1 * 1000,
            "traceback": "\n" + _shown(sys.exception()).rstrip("\n") if exc_info else "",
            **dict.fromkeys(("filename", "pathname", "module"), "<cell>"),
            **dict.fromkeys(("lineno", "process", "thread"), 0),
            "funcName": "<module>",
            "processName": "MainProcess",
            "threadName": "MainThread",
        }
        handlers = self._found()
        if not handlers and level >= logging.WARNING:
            handlers = [Handler(self._world)]
        for one in handlers:
            one.emit(record)

    def debug(self, msg: Any, *args: Any, **options: Any) -> None:
        self.log(logging.DEBUG, msg, *args, **options)

    def info(self, msg: Any, *args: Any, **options: Any) -> None:
        self.log(logging.INFO, msg, *args, **options)

    def warning(self, msg: Any, *args: Any, **options: Any) -> None:
        self.log(logging.WARNING, msg, *args, **options)

    def error(self, msg: Any, *args: Any, **options: Any) -> None:
        self.log(logging.ERROR, msg, *args, **options)

    def exception(self, msg: Any, *args: Any, exc_info: Any = True, **options: Any) -> None:
        self.log(logging.ERROR, msg, *args, exc_info=exc_info, **options)

    def critical(self, msg: Any, *args: Any, **options: Any) -> None:
        self.log(logging.CRITICAL, msg, *args, **options)

    warn, fatal = warning, critical


def _logger(world: World, name: Any = None) -> Logger:
    loggers: dict[str, Logger] = world.values.setdefault("loggers", {})
    if "" not in loggers:
        loggers[""] = Logger(world, "root", None)
    if not name or name == "root":
        return loggers[""]
    if not isinstance(name, str):
        raise TypeError("A logger name must be a string")
    name = str.__str__(name)
    if name not in loggers:
        loggers[name] = Logger(world, name, _logger(world, name.rpartition(".")[0]))
    return loggers[name]


def _get_logger(world: World) -> Callable[..., Logger]:
    def getLogger(name: Any = None) -> Logger:
        return _logger(world, name)

    return getLogger


def _of_root(method: str) -> Callable[[World], Callable[..., None]]:
    def make(world: World) -> Callable[..., None]:
        def report(*given: Any, **options: Any) -> None:
            root = _logger(world)
            if not root.handlers:
                _basic_config(world)()
            getattr(root, method)(*given, **options)

        report.__name__ = report.__qualname__ = method
        return report

    return make


def _basic_config(world: World) -> Callable[..., None]:
    def basicConfig(
        *,
        format: str = _BASIC,
        datefmt: Any = None,
        style: str = "%",
        level: Any = None,
        stream: Any = None,
        handlers: Any = None,
        force: bool = False,
        filename: Any = None,
        **_: Any,
    ) -> None:
        if filename is not None:
            raise denied("a log cannot go to a file: leave filename out", "builtin")
        root = _logger(world)
        if force:
            root.handlers.clear()
        if root.handlers:
            return
        for one in [Handler(world, stream)] if handlers is None else list(handlers):
            one.setFormatter(Formatter(format, datefmt, style))
            root.addHandler(one)
        if level is not None:
            root.setLevel(level)

    return basicConfig


def _handler(name: str, *, silent: bool) -> Callable[[World], type]:
    def make(world: World) -> type:
        class StreamHandler(Handler):
            def __init__(self, stream: Any = None) -> None:
                super().__init__(world, stream)

            def emit(self, record: dict[str, Any]) -> None:
                if not silent:
                    super().emit(record)

        StreamHandler.__name__ = StreamHandler.__qualname__ = name
        StreamHandler.__module__ = "logging"
        world.grant_types({StreamHandler: TypeAudit(type=StreamHandler, reads=_OF_HANDLER)})
        return StreamHandler

    return make


def _disable(world: World) -> Callable[..., None]:
    def disable(level: Any = logging.CRITICAL) -> None:
        world.values["logging disabled"] = _level(level)

    return disable


_OF_HANDLER = names("setLevel setFormatter level flush close")
_OF_LOGGER = names(
    "name level handlers propagate disabled parent setLevel getEffectiveLevel isEnabledFor addHandler removeHandler "
    "hasHandlers getChild log debug info warning warn error exception critical fatal"
)

# ---------------------------------------------------------------------------------- traceback


def _shown(error: BaseException | None, *, chain: bool = True) -> str:
    """An exception as text: the lines of the cell's own frames, with nothing of those between."""
    if error is None:
        return "NoneType: None\n"
    found = traceback.TracebackException.from_exception(error, lookup_lines=False)
    waiting = [found]
    while waiting:
        one = waiting.pop()
        one.stack[:] = [frame for frame in one.stack if frame.filename.startswith("<cell")]
        waiting += [link for link in (one.__cause__, one.__context__) if link is not None]
        waiting += one.exceptions or []
    return "".join(found.format(chain=chain))


def _error(given: tuple[Any, ...]) -> BaseException | None:
    return next((one for one in given if isinstance(one, BaseException)), None)


def _format_exc(world: World) -> Callable[..., str]:
    def format_exc(*_: Any, chain: bool = True) -> str:
        return _shown(sys.exception(), chain=chain)

    return format_exc


def _print_exc(world: World) -> Callable[..., None]:
    def print_exc(*_: Any, file: Any = None, chain: bool = True) -> None:
        text = _shown(sys.exception(), chain=chain)
        world.builtins["print"](text, end="", file=world.streams["stderr"] if file is None else file)

    return print_exc


def _format_exception(world: World) -> Callable[..., list[str]]:
    def format_exception(*given: Any, chain: bool = True, **_: Any) -> list[str]:
        return _shown(_error(given), chain=chain).splitlines(keepends=True)

    return format_exception


def _print_exception(world: World) -> Callable[..., None]:
    def print_exception(*given: Any, file: Any = None, chain: bool = True, **_: Any) -> None:
        text = _shown(_error(given), chain=chain)
        world.builtins["print"](text, end="", file=world.streams["stderr"] if file is None else file)

    return print_exception


def _exception_only(world: World) -> Callable[..., list[str]]:
    return lambda *given: traceback.format_exception_only(_error(given))


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


def _is(kind: type) -> Callable[[World], Any]:
    return lambda world: lambda value: isinstance(value, kind)


def _number(name: str) -> Callable[[World], Any]:
    return lambda world: getattr(logging, name)


AUDITS = (
    ModuleAudit(
        name="logging",
        replaced={
            **{name: _number(name) for name in _LEVELS},
            **{name: _of_root(name) for name in sorted(names("debug info warning error exception critical log"))},
            "getLevelName": lambda world: lambda level: logging.getLevelName(level),
            "getLogger": _get_logger,
            "basicConfig": _basic_config,
            "disable": _disable,
            "StreamHandler": _handler("StreamHandler", silent=False),
            "NullHandler": _handler("NullHandler", silent=True),
            "Formatter": lambda world: Formatter,
            "Logger": lambda world: TypeStandIn(Logger),
        },
        types=(
            TypeAudit(type=Logger, reads=_OF_LOGGER, writes=names("propagate disabled level"), constructable=False),
            TypeAudit(type=Handler, reads=_OF_HANDLER, constructable=False),
            TypeAudit(type=Formatter, reads=frozenset()),
        ),
        note="loggers of the session's own, that write to its outputs: no files, sockets, or formats that read "
        "attributes",
    ),
    ModuleAudit(
        name="traceback",
        replaced={
            "format_exc": _format_exc,
            "print_exc": _print_exc,
            "format_exception": _format_exception,
            "print_exception": _print_exception,
            "format_exception_only": _exception_only,
        },
        note="texts of the code's own lines: never a frame",
    ),
    ModuleAudit(
        name="inspect",
        members=_ASKS | names("Parameter Signature"),
        replaced={
            "signature": _signature,
            "getmembers": _getmembers,
            "getdoc": _getdoc,
            "isclass": _is(type),
            "ismodule": _is(types.ModuleType),
        },
        types=(
            audit(inspect.Signature, but=names("from_callable")),
            audit(inspect.Parameter),
            TypeAudit(type=type(inspect.Parameter.POSITIONAL_ONLY), reads=names("name value description")),
        ),
        note="no frames, no sources, no closures; defaults of the host's functions that are objects are left out",
    ),
    ModuleAudit(
        name="timeit",
        replaced={"timeit": _timeit, "repeat": _repeat, "default_timer": lambda world: time.perf_counter},
        note="texts are checked as cells are, and see the names of the code, whatever globals are given",
    ),
)
