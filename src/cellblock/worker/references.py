"""The runner's objects that cells can hold, each under a key: a saved state refers to them, and holds none of them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")
RUNNER = "cellblock.worker."
"""Begins the names of the modules whose objects no state holds."""
_keys: dict[int, tuple[str, object]] = {}
"""By address. Each object is held, so that its address stays its own."""
_objects: dict[str, object] = {}


def refer(key: str, value: T) -> T:
    """Have states refer to this object by a key: the name of a tool, or `@` and a word for what the runner gives."""
    _keys[id(value)] = key, value
    _objects[key] = value
    return value


def key_of(value: object) -> str | None:
    """The key of an object, None of one that states do not refer to."""
    found = _keys.get(id(value))
    return None if found is None else found[0]


def referred(key: str) -> object:
    """The object of a key; for a tool that the session was opened without, a function that says so."""
    return _objects[key] if key in _objects else refer(key, missing(key))


def is_runners(value: object) -> bool:
    """True of the runner's functions and classes, wherever a cell found them.

    Not of a type of ctypes, which tells who made it first.
    """
    module = None
    if type(value) is FunctionType:
        module = value.__globals__.get("__name__")
    elif type(value) is type:
        module = value.__module__
    return type(module) is str and module.startswith(RUNNER)


def missing(name: str) -> Callable[..., Any]:
    """The function that stands for a tool that the session was opened without."""

    def tool(*_: object, **__: object) -> Any:
        raise RuntimeError(f"{name}() is a tool that this session was opened without: open it with tools=[{name}]")

    tool.__name__ = tool.__qualname__ = name
    tool.__module__ = "tools"
    return tool


class Shown:
    """Stands for a value that is not here, or that nothing can go through, and is shown as a text."""

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown
