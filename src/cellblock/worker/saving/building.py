"""Functions that a stream calls to build values again. The order of `BUILDERS` is part of the format: append only."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]  # its Python module has no way to ask
import ctypes
import functools
import marshal
import os
import sys
import weakref
from _thread import RLock, allocate_lock
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from gc import get_referents
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from cellblock.worker.references import Shown, referred
from cellblock.worker.saving.facts import HEAP, told

_OF_TYPES = {
    kind.__name__: kind
    for name, kind in vars(sys.modules["types"]).items()
    if isinstance(kind, type) and kind.__module__ == "builtins"
}
"""Types that no module of their own holds: `function`, `generator`, `mappingproxy`."""
_value: Any
for _value in ({}.keys(), {}.values(), {}.items(), iter(()), iter([]), iter({}), iter(""), iter(b""), iter(set())):
    _OF_TYPES[type(_value).__name__] = type(_value)


def attribute(name: str, path: str) -> Any:
    """Attribute of a module, imported if need be, under a dotted path."""
    found: Any = module(name)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def module(name: str) -> ModuleType:
    if name not in sys.modules:
        try:
            __import__(name)
        except (ModuleNotFoundError, MemoryError):  # which tell enough
            raise
        except (Exception, SystemExit) as error:  # of the module's own code
            raise ImportError(f"import {name} fails: {told(error)}", name=name) from error.with_traceback(None)
    return sys.modules[name]


def bound(space: dict[str, Any], name: str, value: Any) -> Any:
    """Put a value into a module's namespace at once: functions that are called to load more may look it up."""
    space[name] = value
    return value


def shown(text: str) -> Shown:
    return Shown(text)


def package(name: str, parts: tuple[str, ...]) -> ModuleType:
    """A package with those of its modules that had been imported, as far as they can be."""
    made = module(name)
    for part in parts:
        if part not in sys.modules:
            with suppress(ImportError):  # whoever looks it up is told
                __import__(part)
    return made


def hidden_type(name: str) -> type:
    return _OF_TYPES[name]


def code(data: bytes) -> CodeType:
    made: CodeType = marshal.loads(data)  # noqa: S302  # inside the walls, of the session's own
    return made


def cell() -> CellType:
    return CellType()


def function(body: CodeType, space: dict[str, Any], closure: tuple[CellType, ...] | None) -> FunctionType:
    return FunctionType(body, space, None, None, closure)


def set_function(made: FunctionType, state: tuple[Any, ...]) -> None:
    name, qualname, module, doc, defaults, keywords, annotations, attributes, cells, parameters = state
    made.__name__, made.__qualname__, made.__module__, made.__doc__ = name, qualname, module, doc
    made.__defaults__, made.__kwdefaults__ = defaults, keywords
    if annotations:
        made.__annotations__ = annotations
    if attributes is not None:
        made.__dict__ = attributes
    if parameters:
        made.__type_params__ = parameters  # type: ignore[attr-defined]
    fill_cells(cells)


def fill_cells(cells: Iterable[tuple[CellType, Any]]) -> None:
    for one, content in cells:
        one.cell_contents = content


def fill_space(space: dict[str, Any], items: Iterable[tuple[str, Any]]) -> None:
    space.update(items)


def class_(meta: type, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    """A class without its attributes. Neither its metaclass nor `__init_subclass__` is told of it."""
    silenced = _silence(bases)
    try:
        made: type = type.__new__(meta, name, bases, body)
    finally:
        for base, hook in silenced:
            type.__setattr__(base, "__init_subclass__", hook)
    return made


def set_class(made: type, state: tuple[dict[str, Any], tuple[type, ...] | None]) -> None:
    """Give a class its attributes; of an abstract one also the classes registered with it."""
    attributes, registered = state
    set_later(made, attributes)
    if registered is not None:
        _abc._abc_init(made)
        for one in registered:
            _abc._abc_register(made, one)


def set_enum(made: Any, state: tuple[list[tuple[str, tuple[Any, ...], dict[str, Any]]], dict[str, Any]]) -> None:
    """Give an enumeration its members; everything else comes after them."""
    members, attributes = state
    set_later(made, attributes)
    kind = attributes["_member_type_"]
    table = {}
    for name, arguments, held in members:
        member = kind.__new__(made, *arguments)
        member.__dict__.update(held)
        table[name] = member
    type.__setattr__(made, "_member_map_", table)


def set_later(made: type, attributes: dict[str, Any]) -> None:
    """Put attributes into a class's own dictionary, past those of its metaclass that would be set in their place."""
    (space,) = get_referents(vars(made))
    for name, value in attributes.items():
        if name not in _SET and any(hasattr(type(vars(one).get(name)), "__set__") for one in type.mro(type(made))):
            space[name] = value
    for name, value in attributes.items():  # these tell the interpreter that the class is another now
        if name not in space or space[name] is not value:
            type.__setattr__(made, name, value)
    type.__setattr__(made, "__module__", space["__module__"])


_SET = frozenset(("__doc__", "__module__", "__annotations__", "__abstractmethods__", "__type_params__"))
"""Names that `type` puts into the dictionary itself."""


def enum_member(kind: Any, name: str) -> Any:
    return kind._member_map_[name]


def method(body: Callable[..., Any], owner: Any) -> MethodType:
    return MethodType(body, owner)


def instance_of(kind: type, arguments: tuple[Any, ...]) -> Any:
    """An exception, without its `__init__`, whose signature may be another than its `args`."""
    return kind.__new__(kind, *arguments)


def set_exception(made: BaseException, state: tuple[Any, ...]) -> None:
    attributes, cause, context, suppressed, traced = state
    held, slots = attributes if isinstance(attributes, tuple) else (attributes, None)
    if held:
        _adopt(made, held)
    set_state(made, (None, slots))
    for name, one in (("__cause__", cause), ("__context__", context), ("__traceback__", traced)):
        object.__setattr__(made, name, one)
    object.__setattr__(made, "__suppress_context__", suppressed)


def proxy(mapping: Mapping[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def view(mapping: Any, kind: str) -> Any:
    return getattr(mapping, kind)()


def lock() -> Any:
    return allocate_lock()


def reentrant_lock() -> Any:
    return RLock()


def weak(target: Any, callback: Any) -> Any:
    return weakref.ref(target, callback) if callback is not None else weakref.ref(target)


def dead(refer: Callable[[Any], Any] = weakref.ref, made: Callable[[], Any] = set) -> Any:
    """A weak reference or proxy, as `refer` makes them, of an object that is gone: of one that `made` has made."""
    return refer(made())


def weak_proxy(target: Any) -> Any:
    return weakref.proxy(target)


def cached(body: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(body)


def set_cached(made: Any, attributes: dict[str, Any]) -> None:
    made.__dict__ = attributes


def variable(name: str, default: tuple[Any, ...], value: tuple[Any, ...]) -> ContextVar[Any]:
    made: ContextVar[Any] = ContextVar(name, default=default[0]) if default else ContextVar(name)
    if value:
        made.set(value[0])
    return made


def stream_of(name: str) -> Any:
    return getattr(sys, name)


def weak_values(kind: Any, items: list[tuple[Any, Any]]) -> Any:
    made = kind()
    for key, value in items:
        made[key] = value
    return made


def weak_items(kind: Any, items: list[Any]) -> Any:
    made = kind()
    for one in items:
        made.add(one)
    return made


def described(kind: type, arguments: tuple[Any, ...], attributes: dict[str, Any] | None) -> Any:
    """A descriptor such as a property or a static method, with the attributes that were set on it."""
    made = kind(*arguments)
    if attributes:
        made.__dict__.update(attributes)
    return made


def slice_of(exporter: Any, offset: int, length: int, form: str, shape: tuple[int, ...], readonly: bool) -> memoryview:
    """A memoryview of part of what another object holds."""
    flat = memoryview(exporter).cast("B")[offset : offset + length]
    made = flat if form == "B" and len(shape) == 1 else flat.cast(form, shape)  # type: ignore[call-overload]
    return made.toreadonly() if readonly else made


def named(kind: Any, arguments: tuple[Any, ...], options: dict[str, Any], module: str) -> Any:
    made = kind(*arguments, **options)
    try:
        made.__module__ = module
    except AttributeError:  # an alias has the module of where it is made
        pass
    return made


def small_array(data: bytes, kind: Any, shape: tuple[int, ...], order: Any, writeable: bool) -> Any:
    numpy: Any = module("numpy")
    made = numpy.ndarray(shape, kind, data, order=order).copy(order)
    made.flags.writeable = writeable
    return made


def array_view(
    whole: Any,
    kind: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    writeable: bool,
    of: Any = None,
) -> Any:
    """An array over part of another's memory, or of bytes; of a derived class, as pickling makes one, without its own
    `__new__`.
    """
    numpy: Any = module("numpy")
    new, of = numpy.ndarray.__new__, of or numpy.ndarray
    kind, holds = numpy.dtype(kind), isinstance(whole, numpy.ndarray)
    barred = holds and writeable and not whole.flags.writeable  # since the view was made
    if barred:
        whole.flags.writeable = True
    if kind.hasobject:
        flat = whole.reshape(-1, order="A")[offset // kind.itemsize :]
        made = numpy.lib.stride_tricks.as_strided(flat, shape, strides)
        made = made if of is numpy.ndarray else numpy.ndarray.view(made, of)
    elif holds and not whole.flags.c_contiguous:
        made = new(of, shape, kind, whole.reshape(-1, order="A"), offset, strides)
    else:
        made = new(of, shape, kind, whole, offset, strides)
    if barred:
        whole.flags.writeable = False
    if made.flags.writeable != writeable:
        made.flags.writeable = writeable
    return made


def objects(kind: Any, shape: tuple[int, ...], order: Any) -> Any:
    """An array of references, that hold nothing yet."""
    return module("numpy").empty(shape, kind, order)


def set_objects(made: Any, state: tuple[list[Any], bool]) -> None:
    items, writeable = state
    flat = made.reshape(-1, order="A")
    if made.dtype.char == "O":
        flat[:] = module("numpy").fromiter(items, object, len(items))
    else:
        for place, one in enumerate(items):
            flat[place] = one
    made.flags.writeable = writeable


def mapped(path: str, kind: Any, mode: Any, offset: int, shape: tuple[int, ...], order: Any) -> Any:
    numpy: Any = module("numpy")
    return numpy.memmap(path, kind, mode, offset, shape, order)


def mapped_part(whole: Any, *place: Any) -> Any:
    """A view of an array that is mapped from a file, of its class."""
    made = array_view(whole, *place).view(type(whole))
    made.__array_finalize__(whole)
    return made


def set_state(made: Any, state: Any) -> None:
    """Set the state as loading does, without asking the object for anything: it may answer every name."""
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        object.__getattribute__(made, "__dict__").update(state)
    for name, value in (slots or {}).items():
        object.__setattr__(made, name, value)


def database(data: bytes, isolation: Any, row_factory: Any, text_factory: Any) -> Any:
    """A database of sqlite3's in memory."""
    import sqlite3

    made = sqlite3.connect(":memory:", isolation_level=isolation)
    made.deserialize(data)
    made.row_factory, made.text_factory = row_factory, text_factory
    return made


def databases(options: dict[str, Any], held: list[tuple[str, bytes | str]], settings: dict[str, Any]) -> Any:
    """A database of sqlite3's in memory, with those attached to it: bytes, or the path of a file."""
    import sqlite3

    made = sqlite3.connect(":memory:", check_same_thread=False, **options)
    for _, content in held:
        if isinstance(content, str) and not os.path.exists(content):
            raise FileNotFoundError(f"the database {content} attached to it is gone")
    furnish(made, held, settings)
    return made


def furnish(made: Any, held: list[tuple[str, bytes | str]], settings: dict[str, Any]) -> None:
    """Give a connection that was just made what else its databases are, and its settings."""
    import sqlite3

    for name, content in held:
        if name != "main":
            path = content if isinstance(content, str) else ":memory:"
            sqlite3.Cursor(made).execute("attach ? as " + '"' + name.replace('"', '""') + '"', (path,))
        if isinstance(content, bytes) and content:
            made.deserialize(content, name=name)
    for setting, value in settings.items():
        sqlite3.Cursor(made).execute(f"pragma {setting} = {value}")


def set_foreign(made: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(made, name, value)


def closed_file(kind: str, name: Any, mode: str, *coded: Any) -> Any:
    """A file object that was closed: of no file, under the name and mode that it had."""
    made: Any = open(os.devnull, mode.replace("x", "w"), 0 if kind == "FileIO" else -1, *coded)  # noqa: SIM115 (it is kept)
    raw = made.buffer.raw if kind == "TextIOWrapper" else made if kind == "FileIO" else made.raw
    raw.name = name
    made.close()
    return made


def closed_socket() -> Any:
    import socket

    made = socket.socket()
    made.close()
    return made


def closed_database() -> Any:
    import sqlite3

    made = sqlite3.connect(":memory:", check_same_thread=False)
    made.close()
    return made


def ended(kind: str, name: str, qualname: str) -> Any:
    """A generator, a coroutine or an asynchronous generator that has come to its end."""
    made: Any = {"generator": _yield, "coroutine": _await, "async_generator": _yield_async}[kind]()
    made.__name__, made.__qualname__ = name, qualname
    if kind == "async_generator":
        with suppress(StopIteration):
            made.aclose().send(None)
    else:
        made.close()
    return made


def _yield() -> Iterator[None]:
    yield


async def _await() -> None:
    pass


async def _yield_async() -> AsyncIterator[None]:
    yield


def match(pattern: Any, text: Any, start: int, end: int, regs: Any) -> Any:
    """The match of a pattern that has these places; None where there is none."""
    tried = (pattern.match(text, start, end), pattern.fullmatch(text, start, end), *pattern.finditer(text, start, end))
    return next((one for one in tried if one is not None and one.regs == regs), None)


def by_codec(load: Callable[[Any], Any], saved: Any) -> Any:
    return load(saved)


def class_space(kind: type) -> Any:
    return vars(kind)


def class_item(kind: type, name: str) -> Any:
    return vars(kind)[name]


def weak_method(bound: Any) -> Any:
    return weakref.WeakMethod(bound)


def weak_of(kind: Any, target: Any, callback: Any) -> Any:
    return kind(target, callback)


def set_decoder(made: Any, attributes: dict[str, Any]) -> None:
    made.__dict__.update(attributes)
    made.scan_once = attribute("json.scanner", "make_scanner")(made)


def foreign_class(like: type, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    """A class that only its metaclass can make, that of another class."""
    made: type = type(like)(name, bases, body)
    return made


def new_of(base: Any, kind: type, *arguments: Any) -> Any:
    """An object of a cell's class as the type it is derived from makes it, without the class's own `__new__`."""
    return base.__new__(kind, *arguments)


def set_content(made: Any, state: tuple[Any, ...]) -> None:
    """Set what an object holds, without the class's own ways to add to it."""
    held, items, pairs = state
    if held is not None:
        if any("__setstate__" in vars(base) for base in type(made).__mro__):
            made.__setstate__(held)
        else:
            set_state(made, held)
    if items is not None:
        next(add for kind, add in _ADD if isinstance(made, kind))(made, items)
    if pairs is not None:
        base: Any = OrderedDict if isinstance(made, OrderedDict) else dict
        for key, value in pairs:
            base.__setitem__(made, key, value)


_ADD: tuple[tuple[type, Callable[[Any, Any], None]], ...] = (
    (list, list.extend),
    (deque, deque.extend),
    (set, set.update),
    (bytearray, bytearray.extend),
)


def made_by(base: Any, kind: type, *arguments: Any) -> Any:
    """An object of a derived class as the type that the arguments are for makes it."""
    made = base.__new__(kind) if base.__new__ is object.__new__ else base.__new__(kind, *arguments)
    if base.__init__ is not object.__init__:
        base.__init__(made, *arguments)
    return made


def set_parts(made: Any, state: tuple[Any, ...]) -> None:
    """Set what an object holds, its type's own state, and its attributes: the very dictionary where others hold it
    too."""
    own, held, slots, shared, items, pairs = state
    set_content(made, (None, items, pairs))
    if shared:
        _adopt(made, held)
    set_content(made, (own, None, None))
    set_state(made, (None if shared else held, slots))


def _adopt(made: Any, space: dict[str, Any]) -> None:
    """Have a dictionary be the attributes of an object, of one too whose type does not let it be set."""
    try:
        object.__setattr__(made, "__dict__", space)
    except AttributeError:  # a simple namespace: it lies where the type tells
        before = ctypes.py_object(made.__dict__)
        slot: Any = ctypes.py_object.from_address(id(made) + type(made).__dictoffset__)
        slot.value = space
        ctypes.pythonapi.Py_DecRef(before)


def block_references(kind: Any) -> Any:
    return kind()


def set_block_references(block: Any, references: Any) -> None:
    block.refs = references
    references.add_reference(block)


def set_index_references(index: Any, references: Any) -> None:
    index._references = references
    references.add_index_reference(index)


def storage(data: bytes) -> Any:
    """The memory of tensors."""
    torch: Any = module("torch")
    made = torch.UntypedStorage(len(data))
    if data:
        ctypes.memmove(made.data_ptr(), data, len(data))
    return made


def tensor(
    kind: str, memory: Any, dtype: Any, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], needs_grad: bool
) -> Any:
    """A tensor over part of a storage."""
    torch: Any = module("torch")
    made = torch.empty(0, dtype=dtype).set_(memory, offset, shape, stride)
    if kind == "Parameter":
        return torch.nn.Parameter(made, needs_grad)
    made.requires_grad = needs_grad
    return made


def set_tensor(made: Any, rest: tuple[Any, dict[str, Any]]) -> None:
    made.grad, attributes = rest
    made.__dict__.update(attributes)


BUILDERS: tuple[Callable[..., Any], ...] = (
    attribute, module, hidden_type, code, cell, function, set_function, fill_cells, class_, set_class, set_enum,
    set_later, enum_member, method, instance_of, set_exception, proxy, view, lock, reentrant_lock, weak, dead,
    weak_proxy, cached, set_cached, variable, stream_of, weak_values, weak_items, described, slice_of, fill_space,
    named, small_array, array_view, mapped, set_state, database, by_codec, class_space, class_item, weak_method,
    weak_of, set_decoder, foreign_class, set_foreign, block_references, set_block_references, set_index_references,
    new_of, set_content, mapped_part, storage, tensor, set_tensor, package, closed_file, closed_socket, match,
    made_by, set_parts, databases, referred, shown, bound, objects, set_objects, closed_database, ended,
)  # fmt: skip
"""Those that need nothing of the loading itself. `Loader` adds its own after them."""


def _silence(bases: tuple[type, ...]) -> list[tuple[type, Any]]:
    """Take the hooks out of the way that a new class of these bases would run; what is to be put back."""
    found = {base: vars(base)["__init_subclass__"] for one in bases for base in one.__mro__ if _hooked(base)}
    for base in found:
        type.__setattr__(base, "__init_subclass__", classmethod(_nothing))
    return list(found.items())


def _hooked(base: type) -> bool:
    return "__init_subclass__" in vars(base) and bool(base.__flags__ & HEAP)


def _nothing(_: Any, /, **__: Any) -> None:
    pass

