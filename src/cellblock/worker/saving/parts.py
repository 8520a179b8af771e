"""Values of the standard library that the standard pickler refuses, or saves as something else."""

from __future__ import annotations

import contextvars
import functools
import io
import logging
import operator
import sys
import threading
import types
import weakref
from _thread import LockType, RLock
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.losses import Unsaved, advice
from cellblock.worker.saving.pickler import Reduced, Saving, family, reducer, refuse
from cellblock.worker.saving.walk import target_of

reducer(
    types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.FrameType, weakref.finalize,
    contextvars.Token, contextvars.Context, io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom,
)(refuse)  # fmt: skip


@family(types.ModuleType)
def _module(_: Saving, value: types.ModuleType) -> Reduced:
    name = value.__name__
    if sys.modules.get(name) is value:
        return building.module, (name,)
    raise Unsaved(value, f"the module {name}, which an import does not find", "make or import it again")


@reducer(type(print))
def _unused(_: Saving, __: Any) -> Reduced:
    return NotImplemented


@reducer(io.TextIOWrapper)
def _text_file(_: Saving, value: io.TextIOWrapper) -> Reduced:
    for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"):
        if getattr(sys, name, None) is value:
            return building.stream_of, (name,)
    return refuse(_, value)


@reducer(LockType)
def _lock(_: Saving, value: Any) -> Reduced:
    if value.locked():
        return refuse(_, value)
    return building.lock, ()


@reducer(RLock)
def _reentrant(_: Saving, value: Any) -> Reduced:
    if not repr(value).startswith("<unlocked"):
        return refuse(_, value)
    return building.reentrant_lock, ()


@reducer(threading.local)
def _local(_: Saving, value: Any) -> Reduced:
    return threading.local, (), dict(value.__dict__)


@reducer(weakref.ref, weakref.KeyedRef, weakref.ProxyType, weakref.CallableProxyType)
def _weak(saving: Saving, value: Any) -> Reduced:
    target = target_of(value)
    if target is None:
        return building.dead, ()
    if not saving.walk.reaches(target):
        raise Unsaved(value, "a weak reference to what no name holds", "keep the object itself under a name")
    if isinstance(value, weakref.ref):
        return building.weak, (target, value.__callback__)
    return building.weak_proxy, (target,)


@reducer(weakref.WeakValueDictionary)
def _weak_values(_: Saving, value: Any) -> Reduced:
    return building.weak_values, (type(value), list(value.items()))


@reducer(weakref.WeakKeyDictionary)
def _weak_keys(_: Saving, value: Any) -> Reduced:
    return building.weak_values, (type(value), list(value.items()))


@reducer(weakref.WeakSet)
def _weak_set(_: Saving, value: Any) -> Reduced:
    return building.weak_items, (type(value), list(value))


@reducer(types.MappingProxyType)
def _proxy(_: Saving, value: Any) -> Reduced:
    import gc

    (mapping,) = gc.get_referents(value)
    return building.proxy, (mapping,)


@reducer(*(type(getattr({}, name)()) for name in ("keys", "values", "items")))
def _view(_: Saving, value: Any) -> Reduced:
    import gc

    (mapping,) = gc.get_referents(value)
    return building.view, (mapping, type(value).__name__.removeprefix("dict_"))


@reducer(property)
def _property(_: Saving, value: property) -> Reduced:
    return building.described, (property, (value.fget, value.fset, value.fdel, value.__doc__), None)


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


@reducer(types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType)
def _descriptor(_: Saving, value: Any) -> Reduced:
    return getattr, (value.__objclass__, value.__name__)


@reducer(types.ClassMethodDescriptorType)
def _class_descriptor(_: Saving, value: Any) -> Reduced:
    return operator.getitem, (value.__objclass__.__dict__, value.__name__)


@reducer(types.MethodWrapperType)
def _wrapper(_: Saving, value: Any) -> Reduced:
    return getattr, (value.__self__, value.__name__)


@reducer(types.TracebackType)
def _traceback(_: Saving, value: Any) -> Reduced:
    return refuse(_, value)


@reducer(memoryview)
def _memoryview(_: Saving, value: memoryview) -> Reduced:
    from cellblock.worker.saving.memory import address_of

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
        saving.notes.append((value, "the traceback of an exception", "keep traceback.format_exc() beside it"))
    if type(standard) is not tuple:
        return standard
    made, arguments, *rest = standard
    if type(value).__reduce__ is BaseException.__reduce__ and type(value).__init__ not in _SIMPLE:
        made, arguments = building.instance_of, (type(value), value.args)
    elif not any(links) and (not rest or rest[0] is None):
        return standard
    state = (rest[0] if rest else None, *links, None)
    if rest and rest[0] is not None and not isinstance(rest[0], dict):
        return standard
    saving.kept.append(state)
    return made, arguments, state, None, None, building.set_exception


_SIMPLE = (BaseException.__init__, Exception.__init__)


@family(logging.Logger)
def _logger(_: Saving, value: logging.Logger) -> Reduced:
    if value is logging.getLogger(value.name):
        return logging.getLogger, (value.name,) if value.name != "root" else ()
    return NotImplemented


__all__ = ["advice", "functools"]
