"""Groups of names that are saved together, in order: definitions come before what needs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cellblock.worker.saving.facts import sayable
from cellblock.worker.saving.walk import Walk


@dataclass(slots=True)
class Together:
    """One group to be: the roots that share objects, by number. `key` is its first name, or tells its first class."""

    key: str
    roots: list[int]
    needs: set[int] = field(default_factory=set)
    """Positions of the groups that this one needs."""


def arrange(walk: Walk, labels: dict[int, str]) -> tuple[list[Together], dict[int, int]]:
    """The groups, each after those it needs; and for each root the position of its group.

    `labels` are the names of the roots that have one. Groups that need each other are one.
    """
    representatives = [walk.find(number) for number in range(len(walk.values))]
    edges: dict[int, set[int]] = {}
    for number, needs in enumerate(walk.needs):
        here = representatives[number]
        edges.setdefault(here, set()).update(representatives[one] for one in needs)
        edges[here].discard(here)
    members: dict[int, list[int]] = {}
    for number, here in enumerate(representatives):
        members.setdefault(here, []).append(number)
    groups: list[Together] = []
    place: dict[int, int] = {}
    taken: dict[str, int] = {}
    alone = [[number] for number, needed in edges.items() if not needed]
    for circle in (*alone, *circles({number: needed for number, needed in edges.items() if needed})):
        roots = sorted(number for one in circle for number in members[one])
        groups.append(Together(_key(walk, roots, labels, taken), roots))
        for number in roots:
            place[number] = len(groups) - 1
    for position, group in enumerate(groups):
        for number in group.roots:
            group.needs.update(place[one] for one in walk.needs[number])
        group.needs.discard(position)
    return groups, place


def _key(walk: Walk, roots: Iterable[int], labels: dict[int, str], taken: dict[str, int]) -> str:
    """A name belongs to one group, so that its first one is a key; a class without a name is told by its own."""
    names = sorted(labels[number] for number in roots if number in labels)
    if names:
        return names[0]
    value = walk.values[min(roots)]
    told = sayable(f".{getattr(value, '__qualname__', 'definition')}")
    taken[told] = taken.get(told, 0) + 1
    return told if taken[told] == 1 else f"{told}.{taken[told]}"


def circles(edges: dict[int, set[int]]) -> list[list[int]]:
    """Strongly connected components, each after those it leads to: Tarjan's algorithm, without recursion."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for start in edges:
        if start in order:
            continue
        work: list[tuple[int, Any]] = [(start, iter(sorted(edges[start])))]
        order[start] = low[start] = len(order)
        stack.append(start)
        on_stack.add(start)
        while work:
            here, following = work[-1]
            advanced = False
            for one in following:
                if one not in edges:  # it needs nothing
                    continue
                if one not in order:
                    order[one] = low[one] = len(order)
                    stack.append(one)
                    on_stack.add(one)
                    work.append((one, iter(sorted(edges.get(one, ())))))
                    advanced = True
                    break
                if one in on_stack:
                    low[here] = min(low[here], order[one])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[here])
            if low[here] == order[here]:
                circle = []
                while True:
                    one = stack.pop()
                    on_stack.discard(one)
                    circle.append(one)
                    if one == here:
                        break
                found.append(circle)
    return found
