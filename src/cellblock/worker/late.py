"""The runner's modules, and the parts of it that few sessions need: imported when they are, or all would carry them.

An import finds none of them: code of the cells that imports the package by name gets another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from cellblock.worker.integrity import put_back

SAVING = ("cellblock.worker.saving", "cellblock.worker.supplies", "cellblock.worker.saving.scribe")
"""Modules for saving and loading names: some 50 ms to import."""
GUARD = "cellblock.worker.guarded"
"""Module of the guard, which is imported in the zygotes of sessions that have one."""

runner: list[ModuleType] = []


@contextmanager
def importing() -> Iterator[None]:
    """While more of them are imported. Not while code of a cell's can run."""
    try:
        with put_back(runner) as added:
            yield
    finally:
        runner.extend(added)


def load(name: str) -> Any:
    """A module of the runner's. What of the package the cells have imported stays theirs."""
    for module in runner:
        if module.__name__ == name:
            return module
    with importing():
        return import_module(name)
