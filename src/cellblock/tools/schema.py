"""A function's parameters as JSON schema, and arguments that a model wrote, validated: both by pydantic."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_type_hints

from cellblock.errors import needing
from cellblock.text import misfits
from cellblock.tools.tool import about


class Callee:
    """A function that is called with JSON: its schema, and a call of it."""

    def __init__(self, function: Callable[..., Any], *, description: str | None = None) -> None:
        """`description` stands for the docstring. CellblockError without pydantic."""
        with needing("agent", "tools that are called with JSON need pydantic"):
            from pydantic import ConfigDict, Field, create_model
            from pydantic_core import to_jsonable_python
        self.name = function.__name__
        self._function = function
        self.about = about(function)
        """Its settings from when it was marked."""
        self._names: list[str] = []
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"{self.name}: {parameter} cannot be given by name, as models give arguments")
            default: dict[str, Any] = {}
            if parameter.default is not parameter.empty:
                default["default"] = parameter.default
                try:
                    to_jsonable_python(parameter.default)
                except Exception:  # it is none of JSON's: the schema is told of no default
                    default = {"default_factory": partial(_same, parameter.default)}
            title = parameter.name.replace("_", " ").strip().title()
            field = Field(alias=parameter.name, title=title, **default)  # models keep some names for themselves
            fields[f"p{len(fields)}"] = (known(hints.get(parameter.name, Any)), field)
            self._names.append(parameter.name)
        config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
        self._model = create_model(self.name, __config__=config, **fields)
        doc = description if description is not None else inspect.getdoc(function) or ""
        parameters = self._model.model_json_schema()
        parameters.pop("title", None)
        self.schema: dict[str, Any] = {
            "type": "function",
            "function": {"name": self.name, "description": doc, "parameters": parameters},
        }
        """The schema as chat-completions endpoints take it."""

    async def call(self, arguments: Mapping[str, Any]) -> object:
        """Call it: on this loop where it is async, else in a thread. ValueError where the arguments do not fit."""
        from pydantic import ValidationError

        from cellblock.hosting import to_thread

        try:
            given = self._model(**arguments)
        except ValidationError as error:
            raise ValueError(f"the arguments do not fit: {misfits(error)}") from None
        values = {name: getattr(given, f"p{number}") for number, name in enumerate(self._names)}
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**values)
        return await to_thread.run_sync(lambda: self._function(**values), abandon_on_cancel=True)


def _same(value: Any) -> Any:
    return value


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
