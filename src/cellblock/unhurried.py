"""Work that turns out to take long while it is carried out where there is no time."""

from __future__ import annotations

import importlib
import sys
from contextvars import ContextVar
from types import ModuleType

hurried: ContextVar[bool] = ContextVar("hurried", default=False)
"""True while something short is carried out on an event loop, which others wait for."""


class TakesLong(BaseException):
    """It is to be carried out once more where there is time: no fault, so no handler of errors may take it for one."""


def imported(name: str) -> ModuleType:
    """A module; ImportError where there is none. Its first import may take seconds: `TakesLong` in a hurry."""
    if name not in sys.modules and hurried.get():
        raise TakesLong
    return importlib.import_module(name)
