"""Which functions, classes and dictionaries belong to modules that a new process can import, and are saved by name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_MISSING = object()
_name_of = type.__dict__["__name__"].__get__
_qualname_of = type.__dict__["__qualname__"].__get__


class Origins:
    """What is looked up while one snapshot is taken. `namespace` is that of `__main__`, whose things have no origin."""

    __slots__ = ("_found", "_namespace", "_spaces")

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._found: dict[int, tuple[object, str | None]] = {}
        self._spaces: dict[int, str] = {}
        modules: list[tuple[str, Any]] = list(sys.modules.items())
        for name, module in modules:
            if isinstance(module, ModuleType) and name not in ("__main__", "__mp_main__"):
                self._spaces.setdefault(id(vars(module)), name)
        self._spaces.pop(id(namespace), None)
        made = [key for key, name in self._spaces.items() if self.module(sys.modules[name]) is None]
        for key in made:
            del self._spaces[key]

    def space(self, mapping: object) -> str | None:
        """The name of the module whose namespace this dictionary is."""
        return self._spaces.get(id(mapping))

    def module(self, value: ModuleType) -> str | None:
        """The name by which an import finds this module, None where none does."""
        if vars(value) is self._namespace:
            return "__main__"
        name = self._spaces.get(id(vars(value)))
        if name is None or sys.modules.get(name) is not value:
            return None
        standing = getattr(value, "__spec__", None) is not None or hasattr(value, "__file__")
        return name if standing or name in sys.builtin_module_names else None

    def is_made(self, value: ModuleType) -> bool:
        """Whether cells made a module that stands among those that are imported, and in no package that is.

        Those in which Cython keeps the types that its modules share have no origin either.
        """
        if "cython" in str(value.__name__):
            return False
        package = sys.modules.get(str(value.__name__).partition(".")[0])
        return self.module(value) is None and (not isinstance(package, ModuleType) or self.module(package) is None)

    def of(self, value: Any) -> str | None:
        """The module that holds a class or function under its own name; None where none does."""
        known = self._found.get(id(value))
        if known is not None:
            return known[1]
        module = self._look(value)
        self._found[id(value)] = (value, module)
        return module

    def _look(self, value: Any) -> str | None:
        if isinstance(value, type):
            module, path = type.__dict__["__module__"].__get__(value), _qualname_of(value)
        else:
            module, path = value.__module__, getattr(value, "__qualname__", value.__name__)
        if module in ("__main__", "__mp_main__") or not isinstance(module, str):
            return None
        found: Any = sys.modules.get(module, _MISSING)
        if isinstance(found, ModuleType) and self.is_made(found):
            return None
        for part in path.split("."):
            try:
                found = vars(found)[part] if isinstance(found, (type, ModuleType)) else getattr(found, part)
            except (KeyError, AttributeError, TypeError):
                found = getattr(found, part, _MISSING) if isinstance(found, ModuleType) else _inherited(found, part)
            if found is _MISSING:
                return _held(value, module, path)
        if isinstance(found, staticmethod):
            found = found.__func__
        return module if found is value else _held(value, module, path)


def _held(value: object, module: str, path: str) -> str | None:
    """A loaded module of the same package that holds a value whose own module, as it tells it, does not."""
    package = module.partition(".")[0]
    loaded: list[tuple[str, Any]] = list(sys.modules.items())
    for name, one in loaded if path.isidentifier() else ():
        inside = name == package or name.startswith(f"{package}.")
        if inside and isinstance(one, ModuleType) and vars(one).get(path) is value:
            return name
    return None


def _inherited(found: object, part: str) -> object:
    for base in getattr(found, "__mro__", ()):
        if part in vars(base):
            return vars(base)[part]
    return _MISSING
