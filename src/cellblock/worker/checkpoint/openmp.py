"""The thread pools of GNU OpenMP, which hang in a forked copy: each is ended before, and comes back when it is needed.

Of the OpenMP libraries only this one minds; the pools of OpenBLAS and of LLVM's OpenMP look after themselves.
"""

from __future__ import annotations

import contextlib
import ctypes
import re

_LIBRARY = re.compile(rb"^\S+ r-xp .* (/\S*/libgomp[^/\s]*)$", re.MULTILINE)
_HARD = 2


def end_pools() -> None:
    """End the threads that loops of this thread ran on. For a process that has some: it costs a look at its mappings.

    A library from before OpenMP 5 (GCC 9) has no way to do so.
    """
    try:
        with open("/proc/self/maps", "rb") as maps:
            found = set(_LIBRARY.findall(maps.read()))
    except OSError:  # no /proc on this host
        return
    for path in found:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(path.decode()).omp_pause_resource_all(_HARD)
