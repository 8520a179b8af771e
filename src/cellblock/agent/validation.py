"""A value from a session, and the type that it is to have: decided on the host, by pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cellblock.errors import needing
from cellblock.text import line, represent
from cellblock.tools.annotations import known
from cellblock.values.forms import EnumName, Opaque, Record

_MOST_SAID = 1_000


def validator(annotation: Any, name: str) -> Callable[[object], object]:
    """A function that gives a value in the annotated type, or raises TypeError with what does not fit.

    TypeError for an annotation that pydantic cannot check, CellblockError without pydantic.
    """
    if annotation in (Any, object):
        return lambda value: value
    with needing("agent", "tasks check their results with pydantic"):
        from pydantic import ConfigDict, TypeAdapter, ValidationError
        from pydantic.errors import PydanticUserError
    kind = type(None) if annotation is None else known(annotation)
    adapter: TypeAdapter[Any]
    try:
        try:
            adapter = TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            adapter = TypeAdapter(kind)  # it has a configuration of its own
    except PydanticUserError as error:
        said = error.message.partition("\n")[0]
        raise TypeError(f"{name}: that it returns {_shown(annotation)} cannot be checked: {said}") from None

    def accept(value: object) -> object:
        try:
            return adapter.validate_python(_plain(value))
        except ValidationError as error:
            said = "; ".join(_said(one) for one in error.errors(include_url=False)[:10])
            raise TypeError(
                f"{name} is to return {_shown(annotation)}, and this does not fit: {said[:_MOST_SAID]}"
            ) from None

    return accept


def _plain(value: object) -> object:
    """A value as pydantic takes it: of a record its fields, of an enumeration's member its name."""
    match value:
        case Record():
            return {key: _plain(one) for key, one in value.fields.items()}
        case EnumName():
            return value.name
        case Opaque():
            return value
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case tuple():
            return tuple(map(_plain, value))
    return value


def _said(error: Mapping[str, Any]) -> str:
    where, said = ".".join(map(line, error["loc"])), line(error["msg"])
    return f"{where}: {said}" if where else said


def _shown(annotation: Any) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    return represent(annotation, max_chars=500).replace("typing.", "")
