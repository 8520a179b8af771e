"""Functions, classes and modules as a model reads them: Python without bodies."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from cellblock.policy import Members
from cellblock.text import half_made, represent
from cellblock.tools.tool import Visibility

_MOST_MEMBERS = 60
_MOST_DEFAULT = 500


def function_stub(function: Callable[..., Any], visibility: Visibility = "full", *, name: str | None = None) -> str:
    """`def name(…) -> …:` with the docstring, where it is to be told; "" where nothing is."""
    if visibility == "hidden":
        return ""
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    head = f"{word} {name or function.__name__}{_signature(function)}:"
    doc = inspect.getdoc(function) if visibility == "full" else None
    return f"{head} ..." if not doc else f"{head}\n{_documented(doc)}"


def class_stub(cls: type, visibility: Visibility = "full", *, name: str | None = None, members: Members) -> str:
    """A class with the signatures of its granted methods."""
    if visibility == "hidden":
        return ""
    head = f"class {name or cls.__name__}:"
    lines = [_documented(doc)] if visibility == "full" and (doc := inspect.getdoc(cls)) else []
    maker = inspect.getattr_static(cls, "__init__")
    if inspect.isfunction(maker):
        lines.append(f"    def __init__{_signature(maker)}: ...")
    for key, value in _granted(cls, members):
        if inspect.isroutine(value):
            lines.append(textwrap.indent(function_stub(value, "signature", name=key), "    "))
        else:
            lines.append(f"    {key}")
    return f"{head} ..." if not lines else "\n".join([head, *lines])


def module_stub(
    module: ModuleType, visibility: Visibility = "full", *, name: str | None = None, members: Members
) -> str:
    """An import with the names that it brings."""
    if visibility == "hidden":
        return ""
    head = f"import {name or module.__name__}"
    names = [key for key, value in _granted(module, members) if not isinstance(value, ModuleType)]
    shown = ", ".join(names[:_MOST_MEMBERS]) + (", …" if len(names) > _MOST_MEMBERS else "")
    return f"{head}  # {shown}" if shown and visibility == "full" else head


def _granted(owner: object, members: Members) -> Iterable[tuple[str, object]]:
    for key in dir(owner):
        if members.allow(key) and (value := inspect.getattr_static(owner, key, None)) is not None:
            yield key, getattr(value, "__func__", value)


def _signature(function: Callable[..., Any]) -> str:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin that tells none
        return "(...)"
    parameters = [
        one.replace(annotation=_annotation(one.annotation), default=_default(one.default))
        for one in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=_annotation(found.return_annotation)))


class Written:
    """An annotation or a default value of which there is the text alone, shown without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    @half_made
    def __repr__(self) -> str:
        return self._text


def _annotation(annotation: object) -> object:
    return Written(annotation) if isinstance(annotation, str) else annotation


def _default(default: object) -> object:
    return default if default is inspect.Parameter.empty else Written(represent(default, max_chars=_MOST_DEFAULT))


def _documented(doc: str) -> str:
    quoted = doc.replace('"""', "'''")
    return textwrap.indent(f'"""{quoted}"""', "    ")
