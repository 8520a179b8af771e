"""Functions, methods and what they are made of, by value; those of modules by name."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Container
from types import CodeType
from typing import Any

from cellblock.labels import label_of
from cellblock.worker.references import Shown
from cellblock.worker.saving import building
from cellblock.worker.saving.facts import marshalled
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.objects import shared_space
from cellblock.worker.saving.pickler import BUILDER, NUMBERS, REDUCERS, STAND_INS, Reduced, Saving, is_full, reducer

EVERYTHING = "*"
"""Stands for every name: what the code looks up is not written in it."""
_DYNAMIC = frozenset(
    (
        "globals", "locals", "vars", "dir", "eval", "exec", "compile", "__import__", "__main__", "__dict__",
        "__globals__", "f_globals", "f_locals", "f_back", "_getframe", "currentframe", "modules", "get_objects",
        "get_referrers", "run_module", "runpy", "pickle", "dill", "cloudpickle", "inspect", "sys", "gc", "code", "pdb",
        "breakpoint", "timeit", "doctest",
    )
)  # fmt: skip
_word = re.compile(r"[^\W\d]\w*").findall


@reducer(types.FunctionType)
def _function(saving: Saving, value: types.FunctionType) -> Reduced:
    number = NUMBERS.get(id(value))
    if number is not None:
        return BUILDER, (number,)
    reference = saving.reference_to(value, value.__qualname__)
    if reference is not None:
        return reference
    module = saving.origins.space(value.__globals__)
    if value.__globals__ is saving.namespace or module in saving.origins.own:
        reached = reached_by_code(value.__code__, value.__globals__)
        saving.reaches |= reached if module is None else {label_of(module, name) for name in reached}
    cells = value.__closure__ or ()
    fresh = [one for one in cells if id(one) not in saving.filled]
    saving.filled.update(map(id, fresh))
    contents = [(one, one.cell_contents) for one in fresh if is_full(one)]
    state = (
        value.__name__,
        value.__qualname__,
        value.__module__,
        value.__doc__,
        value.__defaults__,
        value.__kwdefaults__,
        value.__annotations__ or None,
        value.__dict__ or shared_space(value),
        contents,
        getattr(value, "__type_params__", None) or None,
    )
    saving.kept.append(state)
    made = (value.__code__, saving.space_of(value.__globals__), value.__closure__)
    return building.function, made, state, None, None, building.set_function


@reducer(types.CellType)
def _cell(saving: Saving, value: types.CellType) -> Reduced:
    if id(value) not in saving.filled:
        saving.cells[id(value)] = value
    return building.cell, ()


@reducer(types.MethodType)
def _method(saving: Saving, value: types.MethodType) -> Reduced:
    """By its name where its class is whole before this is loaded: it is the class's own function then."""
    body, owner = value.__func__, value.__self__
    name = getattr(body, "__name__", None)
    of = owner if isinstance(owner, type) else type(owner)
    if isinstance(name, str) and (saving.origins.of(of) is not None or saving.elsewhere(of) is not None):
        for kind in (owner.__mro__ if isinstance(owner, type) else ()) + type(owner).__mro__:
            found = vars(kind).get(name)
            if found is not None:
                same = getattr(found, "__func__", found) is body
                return (getattr, (owner, name)) if same else (building.method, (body, owner))
    return building.method, (body, owner)


@reducer(types.BuiltinFunctionType)
def _builtin(saving: Saving, value: types.BuiltinFunctionType) -> Reduced:
    owner = value.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        module = value.__module__ or (owner.__name__ if owner is not None else None)
        if module is not None:
            if saving.origins.of(value) is not None:
                return building.attribute, (module, value.__qualname__)
            saving.walk.originals[module, value.__qualname__] = value
            return STAND_INS["original"], (module, value.__qualname__)
        raise Unsaved(value, "a function of an extension that no module holds", "look it up again in the next cell")
    return getattr, (owner, value.__name__)


@reducer(type(functools.lru_cache(len)))
def _cached(saving: Saving, value: Any) -> Reduced:
    reference = saving.reference_to(value, value.__qualname__)
    if reference is not None:
        return reference
    told = value.cache_info()
    parameters = value.cache_parameters() if hasattr(value, "cache_parameters") else {"typed": False}
    attributes = vars(value)
    body = attributes.get("__wrapped__")
    if body is None:
        raise Unsaved(value, "a cached function without the function that it wraps", "define it again")
    made = (body, told.maxsize, bool(parameters["typed"]))
    return building.cached, made, attributes, None, None, building.set_cached


REDUCERS.update({
    Shown: lambda _, value: (building.shown, (value.shown,)),
    CodeType: lambda _, value: (building.code, (marshalled(value),)),
})  # fmt: skip


def reached_by_code(code: CodeType, known: Container[str]) -> set[str]:
    """The names that a function's code mentions, in strings too, and all that is nested in it; `EVERYTHING` where that
    cannot be told."""
    found: set[str] = set()
    pending: list[object] = [code]
    while pending:
        one = pending.pop()
        if isinstance(one, CodeType):
            pending += one.co_consts
            words = list(one.co_names)
        elif isinstance(one, str):
            words = _word(one)
        elif isinstance(one, (tuple, frozenset)):
            pending += one
            continue
        else:
            continue
        if not _DYNAMIC.isdisjoint(words):
            return {EVERYTHING}
        found.update(word for word in words if word in known)
    return found
