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
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import CodeType, SimpleNamespace
from typing import Any, ParamSpec, TypeVar, get_type_hints

from cellblock.agent.loop import answered
from cellblock.agent.result import RunResult
from cellblock.errors import CellblockError, ModelError, TaskFailed, needing
from cellblock.observe.log import EventLog
from cellblock.session.hostloop import call
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned
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
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}; it is {function.__name__}{signature}") from None
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


# ------------------------------------------------------------------------ the end of a task

_FREEZE = """
def __freeze(names):
    from builtins import Exception, TypeError, ValueError, any, classmethod, dict, enumerate, id, isinstance, list
    from builtins import map, property, set, setattr, staticmethod, tuple, type, vars
    FunctionType, CodeType = (lambda: 0).__class__, (lambda: 0).__code__.__class__
    frozen, made, seen, failed = {}, {}, set(), []

    def read(code):
        for name in code.co_names:
            if name in names and name not in frozen:
                frozen[name] = names[name]
                frozen[name] = of(names[name])
        for one in code.co_consts:
            if isinstance(one, CodeType):
                read(one)

    def of(value):
        kind = type(value)
        if kind is FunctionType:
            return of_function(value) if value.__globals__ is names else value
        if kind is staticmethod or kind is classmethod:
            return kind(of(value.__func__))
        if kind is property:
            return property(of(value.fget), of(value.fset), of(value.fdel), value.__doc__)
        if id(value) in seen:
            return value
        if isinstance(value, type) and value.__module__ == names["__name__"]:
            seen.add(id(value))
            for key, one in list(vars(value).items()):
                if type(one) in (FunctionType, staticmethod, classmethod, property):
                    setattr(value, key, of(one))
        elif kind is list or kind is dict:
            seen.add(id(value))
            for key, one in list(enumerate(value) if kind is list else value.items()):
                if type(one) is FunctionType:
                    value[key] = of(one)
        elif kind is tuple and any(type(one) is FunctionType for one in value):
            return tuple(map(of, value))
        return value

    def of_function(function):
        if function in made:
            return made[function]
        new = FunctionType(function.__code__, frozen, function.__name__, function.__defaults__, function.__closure__)
        made[function] = made[new] = new
        new.__kwdefaults__, new.__annotations__ = function.__kwdefaults__, function.__annotations__
        new.__qualname__, new.__doc__, new.__module__ = function.__qualname__, function.__doc__, function.__module__
        new.__dict__.update(function.__dict__)
        for cell in function.__closure__ or ():
            try:
                cell.cell_contents = of(cell.cell_contents)
            except ValueError:
                pass
        read(function.__code__)
        return new

    frozen["__name__"], frozen["__builtins__"] = names["__name__"], names["__builtins__"]
    for name, value in list(names.items()):
        if not name.startswith("__") and name not in ("memory", "AgentMemory"):
            try:
                new = of(value)
            except Exception:
                failed.append(name)
                continue
            if new is not value:
                names[name] = new
    if failed:
        raise TypeError("what these hold could not be frozen: " + ", ".join(failed))
try:
    __freeze(globals())
finally:
    del __freeze
"""


@asynccontextmanager
async def frozen_after(session: AsyncSession, log: EventLog) -> AsyncIterator[None]:
    """Freeze what the functions of a stored session read, once the run within has ended, unless it was cancelled.

    Between cells functions see the session's names, as in a notebook. From here on they are functions with globals of
    their own, which hold what their code names, at its value of this moment. All that one task leaves share these
    globals, so that they go on calling one another. Functions are found under names, in lists, tuples and dicts under
    names, in classes and in what functions captured; elsewhere, in attributes of objects say, they go on as before.

    Nothing is frozen where a guard stands, which lets no cell make functions of their parts.
    """
    try:
        yield
    except (TaskFailed, ModelError):
        await _freeze(session, log)
        raise
    await _freeze(session, log)


async def _freeze(session: AsyncSession, log: EventLog) -> None:
    if not isinstance(session.state, Versioned) or session.is_guarded:
        return
    try:
        await session.aside(_FREEZE, step="functions frozen")
    except CellblockError as error:  # objects of cells may refuse
        await log.add("decision", step=None, kind="not frozen", reason=str(error))
