"""Exceptions of E2B's interface, by E2B's names; each is a `CellblockError` with a hint as well."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from threading import TIMEOUT_MAX
from typing import ParamSpec, TypeVar

from cellblock.advice import for_model
from cellblock.cell import CellError
from cellblock.errors import CellblockError, SessionClosed
from cellblock.text import represent


class SandboxException(CellblockError):
    """Something about the sandbox, not about what the code did."""


class TimeoutException(SandboxException):
    """A time limit ended the code. The sandbox goes on."""


class InvalidArgumentException(SandboxException):
    """An argument that means nothing here."""


class NotFoundException(SandboxException):
    """No such file in the sandbox."""


class SandboxClosedException(SandboxException, SessionClosed):
    """The sandbox has ended."""


P = ParamSpec("P")
T = TypeVar("T")


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (lambda value: isinstance(value, int) and _is_number(value, 1, 2**31), "a whole number above 0"),
    "float": (lambda value: _is_number(value, 0, TIMEOUT_MAX), f"a number of seconds from 0 to {TIMEOUT_MAX:.0f}"),
    "None": (lambda value: False, "left out: a sandbox has one context"),
    "Callable": (callable, "a function"),
    "Mapping": (
        lambda value: isinstance(value, Mapping) and all(isinstance(part, str) for part in [*value, *value.values()]),
        "names and values, all of them text",
    ),
    "Literal": (lambda value: value in ("text", "bytes"), "'text' or 'bytes'"),
    "Data": (
        lambda value: isinstance(value, str | bytes | bytearray) or callable(getattr(value, "read", None)),
        "text, bytes or an open file",
    ),
    "Iterable": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping),
        "mappings with path and data",
    ),
}
"""A test by each kind of annotation, and what it asks for."""


def checked(method: Callable[P, T]) -> Callable[P, T]:
    """Test each argument of a method by the kind of its annotation; None passes where that names it."""
    signature = inspect.signature(method)
    tests = {
        name: (*_KINDS[one.annotation.partition("[")[0].partition(" |")[0]], "None" in one.annotation.split(" | "))
        for name, one in signature.parameters.items()
        if name != "self" and one.kind is not one.VAR_KEYWORD
    }

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind(*args, **kwargs).arguments
        for name in filter(tests.__contains__, given):
            fits, asked, has_none = tests[name]
            if not (given[name] is None and has_none) and not fits(given[name]):
                raise wrong(name, asked, given[name])
        try:
            return method(*args, **kwargs)
        except SessionClosed as error:
            raise SandboxClosedException(*error.args, hint=error.hint) from None

    return call


def wrong(name: str, asked: str, value: object) -> InvalidArgumentException:
    """The error of an argument, which says what it must be."""
    return InvalidArgumentException(f"{name} must be {asked}, not {represent(value, max_chars=100)}")


def told(error: CellError) -> str:
    """A cell's error as a model reads it, which has the interface's results and no hint beside them."""
    hint = for_model(error.hint)
    return f"{error.message} ({hint})" if hint else error.message
