"""Hooks that run on a module once it has been imported, by the cell or before it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Hook = Callable[[Any], None]


def on_import(name: str, hook: Hook) -> None:
    """Call `hook` with the module `name` when it has run; at once if it has already.

    One hook a name: a later one takes the place of an earlier one.
    """
    _finder.hooks[name] = hook
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    module = sys.modules.get(name)
    if module is not None:
        hook(module)


def forget_import(name: str) -> None:
    """Call nothing any more when the module `name` has run."""
    _finder.hooks.pop(name, None)
    if not _finder.hooks and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def replace(holder: Any, name: str, function: Callable[..., object]) -> None:
    """Put a function of the runner's into a module, or a class of one, as one of its own, which states name."""
    is_module = isinstance(holder, ModuleType)
    function.__name__ = name
    function.__qualname__ = name if is_module else f"{holder.__qualname__}.{name}"
    function.__module__ = holder.__name__ if is_module else holder.__module__
    setattr(holder, name, function)


def hook_of(name: str) -> Hook | None:
    """The function that is called with the module `name` when it has run."""
    return _finder.hooks.get(name)


class _Finder:
    """Finds only modules that have a hook, by the other finders, and has their loaders call it."""

    def __init__(self) -> None:
        self.hooks: dict[str, Hook] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.hooks:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find and finder is not self else None
            if spec is not None and spec.loader is not None:
                self._attend(spec.loader, self.hooks[name])
                return spec
        return None

    def _attend(self, loader: Any, hook: Hook) -> None:
        execute = loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            hook(module)

        loader.exec_module = execute_and_call


_finder = _Finder()
