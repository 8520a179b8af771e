"""From a world to the snapshot of its names: groups of nodes as portable data, and sources."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from reprlib import Repr
from typing import Any

from cellblock.cell import Lost
from cellblock.guard.sources import Source
from cellblock.guard.world import World
from cellblock.snapshots import CHUNK_BYTES, Buffer, Group, SavedName, Snapshot
from cellblock.text import cut, type_name
from cellblock.values import portable
from cellblock.worker.keeping.graph import Graph, Node, NotKept, together
from cellblock.worker.keeping.nodes import Describing

FORM = "portable/1"
"""Format of the groups, as a snapshot's environment tells it."""
_MOST = 1 << 40
_qualname_of: Any = type.__dict__["__qualname__"].__get__
_PREVIEW = 200
_DEFINING = ("function", "class", "namedtuple")
_OWN = ("instance", "error")
_SHOWN = frozenset((
    "value", "array", "list", "tuple", "dict", "set", "frozenset", "Counter", "OrderedDict", "defaultdict", "deque",
    "slice",
))  # fmt: skip
"""Kinds of nodes whose `repr` is no code of the cells', and tells no address of this process."""

Put = Callable[[bytes], str]
Written = dict[str, tuple[bytes, Group]]
"""Groups by their keys, each with a digest of what is in it."""


def keep(world: World, put: Put, written: Written) -> Snapshot:
    """All names of a world that can be kept, and why the others cannot. Runs no code of the cells.

    `written` are the groups of the last snapshot, and then of this one: of those that are the same nothing is put.
    """
    keeping = _Keeping(world, world.names())
    packing = _Packing(keeping, put, written)
    snapshot = keeping.snapshot(packing)
    written.clear()
    written.update(packing.written)
    return snapshot


def unkept(world: World, names: Collection[str]) -> list[str]:
    """Of some names, those whose values cannot be kept."""
    keeping = _Keeping(world, names)
    return [name for name in names if keeping.roots[name] in keeping.ways]


class _Keeping:
    """One look at some names of a world."""

    def __init__(self, world: World, names: Iterable[str]) -> None:
        self._world = world
        self._describing = Describing(world)
        self.graph = Graph(self._describing)
        self.roots = {name: self.graph.add(world.globals[name]) for name in names}
        self._random = self.graph.add(world.values["random"])
        self.graph.run()
        self.ways = self.graph.ways()

    def snapshot(self, packed: _Packing) -> Snapshot:
        """The snapshot of all that was found."""
        graph, world = self.graph, self._world
        lost = []
        names = [name for name in sorted(self.roots) if self.roots[name] not in self.ways]
        groups = packed.groups(names)
        for name in sorted(self.roots):
            if self.roots[name] in self.ways:
                lost.append(self._lost(name))
            elif name in packed.failed:
                lost.append(_lost(name, graph.nodes[self.roots[name]].value, packed.failed[name]))
        groups += packed.around("@random", self._random)
        groups += packed.sources(self._describing.sources)
        return Snapshot(
            groups=tuple(groups),
            names=tuple(packed.names),
            lost=tuple(lost),
            ambient=tuple((group.key, group.key) for group in groups if group.key.startswith("@")),
            environment={
                "form": FORM,
                "python": platform.python_version(),
                "flags": str(world.flags),
            },
        )

    def _lost(self, name: str) -> Lost:
        way, node = self.ways[self.roots[name]]
        assert node.broken is not None
        reason = f"{name}{way}: {node.broken.reason}" if way else node.broken.reason
        return _lost(name, self.graph.nodes[self.roots[name]].value, NotKept(reason, node.broken.remedy))


class _Packing:
    """Writes groups of one graph."""

    def __init__(self, keeping: _Keeping, put: Put, before: Written) -> None:
        self._before = before
        self.written: Written = {}
        self._graph, self._roots, self._put = keeping.graph, keeping.roots, put
        self._definitions: dict[int, str] = {}
        for name, number in keeping.roots.items():
            node = self._graph.nodes[number]
            if node.kind in _DEFINING and number not in keeping.ways and _called(node.value) == name:
                self._definitions[number] = name
        self.names: list[SavedName] = []
        self.failed: dict[str, NotKept] = {}

    def groups(self, names: list[str]) -> list[Group]:
        """The groups of these names. Those that are too large for one are told by `failed`."""
        nodes, reached = self._graph.nodes, self._reached
        found = []
        for group in together(names, lambda name: reached(self._roots[name]), lambda number: nodes[number].shared):
            try:
                written = self._group(group[0], {name: self._roots[name] for name in group})
            except portable.NotPortable as error:
                reason = NotKept(error.reason, "keep it in parts, or in a file of the host's")
                self.failed.update(dict.fromkeys(group, reason))
                continue
            found.append(written)
            self.names += [self._name(name, group[0]) for name in group]
        self.names.sort(key=lambda one: one.name)
        return found

    def around(self, key: str, number: int) -> list[Group]:
        """A group of what surrounds the names."""
        return [] if self._graph.nodes[number].broken is not None else [self._group(key, {key: number})]

    def sources(self, sources: dict[str, Source]) -> list[Group]:
        """A group for each source that functions and classes are made from again."""
        return [self._packed(key, [one.filename, one.flags, one.text], ()) for key, one in sorted(sources.items())]

    def _reached(self, root: int) -> Iterable[int]:
        return self._graph.reached(root, lambda number: number in self._definitions)

    def _group(self, key: str, roots: dict[str, int]) -> Group:
        numbers: dict[int, int] = {}
        for root in roots.values():
            for number in self._reached(root):
                numbers.setdefault(number, len(numbers))
        plain: list[Any] = []
        needs: set[str] = set()
        beside: dict[str, int] = {}
        for number in numbers:
            node = self._graph.nodes[number]
            children = []
            for child in node.children:
                if child not in numbers:  # a definition of another group
                    name = self._definitions[child]
                    needs.add(name)
                    children.append(beside.setdefault(name, len(numbers) + len(beside)))
                else:
                    children.append(numbers[child])
            if node.kind in _DEFINING[:2]:
                needs.add(node.data[0])
            plain.append([node.kind, node.data, children])
        plain += [["name", name, []] for name in beside]
        return self._packed(key, [{name: numbers[root] for name, root in roots.items()}, plain], needs)

    def _packed(self, key: str, data: Any, needs: Iterable[str]) -> Group:
        told = _told(data)
        found, group = self._before.get(key, (None, None))
        if told is None or found != told or group is None:
            group = self._write(key, data, needs)
        if told is not None:
            self.written[key] = told, group
        return group

    def _write(self, key: str, data: Any, needs: Iterable[str]) -> Group:
        first, *large = portable.pack(portable.encode(data, max_bytes=_MOST))
        buffers = tuple(Buffer(memoryview(one).nbytes, self._chunks(one)) for one in large)
        return Group(key=key, stream=self._chunks(first), buffers=buffers, needs=tuple(sorted(needs)))

    def _chunks(self, data: portable.Buffer) -> tuple[str, ...]:
        view = memoryview(data).cast("B")
        return tuple(self._put(bytes(view[at : at + CHUNK_BYTES])) for at in range(0, len(view), CHUNK_BYTES))

    def _name(self, name: str, group: str) -> SavedName:
        number = self._roots[name]
        node = self._graph.nodes[number]
        return SavedName(
            name=name,
            group=group,
            type=type_name(node.value),
            size=_size(node),
            preview=self._preview(node, number),
        )

    def _preview(self, node: Node, number: int) -> str:
        """A short text of a value; of what holds other than data no more than its type."""
        if node.kind in _DEFINING:
            return f"<{node.kind} {_called(node.value)}>"
        if all(self._graph.nodes[one].kind in _SHOWN for one in self._reached(number)):
            return cut(_brief.repr(node.value), _PREVIEW)
        named = f" {node.data}" if node.kind in ("module", "enum", "known", "tool") else ""
        return f"<{type_name(node.value)}{named}>"


def _called(value: Any) -> str:
    """The qualified name of a function or class, past its metaclass."""
    return str(_qualname_of(value) if issubclass(type(value), type) else value.__qualname__)


def _size(node: Node) -> int:
    """In bytes, without what the value refers to."""
    if issubclass(type(node.value), type):
        return type.__sizeof__(node.value)
    return object.__sizeof__(node.value) if node.kind in _OWN else sys.getsizeof(node.value)


def _told(data: Any) -> bytes | None:
    """Identity of a group's content; None where it holds what JSON does not."""
    try:
        return sha256(json.dumps(data).encode()).digest()
    except (TypeError, ValueError, RecursionError):
        return None


def _made_brief() -> Repr:
    brief = Repr()
    brief.maxstring = brief.maxother = brief.maxlong = _PREVIEW
    brief.maxlist = brief.maxtuple = brief.maxdict = brief.maxset = brief.maxfrozenset = 40
    return brief


_brief = _made_brief()


def _lost(name: str, value: object, reason: NotKept) -> Lost:
    return Lost(name=name, type=type_name(value), reason=reason.reason, remedy=reason.remedy)
