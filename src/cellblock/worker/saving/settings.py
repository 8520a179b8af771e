"""Settings of the process and of packages that cells change by a call: tables of how each is read and set.

Those of the process are saved where one changed.
"""

from __future__ import annotations

import _locale
import codecs
import faulthandler
import gc
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from cellblock.worker.saving.facts import is_a, module_of

_CATEGORIES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_MESSAGES", "LC_NUMERIC")
_REGISTERED = re.compile(r"""register_error\(\s*(['"])(.+?)\1""").finditer
_VALUES = frozenset(map(id, (bool, int, float, str)))
_fresh: dict[str, Any] = {}
"""As a new worker has them. Not fixed, so not in capitals."""


def begin() -> None:
    """Take the settings as they are for those of a new worker."""
    _fresh.update(_read(()))


def changed(standing: Mapping[str, object], sources: Iterable[str]) -> dict[str, Any]:
    """Those that cells changed; `standing` has those that are others while they are read."""
    found = {}
    for name, value in {**_read(sources), **standing}.items():
        fresh = _fresh.get(name, value)
        if isinstance(value, dict):
            value = {key: one for key, one in value.items() if not _is_same(one, fresh.get(key))}
            fresh = {}
        if not _is_same(value, fresh) and value != {}:
            found[name] = value
    return found


def apply(settings: Mapping[str, Any]) -> None:
    """Raises what the last one raises that cannot be set, after all others are."""
    failed = None
    for name, value in settings.items():
        try:
            _PROCESS[name][1](value)
        except Exception as error:
            failed = error
    if failed is not None:
        raise failed


def _read(sources: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: read() for name, (read, _) in _PROCESS.items() if read is not None}
    named = {match[2] for source in sources if "register_error" in source for match in _REGISTERED(source)}
    return {**found, "error handlers": {name: handler for name in named if (handler := _handler_of(name)) is not None}}


def _is_same(one: object, other: object) -> bool:
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return id(type(one)) in _VALUES and one == other


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _locales() -> dict[str, str]:
    return {name: _locale.setlocale(getattr(_locale, name), None) for name in _CATEGORIES}


def _set_locales(found: Mapping[str, str]) -> None:
    for name, value in found.items():
        _locale.setlocale(getattr(_locale, name), value)


def _handlers() -> dict[int, Any]:
    """Of signals. The host's interrupt is none of the cells'."""
    found = {int(number): signal.getsignal(number) for number in signal.valid_signals() - {signal.SIGINT}}
    plain = {number: one.value if type(one) is signal.Handlers else one for number, one in found.items()}
    return {number: one for number, one in plain.items() if one is not None}


def _set_handlers(found: Mapping[int, Any]) -> None:
    for number, handler in found.items():
        signal.signal(number, handler)


def _handler_of(name: str) -> Any:
    try:
        handler = codecs.lookup_error(name)
    except (LookupError, ValueError):  # it was not registered, or in another way
        return None
    return handler if isinstance(handler, FunctionType) else None


def _set_error_handlers(found: Mapping[str, Any]) -> None:
    for name, handler in found.items():
        codecs.register_error(name, handler)


def _is_of_cells(hook: Any) -> bool:
    kind = hook if is_a(hook, type, FunctionType) else type(hook)
    module = module_of(kind) if is_a(kind, type) else kind.__module__
    return type(module) is str and module == "__main__"


def _hooks(hooks: list[Any]) -> tuple[Callable[[], tuple[list[Any], list[Any]]], Callable[[Any], None]]:
    """Of a list of the import system's: the cells' own before all others, and the rest of the cells' own."""

    def read() -> tuple[list[Any], list[Any]]:
        ours = [_is_of_cells(one) for one in hooks]
        first = next((place for place, one in enumerate(ours) if not one), len(hooks))
        return hooks[:first], [one for one in hooks[first:] if _is_of_cells(one)]

    def write(found: tuple[list[Any], list[Any]]) -> None:
        hooks[:0], hooks[len(hooks) :] = found

    return read, write


def _collects(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()


def _reports_faults(enabled: bool) -> None:
    (faulthandler.enable if enabled else faulthandler.disable)()


_PROCESS: dict[str, tuple[Callable[[], Any] | None, Callable[[Any], object]]] = {
    "logging": (lambda: logging.root.manager.disable, logging.disable),
    "umask": (_umask, os.umask),
    "locale": (_locales, _set_locales),
    "signals": (_handlers, _set_handlers),
    "error handlers": (None, _set_error_handlers),
    "meta_path": _hooks(sys.meta_path),
    "path_hooks": _hooks(sys.path_hooks),
    "collector": (gc.isenabled, _collects),
    "collector thresholds": (gc.get_threshold, lambda found: gc.set_threshold(*found)),
    "collector callbacks": (lambda: list(gc.callbacks), gc.callbacks.extend),
    "switch": (sys.getswitchinterval, sys.setswitchinterval),
    "digits": (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    "origins": (sys.get_coroutine_origin_tracking_depth, sys.set_coroutine_origin_tracking_depth),
    "stack": (threading.stack_size, threading.stack_size),
    "faults": (faulthandler.is_enabled, _reports_faults),
}


def _numpy(module: Any) -> dict[str, Any]:
    return {"print": dict(module.get_printoptions()), "errors": module.geterr()}


def _set_numpy(module: Any, value: dict[str, Any]) -> None:
    module.set_printoptions(**value["print"])
    module.seterr(**value["errors"])


def _matplotlib(module: Any) -> dict[str, Any]:
    """Settings that differ from those of the files. Not the backend, whose mere reading may load one."""
    stands = module.rcParamsOrig
    held = {name: dict.__getitem__(module.rcParams, name) for name in module.rcParams if not name.startswith("backend")}
    return {name: value for name, value in held.items() if dict.get(stands, name) != value}


def _pandas(module: Any) -> dict[str, Any]:
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, option in module._registered_options.items():
            value = module.get_option(name)
            if value is not option.defval and value != option.defval:
                found[name] = value
    return found


def _set_pandas(module: Any, value: dict[str, Any]) -> None:
    with warnings.catch_warnings():  # of options that are on their way out
        warnings.simplefilter("ignore")
        for name, one in value.items():
            if module.get_option(name) != one:
                module.set_option(name, one)


PACKAGES: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any, Any], object]]] = {
    "numpy.random": (
        "numpy.random", lambda numpy: numpy.get_state(legacy=False), lambda numpy, value: numpy.set_state(value),
    ),
    "numpy": ("numpy", _numpy, _set_numpy),
    "decimal": ("decimal", lambda decimal: decimal.getcontext(), lambda decimal, value: decimal.setcontext(value)),
    "matplotlib": ("matplotlib", _matplotlib, lambda matplotlib, value: matplotlib.rcParams.update(value)),
    "pandas": ("pandas._config.config", _pandas, _set_pandas),
    "torch": ("torch", lambda torch: torch.get_rng_state(), lambda torch, value: torch.set_rng_state(value)),
}  # fmt: skip
"""Of packages, by labels: the module, and how what it keeps is read and set once it is imported."""
