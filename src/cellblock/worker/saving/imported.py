"""Modules of the session's own files: saved by value, as the names of `__main__` are, with their code. That is run
again first, for what it does to others and what of a module cannot be saved; then each module is filled.
"""

from __future__ import annotations

import builtins
import importlib._bootstrap_external as importing
import marshal
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from gc import get_referents
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from operator import is_
from threading import get_ident
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from cellblock.labels import HELD, place_of
from cellblock.worker.confine import layout
from cellblock.worker.saving import building
from cellblock.worker.saving.facts import (
    attributes_of,
    is_a,
    marshalled,
    module_of,
    mro_of,
    name_of,
    names_in,
    qualname_of,
)
from cellblock.worker.saving.patches import targets

Origin = tuple[str, list[str] | None, bytes, list[list[str]]]
"""The file of a module, the places of its parts if it is a package, its code, and what its source sets in others.
Records add the names in the module's namespace, in order; older ones have the first three alone.
"""
Taken = list[tuple[tuple[Any, str], Any, Callable[[], object]]]
"""Objects that the code made and that are given what was saved of them: by module and name, with what undoes that."""
STANDING = frozenset(
    ("__name__", "__package__", "__loader__", "__spec__", "__builtins__", "__file__", "__cached__", "__path__")
)
"""Names that the import itself binds in a module."""
_execute = importing._LoaderBasics.exec_module  # type: ignore[attr-defined]


_origins: WeakKeyDictionary[ModuleType, Origin] = WeakKeyDictionary()


def begin() -> None:
    """Keep the code of each module of the session's own that is imported from here on."""
    importing._LoaderBasics.exec_module = _execute_and_keep  # type: ignore[attr-defined]
    _libraries.update(f"{one}/" for one in sys.path if one.endswith("-packages"))


_libraries = {__file__.removesuffix("worker/saving/imported.py"), os.path.dirname(os.__file__) + "/"}
_libraries.update(f"{one}/" for one in (sys.prefix, sys.base_prefix, layout.PACKAGES))
"""The directories of the interpreter and of packages: one of the same name in the workspace is the session's own."""


def is_library(module: ModuleType) -> bool:
    """True if a module belongs to the interpreter or its packages, and is the same in every session."""
    file = names_in(module).get("__file__")
    return type(file) is not str or file.startswith(tuple(_libraries))


def _execute_and_keep(loader: Any, module: ModuleType) -> None:
    spec = names_in(module).get("__spec__")
    if type(spec) is not ModuleSpec or type(module) is not ModuleType or is_library(module):
        _execute(loader, module)
        return
    code, places = loader.get_code(spec.name), spec.submodule_search_locations
    if code is None or type(spec.origin) is not str:
        _execute(loader, module)
        return
    kept, source = marshalled(code), None
    with suppress(ImportError):  # as loaders raise that have none
        source = loader.get_source(spec.name)
    chains = targets(source or "")
    exec(code, names_in(module))
    # not before: it may have been loaded anew, and failed, and be what it was
    _origins[module] = spec.origin, None if places is None else list(places), kept, chains


def found() -> Iterator[tuple[str, ModuleType, Origin]]:
    """The modules that are saved by value, by the names that they are imported by.

    Those of a package with compiled parts are not: these hold of the others what nothing tells.
    """
    modules: list[tuple[Any, Any]] = list(sys.modules.items()) if _origins else []
    kept = [(name, module) for name, module in modules if type(module) is ModuleType and module in _origins]
    compiled = {name.partition(".")[0] for name, module in modules if type(name) is str and _is_compiled(module)}
    for name, module in kept:
        if names_in(module).get("__name__") == name and name.partition(".")[0] not in compiled:
            yield name, module, _origins[module]


def _is_compiled(module: Any) -> bool:
    file = names_in(module).get("__file__") if is_a(module, ModuleType) else None
    return type(file) is str and file.endswith(tuple(EXTENSION_SUFFIXES))


def is_own(name: object) -> bool:
    """True if a module of this name is one of the session's own."""
    module: Any = sys.modules.get(name) if type(name) is str else None
    return type(module) is ModuleType and module in _origins


def held(module: ModuleType) -> dict[str, Any]:
    """The names and values of a module beside those that its import gave it."""
    return {name: one for name, one in list(names_in(module).items()) if type(name) is str and name not in STANDING}


class Finder:
    """Finds the modules that `look` knows the origin of. Their code is run within `running`, which tells whether it is
    to be. Attributes come from `ask`, by the names of module and attribute, and else from what the code made.
    """

    def __init__(
        self,
        look: Callable[[str], tuple[Any, ...] | None],
        ask: Callable[[str, str], tuple[Any, ...]],
        running: Callable[[str], AbstractContextManager[bool]],
    ) -> None:
        self._look, self._ask, self._running = look, ask, running
        self._made: dict[str, tuple[ModuleType, list[str] | None]] = {}
        self._given: dict[str, dict[str, Any]] = {}
        self._again: dict[tuple[Any, str], Any] = {}
        """Classes and functions that the code made, by module and name: they may be registered somewhere, and are the
        ones that what was saved of them is given to.
        """

        self._asks = False
        """True if attributes that the code made are asked for as well."""

        loader = get_ident()

        class Filling(ModuleType):
            """A module while it is filled. Threads that its code started see what is there."""

            def __getattribute__(module, name: str) -> Any:
                space = names_in(module)
                found: tuple[Any, ...] = ()
                wanted = name not in STANDING and name != "__dict__" and get_ident() == loader
                if wanted and (self._asks or name not in space):
                    found = self._ask(space["__name__"], name)
                return found[0] if found else super().__getattribute__(name)

        self._filling = Filling

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """As finders do. The loader does its work once, and is a common one from then on."""
        origin = self._look(name)
        if origin is None:
            return None
        file, places, data, *more = origin
        chains, order = more[:2] or ([], None)
        loader: Any = SourceFileLoader(name, file)

        def execute(module: ModuleType) -> None:
            del loader.exec_module
            _origins[module] = file, places, data, chains
            self._made[name] = module, order
            with self._running(name) as runs, suppress(BaseException):  # what it made is replaced, or was told as lost
                if runs:
                    exec(marshal.loads(data), names_in(module))  # noqa: S302  # inside the walls, of the session's own
            names_in(module).setdefault("__builtins__", vars(builtins))
            self._again.update(((name, path), one) for path, one in _defined(name, names_in(module), ""))
            module.__class__ = self._filling

        loader.exec_module = execute
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=places)

    def give(self, label: str, value: Any) -> None:
        """Have a module hold what is saved under this label."""
        name, attribute = place_of(label)
        if name not in sys.modules:
            __import__(name)
        self._given.setdefault(name, {})[attribute] = names_in(sys.modules[name])[attribute] = value

    def fill(self) -> None:
        """Have the modules hold what they were given, whatever their code has made since, and be asked for the rest."""
        self._asks = True
        for name, (module, _) in self._made.items():
            names_in(module).update(self._given.get(name, ()))

    def class_(self, taken: Taken, meta: type, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
        """A class without its attributes: the one that the code made, if it can be."""
        key = body["__module__"], body["__qualname__"]
        made: Any = self._again.get(key) if type(key[0]) is str else None
        if not _is_like(made, meta, name, bases, body):
            return building.class_(meta, name, bases, body)
        taken.append((key, self._again.pop(key), partial(_refill, made, _empty(made))))
        kept: type = made
        return kept

    def function(
        self, taken: Taken, body: CodeType, space: dict[str, Any], closure: tuple[CellType, ...] | None
    ) -> FunctionType:
        """A function without its attributes: the one that the code made, if it is of the same code."""
        key = space.get("__name__"), body.co_qualname
        made: Any = self._again.get(key) if type(key[0]) is str else None
        if type(made) is not FunctionType or closure or made.__closure__:
            return building.function(body, space, closure)
        if made.__globals__ is not space or made.__code__ != body:
            return building.function(body, space, closure)
        before = made.__defaults__, made.__kwdefaults__, made.__annotations__, made.__dict__
        taken.append((key, self._again.pop(key), partial(_set, made, *before)))
        _set(made, None, None, {}, {})
        return made

    def put_back(self, taken: Taken) -> None:
        """Have classes and functions be as the code made them: what was saved of them could not be loaded."""
        for key, made, undo in taken:
            undo()
            self._again[key] = made

    def made(self, label: str) -> tuple[str, Any] | None:
        """The module's name and the value with this label, where the code made it and it was not replaced."""
        name, attribute = place_of(label)
        space = names_in(self._made[name][0]) if label.startswith(HELD) and name in self._made else {}
        return (name, space[attribute]) if attribute in space else None

    def settle(self) -> None:
        """Have the modules be as others are, with their names in the order that they had, and no other ones."""
        for module, order in self._made.values():
            module.__class__ = ModuleType
            space = names_in(module)
            for one in () if order is None else held(module).keys() - set(order):
                del space[one]
            for one in order or ():
                if one in space:
                    space[one] = space.pop(one)
        vars(self).clear()  # the class refers to this


def _defined(module: str, space: Mapping[str, Any], within: str) -> Iterator[tuple[str, Any]]:
    """The classes and functions that a module or a class holds under their own names."""
    for name, value in list(space.items()):
        path = f"{within}{name}"
        if type(value) is FunctionType and value.__module__ == module and value.__qualname__ == path:
            yield path, value
        elif is_a(value, type) and module_of(value) == module and qualname_of(value) == path:
            yield path, value
            yield from _defined(module, attributes_of(value), f"{path}.")


def _is_like(made: Any, meta: type, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> bool:
    """True if this is a class of a metaclass, name, bases and slots as these."""
    kind: Any = type(made)
    if kind is not meta or not issubclass(kind, type):
        return False
    slots: Any = attributes_of(made).get("__slots__")
    wanted: Any = body.get("__slots__")
    same = len(bases) == len(made.__bases__) and all(map(is_, bases, made.__bases__)) and name_of(made) == name
    return same and (slots is wanted or (None not in (slots, wanted) and list(slots) == list(wanted)))


def _empty(made: type) -> dict[str, Any]:
    """Take from a class all that it was not made with, past its metaclass; what that was."""
    (space,) = get_referents(attributes_of(made))
    held = {}
    for name, one in list(space.items()):
        is_slot = is_a(one, MemberDescriptorType, GetSetDescriptorType) and one.__objclass__ is made
        if is_slot or name in ("_abc_impl", "__module__"):
            continue
        held[name] = one
        if any(hasattr(type(attributes_of(kind).get(name)), "__set__") for kind in mro_of(type(made))):
            del space[name]
        else:  # which tells the interpreter that the class is another now
            type.__delattr__(made, name)
    return held


def _refill(made: type, held: dict[str, Any]) -> None:
    _empty(made)
    building.set_later(made, held)


def _set(made: FunctionType, defaults: Any, keywords: Any, annotations: Any, attributes: Any) -> None:
    made.__defaults__, made.__kwdefaults__, made.__annotations__ = defaults, keywords, annotations
    made.__dict__ = attributes
