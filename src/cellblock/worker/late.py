"""Parts of the runner that few sessions need, imported when they are: every session's processes would carry them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from cellblock.worker.integrity import take_out

SAVING = ("cellblock.worker.saving", "cellblock.worker.supplies", "cellblock.worker.saving.scribe")
"""What saving names and loading them takes: some 50 ms to import."""

_runner: list[ModuleType] = []


def offer(modules: Iterable[ModuleType]) -> None:
    """The runner's modules, which an import finds no more."""
    _runner.extend(modules)


def load(name: str) -> Any:
    """A module of the runner's. What of the package the cells have imported stays theirs."""
    loaded = {module.__name__: module for module in _runner}
    if name in loaded:
        return loaded[name]
    theirs = take_out()
    sys.modules.update(loaded)
    try:
        return import_module(name)
    finally:
        _runner[:] = take_out()
        sys.modules.update((module.__name__, module) for module in theirs)
