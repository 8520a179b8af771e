"""Modules of the session's own files, saved with the code that they were made of: a file may be gone, or another, by
the time that a value needs the module again. They are made again of that code, wherever their file was found.
"""

from __future__ import annotations

import importlib._bootstrap_external as importing
import marshal
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from cellblock.worker.saving.facts import names_in
from cellblock.worker.saving.patches import is_library

IMPORT = "@import:"
"""Begins the label of such a module."""
_FORMAT = 2
"""Of marshal: see `functions`."""
Origin = tuple[str, list[str] | None, bytes]
"""The file of a module, the places of its parts if it is a package, and its code."""
_execute = importing._LoaderBasics.exec_module  # type: ignore[attr-defined]


_origins: WeakKeyDictionary[ModuleType, Origin] = WeakKeyDictionary()


def begin() -> None:
    """Keep the code of each module of the session's own that is imported from here on."""
    importing._LoaderBasics.exec_module = _execute_and_keep  # type: ignore[attr-defined]


def _execute_and_keep(loader: Any, module: ModuleType) -> None:
    spec = names_in(module).get("__spec__")
    if type(spec) is not ModuleSpec or type(module) is not ModuleType or is_library(module):
        _execute(loader, module)
        return
    code, places = loader.get_code(spec.name), spec.submodule_search_locations
    if code is None or type(spec.origin) is not str:
        _execute(loader, module)
        return
    kept = marshal.dumps(code, _FORMAT)
    _run(module, code, (spec.origin, None if places is None else list(places), kept))


def _run(module: ModuleType, code: CodeType, origin: Origin) -> None:
    exec(code, names_in(module))
    _origins[module] = origin  # not before: it may have been loaded anew, and failed, and be what it was


def found() -> Iterator[tuple[str, Origin]]:
    """The modules whose code is kept, by the names that they are imported by."""
    modules: list[tuple[Any, Any]] = list(sys.modules.items())
    for name, module in modules:
        if type(module) is ModuleType and module in _origins and names_in(module).get("__name__") == name:
            yield name, _origins[module]


class Finder:
    """Finds the modules that `look` knows the origin of."""

    def __init__(self, look: Callable[[str], Origin | None]) -> None:
        self._look = look

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """As finders do. The loader runs the code that was kept, once, and is a common one from then on."""
        origin = self._look(name)
        if origin is None:
            return None
        file, places, data = origin
        loader: Any = SourceFileLoader(name, file)

        def execute(module: ModuleType) -> None:
            del loader.exec_module
            _run(module, marshal.loads(data), origin)  # noqa: S302  # inside the walls, of the session's own

        loader.exec_module = execute
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=places)
