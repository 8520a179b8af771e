"""`@agent.task`: a typed function whose body an agent fulfils.

    @agent.task
    def mean(rows: list[dict]) -> dict[str, float]:
        "Mean of every numeric column."

    mean([{"a": 1}, {"a": 2}])      # {"a": 1.5}

The signature and the docstring are what the model is asked. Arguments are bound in its session, as copies; the answer
is decoded on this side of the wall and validated against the annotation, by pydantic. What does not fit is raised where
the model's code calls `final_answer`, so that it is mended within the run.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from types import CodeType, SimpleNamespace
from typing import Any, ParamSpec, TypeVar, get_type_hints

from cellblock.agent.loop import answered
from cellblock.agent.result import RunResult
from cellblock.errors import needing
from cellblock.session.hostloop import call
from cellblock.text import misfits, represent
from cellblock.tools.schema import known
from cellblock.tools.stubs import function_stub
from cellblock.values.forms import EnumName, Opaque, Record

P = ParamSpec("P")
R = TypeVar("R")


class Task:
    """Makes functions of one agent; `agent.task`."""

    def __init__(self, run: Callable[..., Awaitable[RunResult]], require_free: Callable[[str], None]) -> None:
        """`run` and `require_free` are methods of the agent."""
        self._run = run
        self._require_free = require_free

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """A function with the same signature, sync or async as the given one is, that asks the agent. Warns where the
        given one has a body.

        Calling it raises `StepLimitReached`, `TaskFailed` and `ModelError`, each with what was done until then.
        """
        if not inspect.getdoc(function):
            why = ", and python -OO leaves docstrings out" if sys.flags.optimize > 1 else ""
            raise ValueError(f"{function.__name__} has no docstring: it is what the agent is asked to do{why}")
        if _has_body(function):
            warnings.warn(f"the body of {function.__name__} is never run: the agent takes its place", stacklevel=2)
        signature = inspect.signature(function)
        for name in signature.parameters:
            self._require_free(name)
        accept = validator(_returned(function), function.__name__)
        asked = _asked(function)

        def prepared(*args: Any, **kwargs: Any) -> Callable[..., Any]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return partial(self._run, asked, inputs=bound.arguments, accept=accept, freezes=True)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def ask_async(*args: Any, **kwargs: Any) -> Any:
                return answered(await prepared(*args, **kwargs)()).value

            return ask_async  # type: ignore[return-value]

        @functools.wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            return answered(call(prepared(*args, **kwargs))).value  # type: ignore[return-value]

        return ask


def _has_body(function: Callable[..., Any]) -> bool:
    """True if a function does more than nothing, or raise NotImplementedError."""
    code = getattr(function, "__code__", None)
    return code is not None and _done(code) not in _EMPTY


def _done(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_names, code.co_consts[1:]  # the first is the docstring


def _nothing() -> None:
    """Nothing."""


async def _nothing_async() -> None:
    """Nothing."""


def _raises() -> None:
    """Nothing."""
    raise NotImplementedError


async def _raises_async() -> None:
    """Nothing."""
    raise NotImplementedError


_EMPTY = [_done(one.__code__) for one in (_nothing, _nothing_async, _raises, _raises_async)]


def _asked(function: Callable[..., Any]) -> str:
    return (
        "Do what this function promises. Its arguments are bound to the names of its parameters; "
        "give what it returns to final_answer, in the form that its annotation says.\n\n"
        f"```python\n{function_stub(function)}\n```"
    )


def _returned(function: Callable[..., Any]) -> Any:
    """The annotated return type of the function; `Any` without one."""
    annotation = getattr(function, "__annotations__", {}).get("return", Any)
    alone = SimpleNamespace(__annotations__={"return": annotation}, __globals__=getattr(function, "__globals__", {}))
    try:
        return get_type_hints(alone, include_extras=True)["return"]
    except NameError as error:
        raise TypeError(f"{function.__name__}: the annotation of its result cannot be read: {error}") from None


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
            said = misfits(error)[:_MOST_SAID]
            raise TypeError(f"{name} is to return {_shown(annotation)}, and this does not fit: {said}") from None

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


def _shown(annotation: Any) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    return represent(annotation, max_chars=500).replace("typing.", "")
