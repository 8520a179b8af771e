"""Saving and loading in one process: groups, pieces, what is known unchanged, in which order is read, what fails."""

from __future__ import annotations

import builtins
import copy
import ctypes
import hashlib
import json
import linecache
import random
import subprocess
import sys
import threading
import tracemalloc
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellblock.worker.saving import WrongVersion, ambient, imported, load, replay, save, sources
from cellblock.worker.saving.codecs import codec
from cellblock.worker.saving.facts import address_of
from cellblock.worker.saving.pickler import registered

World = dict[str, Any]


class Shelf:
    """Keeps pieces by their addresses, and tells which were put away and which were asked for."""

    def __init__(self) -> None:
        self.pieces: dict[str, bytes] = {}
        self.put_away: list[memoryview | bytes] = []
        self.asked: list[str] = []

    def put(self, piece: memoryview | bytes) -> str:
        address = "sha256-" + hashlib.sha256(piece).hexdigest()
        self.put_away.append(piece)
        self.pieces[address] = bytes(piece)
        return address

    def get(self, address: str) -> bytes:
        self.asked.append(address)
        return self.pieces[address]

    def save(self, world: World, **more: Any) -> dict[str, Any]:
        self.put_away.clear()
        record = save(world, put=self.put, **more)
        assert json.loads(json.dumps(record)) == record
        return record


def new_world(source: str = "") -> World:
    """The namespace of a new `__main__`, after a cell."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["__builtins__"] = builtins
    exec(compile(source, "<cell 1>", "exec"), module.__dict__)
    return module.__dict__


@pytest.fixture(autouse=True)
def _process_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of the tests are no session's, and `__main__` comes back."""
    monkeypatch.setattr(imported, "_libraries", {"/"})
    main, path, directory = sys.modules["__main__"], list(sys.path), sys.getrecursionlimit()
    yield
    sys.modules["__main__"], sys.path[:] = main, path
    sys.setrecursionlimit(directory)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def group_of(record: dict[str, Any], name: str) -> dict[str, Any]:
    key = next(row[1] for row in record["names"] if row[0] == name)
    return next(group for group in record["groups"] if group["key"] == key)


def keys(record: dict[str, Any]) -> dict[str, str]:
    return {row[0]: row[1] for row in record["names"]}


# ------------------------------------------------------------------------------------- groups


def test_names_that_share_an_object_are_one_group(shelf: Shelf) -> None:
    record = shelf.save(new_world("a = [1]\nb = {'a': a}\nc = [a]\nd = [1]\ne = 5"))
    assert keys(record) == {"a": "a", "b": "a", "c": "a", "d": "d", "e": "e"}


def test_class_is_a_group_of_its_own_that_its_instances_need(shelf: Shelf) -> None:
    record = shelf.save(new_world("class P: pass\np = P()\nq = [P()]\nf = lambda: P()"))
    assert keys(record) == {"P": "P", "p": "p", "q": "q", "f": "f"}
    assert [group_of(record, name)["needs"] for name in ("P", "p", "q", "f")] == [[], ["P"], ["P"], []]
    assert group_of(record, "f")["reaches"] == ["P"]


def test_constants_and_short_texts_tie_nothing_together(shelf: Shelf) -> None:
    record = shelf.save(new_world("def f(): return ('x', 1)\na = [f(), 'word', None, 10**30]\nb = [f(), 'word', a[3]]"))
    assert keys(record) == {"f": "f", "a": "a", "b": "b"}


def anew(text: str) -> str:
    """An equal text that is another object."""
    return text.encode().decode()


@pytest.mark.parametrize("size", [3, 700, 6000])
def test_record_tells_texts_and_not_which_of_them_are_one_object(shelf: Shelf, size: int) -> None:
    one, other = new_world("class P: pass"), new_world("class P: pass")
    rows = [[f"text {number % (size - 1)}", {"key": number, "wide é": "key"}] for number in range(size)]
    one["rows"], one["p"] = rows, one["P"]()
    other["rows"] = [[anew(text), {anew(key): held for key, held in row.items()}] for text, row in rows[:100]]
    other["rows"] += rows[100:]
    other["p"] = other["P"]()
    for world in (one, other):
        world["p"].rows, world["p"].text, world["p"].long = world["rows"], "rows", "x" * 300_000
    first, second = shelf.save(one), shelf.save(other)
    assert group_of(first, "p") == group_of(second, "p")
    loaded = new_world()
    assert load(loaded, second, get=shelf.get) == []
    assert loaded["rows"] == rows
    assert loaded["p"].rows is loaded["rows"]
    assert len(loaded["p"].long) == 300_000


def test_set_is_the_same_whatever_came_first_into_it(shelf: Shelf) -> None:
    texts = [f"text {number}" for number in range(50)]
    first = shelf.save(new_world() | {"x": set(texts), "y": {"k": {(1, "a"), None, 2.5}}})
    backwards: set[str] = set()
    backwards.update(reversed(texts))
    second = shelf.save(new_world() | {"x": backwards, "y": {"k": {2.5, None, (1, "a")}}})
    assert first["groups"] == second["groups"]


def test_group_keeps_its_key_and_pieces_when_another_changes(shelf: Shelf) -> None:
    world = new_world("a = [1]\nb = a\nclass P: pass\np = P()\nn = 1\nbig = ['text %d' % i for i in range(1000)]")
    first = shelf.save(world)
    world["n"] = 2
    world["a"].append(2)
    second = shelf.save(world)
    changed = [one["key"] for one, other in zip(first["groups"], second["groups"], strict=True) if one != other]
    assert sorted(changed) == ["a", "n"]


def test_unsavable_member_of_a_group_does_not_take_the_others_with_it(shelf: Shelf) -> None:
    record = shelf.save(new_world("a = [1]\nb = [a, (i for i in a)]\nc = {'a': a}"))
    assert [row[0] for row in record["names"]] == ["a", "c"]
    assert record["lost"] == [["b", "list", "b[1]: a generator", "make it again, or keep list(...) of it"]]
    world = new_world()
    assert load(world, record, get=shelf.get) == []
    assert world["c"]["a"] is world["a"]


def test_class_that_cannot_be_saved_is_named_by_what_needs_it(shelf: Shelf) -> None:
    world = new_world("class P:\n  log = open('/dev/null')\np = P()\nx = 1")
    record = shelf.save(world)
    world["P"].log.close()
    P, p = record["lost"]
    assert P[:3] == ["P", "type", "P.log: an open file"]
    assert p[2] == "its class P cannot be saved: P.log: an open file"


def test_names_that_are_no_text_and_those_of_python_are_left_alone(shelf: Shelf) -> None:
    world = new_world("x = 1")
    world[5] = "odd"  # type: ignore[index]
    assert [row[0] for row in shelf.save(world)["names"]] == ["x"]


# ------------------------------------------------------------------------------------- pieces


def test_pieces_hold_at_most_a_megabyte_and_a_small_change_costs_a_small_piece(shelf: Shelf) -> None:
    world = new_world(
        "import random\nblob = random.Random(1).randbytes(5 * 2**20 + 7)\nbox = [1, blob, 'x' * 3_000_000]"
    )
    first = shelf.save(world)
    assert max(len(piece) for piece in shelf.put_away) == 2**20
    world["box"][0] = 2_000_000
    before = set(shelf.pieces)
    second = shelf.save(world)
    added = [shelf.pieces[one] for one in set(shelf.pieces) - before]
    assert sum(map(len, added)) < 1000
    assert first["groups"] != second["groups"]


def test_memory_of_arrays_is_put_away_where_it_lies(shelf: Shelf) -> None:
    numpy = pytest.importorskip("numpy")
    world = new_world()
    world["a"] = array = numpy.arange(500_000.0)
    record = shelf.save(world)
    start = array.ctypes.data
    large = [piece for piece in shelf.put_away if len(piece) > 100_000]
    assert [address_of(piece) - start for piece in large] == [0, 2**20, 2 * 2**20, 3 * 2**20]
    other = new_world()
    assert load(other, record, get=shelf.get) == []
    assert (other["a"] == array).all()
    assert other["a"].flags.owndata


# ------------------------------------------------------------------------------------- what is known to be unchanged


class Witness:
    """Knows what memory held when it was last looked at: the truth that the pages of a process tell coarsely."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], bytes] = {}
        self.trusted = 0

    def look(self, record: dict[str, Any]) -> None:
        self._held = {}
        for address, length, *_ in json.loads(record["index"])["buffers"]:
            for offset in range(0, length, 2**20):
                end = min(offset + 2**20, length)
                self._held[address + offset, address + end] = ctypes.string_at(address + offset, end - offset)

    def unchanged(self, start: int, end: int) -> bool:
        same = self._held.get((start, end)) == ctypes.string_at(start, end - start)
        self.trusted += same
        return same


def test_unchanged_memory_is_not_read_again(shelf: Shelf) -> None:
    numpy = pytest.importorskip("numpy")
    world = new_world()
    world.update(a=numpy.zeros(2**18), b=numpy.ones(2**18), raw=bytes(3 * 2**20), text="é" + "x" * 2**20, n=1)
    world["buffer"] = bytearray(2**20)
    first = shelf.save(world)
    witness = Witness()
    witness.look(first)
    world["n"] = 2
    world["b"][-1] = 7
    second = shelf.save(world, index=first["index"].encode(), unchanged=witness.unchanged)
    large = [piece for piece in shelf.put_away if len(piece) > 2**18]
    # the changed half of b, and the text, whose bytes are made for the pickling
    assert sorted(map(len, large)) == [2, 2**20, 2**20] or sorted(map(len, large)) == [2**20, 2**20]
    assert witness.trusted == 2 + 1 + 3 + 1
    assert {one["key"] for one, other in zip(first["groups"], second["groups"], strict=True) if one != other} == {
        "b",
        "n",
    }


def test_memory_made_for_the_pickling_is_never_taken_for_the_sessions(shelf: Shelf) -> None:
    """It comes to lie where it lay the last time, and the session has not written there."""
    world = new_world(
        "class Made:\n  n = 0\n  def __reduce__(self): return bytes, (bytes([self.n]) * (4 * 2**20),)\nmade = Made()"
    )
    first = shelf.save(world)
    world["made"].n = 1
    second = shelf.save(world, index=first["index"].encode(), unchanged=lambda start, end: True)
    other = new_world()
    load(other, second, get=shelf.get)
    assert other["made"] == b"\1" * (4 * 2**20)


CHANGES = ["item", "view", "slice", "memory", "ctypes", "thread", "callback", "append", "rebind", "nested", "attribute"]


def change(world: World, how: str, place: int, value: int) -> None:
    """One of the ways in which code changes what a name holds without naming it."""
    array, raw = world["array"], world["raw"]
    place %= len(array)
    if how == "item":
        array[place] = value
    elif how == "view":
        world["view"][place // 2 % len(world["view"])] = value
    elif how == "slice":
        array[place : place + 3] += value
    elif how == "memory":
        memoryview(raw)[place % len(raw)] = value % 256
    elif how == "ctypes":
        ctypes.memset(array.ctypes.data + place, value % 256, 1)
    elif how == "thread":
        thread = threading.Thread(target=array.__setitem__, args=(place, value))
        thread.start()
        thread.join()
    elif how == "callback":
        sorted([2, 1], key=lambda one: array.__setitem__(place, one + value) or one)
    elif how == "append":
        world["alias"].append(value)
    elif how == "rebind":
        world["array"] = array.copy()
        world["array"][place] = value
        world["view"] = world["array"][::2]
    elif how == "nested":
        world["deep"]["a"][0]["b"].append(value)
    else:
        world["thing"].held = [value, world["alias"]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_change_in_place_is_never_missed(steps: list[list[tuple[str, int, int]]]) -> None:
    numpy = pytest.importorskip("numpy")
    shelf, witness = Shelf(), Witness()
    world = new_world(
        "class Thing: held = None\nthing = Thing()\nlist_ = [1]; alias = list_\ndeep = {'a': [{'b': list_}]}"
    )
    world.update(array=numpy.arange(300_000), raw=bytearray(600_000))
    world["view"] = world["array"][::2]
    index = b""
    for step in steps:
        for how, place, value in step:
            change(world, how, place, value)
        record = shelf.save(world, index=index, unchanged=witness.unchanged)
        whole = shelf.save(world)
        assert record["groups"] == whole["groups"]
        witness.look(record)
        index = record["index"].encode()
        main = sys.modules["__main__"]
        other = new_world()
        assert load(other, record, get=shelf.get) == []
        sys.modules["__main__"] = main
        assert (other["array"] == world["array"]).all()
        assert (other["view"] == world["view"]).all()
        assert numpy.shares_memory(other["view"], other["array"])
        assert other["raw"] == world["raw"]
        assert other["list_"] == world["list_"]
        assert other["alias"] is other["list_"] is other["deep"]["a"][0]["b"]
        held = world["thing"].held
        assert other["thing"].held == held
        assert held is None or other["thing"].held[1] is other["alias"]


# ------------------------------------------------------------------------------------- what is read, in which order


SESSION = """
class P:
    def __init__(self, v): self.v = v
    def scaled(self): return self.v * factor
factor = 3
p = P(1)
def use(): return helper() + p.v
def helper(): return factor
big = list(range(1000))
alias = big
other = {'k': [1]}
"""


def test_groups_are_read_in_the_order_of_the_record(shelf: Shelf) -> None:
    record = shelf.save(new_world("\n".join(f"name_{n} = [{n}]" for n in range(50))))
    random.Random(1).shuffle(record["groups"])
    assert load(new_world(), record, get=shelf.get) == []
    around = {key for _, key in record["ambient"]}
    expected = [group["stream"][0] for group in record["groups"] if group["key"] not in around]
    assert [one for one in shelf.asked if one in expected] == expected


def test_long_text_is_loaded_with_one_copy_of_what_it_was_saved_as(shelf: Shelf) -> None:
    record = shelf.save(new_world(f"text = 'x' * {32 * 2**20}"))
    shelf.put_away.clear()
    other = new_world()
    tracemalloc.start()
    try:
        assert load(other, record, get=shelf.get) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(other["text"]) == 32 * 2**20
    assert peak < 68 * 2**20


def test_large_buffers_are_filled_in_place_and_streams_are_read(shelf: Shelf) -> None:
    numpy = pytest.importorskip("numpy")
    world = new_world()
    world["large"] = numpy.arange(400_000).reshape(4, -1)
    world["ordered"] = numpy.asfortranarray(numpy.arange(90_000.0).reshape(3, -1))
    record = shelf.save(world)
    filled = []

    def fill(addresses: Sequence[str], room: memoryview) -> int:
        filled.extend(addresses)
        data = b"".join(map(shelf.pieces.__getitem__, addresses))
        room[: len(data)] = data
        return len(data)

    other = new_world()
    assert load(other, record, get=shelf.get, fill=fill) == []
    assert numpy.array_equal(other["large"], world["large"])
    assert numpy.array_equal(other["ordered"], world["ordered"])
    chunks = [one for group in record["groups"] for _, chunks in group["buffers"] for one in chunks]
    assert len(chunks) == 5
    assert sorted(filled) == sorted(chunks)
    assert not set(chunks) & set(shelf.asked)
    rows = load(new_world(), record, get=shelf.get, fill=lambda addresses, room: fill(addresses, room) - 1)
    assert [(row[0], row[2]) for row in rows] == [
        (name, "it could not be loaded: EOFError: a buffer ends too early") for name in ("large", "ordered")
    ]


# ------------------------------------------------------------------------------------- what fails


def test_piece_that_is_gone_costs_its_names_and_what_needs_them(shelf: Shelf) -> None:
    record = shelf.save(new_world(SESSION))
    del shelf.pieces[group_of(record, "P")["stream"][0]]
    world = new_world()
    rows = load(world, record, get=shelf.get)
    assert sorted(row[0] for row in rows) == ["P", "p"]
    assert all("could not be loaded" in row[2] and row[3] for row in rows)
    assert len(world["big"]) == 1000


@pytest.mark.parametrize(
    "spoil", [lambda data: data[: len(data) // 2], lambda data: b"\n\x80\x05garbage", lambda _: b""]
)
def test_spoiled_piece_costs_its_names_alone(shelf: Shelf, spoil: Callable[[bytes], bytes]) -> None:
    record = shelf.save(new_world(SESSION))
    address = group_of(record, "big")["stream"][0]
    shelf.pieces[address] = spoil(shelf.pieces[address])
    world = new_world()
    assert sorted(row[0] for row in load(world, record, get=shelf.get)) == ["alias", "big"]
    assert world["other"] == {"k": [1]}


@pytest.mark.parametrize("wrong", [{"format": 2}, {"python": "00000000"}])
def test_record_of_another_python_binds_nothing(shelf: Shelf, wrong: dict[str, Any]) -> None:
    record = {**shelf.save(new_world("x = 1")), **wrong}
    world = new_world()
    with pytest.raises(WrongVersion):
        load(world, record, get=shelf.get)
    assert "x" not in world


def test_value_whose_loading_fails_is_told_and_others_are_there(shelf: Shelf) -> None:
    record = shelf.save(
        new_world(
            "class Bad:\n  def __setstate__(self, s): raise SystemExit(2)\n"
            "bad = Bad(); bad.x = 1\nboth = [bad]\nok = [1]"
        )
    )
    world = new_world()
    rows = load(world, record, get=shelf.get)
    assert sorted(row[0] for row in rows) == ["bad", "both"]
    assert world["ok"] == [1]


def test_value_whose_loading_calls_a_function_that_mentions_it_is_loaded(shelf: Shelf) -> None:
    source = "def made(n): return [n]\nclass N:\n  def __setstate__(self, state): self.got = made(5)\nn = N(); n.x = 1"
    record, world = shelf.save(new_world(source)), new_world()
    assert load(world, record, get=shelf.get) == []
    assert world["n"].got == [5]


# ------------------------------------------------------------------------------------- codecs


def test_codec_of_a_cell_saves_and_comes_along(shelf: Shelf) -> None:
    world = new_world()
    world["codec"] = codec
    exec(
        "class Handle:\n"
        "  def __init__(self, name): self.name = name\n"
        "  def __reduce__(self): raise TypeError('no')\n"
        "class Sub(Handle): pass\n"
        "codec(Handle, save=lambda h: h.name.encode(), load=lambda data: Handle(data.decode()))\n"
        "h = Handle('a'); box = [h, Sub('b')]; del codec",
        world,
    )
    try:
        record = shelf.save(world)
        assert record["lost"] == []
        registered.clear()
        other = new_world()
        assert load(other, record, get=shelf.get) == []
        assert (other["h"].name, other["box"][0] is other["h"], other["box"][1].name) == ("a", True, "b")
        assert other["Handle"] in registered
    finally:
        registered.clear()


@pytest.mark.parametrize(("kind", "save_", "load_"), [(5, repr, eval), (int, 1, eval), (int, repr, None)])
def test_codec_says_what_is_wrong_with_it(kind: Any, save_: Any, load_: Any) -> None:
    with pytest.raises(TypeError):
        codec(kind, save=save_, load=load_)


# ------------------------------------------------------------------------------------- declarations


def test_record_of_another_python_is_replayed_from_its_declarations(shelf: Shelf) -> None:
    cell = (
        "import math\nclass P:\n  def area(self): return math.pi\np = P()\n@undefined\ndef g(): pass\ndef f(): return 2"
    )
    world = new_world("from math import pi as g, e as undefined\n")
    linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(keepends=True), "<cell 1>")
    try:
        exec(cell.replace("@undefined", ""), world)
        record = shelf.save(world)
        assert list(sources(record, shelf.get)) == ["<cell 1>"]
        linecache.clearcache()
        other = new_world()
        rows = replay(other, record, get=shelf.get)
        assert sources(shelf.save(other), shelf.get) == {"<cell 1>": cell}  # for yet another Python
    finally:
        linecache.cache.pop("<cell 1>", None)
    assert (other["f"](), other["P"]().area() > 3, "p" in other) == (2, True, False)
    assert [row[:1] + row[2:] for row in rows] == [
        ["g", "its definition failed: NameError: name 'undefined' is not defined", "run the cells again that made it"],
        ["p", "it was saved by another version of Python, which alone can read it", "run the cells again that made it"],
        [
            "undefined",
            "it was saved by another version of Python, which alone can read it",
            "run the cells again that made it",
        ],
    ]


@pytest.mark.parametrize("there", [True, False], ids=["with the package", "without it"])
def test_cells_find_codec_in_the_package_of_that_name(there: bool) -> None:
    program = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom cellblock.worker.saving import offer\n"
        "from cellblock.worker.integrity import take_out\noffer()\ntake_out()\n"
        "if sys.argv[2] == 'False': sys.path[:] = [one for one in sys.path if one != sys.argv[1]]\n"
        "import cellblock\nprint(cellblock.codec.__module__, hasattr(cellblock, '__file__'))"
    )
    source = Path(load.__code__.co_filename).parents[3]
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(source), str(there)],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    assert done.stdout == f"cellblock.worker.saving.codecs {there}\n"


def test_copies_of_worlds_are_apart(shelf: Shelf) -> None:
    world = new_world("a = [1]")
    record = shelf.save(world)
    before = copy.deepcopy(record)
    load(new_world(), record, get=shelf.get)
    assert record == before


# ----------------------------------------------------------------------------- sources of cells


def _sources(numbers: list[int], monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """The labels that these cells' sources are saved under, and whose are under each."""
    lines = {f"<cell {number}>": (2, None, [f"{number}\n"], f"<cell {number}>") for number in numbers}
    monkeypatch.setattr(linecache, "cache", {"other.py": (1, None, ["\n"], "other.py"), **lines})
    found = {label: get() for label, get in ambient.collect({}) if label.startswith("sources:")}
    return {int(label.removeprefix("sources:")): list(block) for label, block in found.items()}


def test_sources_of_many_cells_are_few_blocks_in_the_order_in_which_they_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = list(range(1, 1001))
    random.Random(0).shuffle(numbers)
    found = _sources(numbers, monkeypatch)
    assert len(found) <= 3 + 16
    names = [name for _, block in sorted(found.items()) for name in block]
    assert names == [f"<cell {number}>" for number in range(1, 1001)]


def test_a_new_cell_changes_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _sources(list(range(1, 700)), monkeypatch)
    after = _sources(list(range(1, 701)), monkeypatch)
    assert [number for number in after if after[number] != before.get(number)] == [688]
    assert after.keys() == before.keys()
