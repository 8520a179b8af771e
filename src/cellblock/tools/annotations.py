"""Annotations as pydantic takes them."""

from __future__ import annotations

import sys
import types
import typing
from typing import Any


def known(annotation: Any) -> Any:
    """An annotation as pydantic takes it: before Python 3.12 it takes no `typing.TypedDict`."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(annotation):
        from typing_extensions import TypedDict

        required = annotation.__required_keys__
        fields = typing.get_type_hints(annotation, include_extras=True).items()
        taken = {
            key: typing.Required[known(one)] if key in required else typing.NotRequired[known(one)]
            for key, one in fields
        }
        return TypedDict(annotation.__name__, taken)  # type: ignore[operator]
    parts, origin = typing.get_args(annotation), typing.get_origin(annotation)
    if origin in (None, typing.Literal, typing.Annotated) or not any(map(_holds_typed_dict, parts)):
        return annotation
    made = tuple(map(known, parts))
    return typing.Union[made] if origin in (typing.Union, types.UnionType) else origin[made]  # noqa: UP007 - of a tuple


def _holds_typed_dict(annotation: Any) -> bool:
    return typing.is_typeddict(annotation) or any(map(_holds_typed_dict, typing.get_args(annotation)))
