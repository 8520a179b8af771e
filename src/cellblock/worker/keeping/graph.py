"""The objects that names lead to, as nodes that refer to one another: what cannot be kept is marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


class NotKept(Exception):
    """A value that has no portable form: what it is, and what the cells can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


@dataclass(slots=True)
class Node:
    """One object. `shared`: two names that lead to it lead to one object, which has to stay one."""

    value: Any
    kind: str = ""
    data: Any = None
    children: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    shared: bool = True
    broken: NotKept | None = None


class Graph:
    """Grows from its roots by `describe`, which fills in one node and asks for its children by `child`."""

    def __init__(self, describe: Callable[[Graph, Node], None]) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[int, int] = {}
        self._pending: list[int] = []
        self._describe = describe

    def add(self, value: object) -> int:
        """The number of an object's node."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.nodes)
            self.nodes.append(Node(value))
            self._pending.append(number)
        return number

    def child(self, node: Node, value: object, label: str = "") -> None:
        """Another object that a node holds; `label` is how it is reached, as `.name` or `[0]`."""
        node.children.append(self.add(value))
        node.labels.append(label)

    def items(self, node: Node, values: list[Any]) -> None:
        """All that a sequence or a set holds."""
        node.children = [self.add(value) for value in values]

    def run(self) -> None:
        """Describe all that can be reached."""
        while self._pending:
            node = self.nodes[self._pending.pop()]
            try:
                self._describe(self, node)
            except NotKept as reason:
                node.broken = reason
                node.children, node.labels = [], []

    def ways(self) -> dict[int, tuple[str, Node]]:
        """Of each node that leads to a broken one: how, and that one."""
        if not any(node.broken is not None for node in self.nodes):
            return {}
        parents: dict[int, list[tuple[int, str]]] = {}
        for number, node in enumerate(self.nodes):
            labels = node.labels or [f"[{place}]" for place in range(len(node.children))]
            for child, label in zip(node.children, labels, strict=True):
                parents.setdefault(child, []).append((number, label))
        found = {number: ("", node) for number, node in enumerate(self.nodes) if node.broken is not None}
        level = list(found)
        while level:
            following = []
            for number in level:
                way, broken = found[number]
                for parent, label in parents.get(number, ()):
                    if parent not in found:
                        found[parent] = (label + way, broken)
                        following.append(parent)
            level = following
        return found

    def reached(self, number: int, but: Callable[[int], bool]) -> Iterator[int]:
        """A node and all that it leads to, but for what lies behind nodes that `but` holds of."""
        seen, pending = {number}, [number]
        while pending:
            here = pending.pop()
            yield here
            for child in reversed(self.nodes[here].children):
                if child not in seen and not but(child):
                    seen.add(child)
                    pending.append(child)


def together(
    names: Iterable[str], reached: Callable[[str], Iterable[int]], shared: Callable[[int], bool]
) -> list[list[str]]:
    """The names in groups: those that lead to one shared node are of one."""
    leader: dict[str, str] = {}
    owner: dict[int, str] = {}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    for name in names:
        leader[name] = name
        for number in reached(name):
            if shared(number):
                one, other = sorted((find(owner.setdefault(number, name)), find(name)))
                leader[other] = one
    groups: dict[str, list[str]] = {}
    for name in leader:
        groups.setdefault(find(name), []).append(name)
    return [sorted(groups[one]) for one in sorted(groups)]
