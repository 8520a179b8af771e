"""Modules of the session's own files: saved by value, as the names of `__main__` are, and made again without running
their code. That is kept as well, and is run for what of a module cannot be saved: an open file, a connection.
"""

from __future__ import annotations

import builtins
import importlib._bootstrap_external as importing
import marshal
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from cellblock.labels import HELD
from cellblock.worker.confine import layout
from cellblock.worker.saving.facts import is_a, names_in
from cellblock.worker.saving.targets import targets

_FORMAT = 2
"""Of marshal: see `functions`."""
Origin = tuple[str, list[str] | None, bytes, list[list[str]]]
"""The file of a module, the places of its parts if it is a package, its code, and what its source sets in others.
Records add the names in the module's namespace, in order, and those of them that only its code makes again; older ones
have the first three alone, and have the code run.
"""
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
    """Whether a module belongs to the interpreter or its packages, and is the same in every session."""
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
    kept, source = marshal.dumps(code, _FORMAT), None
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
    """Whether a module of this name is one of the session's own."""
    module: Any = sys.modules.get(name) if type(name) is str else None
    return type(module) is ModuleType and module in _origins


def held(module: ModuleType) -> dict[str, Any]:
    """What a module holds beside what its import gave it."""
    return {name: one for name, one in list(names_in(module).items()) if type(name) is str and name not in STANDING}


class Finder:
    """Finds the modules that `look` knows the origin of, and makes them empty: `ask` gives what they hold, by the names
    of module and attribute, until all is there.
    """

    def __init__(self, look: Callable[[str], tuple[Any, ...] | None], ask: Callable[[str, str], Any]) -> None:
        self._look, self._ask = look, ask
        self._runs = False
        """Whether their code is run."""
        self._made: dict[str, tuple[ModuleType, list[str], list[str]]] = {}
        self._given: dict[str, dict[str, Any]] = {}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """As finders do. The loader does its work once, and is a common one from then on."""
        origin = self._look(name)
        if origin is None:
            return None
        file, places, data, chains, *by_value = (*origin, []) if len(origin) == 3 else origin
        loader: Any = SourceFileLoader(name, file)

        def execute(module: ModuleType) -> None:
            del loader.exec_module
            if self._runs or not by_value:
                exec(marshal.loads(data), names_in(module))  # noqa: S302  # inside the walls, of the session's own
            _origins[module] = file, places, data, chains
            if by_value:
                self._made[name] = module, *by_value
                if not self._runs:
                    self._clear(name, ())

        loader.exec_module = execute
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=places)

    def run(self, name: str) -> None:
        """Run the code of a module, and of those that it imports, and leave in each what only that makes again."""
        self._runs = True
        try:
            __import__(name)
        finally:
            self._runs = False
            for made, (_, _, again) in self._made.items():
                self._clear(made, again)

    def _clear(self, name: str, keep: Collection[str]) -> None:
        """Leave in a module what is to be kept, and what it was given."""
        module = self._made[name][0]
        space = names_in(module)
        for one in held(module).keys() - keep:
            del space[one]
        space.update(self._given.get(name, ()), __builtins__=vars(builtins))
        space["__getattr__"] = partial(self._ask, name)

    def give(self, label: str, value: Any) -> None:
        """Have a module hold what is saved under this label."""
        name, _, attribute = label.removeprefix(HELD).partition(":")
        if name not in sys.modules:
            __import__(name)
        self._given.setdefault(name, {})[attribute] = value
        if attribute != "__getattr__":
            names_in(sys.modules[name])[attribute] = value

    def settle(self) -> None:
        """Have the modules be as others are, with their names in the order that they had."""
        for name, (module, order, _) in self._made.items():
            space, given = names_in(module), self._given.get(name, {})
            space.pop("__getattr__", None)
            if "__getattr__" in given:
                space["__getattr__"] = given["__getattr__"]
            for one in order:
                if one in space:
                    space[one] = space.pop(one)
