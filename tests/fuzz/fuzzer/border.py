"""What reading may do: of all that CPython tells an auditor of, what is allowed, and for how long."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from zoneinfo import TZPATH, ZoneInfo

MOST_SECONDS = 20.0
"""Of processor time, after which a reader is taken to have no end."""

_ALLOWED = frozenset({
    "array.__new__",
    "builtins.id",
    "os.listdir",  # looking for a module
    "object.__getattr__",  # a frame's code: what follows the lines asks for it
})  # fmt: skip
_MODULES = frozenset({"numpy", "tzdata"})
_TZDATA = importlib.util.find_spec("tzdata")
_INSTALLED = _TZDATA.submodule_search_locations or () if _TZDATA else ()
_ZONES = (*TZPATH, *_INSTALLED)

_active = False
_also: frozenset[str] = frozenset()
_done: list[str] = []


class Endless(BaseException):
    """A reader did not end."""


@contextmanager
def crossed(also: frozenset[str] = frozenset()) -> Iterator[None]:
    """Reading goes on, and may do what `also` names.

    In the end AssertionError for whatever else was done; `Endless` where there is no end.
    """
    global _active, _also
    _also = also
    _done.clear()
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    _active = True
    try:
        yield
    finally:
        _active = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        assert not _done, f"reading did {_done[0]}"


def _give_up(_number: int, _frame: object) -> None:
    raise Endless(f"no end after {MOST_SECONDS:g} s")


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _active and not _allowed(event, arguments):
        _done.append(f"{event}{arguments!r:.200}")
        raise PermissionError(event)


def _allowed(event: str, arguments: tuple[object, ...]) -> bool:
    if event == "import":
        return str(arguments[0]).partition(".")[0] in _MODULES
    if event == "open":
        path, _, flags = arguments
        is_zone = isinstance(path, str) and os.path.normpath(path).startswith(_ZONES)
        return is_zone and isinstance(flags, int) and flags & os.O_ACCMODE == os.O_RDONLY
    return event in _ALLOWED or event in _also


with suppress(KeyError):  # import what zones lead to, and one that is not there, before anybody listens
    ZoneInfo("Nowhere")
for _module in pkgutil.walk_packages(_INSTALLED, "tzdata."):
    importlib.import_module(_module.name)
sys.addaudithook(_audit)
