"""The modules of one world that are made from the running Python's own source.

The guard checks and rewrites that source as it does a cell's, so a library function reaches no more than its caller.
Each world has modules of its own: no class, table or cache in them is the host's. Checked programs are kept by what
their source says, and are a process's.

Source of the library is checked with `library`: what a cell is refused before it runs is here decided while it runs,
by the gates, and where it asks for the classes that a class inherits from it is told those that the world knows.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib.util
import types
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cellblock.guard import spelling
from cellblock.guard.anatomy import held, lineage, plain
from cellblock.guard.check import Program, check
from cellblock.guard.names import LIBRARY_READS, LIBRARY_WRITES
from cellblock.guard.refusal import denied
from cellblock.guard.standins import TypeOfTypes, TypeStandIn, called
from cellblock.guard.written.parts import BESIDE, GIVEN, LEFT_OUT, PARTS, PICKED, SET
from cellblock.guard.written.records import FIELDS, PARAMETERS, fields_of, parameters_of, record_of

if TYPE_CHECKING:
    from cellblock.guard.world import World

_MISSING, _ABSENT = object(), object()
_MOST_TEXTS = 2000
_LONGEST_KEPT = 10_000
"""Programs of texts that library code makes, which are kept, and the characters of one."""
_texts: dict[str, Program] = {}
_subclasses: Callable[[type], list[type]] = vars(type)["__subclasses__"]


@cache
def _program(name: str) -> Program:
    """The program of a module, checked once a process. Nothing that is made for it is garbage before it is there."""
    spec: Any = importlib.util.find_spec(name)
    source, collects = spec.loader.get_source(name).replace(LEFT_OUT.get(name, "\0"), ""), gc.isenabled()
    if name in PICKED:
        source = _picked(source, *PICKED[name])
    gc.disable()
    try:
        return check(source, filename=spec.origin, plain=True, library=True)
    finally:
        if collects:
            gc.enable()


def _picked(source: str, start: str, classes: frozenset[str]) -> str:
    """Some classes of a source, each on its lines."""
    lines = source.splitlines(keepends=True)
    found = [start, *["\n"] * len(lines)]
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name in classes:
            found[node.lineno : node.end_lineno] = lines[node.lineno - 1 : node.end_lineno]
    return "".join(found)


for _name in ("functools", "dataclasses"):  # which most others need, and many cells: it counts to none of them
    _program(_name)


def _program_of(text: str) -> Program:
    """The program of a text that library code made, kept by what it says."""
    found = _texts.get(text)
    if found is None:
        found = check(text, filename="<string>", plain=True)
        if len(_texts) >= _MOST_TEXTS:
            _texts.clear()
        if len(text) <= _LONGEST_KEPT:
            _texts[text] = found
    return found


def _real(kind: Any) -> Any:
    """A class in place of what stands for it."""
    return kind._kind if type(kind) is TypeStandIn else type if type(kind) is TypeOfTypes else kind


class Library:
    """The written modules of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._spaces: dict[str, dict[str, Any]] = {}
        self._by_globals: dict[int, str] = {}
        self._parts: dict[str, Any] = {}
        self._files: set[str] = set()

    def spelled(self) -> dict[str, Any]:
        """Functions that rewritten source of the library calls by names that no source can spell."""
        asked = self._asked()
        found = {spelling.LIBRARY + name: asked[name] for name in LIBRARY_READS}
        return found | {spelling.SETTABLE: self.settable, spelling.PUT: self.put}

    def __contains__(self, globals: dict[str, Any]) -> bool:
        """True if these are the globals of a written module."""
        return id(globals) in self._by_globals

    def module(self, name: str) -> dict[str, Any]:
        """Members of a written module."""
        found = self._spaces.get(name)
        if found is None:
            found = self._spaces[name] = {"__name__": name, "__doc__": None, "__builtins__": self._world.builtins}
            self._by_globals[id(found)] = name
            found.update(self._functions(name))
            began = perf_counter()
            program = _program(name)
            self._world.ending.excused += perf_counter() - began
            self._files.add(program.filename)
            self._world.link(program)
            if program.body is not None:
                eval(program.body, found)
            for one, make in GIVEN.get(name, {}).items():
                given = called(one, make(self._world, found))
                self._world.calls.grant(given)
                of, _, method = one.rpartition(".")
                if of:
                    type.__setattr__(found[of], method, given)
                else:
                    found[one] = given
        return found

    def is_part(self, kind: type) -> bool:
        """True if a class was defined by a written module."""
        body = self._world.classes.body(kind)
        return body is not None and body.co_filename in self._files

    # --------------------------------------------------------------------------------- imports

    def imported(self, name: str, fromlist: Any) -> Any:
        """Result of `import` for library code: written modules whole, of others what the world has in their place."""
        found = self.part(name)
        return found if fromlist or "." not in name else self.part(name.partition(".")[0])

    def part(self, name: str) -> Any:
        """A module as library code imports it."""
        found = self._parts.get(name)
        if found is None:
            world = self._world
            members: dict[str, Any] = {}
            if name not in PARTS or name in BESIDE:
                members |= world.importer.inside(name)
            if name in PARTS:
                parts = PARTS[name](world)
                for one in parts.values():
                    world.calls.grant(one)
                members |= parts
            if not members:
                raise ModuleNotFoundError(f"No module named {name!r} is granted [import]", name=name)
            found = self._parts[name] = self.holding(members, SET[name](world) if name in SET else {})
        return found

    def holding(self, members: dict[str, Any], properties: dict[str, Any] | None = None) -> Any:
        """A module as library code sees it: an object of a class of the world's own."""
        kind = self._world.classes.adopt(type("module", (), {"__module__": "builtins", **(properties or {})}))
        made: Any = object.__new__(kind)
        held(made).update(members)
        return made

    # ----------------------------------------------------------------- what is asked while it runs

    def execute(self, text: str, globals: Any = None, locals: Any = None, /) -> None:
        """`exec` of library code: a text runs among the world's own names, and reaches what a cell does."""
        program = _program_of(plain(text))
        self._world.link(program)
        if program.body is not None:
            eval(program.body, self._world.globals, {} if locals is None else locals)

    def _asked(self) -> dict[str, Callable[[Any], Any]]:
        """By name, what tells library code of an object where a cell is told nothing."""
        raised: Any = BaseException.__traceback__
        return {
            "__mro__": self.mro, "__bases__": self.bases, "__subclasses__": self.subclasses,
            "__traceback__": raised.__get__, "__code__": self._code,
        }  # fmt: skip

    def _code(self, function: Any) -> Any:
        """The name of the file of a function's code, and nothing else of that."""
        get: Any = types.FunctionType.__code__
        code: types.CodeType = get.__get__(function)
        return self.holding({"co_filename": code.co_filename})

    def mro(self, kind: Any) -> tuple[Any, ...]:
        """`kind.__mro__`, of classes as the world sees them."""
        return tuple(map(self._world.typeof_class, lineage(self._class(kind, "__mro__"))))

    def bases(self, kind: Any) -> tuple[Any, ...]:
        """`kind.__bases__`, likewise."""
        return tuple(map(self._world.typeof_class, type.__dict__["__bases__"].__get__(self._class(kind, "__bases__"))))

    def subclasses(self, kind: Any) -> Callable[[], list[type]]:
        """`kind.__subclasses__`, which tells of those that the world knows."""
        known, own = self._world.types, self._world.classes.own
        real = self._class(kind, "__subclasses__")
        return lambda: [one for one in _subclasses(real) if own(one) or (one in known and real is not type)]

    def _class(self, kind: Any, name: str) -> type:
        kind = _real(kind)
        if not issubclass(type(kind), type):
            raise AttributeError(f"{type(kind).__name__!r} object has no attribute {name!r}")
        return kind  # type: ignore[no-any-return]

    def settable(self, value: Any, name: str) -> Any:
        """The object, if library code may set this name of the language's own on it."""
        if name == "__traceback__" and isinstance(value, BaseException):
            return value
        if name in LIBRARY_WRITES and issubclass(type(value), type) and self._world.classes.own(value):
            return value
        return self._world.gates.write(value, name)

    def put(self, value: Any, name: str, new: Any) -> None:
        """`object.__setattr__`, through the gate."""
        gates, name = self._world.gates, plain(name)
        if type(value) not in gates.known_writes(name):
            value = gates.write(value, name)
        object.__setattr__(value, name, new)

    def _functions(self, module: str) -> dict[str, Any]:
        """Built-in functions as code of a module of the library has them.

        Only where it chooses the names itself are they asked for, and set, past what a cell may: `argparse` is told.
        """
        get, put = self._world.builtins["getattr"], self._world.builtins["setattr"]
        asked = self._asked()

        def getattr(value: Any, name: str, default: Any = _MISSING, /) -> Any:
            try:
                if name in asked:
                    return asked[name](value)
                if name == PARAMETERS:
                    return parameters_of(self._world, value)
                if name == FIELDS and (fields := fields_of(self._world, value)) is not None:
                    return fields
                return get(value, name)
            except AttributeError:
                if default is _MISSING:
                    raise
                return default

        def hasattr(value: Any, name: str, /) -> bool:
            if name == FIELDS and record_of(self._world, value) is not None:
                return True
            return getattr(value, name, _ABSENT) is not _ABSENT

        def setattr(value: Any, name: str, new: Any, /) -> None:
            if name in LIBRARY_WRITES:
                if not name.startswith("__dataclass_"):
                    new = self._world.calls.method(name, new)
                type.__setattr__(self.settable(value, name), name, new)
            else:
                put(value, name, new)

        def issubclass(kind: Any, kinds: Any, /) -> bool:
            return builtins.issubclass(_real(kind), kinds)

        def open(*_: Any, **__: Any) -> Any:
            raise denied("open() is not granted", "builtin")

        found: dict[str, Any] = {"open": open, "issubclass": issubclass}
        if module in ("functools", "dataclasses"):
            found |= {"getattr": getattr, "hasattr": hasattr, "setattr": setattr, "exec": self.execute}
        return found
