"""What a session finds set: its environment variables, and the interpreter's environment of packages."""

from __future__ import annotations

import ctypes
import os
import sys

from cellblock.worker.confine import layout


def environment(workspace: str, tmp: str, named: str | None = None) -> dict[str, str]:
    """The variables of a session with these directories; `named` is what it is told of its temporary one."""
    return {
        "HOME": workspace,
        "LANG": "C.UTF-8",
        "LOGNAME": "user",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": tmp,
        "PATH": os.path.dirname(sys.executable) + ":/usr/local/bin:/usr/bin:/bin",
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


def lead_to_door(port: int) -> None:
    """Have what speaks HTTP go through the session's door, and pip look for packages behind it; 0 is none."""
    if port:
        for name in ("http_proxy", "https_proxy"):
            os.environ[name] = os.environ[name.upper()] = f"http://127.0.0.1:{port}"
        os.environ.pop("PIP_NO_INDEX", None)


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
