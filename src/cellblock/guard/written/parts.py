"""Parts for written modules: of modules written in C, of those that have a stand-in, and in place of parts."""

from __future__ import annotations

import abc
import csv
import hmac
import html.entities
import keyword
import os
import shutil
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from cellblock.guard import hints
from cellblock.guard.anatomy import exactly, holder, lineage, name_of, namespace
from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.signatures import signature_of
from cellblock.guard.stdlib.functions import OF_C
from cellblock.guard.written import records

if TYPE_CHECKING:
    from cellblock.guard.world import World


def _sys(world: World) -> dict[str, Any]:
    def get(self: Any, name: object, default: Any = None) -> Any:
        if name == world.globals["__name__"]:
            return world.library.holding(world.shown(world.globals))
        return world.importer.imported(name) or default

    def __getitem__(self: Any, name: object) -> Any:
        if (found := get(self, name)) is None:
            raise KeyError(name)
        return found

    def __contains__(self: Any, name: object) -> bool:
        return get(self, name) is not None

    methods = {"get": get, "__getitem__": __getitem__, "__contains__": __contains__}
    return {"modules": world.classes.adopt(type("modules", (), methods))(), "exc_info": sys.exc_info}


def _stream(world: World, name: str) -> property:
    """A stream of `sys`, which library code sets as a cell may."""

    def put(self: Any, target: Any) -> None:
        world.gates.read(target, "write")
        world.redirect(name, [] if target is world.streams[name] else [target])

    return property(lambda self: world.current(name), put)


_KINDS = names(
    "FunctionType BuiltinFunctionType MemberDescriptorType CodeType NoneType EllipsisType NotImplementedType"
)


def _types(world: World) -> dict[str, Any]:
    def new_class(name: str, bases: Any = (), kwds: Any = None, exec_body: Any = None) -> Any:
        bases = types.resolve_bases(bases)
        metaclass, defined, named = types.prepare_class(name, bases, dict(kwds or {}))
        if exec_body is not None:
            exec_body(defined)
        return world.classes.make(metaclass, name, bases, defined, **named)

    found = {name: world.typeof_class(getattr(types, name)) for name in _KINDS}
    return {**found, "GenericAlias": types.GenericAlias, "new_class": new_class}


def _abc(world: World) -> dict[str, Any]:
    def update_abstractmethods(cls: Any) -> Any:
        if not world.classes.own(cls):
            raise denied("only classes of the code's own have abstract methods", "class")
        return abc.update_abstractmethods(cls)

    return {"get_cache_token": abc.get_cache_token, "update_abstractmethods": update_abstractmethods}


def _inspect(world: World) -> dict[str, Any]:
    def get_annotations(obj: Any, **_: Any) -> dict[str, Any]:
        found = namespace(obj).get("__annotations__", {}) if isinstance(obj, type) else obj.__annotations__
        return dict(found)

    return {"get_annotations": get_annotations, "signature": partial(signature_of, world)}


_REPEATING = """
def recursive_repr(fillvalue='...'):
    def decorating(function):
        running = set()
        def wrapper(self):
            if id(self) in running:
                return fillvalue
            running.add(id(self))
            try:
                return function(self)
            finally:
                running.discard(id(self))
        for name in ('__name__', '__qualname__', '__module__', '__doc__'):
            setattr(wrapper, name, getattr(function, name))
        return wrapper
    return decorating
"""


def _repeating(world: World) -> dict[str, Any]:
    made: dict[str, Any] = {}
    world.library.execute(_REPEATING, None, made)
    return made


def _check_methods(kind: type, *methods: str) -> Any:
    """True if a class has these methods, for `__subclasshook__`."""
    places = [holder(lineage(kind), name) for name in methods]
    missing = any(where is None or namespace(where)[name] is None for where, name in zip(places, methods, strict=True))
    return NotImplemented if missing else True


def _abstract(world: World) -> dict[str, Any]:
    return {"_check_methods": _check_methods, **world.importer.inside("collections.abc")}


def _csv(world: World) -> dict[str, Any]:
    from cellblock.guard.stdlib.formats import csv_reader, csv_writer

    kept = {name: getattr(csv, name) for name in ("Dialect", "Error", "QUOTE_MINIMAL")}
    return {"reader": csv_reader(world), "writer": csv_writer(world), **kept}


def _binding(world: World) -> Callable[[Any, Any], Any]:
    return lambda function, value: types.MethodType(world.calls.given(function), value)


def _shutil(world: World) -> dict[str, Any]:
    return {"get_terminal_size": lambda: world.library.holding({"columns": shutil.get_terminal_size().columns})}


def _string_parts(world: World) -> dict[str, Any]:
    import _string  # type: ignore[import-not-found]

    return {name: getattr(_string, name) for name in ("formatter_parser", "formatter_field_name_split")}


def _no_attributes(world: World) -> Callable[..., Any]:
    def getattr(value: Any, name: str) -> Any:
        raise denied("Format string attribute access not allowed", "format")

    return getattr


def _os(world: World) -> dict[str, Any]:
    path = world.library.part("posixpath")
    return {"environ": {}, "path": path, "fspath": path.normcase, "getpid": lambda: 0, "getcwd": lambda: "/"}


def _paths(world: World) -> dict[str, Any]:
    """Paths as texts, with nothing of where they lead."""

    def fspath(path: Any) -> Any:
        if issubclass(type(path), str | bytes):
            return path
        where = holder(lineage(type(path)), "__fspath__")
        if where is None or where in world.host_types:
            raise TypeError(f"expected str, bytes or os.PathLike object, not {name_of(type(path))}")
        return namespace(where)["__fspath__"](path)

    parts = {name: exactly(getattr(os.path, name)) for name in ("basename", "splitext")}
    return parts | dict.fromkeys(("abspath", "normcase"), fspath)


def _threading(world: World) -> dict[str, Any]:
    """The one thread of a world, in which no lock waits."""
    current = world.library.holding({"name": "MainThread"})
    methods = dict.fromkeys(("acquire", "release", "__enter__", "__exit__"), lambda self, *_: None)
    lock = world.classes.adopt(type("RLock", (), methods))
    return {"RLock": lock, "get_ident": lambda: 0, "current_thread": lambda: current}


def _traceback(world: World) -> dict[str, Any]:
    from cellblock.guard.stdlib.reports import shown

    def print_exception(kind: Any, error: Any, where: Any, limit: Any = None, file: Any = None) -> None:
        world.gates.read(file, "write()").write(shown(error))

    return {"print_exception": print_exception}


def _calling(world: World) -> Callable[..., tuple[Any, ...]]:
    """The place in the code's own source from which a logger was called."""

    def find(self: Any, stack_info: Any = False, stacklevel: Any = 1) -> tuple[Any, ...]:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals is not world.globals:
            frame = frame.f_back
        if frame is None:
            return "<cell>", 0, "<module>", None
        return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None

    return find


def _failing(world: World) -> Callable[..., None]:
    from cellblock.guard.stdlib.reports import shown

    def fail(self: Any, record: Any) -> None:
        world.say("stderr", f"--- Logging error ---\n{shown(sys.exception())}")

    return fail


def _weak(world: World) -> dict[str, Any]:
    kinds = {"WeakKeyDictionary": dict, "WeakValueDictionary": dict, "WeakSet": set}
    return {**kinds, "ref": lambda value, drop=None: lambda: value}


PARTS: dict[str, Callable[[World], dict[str, Any]]] = {
    "sys": _sys,
    "types": _types,
    "abc": _abc,
    "inspect": _inspect,
    "typing": lambda world: {"_UnionGenericAlias": world.typeof_class(hints.OF_CELLS._UnionGenericAlias)},
    "builtins": lambda world: {"object": object},
    "keyword": lambda world: {"iskeyword": keyword.iskeyword},
    "reprlib": _repeating,
    "weakref": _weak,
    "os": _os,
    "posixpath": _paths,
    "html.entities": lambda world: {"html5": types.MappingProxyType(html.entities.html5)},
    "_operator": lambda world: {"_compare_digest": hmac.compare_digest},
    "io": lambda world: {"text_encoding": lambda encoding: encoding},
    "threading": _threading,
    "_string": _string_parts,
    "traceback": _traceback,
    "atexit": lambda world: {"register": lambda function: function},
    "shutil": _shutil,
    "gettext": lambda world: {"gettext": lambda text: text, "ngettext": lambda one, many, n: one if n == 1 else many},
    "_collections_abc": _abstract,
    "_csv": _csv,
    "_thread": _threading,
}
"""By the name of a module: what library code has of it, in place of what a cell would have."""
BESIDE = frozenset(("abc", "io", "sys", "types", "typing"))
"""Modules of which it has the rest that a cell would have, too."""
LEFT_OUT = {"ipaddress": "    __reduce__ = _IPAddressBase.__reduce__\n"}
"""By the name of a written module: lines about what classes of cells do not have."""
PICKED = {
    "collections": (
        "import _collections_abc\nimport sys as _sys\nfrom reprlib import recursive_repr as _recursive_repr\n",
        names("ChainMap UserDict UserList UserString"),
    ),
    "csv": (
        "import re\nfrom io import StringIO\nfrom _csv import Dialect, Error, QUOTE_MINIMAL, reader, writer\n",
        names("DictReader DictWriter Sniffer"),
    ),
}
"""By the name of a module of which only these classes are written: what stands before them."""
SET: dict[str, Callable[[World], dict[str, Any]]] = {
    "sys": lambda world: {name: _stream(world, name) for name in ("stdout", "stderr")}
}
"""By the name of a module: the attributes that it may set, as properties."""


def _as_it_is(make: Callable[[World], Any]) -> Callable[[World, dict[str, Any]], Any]:
    return lambda world, space: make(world)


GIVEN: dict[str, dict[str, Callable[[World, dict[str, Any]], Any]]] = {
    "functools": {name: _as_it_is(make) for name, make in OF_C.items()},
    "logging": {"Logger.findCaller": _as_it_is(_calling), "Handler.handleError": _as_it_is(_failing)},
    "string": {"getattr": _as_it_is(_no_attributes)},
    "contextlib": {"MethodType": _as_it_is(_binding)},
    "dataclasses": {
        "_process_class": records.checking,
        "_add_slots": records.remembering,
        "_is_classvar": records.is_class_variable,
    },
}
"""By the name of a written module: what stands in place of a part of it once it is made."""
