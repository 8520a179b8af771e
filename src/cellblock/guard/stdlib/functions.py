"""Audits of modules about functions, iterators, context managers and types."""

from __future__ import annotations

import abc
import functools
import itertools
import math
import operator
import types
import typing
from collections.abc import Callable, Iterator
from types import resolve_bases
from typing import TYPE_CHECKING, Any

from cellblock.guard import hints, sizes
from cellblock.guard.anatomy import lineage, namespace, plain
from cellblock.guard.bounded import found_in
from cellblock.guard.names import is_dunder, names
from cellblock.guard.refusal import denied
from cellblock.guard.signatures import get_type_hints_of
from cellblock.guard.steps import passing, ticking
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, listed, public
from cellblock.guard.weights import hashable, keyed, light, weighing

if TYPE_CHECKING:
    from cellblock.guard.world import World

_QUICK = 200_000
"""Items that C code may make in one go."""


# ---------------------------------------------------------------------------------- functools


def _partial(world: World) -> type:
    """`partial` of the code's own. What a `partial` of the host's holds is the host's."""

    def func(world: World, value: Any) -> Any:
        return world.calls.original(functools.partial.func.__get__(value))

    class partial(functools.partial):  # type: ignore[type-arg]
        def __new__(cls, func: Any, /, *given: Any, **named: Any) -> Any:
            return super().__new__(cls, world.calls.given(func), *given, **named)

        def __repr__(self) -> str:
            named = (f"{key}={one!r}" for key, one in self.keywords.items())
            parts = [repr(func(world, self)), *map(repr, self.args), *named]
            return f"functools.partial({', '.join(parts)})"

    partial.__module__, partial.__qualname__ = "functools", "partial"
    replaced = {"func": func}
    world.grant_types({partial: audit(partial, but=replaced, subclassable=True, replaced=replaced)})
    return partial


def _reduce(world: World) -> Callable[..., Any]:
    given = world.calls.given
    return lambda function, iterable, /, *initial: functools.reduce(
        given(function), passing(function, iterable), *initial
    )


def _cmp_to_key(world: World) -> Callable[..., Any]:
    return lambda mycmp: functools.cmp_to_key(world.calls.called(mycmp))


def _lru_cache(world: World) -> Callable[..., Any]:
    def lru_cache(maxsize: Any = 128, typed: Any = False) -> Any:
        if callable(maxsize) and isinstance(typed, bool):
            return functools.lru_cache(world.calls.called(maxsize), typed)
        decorate = functools.lru_cache(maxsize, typed)
        return lambda user_function: decorate(world.calls.called(user_function))

    return lru_cache


OF_C: dict[str, Callable[[World], Any]] = {
    "partial": _partial,
    "reduce": _reduce,
    "cmp_to_key": _cmp_to_key,
    "lru_cache": _lru_cache,
}
"""Functions of `functools` that Python has in C: what they are given to call passes the gate."""


# ---------------------------------------------------------------------------------- itertools


def _chain(world: World) -> Callable[..., Iterator[Any]]:
    def chain(*iterables: Any) -> Iterator[Any]:
        return ticking(itertools.chain(*iterables))

    def from_iterable(iterable: Any, /) -> Iterator[Any]:
        return ticking(itertools.chain.from_iterable(iterable))

    chain.from_iterable = from_iterable  # type: ignore[attr-defined]
    world.open_functions[chain] = names("from_iterable")
    return chain


def _groupby(iterable: Any, key: Any = None) -> Iterator[Any]:
    if key is not None:
        return itertools.groupby(passing(key, iterable), keyed(key))
    return itertools.groupby(map(light, iterable) if hasattr(type(iterable), "__iter__") else iterable)


def _filtering(name: str) -> Callable[..., Iterator[Any]]:
    whole: Any = getattr(itertools, name)
    return lambda function, iterable, /: whole(function, passing(function, iterable))


def _repeat(object: Any, times: int | None = None) -> Iterator[Any]:
    if times is None:
        return ticking(itertools.repeat(object))
    times = sizes.counted(times)
    found = itertools.repeat(object, times)
    return found if times <= _QUICK else ticking(found)


def _many(function: Any, number: Callable[..., float]) -> Callable[..., Iterator[Any]]:
    """A function that makes so `number` of combinations."""

    def bounded(*given: Any, **named: Any) -> Iterator[Any]:
        given, named = tuple(map(sizes.counted, given)), {name: sizes.counted(one) for name, one in named.items()}
        pools = [one if type(one) in (int, bool) or one is None else _pool(one) for one in given]
        for size in (*given, *named.values()):
            if type(size) is int and size > sizes.MAX_ITEMS:
                raise MemoryError(f"combinations of {size:,} items [size]")
        found = function(*pools, **named)
        return found if number(*pools, **named) <= _QUICK else ticking(found)

    return bounded


def _pool(given: Any) -> tuple[Any, ...]:
    """The argument as a tuple, in steps between which a cell can be ended."""
    return tuple(given if type(given) in (list, tuple, str, dict, set) else ticking(iter(given)))


def _products(*pools: Any, repeat: int = 1) -> float:
    size = 1.0
    for pool in pools:
        size *= len(pool)
    return size ** min(repeat, 100)


def _permutations(pool: Any, r: int | None = None) -> float:
    return math.perm(min(len(pool), 100), min(len(pool), 100) if r is None else min(max(r, 0), 100))


def _combinations(pool: Any, r: int) -> float:
    return math.comb(min(len(pool), 2000), min(max(r, 0), 2000))


def _with_replacement(pool: Any, r: int) -> float:
    return math.comb(min(len(pool) + max(r, 0), 2000), min(max(r, 0), 2000))


def _counted(name: str) -> Callable[..., Any]:
    """A function that makes as much at once as its second argument says."""
    function = sizes.narrow(getattr(itertools, name), 1_000_000)
    return lambda iterable, n=2, /, **options: function(iterable, n, **options)


_REPLACED = names("chain count cycle repeat product permutations combinations zip_longest")
_COUNTED = [name for name in ("tee", "batched") if hasattr(itertools, name)]
_PLAIN_ITERTOOLS = names("compress islice pairwise")
_FILTERING = names("dropwhile filterfalse starmap takewhile")

# ----------------------------------------------------------------------------------- operator


def _attrgetter(world: World) -> Callable[..., Any]:
    get = world.builtins["getattr"]

    def attrgetter(*attributes: Any) -> Callable[[Any], Any]:
        if not attributes:
            raise TypeError("attrgetter expected 1 argument, got 0")
        paths = []
        for one in attributes:
            if not isinstance(one, str):
                raise TypeError("attribute name must be a string")
            paths.append(plain(one).split("."))

        def follow(value: Any, path: list[str]) -> Any:
            for name in path:
                value = get(value, name)
            return value

        def getter(value: Any) -> Any:
            found = tuple(follow(value, path) for path in paths)
            return found[0] if len(found) == 1 else found

        return getter

    return attrgetter


def _methodcaller(world: World) -> Callable[..., Any]:
    get = world.builtins["getattr"]

    def methodcaller(name: Any, /, *given: Any, **named: Any) -> Callable[[Any], Any]:
        if not isinstance(name, str):
            raise TypeError("method name must be a string")
        exact = plain(name)
        return lambda value: world.calls(get(value, exact))(*given, **named)

    return methodcaller


def _in_place(by: Callable[[Any, Any], Any], function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(a, by(a, b))


_SIZED = {
    **{
        name: weighing(getattr(operator, name))
        for name in names("eq ne lt le gt ge sub and_ or_ xor isub iand ior ixor")
    },
    **{name: weighing(getattr(operator, name), hashable) for name in names("getitem setitem delitem")},
    "contains": lambda a, b: found_in(b, a),
    "indexOf": lambda a, b: operator.indexOf(a, light(b)),
    "mul": sizes.multiply,
    "pow": lambda a, b: sizes.power(a, b),
    "lshift": sizes.shift,
    "mod": sizes.modulo,
    "imul": _in_place(sizes.multiply_by, operator.imul),
    "ipow": _in_place(sizes.power_by, operator.ipow),
    "ilshift": _in_place(sizes.shift_by, operator.ilshift),
    "imod": _in_place(sizes.modulo_by, operator.imod),
}

# ------------------------------------------------------------------------------ abc and typing


def _abstract(world: World) -> Callable[[Any], Any]:
    def abstractmethod(function: Any) -> Any:
        if not world.made(function) and type(function) not in (property, classmethod, staticmethod):
            raise denied("only functions of the code's own can be abstract", "store")
        return abc.abstractmethod(function)

    return abstractmethod


def _abstract_kind(name: str) -> Callable[[World], Any]:
    kind = getattr(abc, name)

    def make(world: World) -> Any:
        check = _abstract(world)
        return lambda function: kind(check(function))

    return make


def _abc_meta(world: World) -> type:
    return world.classes.metaclass(abc.ABCMeta)


def _asking(world: World, kind: Any) -> Any:
    """A class of protocols that looks for no attribute of an object of the host's which is not granted."""

    class Asking(kind):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            if any(type(namespace(one).get("__annotations__", {})) is not dict for one in lineage(cls)):
                raise denied("a protocol's annotations are to be a dict", "class")
            names = hints.OF_CELLS._get_protocol_attrs(cls)
            return world.gates.shows(value, names) and super().__instancecheck__(value)

    Asking.__name__, Asking.__qualname__, Asking.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    world.metaclasses.add(Asking)
    world.grant_types({Asking: TypeAudit(type=Asking, reads=names("register"))})
    return Asking


def _runtime_checkable(world: World) -> Callable[[type], type]:
    kinds = hints.each(lambda typing: type(typing.Protocol))
    asking: dict[type, Any] = {}

    def runtime_checkable(cls: Any) -> type:
        if not isinstance(cls, type) or not world.classes.own(cls):
            raise denied("only protocols of the code's own can be made checkable", "store")
        of_cells = hints.OF_CELLS.Protocol in lineage(cls)
        checkable: Any = (hints.OF_CELLS if of_cells else typing).runtime_checkable(cls)
        if any(type(cls) is kind for kind in kinds):
            if type(cls) not in asking:
                asking[type(cls)] = _asking(world, type(cls))
            checkable.__class__ = asking[type(cls)]
        return checkable  # type: ignore[no-any-return]

    return runtime_checkable


def _overload(function: Any) -> Any:
    def overloaded(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("You should not call an overloaded function.")

    return overloaded


def _fields(name: str) -> Callable[[World], Any]:
    """`NamedTuple` and `TypedDict`, which are called, and inherited from."""

    def make(world: World) -> Any:
        real = getattr(typing if world.policy.trusted else hints.OF_CELLS, name)

        def fields(typename: Any, /, *given: Any, **named: Any) -> Any:
            made = real(plain(typename), *given, **named)
            type.__setattr__(made, "__module__", "__main__")
            return world.classes.adopt(made)

        vars(fields)["__mro_entries__"] = lambda bases: real.__mro_entries__((real,))
        return fields

    return make


_NOT_TYPING = names(
    "get_type_hints get_origin get_args ForwardRef get_overloads clear_overloads overload no_type_check "
    "no_type_check_decorator final "
    "runtime_checkable override dataclass_transform evaluate_forward_ref IO TextIO BinaryIO"
)
def _chain_map(world: World) -> Any:
    """The alias of the world's own class."""
    return hints.OF_CELLS._alias(world.library.module("collections")["ChainMap"], 2)


_REPLACED_TYPING: dict[str, Callable[[World], Any]] = {
    "get_origin": lambda world: lambda tp: world.told(hints.of(tp).get_origin(tp)),
    "get_args": lambda world: lambda tp: world.told(hints.of(tp).get_args(tp)),
    "get_type_hints": get_type_hints_of,
    "ChainMap": _chain_map,
    "runtime_checkable": _runtime_checkable,
    **{name: _fields(name) for name in ("NamedTuple", "TypedDict")},
}


def _types_of(typing: Any) -> tuple[TypeAudit, ...]:
    """Audits of the classes of one module of hints."""
    variable = typing.TypeVar("_T")
    aliases = {
        type(one)
        for one in (
            *(typing.List, typing.List[int], typing.Optional, typing.Optional[int], typing.Tuple),
            *(typing.Callable, typing.Callable[[int], int], typing.Union[int, str], typing.Protocol[variable]),
            *(typing.Annotated[int, 1], typing.Any, typing.Union, typing.Literal[1], typing.NewType("_N", int)),
        )
    } - {type}
    metaclasses = [getattr(typing, name, None) for name in ("NamedTupleMeta", "_TypedDictMeta", "_AnyMeta")]
    return (
        audit(typing.Generic, subclassable=True),
        audit(typing.Protocol, subclassable=True),
        *(TypeAudit(type=kind, constructable=False) for kind in aliases),
        TypeAudit(type=type(typing.Protocol), reads=names("register")),
        *(audit(kind) for kind in (typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple)),
        *(TypeAudit(type=kind) for kind in metaclasses if kind is not None),
        *(
            TypeAudit(type=kind, reads=public(tuple if issubclass(kind, tuple) else dict), subclassable=True)
            for function in (typing.NamedTuple, typing.TypedDict)
            for kind in resolve_bases((function,))
        ),
    )


def simple_namespace(world: World) -> type:
    """A class of the code's own in place of `types.SimpleNamespace`."""

    class SimpleNamespace(types.SimpleNamespace):
        def __init__(self, *given: Any, **named: Any) -> None:
            for name in (*named, *(given[0] if given else ())):
                if type(name) is not str or is_dunder(name):
                    raise denied(f"{name!r:.100} cannot be set", "store")
            super().__init__(*given, **named)

        def __repr__(self) -> str:
            shown = super().__repr__()
            return "namespace" + shown.removeprefix("SimpleNamespace") if type(self) is SimpleNamespace else shown

    SimpleNamespace.__module__ = "types"
    SimpleNamespace.__qualname__ = "SimpleNamespace"
    adopted: type = world.classes.adopt(SimpleNamespace)
    return adopted


def _kind(name: str) -> Callable[[World], Any]:
    return lambda world: world.typeof_class(getattr(types, name))


_KINDS = names(
    "FunctionType LambdaType GeneratorType CoroutineType AsyncGeneratorType BuiltinFunctionType BuiltinMethodType "
    "MethodType ModuleType NoneType EllipsisType NotImplementedType CodeType FrameType TracebackType"
)

AUDITS = (
    ModuleAudit(
        name="itertools",
        calling=names("accumulate groupby") | _FILTERING,
        members=_PLAIN_ITERTOOLS,
        replaced={"chain": _chain},
        instead={
            "zip_longest": lambda *given, fillvalue=None: ticking(itertools.zip_longest(*given, fillvalue=fillvalue)),
            "count": lambda start=0, step=1: ticking(itertools.count(start, step)),
            "repeat": _repeat,
            "cycle": lambda values: ticking(itertools.cycle(values)),
            "accumulate": lambda iterable, func=None, *, initial=None: itertools.accumulate(
                passing(func, iterable), func, initial=initial
            ),
            "groupby": _groupby,
            **{name: _filtering(name) for name in _FILTERING},
            **{name: _counted(name) for name in _COUNTED},
            "product": _many(itertools.product, _products),
            "permutations": _many(itertools.permutations, _permutations),
            "combinations": _many(itertools.combinations, _combinations),
            "combinations_with_replacement": _many(itertools.combinations_with_replacement, _with_replacement),
        },
        types=(
            *(TypeAudit(type=getattr(itertools, name), constructable=False) for name in _REPLACED),
            TypeAudit(type=itertools.combinations_with_replacement, constructable=False),
            *(
                audit(getattr(itertools, name), constructable=name not in _FILTERING | names("accumulate groupby"))
                for name in sorted({*_PLAIN_ITERTOOLS, *_FILTERING, *_COUNTED, "accumulate", "groupby"})
                if isinstance(getattr(itertools, name, None), type)
            ),
        ),
        note="what goes on without end, or very long, passes through Python, where it can be ended",
    ),
    ModuleAudit(
        name="operator",
        calling=names("call"),
        members=listed("operator"),
        refused=frozenset(),
        instead=_SIZED,
        replaced={"attrgetter": _attrgetter, "methodcaller": _methodcaller},
    ),
    ModuleAudit(
        name="abc",
        members=names("ABC abstractproperty"),
        replaced={
            **{name: _abstract_kind(name) for name in ("abstractclassmethod", "abstractstaticmethod")},
            "abstractmethod": _abstract,
            "ABCMeta": _abc_meta,
        },
        types=(
            audit(abc.ABC, subclassable=True),
            TypeAudit(type=abc.ABCMeta, reads=names("register"), subclassable=True),
            audit(abc.abstractproperty),
        ),
    ),
    ModuleAudit(
        name="typing",
        members=listed("typing"),
        naming=names("NewType"),
        refused=_NOT_TYPING,
        instead={
            "overload": _overload,
            "final": lambda value: value,
            "override": lambda value: value,
            "no_type_check": lambda value: value,
        },
        replaced=_REPLACED_TYPING,
        real=hints.OF_CELLS,
        types=tuple(one for module in hints.BOTH for one in _types_of(module)),
        note="texts in annotations are checked as cells are, and then evaluated",
    ),
    ModuleAudit(
        name="types",
        members=names("MappingProxyType GenericAlias UnionType"),
        note="types of the interpreter's own are stand-ins; nothing that makes classes or modules past the checks",
        replaced={
            "SimpleNamespace": simple_namespace,
            **{name: _kind(name) for name in _KINDS},
        },
    ),
)
