"""Objects that answer nothing, or with lies: each costs the names that hold it at most, and those are told as lost."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alone_saving import Shelf, new_world

from cellblock.worker.saving import load

_NO = "def no(*_, **__): raise RuntimeError('no')\n"
_DUNDERS = (
    "__repr__", "__str__", "__hash__", "__eq__", "__bool__", "__len__", "__iter__", "__contains__", "__getattr__",
    "__getattribute__", "__setattr__", "__dir__", "__sizeof__", "__format__", "__reduce__", "__reduce_ex__",
    "__getstate__", "__setstate__", "__getnewargs__", "__call__", "__get__", "__getitem__", "__index__", "__del__",
    "__lt__", "__class_getitem__", "__copy__", "__deepcopy__", "__fspath__", "__array__", "__instancecheck__",
)  # fmt: skip
_OF_CLASSES = (
    "__hash__", "__eq__", "__getattribute__", "__getattr__", "__repr__", "__instancecheck__", "__subclasscheck__",
    "__call__", "__dir__", "__bool__", "__len__", "__iter__", "__contains__",
)  # fmt: skip
_METACLASS = "class M(type): pass\nclass H(metaclass=M): pass\nh = H()\n"
HOSTILE = {
    **{name: f"class H: {name} = no\nh = H()" for name in _DUNDERS},
    **{f"class {name}": f"{_METACLASS}M.{name} = no" for name in _OF_CLASSES},
    "every dunder": f"class H: pass\nh = H()\nfor name in {[*_DUNDERS]!r}: setattr(H, name, no)",
    **dict(one.split("\n", 1) for one in Path(__file__).with_name("hostile_cells.txt").read_text().split("# %% ")[1:]),
}
PLACES = (
    "if 'h' in globals():\n"
    "    in_list = [[1], [h]]; in_dict = {'key': {'deep': (h,)}}\n"
    "    class Holder: pass\n"
    "    in_attribute = Holder(); in_attribute.held = h\n"
    "    def closing(held):\n"
    "        def closed(): return held\n"
    "        return closed\n"
    "    in_closure = closing(h)\n"
)
OTHERS = (
    "kept = {'a': [1, 2, 'three']}\nclass Kept:\n    value = 5\nmine = Kept(); mine.of = kept\n"
    "def double(n): return n * 2\n"
)
CHECKS = ("kept == {'a': [1, 2, 'three']}", "type(mine) is Kept and mine.of is kept", "double(Kept.value) == 10")


def forked(do: Callable[[], Any]) -> Any:
    """What a function gives, in a copy of this process."""
    ours, theirs = os.pipe()
    copy = os.fork()
    if not copy:
        try:
            told = json.dumps({"value": do()})
        except BaseException:
            told = json.dumps({"failure": traceback.format_exc()})
        with os.fdopen(theirs, "w") as stream:
            stream.write(told)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        told = stream.read()
    os.waitpid(copy, 0)
    found = json.loads(told)
    assert "failure" not in found, found["failure"]
    return found["value"]


def saved(source: str) -> dict[str, Any]:
    shelf, world = Shelf(), new_world()
    for number, cell in enumerate((OTHERS, _NO + source, PLACES)):
        exec(compile(cell, f"<cell {number}>", "exec"), world)
    bound = [name for name in world if type(name) is str and not name.startswith("__")]
    record = shelf.save(world)
    return {"bound": bound, "record": record, "pieces": {key: one.hex() for key, one in shelf.pieces.items()}}


def loaded(stored: dict[str, Any]) -> dict[str, Any]:
    world = new_world()
    rows = load(world, stored["record"], get=lambda one: bytes.fromhex(stored["pieces"][one]))
    checks = [check for check in CHECKS if not eval(check, world)]
    return {"rows": rows, "checks": checks, "there": [name for name in world if type(name) is str]}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_object_costs_no_other_name(what: str) -> None:
    assert "numpy" not in sys.modules
    stored = forked(lambda: saved(HOSTILE[what]))
    after = forked(lambda: loaded(stored))
    told = {row[0] for row in (*stored["record"]["lost"], *after["rows"])}
    assert after["checks"] == []
    assert [name for name in stored["bound"] if name not in after["there"] and name not in told] == []
    assert all(row[2] and row[3] for row in stored["record"]["lost"])
