"""Survey of the names of a session, from inside the wall."""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, Any, TypeAlias

from cellblock.text import represent
from cellblock.worker.interrupts import Interrupted

if TYPE_CHECKING:
    from cellblock.worker.interpreter import Interpreter

Row: TypeAlias = list[Any]
_NAME_OF_TYPE = type.__dict__["__name__"]


def type_name(kind: type) -> str:
    """A type's own name, whatever its metaclass says, at most 200 characters."""
    return str(_NAME_OF_TYPE.__get__(kind))[:200]


def names(interpreter: Interpreter, max_names: int, max_preview: int) -> list[Row]:
    """Of each name: type, size in bytes without what it refers to, and preview."""
    return [row(interpreter, name, max_preview) for name in sorted(interpreter.names())[:max_names]]


def row(interpreter: Interpreter, name: str, max_preview: int) -> Row:
    value = interpreter.namespace.get(name)
    return [name, type_name(type(value)), _size(value), represent(value, max_chars=max_preview)]


def _size(value: object) -> int:
    try:
        return getsizeof(value, 0)
    except Interrupted:
        raise
    except BaseException:  # an object's own __sizeof__ may do anything
        return 0
