"""At the end of a task of a stored session what its functions read is frozen: they keep the values that names had then.

Between cells functions see the session's names, as in a notebook. Once a task has ended, its functions are replaced by
ones with globals of their own, which hold what their code names, at its value of that moment; all that one task leaves
share them, so that they go on calling one another. Functions are found under names, in lists, tuples and dicts under
names, in classes and in what functions captured; elsewhere, in attributes of objects say, they go on as before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cellblock.errors import CellblockError, ModelError, TaskFailed
from cellblock.observe.log import EventLog
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned

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
    """Freeze what functions read once the run within has ended, however it did, unless it was cancelled.

    Where the session has no store, and where a guard stands, which lets no cell make functions of their parts, nothing
    is frozen.
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
