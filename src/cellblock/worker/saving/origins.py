"""Functions, classes and dictionaries that belong to modules that a new process can import, and are saved by name."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

from cellblock.worker.references import RUNNER, is_runners, key_of
from cellblock.worker.saving import imported
from cellblock.worker.saving.facts import attributes_of, is_a, module_of, mro_of, names_in, own_attributes, qualname_of

_MISSING = object()


class Origins:
    """Origins, looked up while one snapshot is taken. `namespace` is that of `__main__`, whose things have no origin,
    like those of the session's own modules.
    """

    __slots__ = ("_found", "_namespace", "_spaces", "own")

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._found: dict[int, tuple[object, str | None]] = {}
        self._spaces: dict[int, str] = {}
        self.own = {name: (module, origin) for name, module, origin in imported.found()}
        modules: list[tuple[str, Any]] = list(sys.modules.items())
        for name, module in modules:
            if is_a(module, ModuleType) and type(name) is str and name not in ("__main__", "__mp_main__"):
                self._spaces.setdefault(id(names_in(module)), name)
        self._spaces.pop(id(namespace), None)
        made = [key for key, name in self._spaces.items() if self.module(sys.modules[name]) is None]
        for key in made:
            del self._spaces[key]

    def space(self, mapping: object) -> str | None:
        """The name of the module whose namespace this dictionary is."""
        return self._spaces.get(id(mapping))

    def module(self, value: ModuleType) -> str | None:
        """The name by which an import finds this module, None where none does."""
        held = names_in(value)
        if held is self._namespace:
            return "__main__"
        name = self._spaces.get(id(held))
        if name is None or sys.modules.get(name) is not value:
            return None
        standing = held.get("__spec__") is not None or "__file__" in held
        return name if standing or name in sys.builtin_module_names else None

    def is_made(self, value: ModuleType) -> bool:
        """True if cells made a module that stands among those that are imported, and in no package that is.

        Those in which Cython keeps the types that its modules share have no origin either.
        """
        name = names_in(value).get("__name__")
        if type(name) is not str or "cython" in name:
            return False
        package: Any = sys.modules.get(name.partition(".")[0])
        return self.module(value) is None and (not is_a(package, ModuleType) or self.module(package) is None)

    def of(self, value: Any) -> str | None:
        """The module that holds a class or function under its own name; None where none does, `RUNNER` for what is the
        runner's.
        """
        known = self._found.get(id(value))
        if known is not None:
            return known[1]
        module = RUNNER if key_of(value) is not None else self._look(value)
        if module in self.own:
            module = None
        elif module is None and is_runners(value):
            module = RUNNER
        self._found[id(value)] = (value, module)
        return module

    def leave_to_code(self, value: Any) -> None:
        """Have a class or function that cannot be saved come from its own module, whose code makes it again."""
        if is_a(value, type, FunctionType):
            module = self._look(value)
            name = qualname_of(value) if is_a(value, type) else value.__qualname__
            if module in self.own and names_in(self.own[module][0]).get(name) is value:
                self._found[id(value)] = (value, module)

    def _look(self, value: Any) -> str | None:
        if is_a(value, type):
            module, path = module_of(value), qualname_of(value)
        else:
            module, path = value.__module__, getattr(value, "__qualname__", None) or value.__name__
        if type(module) is not str or type(path) is not str or module in ("__main__", "__mp_main__"):
            return None
        found: Any = sys.modules.get(module, _MISSING)
        if is_a(found, ModuleType) and self.is_made(found):
            return None
        for part in path.split("."):
            found = _part(found, part)
            if found is _MISSING:
                return _held(value, module, path)
        if type(found) is staticmethod:
            found = found.__func__
        return module if found is value else _held(value, module, path)


def _held(value: object, module: str, path: str) -> str | None:
    """A loaded module of the same package that holds a value whose own module, as it tells it, does not."""
    package = module.partition(".")[0]
    loaded: list[tuple[str, Any]] = list(sys.modules.items())
    for name, one in loaded if path.isidentifier() else ():
        inside = type(name) is str and (name == package or name.startswith(f"{package}."))
        if inside and is_a(one, ModuleType) and names_in(one).get(path) is value:
            return name
    return None


def _part(found: Any, part: str) -> Any:
    """Attribute of a module, of a class with its bases, or of another object, under a name."""
    if is_a(found, type):
        return next((held[part] for held in map(attributes_of, mro_of(found)) if part in held), _MISSING)
    if not is_a(found, ModuleType):
        return (own_attributes(found) or {}).get(part, _MISSING)
    held = names_in(found)
    try:
        return held[part] if part in held else getattr(found, part)  # which a library's module may have code for
    except BaseException:
        return _MISSING
