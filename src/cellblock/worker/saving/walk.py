"""Objects that each root reaches: roots that reach the same one are to be saved together.

The collector tells what an object refers to, for many objects in one call. What is saved by name, such as modules, is
not entered; classes and functions of cells are roots of their own, which others need.
"""

from __future__ import annotations

import contextvars
import ctypes
import datetime
import enum
import functools
import gc
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from operator import is_
from sys import getsizeof
from typing import Any

from cellblock.worker.references import RUNNER, Shown
from cellblock.worker.saving.facts import (
    address_of,
    attributes_of,
    flags_of,
    full_name,
    is_a,
    is_heap,
    mro_of,
    names_in,
    own_attributes,
)
from cellblock.worker.saving.objects import shared_space
from cellblock.worker.saving.origins import Origins
from cellblock.worker.saving.streams import LONG

(
    ATOM, PLAIN, CLASS, FUNCTION, STOP, ARRAY, WEAK, MEMBER, SPACE, TEXT, TUPLE, CACHED, VARIABLE, MODULE, PROXY, LEAF,
    TENSOR, CONTEXT, TIME, INLINE, BARE, HASHED,
) = range(22)  # fmt: skip
DEFINED = frozenset((CLASS, FUNCTION))
ENTERED = frozenset((ARRAY, CACHED, HASHED, INLINE, LEAF, PLAIN, PROXY, TUPLE))
"""Kinds of objects that may lead back to themselves."""
EARLY = frozenset((ATOM, MEMBER, TEXT, TIME))
"""Kinds of objects that lead nowhere."""

_ATOMS = (
    type(None), bool, int, float, complex, type(...), type(NotImplemented), range, slice, types.CodeType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip
_CLOSED = (
    types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.FrameType,
)  # fmt: skip
VARIABLES = tuple(
    getattr(typing, name)
    for name in ("TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "TypeAliasType")
    if hasattr(typing, name)
)
"""Types of what is defined by a call and known by its name, as classes are."""
_LARGE = 4096
"""Text and bytes from this length on are objects that names may share; shorter ones are values."""
_NUMBERS = frozenset(map(id, (type(None), bool, int, float, complex)))
VALUES = _NUMBERS | {id(str), id(bytes)}
"""Types of numbers, text and bytes, told apart by address: a metaclass may refuse to be hashed."""
_LEAD_NOWHERE = frozenset((ATOM, CLASS, TEXT))
_SET_ITERATOR: type = type(iter(set[int]()))
_STANDARD = frozenset(map(id, (list, set, bytearray)))
_LONG = 64
"""Tuples from this length on are objects that names may share; in shorter ones only what they hold is."""
_AT_ONCE = 100_000
"""So many objects are asked at a time what they refer to."""
_SKIPPED = frozenset(("_abc_impl",))


class Kinds(dict[int, int]):
    """Treatment of the objects of each type in the walk, by its `id`: a metaclass may refuse to be hashed."""

    def __init__(self, origins: Origins) -> None:
        super().__init__()
        self._origins = origins
        self._types: list[type] = []
        known: dict[type, int] = {**dict.fromkeys(_ATOMS, ATOM), **dict.fromkeys(_CLOSED, STOP)}
        known |= {types.FunctionType: FUNCTION, str: TEXT, bytes: TEXT, dict: SPACE, weakref.ref: WEAK}
        known |= {tuple: TUPLE, frozenset: TUPLE, type(functools.lru_cache(len)): CACHED}
        known |= {**dict.fromkeys(VARIABLES, VARIABLE), types.MappingProxyType: PROXY}
        known |= {contextvars.ContextVar: CONTEXT, datetime.datetime: TIME, datetime.time: TIME}
        self.update((id(kind), way) for kind, way in known.items())

    def of(self, kind: type) -> int:
        """The kind of a type's objects."""
        found = self.get(id(kind))
        if found is None:
            self[id(kind)] = found = self._of(kind)
            self._types.append(kind)  # as long as it is there its id is no other's
        return found

    def _of(self, kind: type) -> int:
        if issubclass(kind, type):
            return CLASS
        if issubclass(kind, enum.Enum):
            return MEMBER if self._origins.of(kind) is None else ATOM
        if issubclass(kind, types.ModuleType):
            return MODULE
        if issubclass(kind, weakref.ref) or kind is weakref.ProxyType or kind is weakref.CallableProxyType:
            return WEAK
        named = full_name(kind)
        if kind is Shown or named in _BY_NAME:
            return ATOM
        if named == "pandas._libs.internals.BlockValuesRefs":  # it refers weakly to all that share a memory
            return BARE
        if self._origins.of(kind) == RUNNER:
            return STOP
        families = set(map(full_name, mro_of(kind)))
        if not families.isdisjoint(_LEAVES):
            return LEAF
        if "torch.Tensor" in families or named == "torch._C.TensorBase":
            return TENSOR
        if "numpy.ndarray" in families:
            return ARRAY
        if not families.isdisjoint(("numpy.dtype", "numpy.generic")):
            return ATOM
        hashed = next(attributes_of(base)["__hash__"] for base in mro_of(kind) if "__hash__" in attributes_of(base))
        if hashed is not None and type(hashed) is not types.WrapperDescriptorType:
            return HASHED
        return INLINE if flags_of(kind) & _INLINE_VALUES else PLAIN


_INLINE_VALUES = 1 << 2
"""From Python 3.13 on: the collector tells of the attributes of such an object, and not of its dictionary."""


_BY_NAME = frozenset(
    (
        "re.Pattern", "datetime.date", "datetime.timedelta", "datetime.timezone",
        "decimal.Decimal", "uuid.UUID", "fractions.Fraction", "pathlib.PosixPath", "pathlib.PurePosixPath",
        "zoneinfo.ZoneInfo", "logging.Logger", "logging.RootLogger", "logging.Manager", "_asyncio.Task",
        "threading.Thread", "threading._MainThread", "subprocess.Popen", "socket.socket", "_thread._local",
        "numpy.ufunc", "pathlib._local.PosixPath", "pandas._libs.tslibs.timestamps.Timestamp",
        "pandas._libs.tslibs.timedeltas.Timedelta", "_io.TextIOWrapper", "_io.BufferedReader", "_io.BufferedWriter",
        "_io.FileIO", "_io.BufferedRandom",
    )
)  # fmt: skip
"""Types whose objects are values, or are saved by name or not at all: sharing one ties nothing together."""


_LEAVES = frozenset(
    (
        "pandas.Index", "pandas.core.indexes.base.Index", "pandas.core.dtypes.base.ExtensionDtype",
        "pandas.api.extensions.ExtensionDtype", "pandas._libs.internals.BlockPlacement", "pyarrow.lib.Array",
        "pyarrow.lib.ChunkedArray",
    )
)  # fmt: skip
"""Types, and those derived from them, whose objects never change and are shared by much that is otherwise apart: a
table and all that are made of it. They tie together only the names that they are bound to.
"""


class Walk:
    """Roots, numbered as they are added: which reach the same objects, and which need which definitions."""

    def __init__(self, origins: Origins, namespace: dict[str, Any]) -> None:
        self._origins = origins
        self._namespace = namespace
        self.kinds = Kinds(origins)
        self.owner: dict[int, int] = {}
        self._parents: list[int] = []
        self._held: list[Any] = []
        self.begin: Callable[..., None] = lambda _work, _value: None
        """Is told each piece of work, and the value; `go_on` is told that it gets on."""
        self.go_on: Callable[[], None] = lambda: None
        self._labels: list[str] = []
        self.needs: list[set[int]] = []
        self.values: list[Any] = []
        self.definitions: dict[int, int] = {}
        """Classes and functions by value: the object's id and its root."""
        self._spaces: dict[int, tuple[int, dict[str, Any]]] = {}
        self.spaces_of: dict[int, list[dict[str, Any]]] = {}
        """Dictionaries that are the globals of functions and belong to no module, by the roots that `find` gives."""
        self.hand: dict[int, types.ModuleType] = {}
        """Modules that no import finds, by their dictionaries."""
        self.packages: dict[int, types.ModuleType] = {}
        """Modules that were met, by their ids."""
        self._module_spaces: set[tuple[int, str]] = set()
        self.modules_of: dict[int, set[str]] = {}
        """Modules whose dictionaries values refer to."""
        self._weak: list[tuple[int, Any]] = []
        self._pending: list[int] = []
        self._is_standard = False
        self.standard: set[int] = set()
        """Roots that the standard pickler can do alone: plain containers, text and numbers."""
        self.sets: list[set[Any]] = []
        """Those that no iterator is under way in, once all is walked."""
        self._iterated: set[int] = set()
        self.failed: dict[int, BaseException] = {}
        """Roots that could not be walked."""
        self.touched: dict[int, dict[int, int]] = {}
        """Objects that roots which tie nothing share with others: objects by their ids, each with the root that holds
        it."""
        self._loose: list[int] = []
        self.originals: dict[tuple[str, str], Any] = {}
        """Originals that cells have replaced in modules and values refer to, by module and path."""
        self.hashed: set[int] = set()
        """Roots that hold objects whose `__hash__` is code of Python's, and that hold more than text and numbers."""
        self._large: list[tuple[int, int]] = []
        self._tops: set[int] = set()
        self._seen: set[int] = set()
        self._met: set[int] = set()

    def add(self, value: Any, label: str = "", *, ties: bool = True) -> int:
        """A root; its number. One that `ties` nothing comes last, and refers to what others hold."""
        number = len(self.values)
        self.values.append(value)
        self._labels.append(label or f".{number}")
        self._parents.append(number)
        self.needs.append(set())
        try:
            self.begin(f"walk {self._labels[number]}", value)
            if self._is_definition(value):
                self.definitions.setdefault(id(value), number)
        except BaseException as error:  # as below
            self.failed[number] = error
        (self._pending if ties else self._loose).append(number)
        self._tops.add(id(value))
        return number

    def run(self) -> None:
        """Walk all roots, and those classes that turn up."""
        self.touched = {number: {} for number in self._loose}
        while self._pending or self._loose:
            pending, self._pending = self._pending, []
            if not pending:
                pending, self._loose = self._loose, []
            for number in pending:
                if number in self.failed:
                    continue
                try:
                    self.begin(f"walk {self._labels[number]}", self.values[number])
                    self._walk(number)
                except MemoryError:
                    raise
                except BaseException as error:  # the code of a value's own, whatever it answered
                    self.failed[number] = error
        self.sets = [one for one in self.sets if id(one) not in self._iterated]
        self._tie_weak()
        for root, space in self._spaces.values():
            self.spaces_of.setdefault(self.find(root), []).append(space)
        for root, name in self._module_spaces:
            self.modules_of.setdefault(self.find(root), set()).add(name)

    def _share(self, value: object, known: int, root: int) -> None:
        """A root has met what another one holds."""
        if root in self.touched:
            self.touched[root][id(value)] = known
            self._is_standard = False
            self.needs[root].add(known)
        else:
            self.tie(known, root)

    def find(self, number: int) -> int:
        """The root that stands for all those tied to this one."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def tie(self, one: int, other: int) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self._parents[max(one, other)] = min(one, other)

    def reaches(self, value: object) -> bool:
        """True if some root holds this object."""
        return id(value) in self.owner or id(value) in self.definitions

    def defines(self, number: int) -> bool:
        """True if a root is a class or function by value."""
        return self.definitions.get(id(self.values[number])) == number

    def is_namespace(self, space: dict[str, Any]) -> bool:
        """True if a dictionary is that of the cells or of a module."""
        return space is self._namespace or self._origins.space(space) is not None

    def owner_of(self, piece: Any) -> int | None:
        """The `id` of the object that some root holds and whose memory a pickler's piece is; None for what was made for
        the pickling.
        """
        if type(piece) is memoryview:
            start = address_of(piece)
            found = (first for first, end in self._large if first <= start and start + piece.nbytes <= end)
            return next(found, None)
        return id(piece) if id(piece) in self.owner else None

    def _is_definition(self, value: object) -> bool:
        kind = self.kinds.of(type(value))
        return kind in (CLASS, FUNCTION, VARIABLE) and self._origins.of(value) is None

    def _walk(self, root: int) -> None:
        value = self.values[root]
        self._seen = set()
        self._met = set()
        self._is_standard = True
        if self.definitions.get(id(value)) == root:
            self.owner[id(value)] = root
            self._is_standard = False
            frontier: list[Any] = self._enter(self._parts(value, root), root)
        else:
            frontier = self._enter([value], root)
        while frontier:
            some = frontier[-_AT_ONCE:]
            del frontier[-_AT_ONCE:]
            frontier += self._enter(gc.get_referents(*some), root)
            self.go_on()
        if self._is_standard:
            self.standard.add(root)

    def _enter(self, found: Sequence[Any], root: int) -> list[Any]:
        """Take what was found: those objects whose referents are to be looked at next."""
        kinds, owner = self.kinds, self.owner
        following: list[Any] = []
        special: list[Any] = []
        if _are_values(found):
            return following
        for one in found:
            kind = kinds.get(id(type(one)))
            if kind is None:
                kind = kinds.of(type(one))
            if kind == ATOM:
                if id(type(one)) not in _NUMBERS:
                    self._is_standard = False
                continue
            if kind == TIME:
                self._is_standard = False
                if one.tzinfo is not None:
                    special.append(one.tzinfo)
                continue
            if kind == CLASS:
                if id(one) not in self._met:
                    self._met.add(id(one))
                    self._need(one, root)
                    self._is_standard = False
                continue
            if kind == TEXT and len(one) < _LARGE:
                continue
            if kind == LEAF and id(one) not in self._tops:
                self._is_standard = False
                continue
            known = owner.get(id(one))
            if known is not None:
                if known != root:
                    self._share(one, known, root)
                continue
            if kind == TUPLE:
                if id(one) in self._tops or len(one) >= _LONG:
                    owner[id(one)] = root
                elif id(one) in self._seen:
                    continue
                self._seen.add(id(one))
                following.append(one)
                continue
            if kind in (PLAIN, LEAF):
                owner[id(one)] = root
                following.append(one)
                if type(one) is set:
                    self.sets.append(one)
                elif id(type(one)) not in _STANDARD:
                    self._is_standard = False
                    if type(one) is _SET_ITERATOR:
                        self._iterated.update(map(id, gc.get_referents(one)))
            elif kind == SPACE:
                if one is self._namespace:
                    self._is_standard = False
                    continue
                if (module := self._origins.space(one)) is not None:
                    self._module_spaces.add((root, module))
                    self._is_standard = False
                    continue
                owner[id(one)] = root
                following.append(one)
            elif kind == TEXT:
                owner[id(one)] = root
                if len(one) >= LONG:
                    self._large.append((id(one), id(one) + getsizeof(one)))
                continue
            elif kind in (INLINE, HASHED):
                self._is_standard = False
                owner[id(one)] = root
                following.append(one)
                if kind == HASHED and root not in self.hashed and self._leads_on(one):
                    self.hashed.add(root)
                if flags_of(type(one)) & _INLINE_VALUES and (shared := shared_space(one)) is not None:
                    special.append(shared)
            else:
                self._is_standard = False
                special += self._special(one, kind, root)
        if special:
            following += self._enter(special, root)
        return following

    def _special(self, one: Any, kind: int, root: int) -> Iterable[Any]:
        """Take an object of which the collector tells more, less or other than what is saved with it; what that is."""
        if kind == MODULE:
            self.packages[id(one)] = one
        if kind == MEMBER or id(one) in self.definitions:
            self._need(type(one) if kind == MEMBER else one, root)
            return ()
        if kind == STOP or (kind == MODULE and self._origins.module(one) is not None):
            return ()
        if kind in (FUNCTION, VARIABLE) and self._origins.of(one) is not None:
            return ()
        self.owner[id(one)] = root
        if kind in (FUNCTION, VARIABLE):
            return self._parts(one, root)
        if kind == MODULE:
            space: Any = names_in(one)
            self.hand[id(space)] = one
            self._spaces.setdefault(id(space), (root, space))
            return (space,)
        if kind == CACHED:
            return (own_attributes(one),)
        if kind == PROXY:
            of_class = class_of(one)
            return gc.get_referents(one) if of_class is None else (of_class,)
        if kind == CONTEXT:  # its value is in no object that it refers to
            return (*gc.get_referents(one), one.get(None))
        if kind == ARRAY:
            return of_array(one)
        if kind == TENSOR:
            return self._of_tensor(one)
        if kind == WEAK:
            self._weak.append((root, one))
        return ()  # nothing of what a BARE one refers to is saved with it either

    def _leads_on(self, value: Any) -> bool:
        """True if an object holds anything but text and numbers."""
        for one in gc.get_referents(value):
            if type(one) is dict:
                if not VALUES.issuperset(map(id, map(type, chain(one.values(), one)))):
                    return True
            elif self.kinds.get(id(type(one))) not in _LEAD_NOWHERE:
                return True
        return False

    def _need(self, definition: Any, root: int) -> None:
        if not is_a(definition, type) or self._origins.of(definition) is None:
            known = self.definitions.get(id(definition))
            if known is None:
                if not is_heap(definition):
                    return
                known = self.add(definition)
            if known != root:
                self.needs[root].add(known)

    def _parts(self, definition: Any, root: int) -> list[Any]:
        """Parts of a class or function of a cell's."""
        if is_a(definition, type):
            return parts_of_class(definition)
        if type(definition) is not types.FunctionType:
            return parts_of_variable(definition)
        parts = [definition.__closure__, definition.__defaults__, definition.__kwdefaults__]
        parts += [definition.__annotations__, definition.__dict__, getattr(definition, "__type_params__", None)]
        space = definition.__globals__
        if space is not self._namespace and self._origins.space(space) is None:
            self._spaces.setdefault(id(space), (root, space))
            parts.append(space)
        return parts

    def _of_tensor(self, tensor: Any) -> list[Any]:
        if not is_plain_tensor(tensor):
            return gc.get_referents(tensor)
        storage = tensor.untyped_storage()
        self._held.append(storage)  # it is the same object as long as somebody has it
        return [storage, tensor.grad, tensor.__dict__]

    def _tie_weak(self) -> None:
        """Put the target of a weak reference into its group, where anything else holds it."""
        for root, reference in self._weak:
            target = target_of(reference)
            if target is not None:
                owner = self.owner.get(id(target), self.definitions.get(id(target)))
                if owner is not None and owner != root:
                    self._share(target, owner, root)


def _are_values(found: Sequence[Any]) -> bool:
    """True if all are numbers and the like: by identity, at best of the one type that there is."""
    if not found:
        return True
    first = type(found[0])
    if all(map(is_, map(type, found), repeat(first))):
        return id(first) in _NUMBERS
    return _NUMBERS.issuperset(map(id, map(type, found)))


def parts_of_class(definition: type) -> list[Any]:
    held = [(name, value) for name, value in attributes_of(definition).items() if name not in _SKIPPED]
    held.sort(key=lambda item: item[0] if type(item[0]) is str else "")  # a load puts them in in another order
    attributes = [value for _, value in held]
    return [*_bases_of(definition), type(definition), *attributes]


_bases_of = type.__dict__["__bases__"].__get__


def parts_of_variable(definition: Any) -> list[Any]:
    """Parts of a type variable or the like."""
    names = ("__bound__", "__constraints__", "__supertype__", "__value__", "__type_params__", "__default__")
    return [getattr(definition, name, None) for name in names]


def class_of(proxy: Any) -> type | None:
    """The class whose attributes a mapping proxy shows; None for one over an ordinary mapping."""
    (mapping,) = gc.get_referents(proxy)
    if type(mapping) is not dict or "__module__" not in mapping:
        return None
    return next((one for one in gc.get_referrers(mapping) if is_a(one, type)), None)


def target_of(reference: Any) -> Any:
    """Target of a weak reference or proxy, None where it is gone."""
    if is_a(reference, weakref.ref):
        return weakref.ref.__call__(reference)
    return ctypes.cast(_target_of(id(reference)), ctypes.py_object).value


_target_of: Any = ctypes.pythonapi.PyWeakref_GetObject
_target_of.argtypes, _target_of.restype = (ctypes.c_void_p,), ctypes.c_void_p
"""By addresses: ctypes asks what a dead proxy is for an attribute, and would let go of the target."""


def is_plain_tensor(tensor: Any) -> bool:
    """True if a tensor of PyTorch is its storage, where it lies in it, and a gradient."""
    torch: Any = sys.modules["torch"]
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.is_leaf
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or tensor._backward_hooks)
    )


def of_array(array: Any) -> list[Any]:
    parts = [array.base]
    if (attributes := own_attributes(array)) is not None:
        parts.append(attributes)
    if array.dtype.hasobject:
        parts += _objects_in(array)
    return parts


def _objects_in(array: Any) -> list[Any]:
    listed: Any = array.ravel().tolist()
    return listed if isinstance(listed, list) else [listed]
