"""Any graph of objects, shared and cyclic, is the same once it is loaded: whole, and with half of it carried over."""

from __future__ import annotations

import builtins
import hashlib
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from cellblock.worker.saving import imported, load, save

World = dict[str, Any]

CELL = """
class Plain:
    def __init__(self, v): self.v = v
class Slotted:
    __slots__ = ("v",)
def closure(v): return lambda: v
"""


@pytest.fixture(autouse=True)
def _process_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(imported, "_libraries", {"/"})
    main, path, limit = sys.modules["__main__"], list(sys.path), sys.getrecursionlimit()
    state = random.getstate()
    yield
    sys.modules["__main__"], sys.path[:] = main, path
    sys.setrecursionlimit(limit)
    random.setstate(state)


def new_world(source: str = "") -> World:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["__builtins__"] = builtins
    exec(source, module.__dict__)
    return module.__dict__


def build(world: World, draw: random.Random) -> list[str]:
    """Bind some names to objects of many kinds that refer to one another; the names."""
    pool: list[Any] = []

    def pick() -> Any:
        return draw.choice(pool) if pool and draw.random() < 0.6 else draw.choice([1, "s", None, 2.5, (1, 2), b"x"])

    for _ in range(draw.randrange(1, 40)):
        made: Any
        kind = draw.randrange(7)
        if kind == 0:
            made = [pick() for _ in range(draw.randrange(4))]
        elif kind == 1:
            made = {str(key): pick() for key in range(draw.randrange(4))}
        elif kind == 2:
            made = (pick(), pick())
        elif kind == 3:
            made = {draw.randrange(9), "q"}
        elif kind == 4:
            made = world["Plain"](pick())
        elif kind == 5:
            made = world["closure"](pick())
        else:
            made = world["Slotted"]()
            made.v = pick()
        pool.append(made)
    for one in pool:
        if type(one) is list and draw.random() < 0.3:
            one.append(draw.choice(pool))
        elif type(one) is dict and draw.random() < 0.3:
            one["more"] = draw.choice(pool)
    names = [f"name{number}" for number in range(draw.randrange(1, 12))]
    world.update((name, draw.choice(pool)) for name in names)
    return names


def shape(world: World, names: list[str]) -> list[Any]:
    """What the names hold, objects numbered as they are met: equal for graphs that are the same."""
    numbers: dict[int, int] = {}

    def of(one: Any) -> Any:
        if one is None or isinstance(one, (int, str, float, bytes)):
            return repr(one)
        if isinstance(one, tuple):
            return ("tuple", *map(of, one))
        if id(one) in numbers:
            return numbers[id(one)]
        number = numbers[id(one)] = len(numbers)
        if type(one) is list:
            return ["list", number, *map(of, one)]
        if type(one) is dict:
            return ["dict", number, *((key, of(held)) for key, held in one.items())]
        if type(one) is set:
            return ["set", number, sorted(map(repr, one))]
        if isinstance(one, types.FunctionType):
            return ["closure", number, of(one())]
        name = type(one).__name__
        return [name, number, type(one) is world[name], of(one.v)]

    return [of(world[name]) for name in names]


def groups(record: dict[str, Any]) -> dict[str, Any]:
    """The groups of what cells bound, by their keys."""
    return {group["key"]: group for group in record["groups"] if not group["key"].startswith("@")}


class Pieces(dict[str, bytes]):
    """A store of what is saved, by its hash."""

    def put(self, piece: memoryview | bytes) -> str:
        address = hashlib.sha256(piece).hexdigest()
        self[address] = bytes(piece)
        return address


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_graph_is_the_same_after_loading(seed: int) -> None:
    pieces = Pieces()
    for one in range(seed, seed + 20):
        draw = random.Random(one)
        world = new_world(CELL)
        names = build(world, draw)
        expected = shape(world, names)
        record = save(world, put=pieces.put)
        assert record["lost"] == []
        loaded = new_world()
        assert load(loaded, record, get=pieces.__getitem__) == []
        assert shape(loaded, names) == expected, one
        again = save(loaded, put=pieces.put)
        assert groups(again) == groups(record), one


HASHED = """
class Node:
    registry = {}
    def __init__(self, name): self.name, self.near, self.index, self.parts = name, set(), {}, []
    def __hash__(self): return hash(self.name)
    def __eq__(self, other): return type(other) is Node and self.name == other.name
class Edge:
    def __init__(self, start, end): self.start, self.end = start, end
    def __hash__(self): return hash((self.start, self.end))
    def __eq__(self, other): return type(other) is Edge and (self.start, self.end) == (other.start, other.end)
"""


def tables(world: World, names: list[str]) -> Any:
    """What nodes hold, by the names of nodes; each object that is found is the node of that name."""
    nodes = {name: world[name] for name in names}

    def of(key: Any) -> Any:
        if type(key) is tuple:
            return tuple(map(of, key))
        if type(key) is world["Edge"]:
            return "edge", of(key.start), of(key.end)
        assert key is nodes[key.name]
        return key.name

    for one in nodes.values():
        assert all(key in one.near for key in list(one.near))
        assert all(one.index[key] is held for key, held in one.index.items())
        assert all(world["Node"].registry[key] is held for key, held in world["Node"].registry.items())
    return [
        (
            {*map(of, one.near)},
            [(of(key), of(held)) for key, held in one.index.items()],
            [of(part) for part in one.parts],
        )
        for one in nodes.values()
    ] + [(of(key), of(held)) for key, held in world["Node"].registry.items()]


@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_graph_of_objects_with_a_hash_of_their_own_is_the_same_after_loading(seed: int) -> None:
    pieces = Pieces()
    for one in range(seed, seed + 20):
        draw = random.Random(one)
        world = new_world(HASHED)
        names = [f"n{number}" for number in range(draw.randrange(1, 7))]
        world.update((name, world["Node"](name)) for name in names)
        nodes = [world[name] for name in names]
        keys: list[Any] = [*nodes, *(world["Edge"](draw.choice(nodes), draw.choice(nodes)) for _ in range(4))]
        keys += [(draw.choice(keys), draw.choice(keys)) for _ in range(2)]
        for node in nodes:
            node.near.update(draw.choices(keys, k=draw.randrange(4)))
            node.index.update((draw.choice(keys), draw.choice(keys)) for _ in range(draw.randrange(4)))
            node.parts.extend(draw.choices(keys, k=draw.randrange(3)))
            if draw.random() < 0.3:
                world["Node"].registry[draw.choice(keys)] = node
        expected = tables(world, names)
        record = save(world, put=pieces.put)
        assert record["lost"] == []
        loaded = new_world()
        assert load(loaded, record, get=pieces.__getitem__) == []
        assert tables(loaded, names) == expected, one
