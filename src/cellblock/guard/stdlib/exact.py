"""Functions of the host that remember their arguments: they get exact texts, never objects with code of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cellblock.guard.names import names


def exact(value: Any) -> Any:
    """A text, bytes or number as it is without its class's own methods; anything else as it is."""
    if issubclass(type(value), str):
        return str.__str__(value)
    if issubclass(type(value), bytes):
        return value if type(value) is bytes else bytes(memoryview(value))
    if issubclass(type(value), int) and type(value) is not bool:
        return int.__pos__(value)
    return float.__pos__(value) if issubclass(type(value), float) else value


def exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, given exact arguments."""

    def called(*given: Any, **named: Any) -> Any:
        return function(*map(exact, given), **{name: exact(one) for name, one in named.items()})

    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(called, name, getattr(function, name, None))
    return called


def all_exactly(module: Any, text: str) -> dict[str, Callable[..., Any]]:
    """The functions of a module, by name; those that this Python lacks are left out."""
    return {name: exactly(getattr(module, name)) for name in names(text) if hasattr(module, name)}
