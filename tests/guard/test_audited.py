"""What the audits of the standard library answer: holes that went through a granted function, each closed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from runner import guarded

from cellblock.errors import CellblockError
from cellblock.guard.audits import STANDARD
from cellblock.guard.world import World
from cellblock.policy import Policy


@dataclasses.dataclass
class Vault:
    name: str = "n"
    _secret: str = "CANARY"


class Store:
    """Its methods are not granted."""

    def insert(self, *_: Any) -> None:
        raise AssertionError("reached")

    def __len__(self) -> int:
        return 0

    close = write = read = insert


REFUSED = {
    "fields of a host's dataclass": "import dataclasses\nprint(dataclasses.asdict(vault))",
    "fields as a tuple": "import dataclasses\nprint(dataclasses.astuple(vault))",
    "fields inside": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    v: object\n"
    "print(dataclasses.asdict(A([vault])))",
    "names and defaults of fields": "import dataclasses\nprint([f.default for f in dataclasses.fields(vault)])",
    "another of a host's": "import dataclasses\nprint(dataclasses.replace(vault, name='x'))",
    "a host's copied": "import copy\nprint(copy.copy(vault))",
    "a host's copied deeply": "import copy\nprint(copy.deepcopy([{1: vault}]))",
    "insert of a host's": "import bisect\nbisect.insort(store, 1)",
    "close of a host's": "import contextlib\nwith contextlib.closing(store): pass",
    "write of a host's": "import json\njson.dump(1, store)",
    "read of a host's": "import json\njson.load(store)",
    "csv to a host's": "import csv\ncsv.writer(store)",
    "rows to a host's": "import csv\ncsv.DictWriter(store, ['a'])",
    "a path of attributes": "import operator\noperator.attrgetter('_secret')(vault)",
    "a method by name": "import operator\noperator.methodcaller('__reduce__')(vault)",
    "an enumeration with finalizers": "import enum\nenum.Enum('X', {'A': 1, '__del__': print})",
    "an enumeration by its metaclass": "import enum\nenum.EnumMeta('X', (), {})",
    "names that are source": "import dataclasses\ndataclasses.make_dataclass('A', ['a=1', 'b'])",
    "digits without end": "import decimal\ndecimal.getcontext().prec = 10**9",
    "digits of another context": "import decimal\ndecimal.Context(prec=10**9)",
    "digits for a while": "import decimal\nwith decimal.localcontext(prec=10**9): pass",
    "bits without end": "import random\nrandom.getrandbits(10**12)",
    "a long list by its stand-in": "import collections\ncollections.UserList([0]) * 10**12",
    "an encoder that is none": "import json\njson.dumps(1, cls=print)",
}
ERRORS = {"SecurityError", "TypeError", "OverflowError", "MemoryError"}


@pytest.mark.parametrize("what", REFUSED)
def test_what_reaches_past_the_gates_is_refused(what: str) -> None:
    """L1, L5, L8, L10: by the gates that each granted function goes through."""
    policy = Policy().cls(Vault, constructable=False).cls(Store, include=())
    found = guarded(REFUSED[what], policy, {"vault": Vault(), "store": Store()})
    assert found.error in ERRORS, found
    assert "CANARY" not in found.text + found.message


def test_debugging_a_pattern_prints_nothing_of_the_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded("import re\nprint(re.compile('ab', re.DEBUG | re.I).flags)").text == "34\n"
    assert capsys.readouterr().out == ""


def test_a_partial_of_the_hosts_keeps_what_it_holds() -> None:
    import functools

    secret = functools.partial(print, "CANARY")
    for name in ("args", "func", "keywords"):
        assert guarded(f"print(secret.{name})", host={"secret": secret}).error == "SecurityError"
    assert guarded("import functools\np = functools.partial(int, base=2)\nprint(p('10'), p.keywords)").text == (
        "2 {'base': 2}\n"
    )


def test_copies_are_those_of_cpython() -> None:
    source = """
import copy, collections, datetime, decimal
class Node:
    def __init__(self): self.next, self.items = self, [1, [2]]
class Slotted:
    __slots__ = ("a", "b")
class Deep(dict):
    def __deepcopy__(self, memo): return Deep(copied=copy.deepcopy(dict(self), memo))
n = Node(); m = copy.deepcopy(n)
print(m is not n, m.next is m, m.items, m.items is not n.items, m.items[1] is not n.items[1])
s = Slotted(); s.a = [1]; t = copy.deepcopy(s)
print(t.a, t.a is not s.a, hasattr(t, "b"))
print(copy.deepcopy(Deep(x=[1])))
shared = []; x = [shared, shared]; y = copy.deepcopy(x); print(y[0] is y[1], y[0] is not shared)
loop = []; loop.append(loop); z = copy.deepcopy(loop); print(z[0] is z)
for one in (collections.Counter("aab"), collections.deque([[1]], 3), collections.OrderedDict(a=[1]), {1, 2}, (1, [2]),
            collections.defaultdict(list, {1: [2]}), datetime.date(2020, 1, 2), decimal.Decimal("1.5"), bytearray(b"x"),
            frozenset([1]), ValueError("x", 1), b"x", range(3), 1.5, None, "t"):
    print(repr(one) == repr(copy.deepcopy(one)) == repr(copy.copy(one)), type(copy.deepcopy(one)) == type(one))
d = collections.defaultdict(list, {1: [2]}); e = copy.deepcopy(d); print(e[1] is not d[1], e[5])
q = collections.deque([[1]], 3); r = copy.deepcopy(q); print(r[0] is not q[0], r.maxlen)
"""
    from runner import plain

    assert guarded(source) == plain(source)


def test_the_hosts_abstract_classes_stay_as_they_are() -> None:
    """L8."""
    found = guarded("import collections.abc\nclass S: pass\ncollections.abc.Sized.register(S)")
    assert found.error == "SecurityError"
    own = "import abc\nclass A(abc.ABC): pass\nA.register(int)\nprint(isinstance(1, A))"
    assert guarded(own).text == "True\n"


def test_the_classes_behind_an_enumeration_are_not_told() -> None:
    """L3."""
    assert guarded("import enum\nclass C(enum.Enum):\n    A = 1\nC.mro()").error == "SecurityError"


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_a_module_is_granted_alone(name: str) -> None:
    """With what its own source imports, which the policy does not name and cells cannot import."""
    world = World(Policy(modules=[name]), write=lambda *_: None)
    for code in world.run(world.cell(f"import {name}\nfrom {name} import *", "<cell>")):
        eval(code, world.globals)
    other = "math" if name != "math" else "cmath"
    with pytest.raises(CellblockError):
        world.cell(f"import {other}", "<cell>")


def test_a_package_of_a_granted_module_has_that_alone() -> None:
    world = World(Policy(modules=["collections.abc"]), write=lambda *_: None)
    for code in world.run(world.cell("import collections.abc\nnames = dir(collections)", "<cell>")):
        eval(code, world.globals)
    assert [one for one in world.globals["names"] if not one.startswith("_")] == ["abc"]
