"""A program: makes attempts to get out, all in this one process, and prints what of the process they changed, as JSON.

    picture.py EVERY [NTH]      every so many of the corpus, beginning with the NTH; and all of `smoke/`

What is looked at: the modules and what they hold, classes, their registries, built-ins; hooks, tracers, limits and
settings of the interpreter; threads, signals, descriptors, children, environment, directory; and the objects that the
attempts are given.
"""

from __future__ import annotations

import abc
import asyncio
import atexit
import contextlib
import decimal
import enum
import faulthandler
import gc
import importlib
import json
import linecache
import locale
import logging
import os
import random
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import types
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

from corpus import ESCAPES, GIVEN, programs  # noqa: E402

sys.path[:0] = [str(GIVEN)]

LIMIT_SECONDS = 0.3
MEMORY_MB = 64

CACHES = {
    "asyncio.coroutines": {"_iscoroutine_typecache"},
    "re": {"_cache", "_cache2"},
    "threading": {"_active", "_dangling", "_shutdown_locks", "_counter"},
    "_weakrefset": {"*"},
    "weakref": {"*"},
}
"""Tables that the standard library fills by itself, as whatever runs calls it."""


def picture(given: dict[str, Any]) -> dict[str, Any]:
    """By a name for each place, what is there: values that are compared by what they are, not by what equals them."""
    found: dict[str, Any] = {"modules": sorted(sys.modules)}
    for name, module in sorted(sys.modules.items()):
        if isinstance(module, types.ModuleType) and not name.startswith(("cellblock", "__main__", "anyio")):
            found.update(_of_module(name, module))
    found.update(_of_interpreter())
    found.update(_of_process())
    for name, value in given.items():
        found[f"given.{name}"] = _deeply(value)
    return found


def _of_module(name: str, module: types.ModuleType) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    spared = CACHES.get(name, set())
    for key, value in list(vars(module).items()):
        if key in spared or "*" in spared or key == "__warningregistry__":
            continue
        rows[f"{name}.{key}"] = _held(value)
        if isinstance(value, type) and value.__module__ == name:
            for attribute, inner in list(vars(value).items()):
                if attribute == "_value2member_map_" and issubclass(value, enum.Flag):
                    continue  # a combination of flags is kept from when it is first asked for
                if attribute not in ("__dict__", "__weakref__", "_abc_impl", "__annotations_cache__"):
                    rows[f"{name}.{key}.{attribute}"] = _held(inner)
            if isinstance(value, abc.ABCMeta):
                registry = abc._get_dump(value)[0]  # type: ignore[attr-defined]
                rows[f"{name}.{key} registry"] = sorted(str(reference()) for reference in registry)
    return rows


_kept: list[Any] = []


def _held(value: Any) -> Any:
    """Which object it is; of a plain container, which objects it holds; of a function, its code and defaults."""
    _kept.append(value)
    if type(value) in (str, int, float, bool, bytes, type(None)):
        return repr(value)
    if type(value) in (list, tuple, set, frozenset):
        return id(value), [id(one) for one in value]
    if type(value) is dict:
        return id(value), sorted((repr(key)[:80], id(one)) for key, one in value.items())
    if type(value) is types.FunctionType:
        return id(value), id(value.__code__), repr(value.__defaults__), repr(value.__kwdefaults__), sorted(vars(value))
    return id(value)


def _deeply(value: Any) -> str:
    return repr(value) if isinstance(value, (list, dict, str)) else repr((id(type(value)), sorted(vars(value).items())))


def _of_interpreter() -> dict[str, Any]:
    rows: dict[str, Any] = {
        "sys.path": list(sys.path),
        "sys.meta_path": list(map(id, sys.meta_path)),
        "sys.path_hooks": list(map(id, sys.path_hooks)),
        "hooks": [id(getattr(sys, name)) for name in ("excepthook", "displayhook", "unraisablehook", "breakpointhook")],
        "streams": [id(getattr(sys, name)) for name in ("stdin", "stdout", "stderr", "__stdout__", "__stderr__")],
        "tracers": [sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()],
        "asyncgen hooks": list(sys.get_asyncgen_hooks()),
        "origin tracking": sys.get_coroutine_origin_tracking_depth(),
        "recursion": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "digits": sys.get_int_max_str_digits(),
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_debug(), list(map(id, gc.callbacks)), gc.garbage],
        "warnings": [repr(one) for one in warnings.filters],
        "showwarning": [id(warnings.showwarning), id(warnings.formatwarning)],
        "once": repr(warnings.onceregistry),  # type: ignore[attr-defined]
        "decimal": [repr(decimal.getcontext()), repr(decimal.DefaultContext), repr(decimal.ExtendedContext)],
        "random": hash(random.getstate()),
        "asyncio": id(asyncio.get_event_loop_policy()),
        "running loop": asyncio._get_running_loop(),
        "loggers": sorted(logging.root.manager.loggerDict),
        "root logger": [logging.root.level, list(map(id, logging.root.handlers)), logging.root.disabled],
        "levels": [logging._levelToName.copy(), logging.raiseExceptions, logging.root.manager.disable],
        "locale": locale.setlocale(locale.LC_ALL),
        "lines": sorted(name for name in linecache.cache if not name.startswith("<cell")),
        "cells' lines": [name for name in linecache.cache if name.startswith("<cell")],
        "cache of patterns": len(re._cache) <= re._MAXCACHE,  # type: ignore[attr-defined]
        "exits": atexit._ncallbacks(),
        "faults": faulthandler.is_enabled(),
        "flags": tuple(sys.flags),
        "audits": len(sys.path_importer_cache) > 0,
    }
    if sys.version_info >= (3, 12):
        rows["monitoring"] = [sys.monitoring.get_tool(number) for number in range(6)]
    if "numpy" in sys.modules:
        numpy: Any = sys.modules["numpy"]
        rows["numpy"] = [repr(numpy.geterr()), repr(numpy.get_printoptions()), repr(numpy.random.get_state())]
    return rows


def _of_process() -> dict[str, Any]:
    return {
        "environment": sorted(os.environ.items()),
        "directory": os.getcwd(),
        "umask": [os.umask(0o22), os.umask(0o22)][0],
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "timers": [signal.getitimer(which) for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)],
        "limits": [resource.getrlimit(which) for which in range(resource.RLIMIT_NPROC)],
        "zone": [time.tzname, time.timezone],
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": sorted(_descriptors()),
        "children": _children(),
        "files": sorted(path.name for path in Path.cwd().iterdir()),
    }


def _descriptors() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if not target.startswith("/proc/"):
                found.append(f"{number} {target}")
    return found


def _children() -> list[str]:
    found: list[str] = []
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/self/task/{thread}/children").read_text().split()
    return found


# ------------------------------------------------------------------------------------------- attempts


def attempt(source: str, grants: tuple[str, ...], given: dict[str, Any]) -> None:
    """Make one, as cellblock_attacks.language does."""
    import toolbox
    import vaults
    from levels import local_session

    from cellblock import ExecutionLimits, Policy
    from cellblock.policy import RARE

    policy = (
        Policy(trusted=grants, also=RARE)
        .fn(vaults.greet)
        .cls(vaults.Vault)
        .cls(toolbox.Tool, subclassable=True)
        .module(toolbox)
    )
    limits = ExecutionLimits(timeout_seconds=LIMIT_SECONDS, max_memory_mb=MEMORY_MB, max_output_bytes=20_000)
    with local_session(policy=policy, limits=limits) as session:
        for name, value in given.items():
            session[name] = value
        cell = session.run(source)
        assert cell.value is None or cell.value is not given


def main(every: int, first: int) -> None:
    """Print what changed, and how many attempts were made."""
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))  # as for the attempts one by one
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CANARY"], os.environ["CANARY_FILE"] = "canary", f"{folder}/canary"
        Path(folder, "canary").write_text("canary")
        os.chdir(folder)
        chosen = _chosen(every, first)
        import vaults

        given = {"vault": vaults.Vault(), "rows": [1, [2, 3], {"k": "v"}]}
        _warm({name for _, grants in chosen for name in grants}, given)
        before = _settled(given)
        for source, grants in chosen:
            attempt(source, grants, given)
        after = _settled(given)
        print(json.dumps({"made": len(chosen), "changed": _differences(before, after)}))


def _chosen(every: int, first: int) -> list[tuple[str, tuple[str, ...]]]:
    found = [
        (program.source, program.grants)
        for path in ESCAPES
        for program in programs(path)
        if program.runs_here and "open" not in program.keys
    ]
    smoke = [(path.read_text(), ()) for path in sorted((HERE / "smoke").glob("*.py"))]
    return [*found[first::every], *smoke]


def _warm(trusted: set[str], given: dict[str, Any]) -> None:
    """Have all imported that a session imports, and Python's own caches filled by what is ordinary."""
    from cellblock.guard.audits import STANDARD, audit_of

    for name in (*sorted(STANDARD), *sorted(trusted)):
        audit_of(name)
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for _ in range(2):
        for source in (_ORDINARY, "while True: pass", "1/0", "nowhere", "[].nothing", "from math import no"):
            attempt(source, tuple(trusted), given)


_ORDINARY = "import re, asyncio\nawait asyncio.sleep(0)\nre.findall('(a+)+b', 'a' * 30)"


def _settled(given: dict[str, Any]) -> dict[str, Any]:
    """A picture of after what ends by itself has ended."""
    gc.collect()
    until = time.monotonic() + 3
    while time.monotonic() < until and any(one.name.startswith("cellblock-local") for one in threading.enumerate()):
        time.sleep(0.02)
    gc.collect()
    return picture(given)


def _differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    return {
        key: f"{_shown(before, key)} -> {_shown(after, key)}"
        for key in sorted(before.keys() | after.keys())
        if key not in before or key not in after or before[key] != after[key]
    }


def _shown(found: dict[str, Any], key: str) -> str:
    return repr(found[key])[:300] if key in found else "nothing"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
