"""Surroundings of a session's names: generators of random numbers, options of packages, the process itself.

Each piece has a label, and is saved like a name's value: what it shares with names stays shared.
"""

from __future__ import annotations

import copyreg
import linecache
import logging
import os
import random
import re
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from cellblock.labels import DECLARED, DUNDER, LAST
from cellblock.worker.environment import of_its_own
from cellblock.worker.import_hooks import hook_of, on_import
from cellblock.worker.saving import imported, settings
from cellblock.worker.saving.facts import is_a, names_in
from cellblock.worker.saving.origins import Origins
from cellblock.worker.saving.pickler import registered

_STANDING = frozenset(
    ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__", "__file__", "__cached__")
)
_DECLARATIONS = "__annotations__"
_BOOKKEEPING = "__warningregistry__"
"""The name under which `warnings` notes what it has shown: filters that are set again make it forget."""
_WRAPPED = LAST, DUNDER, DECLARED
"""Labels of values that are saved each in a tuple, as None too is one to save."""
ORDER = "order"
NAMES_A_BLOCK = 64
CELLS_A_BLOCK = 16
"""So many cells' sources are saved together: those of earlier cells stay as they are."""
_CELLS_A_VOLUME = 256
"""Once there are so many they are saved as one, so that a long session is opened by reading few."""
_CELL = re.compile(r"<cell (\d{1,9})>", re.ASCII)


def collect(
    namespace: dict[str, Any], standing: Mapping[str, object] = MappingProxyType({})
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Labels, and what gives the value of each; None for nothing to save."""
    yield "random", random.getstate
    yield "warnings", _giving(list(warnings.filters))
    yield "process", _process
    yield "settings", lambda: settings.changed(standing, chain(*map(dict.values, blocks().values()))) or None
    yield "copyreg", lambda: _reducers(namespace) or None
    yield "codecs", lambda: dict(registered) or None
    declared = _declarations(namespace)
    bound = {name: value for name, value in list(namespace.items()) if _is_set(name, value)}
    if declared is not None:
        del bound[_DECLARATIONS]
        yield "types", _giving(list(declared))
    for kind, values in (("name", bound), ("type", declared or {})):
        for name, value in values.items():
            yield f"{kind}:{name}", _giving((value,))
    for number, some in enumerate(_in_order(namespace)):
        yield f"{ORDER}:{number:06}", _giving(some)
    yield "modules", lambda: _modules(namespace) or None
    held = namespace.get("__builtins__")
    last = names_in(held).get("_") if is_a(held, types.ModuleType) else None
    if last is not None:
        yield "last", _giving((last,))
    for number, block in _volumes(blocks()).items():
        yield f"sources:{number}", _giving(block)
    yield "levels", lambda: dict(logging._levelToName)
    loggers: list[tuple[str, Any]] = [("root", logging.root), *logging.root.manager.loggerDict.items()]
    for name, logger in loggers:
        if type(name) is str and is_a(logger, logging.Logger):
            yield f"logger:{name}", partial(_logger, logger)
    for label, (module, get, _) in settings.PACKAGES.items():
        found = sys.modules.get(module)
        if found is not None:
            yield label, partial(get, found)
        elif type(waiting := hook_of(module)) is partial and waiting.func is _put:  # it was saved, and is not yet put
            yield label, _giving(waiting.args[1])


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _modules(namespace: dict[str, Any]) -> dict[str, types.ModuleType]:
    """Those that cells made and put where an import finds them, by a name that is written in a cell."""
    origins = Origins(namespace)
    listed: list[tuple[Any, Any]] = list(sys.modules.items())
    found = [(name, one) for name, one in listed if type(name) is str and type(one) is types.ModuleType]
    made = {name: one for name, one in sorted(found, key=itemgetter(0)) if name != "__main__" and origins.is_made(one)}
    said = "".join(chain(*map(dict.values, blocks().values()))) if made else ""
    return {name: one for name, one in made.items() if f"'{name}'" in said or f'"{name}"' in said}


def parts(met: Iterable[types.ModuleType]) -> Iterator[str]:
    """Submodules that cells have imported of packages they hold, as `import urllib.request` does: named in a cell's
    source.

    Importing the package again does not bring it back. What a library imports of itself as it works, it will again.
    """
    held = [names_in(one) for one in met]
    packages = {one["__name__"] for one in held if "__path__" in one and type(one.get("__name__")) is str}
    said = {word for block in blocks().values() for source in block.values() for word in _DOTTED.findall(source)}
    for word in sorted(said):
        if word in sys.modules and any(word.startswith(f"{package}.") for package in packages):
            yield word


_DOTTED = re.compile(r"(?<!\w)[^\W\d]\w*+(?:\.[^\W\d]\w*+)+")  # linear in the length of the source


def _is_set(name: Any, value: Any) -> bool:
    """True if cells have bound a name of Python's own: to a text, where it stands in every namespace."""
    if type(name) is not str or not (name.startswith("__") and name.endswith("__")):
        return False
    if name not in _STANDING:
        return name != _BOOKKEEPING
    return type(value) is str and (name, value) != ("__name__", "__main__")


def _declarations(namespace: dict[str, Any]) -> dict[str, Any] | None:
    """A copy of `__annotations__`, if it is to be saved key by key: no other object refers to it."""
    held = namespace.get(_DECLARATIONS)
    if type(held) is dict and sys.getrefcount(held) <= _REFERRED and all(type(one) is str for one in held):
        return dict(held)
    return None


_REFERRED = 3
"""References to a value of a namespace that a function has under a name and asks about."""


def _in_order(namespace: dict[str, Any]) -> Iterator[list[str]]:
    """The names in the order in which they were bound, some together: those that came first stay as they are."""
    names = iter([name for name in namespace if type(name) is str and name not in _STANDING])
    while some := list(islice(names, NAMES_A_BLOCK)):
        yield some


def reorder(namespace: dict[str, Any], order: Iterable[str]) -> None:
    """Have the names in this order; others come after them."""
    wanted = dict.fromkeys(order)
    rest = [name for name in namespace if name not in wanted and name not in _STANDING]
    for name in (*wanted, *rest):
        if name in namespace:
            namespace[name] = namespace.pop(name)


def apply(label: str, value: Any, namespace: dict[str, Any]) -> None:
    """Have it be as it was. Raises what the value's own code raises, and OSError for a directory that is gone."""
    kind, _, name = label.partition(":")
    if kind in _APPLIED:
        _APPLIED[kind](value)
    elif kind == "name":
        namespace[name] = value[0]
    elif kind == "type":
        namespace.setdefault(_DECLARATIONS, {})[name] = value[0]
    elif kind == "types":  # which comes after them: labels are in their order
        reorder(namespace.setdefault(_DECLARATIONS, {}), value)
    elif kind == "last":
        namespace["__builtins__"].__dict__["_"] = value[0]
    elif kind in ("part", "import"):
        __import__(name)
    elif kind == "sources":
        for filename, source in value.items():
            lines = source.splitlines(keepends=True)
            linecache.cache[filename] = (len(source), None, lines, filename)
    elif kind == "logger":
        _set_logger(logging.getLogger(name if name != "root" else None), value)
    else:
        module, _, put = settings.PACKAGES[label]
        on_import(module, partial(_put, put, value))


def unwrapped(label: str, value: Any) -> Any:
    """Value saved under a label, without the tuple that it may be saved in."""
    return value[0] if label.startswith(_WRAPPED) else value


def _put(put: Callable[[Any, Any], object], value: Any, module: Any) -> None:
    put(module, value)


def blocks() -> dict[int, dict[str, str]]:
    """The sources of all cells in the order they ran, by their file names, a few cells together.

    Each block is called by the number of the first cell that it has room for: what is in it no other cell changes.
    """
    held: list[tuple[Any, Any]] = list(linecache.cache.items())
    found = sorted(
        (int(match[1]), name, "".join(entry[2]))
        for name, entry in held
        if type(name) is str and (match := _CELL.fullmatch(name)) is not None and _is_source(entry)
    )
    blocks: dict[int, dict[str, str]] = {}
    for number, name, source in found:
        blocks.setdefault(number - number % CELLS_A_BLOCK, {})[name] = source
    return blocks


def _is_source(entry: object) -> bool:
    """True if that is what linecache holds of a cell, and not what a cell has put there."""
    if type(entry) is not tuple or len(entry) != 4 or type(entry[2]) is not list:
        return False
    return all(type(one) is str for one in entry[2])


def _volumes(blocks: dict[int, dict[str, str]]) -> dict[int, dict[str, str]]:
    """The blocks, of which those that no later cell belongs beside are one."""
    newest = max(blocks, default=0)
    volumes: dict[int, dict[str, str]] = {}
    for number, block in blocks.items():
        volume = number - number % _CELLS_A_VOLUME
        volumes.setdefault(number if volume + _CELLS_A_VOLUME > newest else volume, {}).update(block)
    return volumes


def _process() -> dict[str, Any]:
    try:
        place = os.getcwd()
    except OSError:  # it was removed
        place = None
    return {
        "directory": place,
        "environment": dict(os.environ),
        "path": list(sys.path),
        "recursion": sys.getrecursionlimit(),
    }


def _set_process(value: dict[str, Any]) -> None:
    sys.setrecursionlimit(value["recursion"])
    lead(value)


def lead(value: dict[str, Any]) -> None:
    """Have imports, and code that reads variables or files, find what they found in this process."""
    sys.path[:] = [*value["path"], *(one for one in sys.path if one not in value["path"])]
    here = {name: one for name, one in os.environ.items() if name not in of_its_own(os.environ)}
    environment = {**here, **of_its_own(value["environment"])}
    if os.environ != environment:
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
        time.tzset()
    if value["directory"] is not None:
        os.chdir(value["directory"])


def _reducers(namespace: dict[str, Any]) -> dict[type, Any]:
    """Functions that cells, and modules of the session's own, registered with copyreg."""
    spaces = {id(namespace), *(id(names_in(module)) for _, module, _ in imported.found())}
    return {kind: one for kind, one in copyreg.dispatch_table.items() if id(getattr(one, "__globals__", 0)) in spaces}


def _set_warnings(value: list[Any]) -> None:
    warnings.filters[:] = value  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _logger(logger: logging.Logger) -> dict[str, Any] | None:
    """The settings of a logger; None where it is as it is made, or a library leaves it."""
    handlers = [one for one in logger.handlers if type(one) is not logging.NullHandler]
    level = logger.level != (logging.WARNING if logger is logging.root else logging.NOTSET)
    if not (level or handlers or logger.filters or logger.disabled or not logger.propagate):
        return None
    return {name: getattr(logger, name) for name in ("level", "propagate", "disabled", "handlers", "filters")}


def _set_logger(logger: logging.Logger, value: dict[str, Any]) -> None:
    logger.setLevel(value["level"])
    logger.propagate, logger.disabled = value["propagate"], value["disabled"]
    logger.handlers, logger.filters = value["handlers"], value["filters"]


def _set_levels(value: dict[int, str]) -> None:
    for number, name in value.items():
        if logging._levelToName.get(number) != name:
            logging.addLevelName(number, name)


_APPLIED: dict[str, Callable[[Any], object]] = {
    "random": random.setstate,
    "warnings": _set_warnings,
    "process": _set_process,
    "modules": sys.modules.update,
    "settings": settings.apply,
    "signals": lambda found: settings.apply({"signals": found}),  # of older records
    "copyreg": copyreg.dispatch_table.update,
    "levels": _set_levels,
    "codecs": registered.update,
}
