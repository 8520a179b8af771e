"""Values of the standard library that the standard pickler refuses, or saves as something else.

Those that `losses` has a row for come here only where they can be saved: a file that is closed, a lock that is free.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import io
import json
import logging
import random
import struct
import threading
import types
import weakref
from _thread import LockType, RLock
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.facts import address_of, is_a
from cellblock.worker.saving.losses import UNHELD, Unsaved
from cellblock.worker.saving.objects import NEW, derived, giver_of, is_given, made_of, split
from cellblock.worker.saving.pickler import FAMILIES, REDUCERS, STAND_INS, Reduced, Saving, family, reducer, refuse
from cellblock.worker.saving.walk import HASHED, class_of, target_of


@reducer(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
def _generator(_: Saving, value: Any) -> Reduced:
    """One that has come to its end."""
    return building.ended, (type(value).__name__, value.__name__, value.__qualname__)


@reducer(io.TextIOWrapper, io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom)
def _file(_: Saving, value: Any) -> Reduced:
    """A file that is closed, as after a `with`."""
    coded = (value.encoding, value.errors) if type(value) is io.TextIOWrapper else ()
    return building.closed_file, (type(value).__name__, value.name, value.mode.replace("x", "w"), *coded)


@reducer(type(iter([])), type(iter(())))
def _iterator(_: Saving, value: Any) -> Reduced:
    """One at its beginning without a state, as iterators of other types are written that come back as this one."""
    made, arguments, *state = value.__reduce__()
    return (made, arguments, *state) if state != [0] else (made, arguments)


@family("asyncio.mixins._LoopBoundMixin")
def _of_loop(_: Saving, value: Any) -> Reduced:
    """A queue or lock of asyncio's belongs to the loop that it is awaited on next."""
    return NEW, (type(value),), {**vars(value), "_loop": None}


@family("threading.Condition")
def _condition(_: Saving, value: Any) -> Reduced:
    if vars(value).get("_waiters"):
        raise Unsaved(value, "a thread waits on it", "end the thread before the cell ends")
    return NotImplemented


@reducer("re.Match")
def _match(_: Saving, value: Any) -> Reduced:
    made = (value.re, value.string, value.pos, value.endpos, value.regs)
    if building.match(*made) is None:
        raise Unsaved(value, "a match of text that is another by now", "keep its groups() or span()")
    return building.match, made


@family(types.ModuleType)
def _module(saving: Saving, value: types.ModuleType) -> Reduced:
    name = saving.origins.module(value)
    if name is None:
        return STAND_INS["hand"], (vars(value),)
    return building.module, (name,)


@family(threading.local)
def _derived_local(_: Saving, value: Any) -> Reduced:
    """With the arguments that it was made with, which each further thread's attributes are made with."""
    given = next((one for one in gc.get_referents(value) if type(one) is tuple), ())
    return building.new_of, (threading.local, type(value), *given), dict(value.__dict__)


@reducer(weakref.ref, weakref.KeyedRef, weakref.ProxyType, weakref.CallableProxyType)
def _weak(saving: Saving, value: Any) -> Reduced:
    target = target_of(value)
    if target is None:
        if is_a(value, weakref.ref):
            return building.dead, ()
        is_called = type(value) is weakref.CallableProxyType
        return building.dead, (weakref.proxy, functools.partial(set) if is_called else set)
    _require_held(saving, value, target)
    if is_a(value, weakref.ref):
        return building.weak, (target, value.__callback__)
    return building.weak_proxy, (target,)


@reducer(weakref.WeakMethod)
def _weak_method(saving: Saving, value: Any) -> Reduced:
    bound = value()
    if bound is None:
        return building.dead, ()
    _require_held(saving, value, bound.__self__)
    return building.weak_method, (bound,)


@family(weakref.ref)
def _weak_of(saving: Saving, value: Any) -> Reduced:
    target = target_of(value)
    _require_held(saving, value, target)
    return derived(value, weakref.ref, (target, value.__callback__))


def _require_held(saving: Saving, reference: Any, target: Any) -> None:
    if target is None or not saving.walk.reaches(target):
        raise Unsaved(reference, *UNHELD)


@reducer(weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)
def _weak_items(saving: Saving, value: Any) -> Reduced:
    """Filled at the end where a `__hash__` in Python may need what is loaded by then."""
    is_set = type(value) is weakref.WeakSet
    items = list(value if is_set else value.items())
    if any(saving.walk.kinds.of(type(one if is_set else one[0])) == HASHED for one in items):
        saving.later.append((type(value).update, (value, items)))
        items = []
    return (building.weak_items if is_set else building.weak_values), (type(value), items)


@reducer(types.MappingProxyType)
def _proxy(_: Saving, value: Any) -> Reduced:
    kind = class_of(value)
    if kind is not None:
        return building.class_space, (kind,)
    (mapping,) = gc.get_referents(value)
    return building.proxy, (mapping,)


@reducer(*(type(getattr({}, name)()) for name in ("keys", "values", "items")))
def _view(_: Saving, value: Any) -> Reduced:
    (mapping,) = gc.get_referents(value)
    return building.view, (mapping, type(value).__name__.removeprefix("dict_"))


@reducer(super)
def _super(_: Saving, value: Any) -> Reduced:
    """Read past what it looks up: any other name is an attribute of the object it is bound to."""
    of = super.__thisclass__.__get__(value)  # type: ignore[attr-defined]
    bound = super.__self__.__get__(value)  # type: ignore[attr-defined]
    return super, (of,) if bound is None else (of, bound)


@reducer(staticmethod, classmethod)
def _wrapped(_: Saving, value: Any) -> Reduced:
    attributes = {name: one for name, one in vars(value).items() if not name.startswith("__")}
    return building.described, (type(value), (value.__func__,), attributes or None)


@reducer(contextvars.ContextVar)
def _variable(_: Saving, value: contextvars.ContextVar[Any]) -> Reduced:
    empty = contextvars.Context()
    try:
        default: tuple[Any, ...] = (empty.run(value.get),)
    except LookupError:
        default = ()
    current = (contextvars.copy_context()[value],) if value in contextvars.copy_context() else ()
    return building.variable, (value.name, default, current)


@reducer(
    types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
def _descriptor(_: Saving, value: Any) -> Reduced:
    at = value.__objclass__, value.__name__
    return (getattr if getattr(*at, None) is value else building.class_item), at


@reducer(memoryview)
def _memoryview(_: Saving, value: memoryview) -> Reduced:
    whole = value.obj
    if not value.c_contiguous:
        raise Unsaved(value, "a memoryview with gaps", "keep what it is a view of, and slice it again")
    offset = address_of(value) - address_of(whole) if value.nbytes else 0
    return building.slice_of, (whole, offset, value.nbytes, value.format, value.shape, value.readonly)


@family(BaseException)
def _exception(saving: Saving, value: BaseException) -> Reduced:
    """With what it was raised from; its traceback's frames cannot be kept."""
    standard = value.__reduce_ex__(5)
    links = (value.__cause__, value.__context__, value.__suppress_context__)
    if value.__traceback__ is not None:
        saving.notes.append((value, "its traceback", "keep traceback.format_exc() beside it"))
    if type(standard) is not tuple:
        return standard
    made, arguments, held = (*standard, None)[:3]
    if is_given(giver_of(type(value)), saving.origins):
        made, arguments = made_of(value, made, arguments, saving.origins)
        if made is building.made_by and isinstance(value, BaseExceptionGroup):
            arguments = (*arguments[:2], value.message, value.exceptions)
        held = _with_members(value, object.__getstate__(value))
    if len(standard) > 3 or not (held is None or isinstance(held, (dict, tuple))):
        return standard
    if made is standard[0] and not any(links) and held is None:
        return standard
    state = (held, *links, None)
    saving.kept.append(state)
    return made, arguments, state, None, None, building.set_exception


def _with_members(value: BaseException, attributes: Any) -> Any:
    """The attributes of an exception and those that it keeps beside its arguments."""
    held, slots = split(attributes)
    members = {name: getattr(value, name) for name in ("name", "path", "name_from") if _is_member(type(value), name)}
    slots = {**(slots or {}), **{name: one for name, one in members.items() if one is not None}}
    if isinstance(value, BaseExceptionGroup):
        slots["args"] = value.args
    return (held, slots) if slots else held


def _is_member(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), types.MemberDescriptorType)


@reducer(type(functools.cmp_to_key(max)))
def _key(_: Saving, value: Any) -> Reduced:
    if value.obj is not None:
        return refuse(_, value)
    compare = next(one for one in gc.get_referents(value) if one is not None and one is not type(value))
    return functools.cmp_to_key, (compare,)


@family(json.JSONDecoder)
def _decoder(_: Saving, value: json.JSONDecoder) -> Reduced:
    attributes = {name: one for name, one in vars(value).items() if name != "scan_once"}
    return NEW, (type(value),), attributes, None, None, building.set_decoder


@family(logging.FileHandler)
def _file_handler(_: Saving, value: logging.FileHandler) -> Reduced:
    """Opens its file again, to append, with the next record."""
    attributes = {**vars(value), "stream": None, "mode": "a", "_closed": False}
    return NEW, (type(value),), attributes


@family(logging.Logger)
def _logger(_: Saving, value: logging.Logger) -> Reduced:
    if value is logging.getLogger(value.name):
        return logging.getLogger, (value.name,) if value.name != "root" else ()
    return NotImplemented


def _made(value: property) -> tuple[Any, ...]:
    return value.fget, value.fset, value.fdel, value.__doc__


REDUCERS.update({
    "socket.socket": lambda _, __: (building.closed_socket, ()),
    LockType: lambda _, __: (building.lock, ()),
    RLock: lambda _, __: (building.reentrant_lock, ()),
    functools.partial: lambda _, __: NotImplemented,
    property: lambda _, value: (building.described, (property, _made(value), None)),
    random.SystemRandom: lambda _, __: (random.SystemRandom, ()),
    struct.Struct: lambda _, value: (struct.Struct, (value.format,)),
    threading.local: lambda _, value: (threading.local, (), dict(value.__dict__)),
    types.MethodWrapperType: lambda _, value: (getattr, (value.__self__, value.__name__)),
})  # fmt: skip
FAMILIES.update({
    property: lambda _, value: derived(value, property, _made(value)),
    staticmethod: lambda _, value: derived(value, staticmethod, (value.__func__,)),
    classmethod: lambda _, value: derived(value, classmethod, (value.__func__,)),
})  # fmt: skip
