"""From a snapshot to a world: portable data, and definitions from source that this world's guard has checked again.

What the world's policy does not grant any more is lost with all that leads to it. Definitions of classes are run again;
functions are made of their checked code, and run when they are called.
"""

from __future__ import annotations

import functools
import operator
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

from cellblock.errors import SourceRejected
from cellblock.guard.anatomy import held, lineage, namespace
from cellblock.guard.sources import Source
from cellblock.guard.world import World
from cellblock.snapshots import Group, Snapshot
from cellblock.values import portable
from cellblock.worker.references import missing

Row = tuple[str, str, str, str]
_Ref = tuple[str, int]
_AGAIN = "run the cells again that made it"
_OPTIMIZED = 0x1
_WHOLE_NOW = (tuple, str, bytes, int, float, frozenset)
"""Built-in types whose heirs are made with what they hold."""
_MISSING = object()


def read(world: World, snapshot: Snapshot, get: Callable[[str], bytes]) -> tuple[Row, ...]:
    """Bind what a snapshot holds; rows of the names that could not be made again. `get` gives chunks by address.

    `portable.MalformedValue` where it is not one of this form.
    """
    reading = _Reading(world, snapshot, get)
    reading.run()
    world.flags = int(snapshot.environment.get("flags", "0"))
    return tuple(reading.lost())


class _Unread(Exception):
    """Something cannot be made again."""


class _Busy(_Unread):
    """Something is being made, and cannot be had yet."""


class _Reading:
    def __init__(self, world: World, snapshot: Snapshot, get: Callable[[str], bytes]) -> None:
        self._world, self._snapshot, self._get = world, snapshot, get
        self._groups = {one.key: one for one in snapshot.groups}
        self._nodes: dict[str, list[Any]] = {}
        self._roots: dict[str, _Ref] = {}
        self._made: dict[_Ref, Any] = {}
        self._failed: dict[_Ref, str] = {}
        self._busy: set[_Ref] = set()
        self._fills: deque[tuple[_Ref, Callable[[], None]]] = deque()
        self._late: deque[tuple[_Ref, Callable[[], None]]] = deque()
        """Fillings that hash what they fill in, which is to be whole by then."""
        self._sources: dict[str, Source] = {}
        self._bound = [one.name for one in snapshot.names]

    def run(self) -> None:
        """Make everything and bind the names."""
        for group in self._snapshot.groups:
            if not group.key.startswith("@source:"):
                roots, self._nodes[group.key] = self._data(group)
                self._roots.update({name: (group.key, number) for name, number in roots.items()})
        for name in self._bound:
            self._bind(name)
        self._drain()
        for name in self._bound:  # what was being made when it was asked for
            self._bind(name)
        for ref, _ in (*self._fills, *self._late):
            self._failed[ref] = "it is needed to make what it is made of"
        for name in self._bound:
            if self._why(name) is not None:
                self._world.globals.pop(name, None)
        if (around := self._roots.get("@random")) is not None:
            self._world.values["random"].setstate(self.object(around).getstate())

    def lost(self) -> Iterator[Row]:
        """Names that are not bound, and why."""
        for one in self._snapshot.names:
            if (why := self._why(one.name)) is not None:
                yield one.name, one.type, why, _AGAIN

    def _data(self, group: Group) -> Any:
        pieces = (group.stream, *(one.chunks for one in group.buffers))
        return portable.unpack(tuple(b"".join(map(self._get, addresses)) for addresses in pieces))

    def _bind(self, name: str) -> None:
        ref = self._roots[name]
        with suppress(_Unread):  # told by `lost`
            self._world.globals[name] = self.object(ref)

    def _why(self, name: str) -> str | None:
        """Why a name cannot be had: the first of what it leads to that has failed."""
        seen, pending = set(), [self._roots[name]]
        while pending:
            ref = pending.pop()
            if ref in self._failed:
                return self._failed[ref]
            if ref not in seen:
                seen.add(ref)
                pending += self._children(ref)
        return None

    # ------------------------------------------------------------------------------ the graph

    def _children(self, ref: _Ref) -> list[_Ref]:
        return [self._child(ref[0], number) for number in self._nodes[ref[0]][ref[1]][2]]

    def _child(self, key: str, number: int) -> _Ref:
        kind, data, _ = self._nodes[key][number]
        if kind != "name":
            return key, number
        if data not in self._roots:
            raise _Unread(f"{data} is missing")
        return self._roots[data]

    def object(self, ref: _Ref) -> Any:
        """The object of a node: a container may still be empty, and is filled later."""
        if ref in self._made:
            return self._made[ref]
        if ref in self._failed:
            raise _Unread(self._failed[ref])
        if ref in self._busy:
            raise _Busy("it is needed to make what it is made of")
        self._busy.add(ref)
        kind, data, _ = self._nodes[ref[0]][ref[1]]
        try:
            made = _MAKERS[kind](self, ref, data, self._children(ref))
        except _Busy:
            raise
        except Exception as error:  # from the definition of a class, or of what is not granted any more
            self._failed[ref] = _told(error)
            raise _Unread(self._failed[ref]) from error
        finally:
            self._busy.discard(ref)
        self._made[ref] = made
        return made

    def _fill(self, ref: _Ref, fill: Callable[[], None], *, late: bool = False) -> None:
        (self._late if late else self._fills).append((ref, fill))

    def _drain(self) -> None:
        """Fill in what can be filled in by now; what needs something that is being made waits."""
        waiting = []
        while self._fills or self._late:
            queue = self._fills or self._late
            ref, fill = one = queue.popleft()
            try:
                fill()
            except _Busy:
                waiting.append((queue, one))
            except Exception as error:  # from a `__hash__` of the cells, too
                self._failed[ref] = _told(error)
        for queue, one in waiting:
            queue.append(one)

    def _all(self, children: list[_Ref]) -> list[Any]:
        return [self.object(one) for one in children]

    # ------------------------------------------------------------------------------ containers

    def _list(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        made: list[Any] = list(data or ())
        self._fill(ref, lambda: made.extend(self._all(children)))
        return made

    def _tuple(self, _ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        return tuple(data) if data is not None else tuple(self._all(children))

    def _set(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        made: set[Any] = set(data or ())

        def fill() -> None:
            parts = self._all(children)
            self._fill(ref, lambda: made.update(parts), late=True)

        self._fill(ref, fill)
        return made

    def _frozenset(self, _ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        if data is not None:
            return frozenset(data)
        parts = self._all(children)
        self._drain()
        return frozenset(parts)

    def _pairs(self, kind: Callable[[], Any], ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        made = kind()

        def put(keys: list[Any], values: list[Any]) -> None:
            for key, value in zip(keys, values, strict=True):
                made[key] = value

        def fill() -> None:
            keys, values = self._all(children[::2]), self._all(children[1::2])
            self._fill(ref, lambda: put(keys, values), late=True)

        if data is None:
            self._fill(ref, fill)
        else:
            put(*data)
        return made

    def _defaultdict(self, ref: _Ref, _data: Any, children: list[_Ref]) -> Any:
        made: defaultdict[Any, Any] = defaultdict(self.object(children[0]))
        self._fill(ref, lambda: made.update(self._whole(children[1])), late=True)
        return made

    def _whole(self, ref: _Ref) -> Any:
        """An object that nothing fills in any more: for what is taken out of it at once."""
        made = self.object(ref)
        self._drain()
        return made

    def _deque(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        made: deque[Any] = deque(maxlen=data)
        self._fill(ref, lambda: made.extend(self._whole(children[0])))
        return made

    def _cell(self, ref: _Ref, _data: Any, children: list[_Ref]) -> Any:
        made = types.CellType()
        if children:
            self._fill(ref, lambda: setattr(made, "cell_contents", self.object(children[0])))
        return made

    def _random(self, _ref: _Ref, data: Any, _children: list[_Ref]) -> Any:
        made = Random()  # noqa: S311 - one of the cells' own
        made.setstate((data[0], tuple(data[1]), data[2]))
        return made

    # -------------------------------------------------------------------------- what is granted

    def _known(self, _ref: _Ref, data: Any, _children: list[_Ref]) -> Any:
        if "." in data or data not in self._world.builtins:
            raise _Unread(f"{data} is not granted here")
        return self._world.builtins[data]

    def _tool(self, _ref: _Ref, data: Any, _children: list[_Ref]) -> Any:
        return self._world.tools.setdefault(data, missing(data))

    def _member(self, _ref: _Ref, data: Any, _children: list[_Ref]) -> Any:
        module, name = data
        found = vars(self._world.importer.module(module)).get(name, _MISSING)
        if found is _MISSING:
            raise _Unread(f"{module}.{name} is not granted here")
        return found

    # --------------------------------------------------------------------------- what is called

    def _source(self, key: str) -> Source:
        if key not in self._sources:
            filename, flags, text = self._data(self._groups[key])
            self._sources[key] = self._world.recall(filename, text, flags, self._bound)
        return self._sources[key]

    def _function(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        key, place, name, qualname, attributes = data
        code = self._source(key).code(tuple((one, number) for one, number in place))
        own = children[3 + len(attributes) :]
        if code is None or len(code.co_freevars) != len(own):
            raise _Unread(f"{qualname} is not where it was in its source")
        cells = tuple(self._all(own))
        made = types.FunctionType(code, self._world.globals, name, None, cells)
        made.__qualname__ = qualname

        def fill() -> None:
            made.__defaults__, made.__kwdefaults__ = self.object(children[0]), self.object(children[1])
            made.__annotations__ = self._whole(children[2])
            made.__dict__.update(zip(attributes, self._all(children[3 : 3 + len(attributes)]), strict=True))

        self._fill(ref, fill)
        return made

    def _partial(self, _ref: _Ref, _data: Any, children: list[_Ref]) -> Any:
        kind, function, args = self._all(children[:3])
        return kind(function, *args, **self._whole(children[3]))

    def _decorated(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        return self._member(ref, data, [])(self.object(children[0]))

    def _cached(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        return self._member(ref, ("functools", "lru_cache"), [])(*data)(self.object(children[0]))

    # -------------------------------------------------------------------------------- classes

    def _class(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        key, name, defined = data
        source = self._source(key)
        self._bind_for(source)
        globals = self._world.globals
        before = globals.get(name, _MISSING)
        for code in (source.program.body, source.program.last):
            if code is not None:
                eval(code, globals)
        made = globals.pop(name)
        if before is not _MISSING:
            globals[name] = before

        def fill() -> None:
            for name, value in zip(defined, self._all(children), strict=True):
                type.__setattr__(made, name, value)

        self._fill(ref, fill)
        return made

    def _bind_for(self, source: Source) -> None:
        """Bind the names that a definition looks up while it is made."""
        pending = [code for code in (source.program.body, source.program.last) if code is not None]
        while pending:
            code = pending.pop()
            for name in code.co_names:
                if name in self._roots and name not in self._world.globals:
                    self._bind(name)
            inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
            pending += [one for one in inner if not one.co_flags & _OPTIMIZED]
        self._drain()

    def _namedtuple(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        make = self._member(ref, ("collections", "namedtuple"), [])
        return make(data[0], data[1], defaults=self.object(children[0]) or None)

    def _instance(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        kind, whole = self.object(children[0]), children[1]
        own = self._world.classes.own
        base: Any = next((one for one in lineage(kind) if not own(one) and _is_whole(one)), object)
        if base in _WHOLE_NOW:
            made = base.__new__(kind, self._whole(whole))
        else:
            made = base.__new__(kind)
            if base in (dict, OrderedDict, Counter):
                self._fill(ref, lambda: _put_pairs(made, self._whole(whole)), late=True)
            elif base is list:
                self._fill(ref, lambda: list.extend(made, self._whole(whole)))
            elif base is set:
                self._fill(ref, lambda: set.update(made, self._whole(whole)), late=True)
        self._fill(ref, lambda: _put_attributes(made, data, self._all(children[2:])))
        return made

    def _error(self, ref: _Ref, data: Any, children: list[_Ref]) -> Any:
        kind, args = self.object(children[0]), self.object(children[1])
        base: Any = next(one for one in lineage(kind) if not self._world.classes.own(one))
        made = base.__new__(kind, *args)
        made.args = args
        self._fill(ref, lambda: _put_attributes(made, data, self._all(children[2:])))
        return made


def _is_whole(kind: type) -> bool:
    return kind in (dict, list, set, OrderedDict, Counter, *_WHOLE_NOW)


def _put_pairs(made: Any, whole: dict[Any, Any]) -> None:
    for key, value in whole.items():
        dict.__setitem__(made, key, value)


def _put_attributes(made: Any, names: list[str], values: list[Any]) -> None:
    """Give an object what it held, whatever its class says of setting attributes."""
    slots = {
        name: member
        for one in lineage(type(made))
        for name, member in namespace(one).items()
        if type(member) is types.MemberDescriptorType
    }
    own = held(made)
    for name, value in zip(names, values, strict=True):
        if name in slots:
            slots[name].__set__(made, value)
        else:
            own[name] = value


def _told(error: Exception) -> str:
    if isinstance(error, _Unread | SourceRejected):
        return str(error)[:300]
    return f"{type(error).__name__}: {error}"[:300]


_Make = Callable[[_Reading, _Ref, Any, list[_Ref]], Any]
_MAKERS: dict[str, _Make] = {
    "value": lambda reading, ref, data, children: data,
    "list": _Reading._list,
    "tuple": _Reading._tuple,
    "set": _Reading._set,
    "frozenset": _Reading._frozenset,
    "dict": lambda reading, *given: reading._pairs(dict, *given),
    "Counter": lambda reading, *given: reading._pairs(Counter, *given),
    "OrderedDict": lambda reading, *given: reading._pairs(OrderedDict, *given),
    "defaultdict": _Reading._defaultdict,
    "deque": _Reading._deque,
    "slice": lambda reading, ref, data, children: slice(*reading._all(children)),
    "cell": _Reading._cell,
    "pattern": lambda reading, ref, data, children: re.compile(data[0], data[1]),
    "random": _Reading._random,
    "alias": lambda reading, ref, data, children: types.GenericAlias(*reading._all(children)),
    "union": lambda reading, ref, data, children: functools.reduce(operator.or_, reading.object(children[0])),
    "array": lambda reading, ref, data, children: data,
    "object": lambda *_: object(),
    "nonetype": lambda *_: type(None),
    "known": _Reading._known,
    "tool": _Reading._tool,
    "module": lambda reading, ref, data, children: reading._world.importer.module(data),
    "member": _Reading._member,
    "function": _Reading._function,
    "method": lambda reading, ref, data, children: types.MethodType(*reading._all(children)),
    "partial": _Reading._partial,
    "decorated": _Reading._decorated,
    "cached": _Reading._cached,
    "class": _Reading._class,
    "namedtuple": _Reading._namedtuple,
    "instance": _Reading._instance,
    "error": _Reading._error,
    "enum": lambda reading, ref, data, children: namespace(reading.object(children[0]))["_member_map_"][data],
}
