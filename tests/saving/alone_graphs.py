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


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_graph_is_the_same_after_loading(seed: int) -> None:
    pieces: dict[str, bytes] = {}

    def put(piece: memoryview | bytes) -> str:
        address = hashlib.sha256(piece).hexdigest()
        pieces[address] = bytes(piece)
        return address

    for one in range(seed, seed + 20):
        draw = random.Random(one)
        world = new_world(CELL)
        names = build(world, draw)
        expected = shape(world, names)
        record = save(world, put=put)
        assert record["lost"] == []
        loaded = new_world()
        assert load(loaded, record, get=pieces.__getitem__) == []
        assert shape(loaded, names) == expected, one
        again = save(loaded, put=put)
        assert groups(again) == groups(record), one
