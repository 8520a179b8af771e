"""Environment of a session: its environment variables, and the interpreter's environment of packages."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

from cellblock.worker.confine import layout


def environment(workspace: str, tmp: str, named: str | None = None) -> dict[str, str]:
    """The variables of a session with these directories; `named` is what it is told of its temporary one."""
    return {
        "HOME": workspace,
        "LANG": "C.UTF-8",
        "LOGNAME": "user",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": tmp + "/.cache/matplotlib",
        "PATH": os.path.dirname(sys.executable or "") + ":/usr/local/bin:/usr/bin:/bin",
        "PIP_NO_INDEX": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "TMPDIR": named or tmp,
        "USER": "user",
        "XDG_CACHE_HOME": tmp + "/.cache",
        # One thread a pool: sessions share the machine, and forking next to idle pool threads is fragile.
        "MKL_NUM_THREADS": "1",
        "NUMEXPR_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # Of Arrow's own pools one starts a thread, and one reserves all the memory there is room for: OpenBLAS aborts.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }


ENVIRONMENT = environment(layout.WORKSPACE, layout.TMP, "/tmp")
"""The whole environment of a session; nothing of the host's is passed on."""


_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
_DOOR = "http://127.0.0.1:"
_CLOSED = ("PIP_NO_INDEX", "1")


def lead_to_door(port: int) -> None:
    """Have what speaks HTTP go through the session's door, and pip look for packages behind it; 0 is none."""
    if port:
        for name in _PROXIES:
            os.environ[name] = f"{_DOOR}{port}"
        os.environ.pop(_CLOSED[0], None)


def of_its_own(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that a session has set itself: the rest say whether its process has a door."""
    return {
        name: value
        for name, value in variables.items()
        if not (name in _PROXIES and value.startswith(_DOOR)) and (name, value) != _CLOSED
    }


def lead_to_packages(prefix: str, *, door: bool) -> None:
    """Have pip install where the session's own files are, and Python and the shell find there what it installed.

    Where there is no `door`, and nothing has been installed, nothing is done.
    """
    if os.environ.get("PIP_PREFIX") == prefix or not (door or os.path.isdir(prefix)):
        return
    import sysconfig  # sessions that have no door, and no packages of their own, open sooner

    # Debian's Python prefers a scheme of its own, which only Debian's pip keeps to
    schemes, here = (sysconfig.get_preferred_scheme("prefix"), "posix_prefix"), {"base": prefix, "platbase": prefix}

    def of(*names: str) -> list[str]:
        return list(dict.fromkeys(sysconfig.get_path(name, scheme, here) for scheme in schemes for name in names))

    libraries = of("purelib", "platlib")
    for one in libraries:
        os.makedirs(one, exist_ok=True)  # what is no directory yet is never looked into again
    before = next((at for at, one in enumerate(sys.path) if one.endswith("-packages")), len(sys.path))
    sys.path[before:before] = libraries
    os.environ["PYTHONPATH"] = os.pathsep.join(libraries)
    os.environ["PATH"] = os.pathsep.join([*of("scripts"), os.environ["PATH"]])
    os.environ["PIP_PREFIX"] = prefix
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    os.environ["PIP_NO_CACHE_DIR"] = "1"  # every file of the session is kept with its versions


def enter_packages() -> None:
    """Do what the interpreter left out as it was started with `-S`: put its packages on the path, run its `.pth` files.

    Afterwards nothing tells that it was: `sys.flags` is what programs start further interpreters by.
    """
    import site

    site.main()
    position = type(sys.flags).__match_args__.index("no_site")
    set_item = ctypes.pythonapi.PyStructSequence_SetItem
    set_item.argtypes, set_item.restype = (ctypes.py_object, ctypes.c_ssize_t, ctypes.py_object), None
    set_item(sys.flags, position, 0)
