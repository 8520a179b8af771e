"""Everything a granted module has is called with an object of the host's, in many places: its methods are not used.

What the language itself asks of an object it gets: items, iteration, operators, and `keys` where a mapping is read.
"""

from __future__ import annotations

from typing import Any

import pytest
from levels import local_session

from cellblock import ExecutionLimits, Policy
from cellblock.guard.audits import STANDARD
from cellblock.policy import RARE

OF_THE_LANGUAGE = {"keys"}
WAITING = {"queue", "timeit", "doctest", "sys"}
"""Modules whose functions wait for what does not come, run what they are given for long, or end the cell."""

SWEEP = """
def tried(what, function, args, named={}):
    before = asked()
    try:
        made = function(*args, **named)
        if hasattr(made, "__next__"):
            for number, _ in zip(range(3), made): pass
    except BaseException:
        made = None
    if asked() != before:
        found.append((what, asked()[len(before):]))
    return made

def had(one, name):
    try:
        return None if name.startswith("_") else getattr(one, name)
    except Exception:
        return None

def methods(what, made):
    for name in dir(made):
        if callable(method := had(made, name)):
            for args in ((), (x,), ("a", x), (x, "a")):
                tried(f"{what}.{name}", method, args)

import MODULE as module
class Listed(list): pass
class Mapped(dict): pass
class Gone(list):
    def __iter__(self): return super().__iter__()
found = []
PLAIN = (str, int, float, bool, bytes, tuple, list, dict, set, type(None), type(tried), type)
for name in dir(module):
    function = had(module, name)
    if not callable(function) or name in ("sleep", "run"):
        continue
    call = lambda *given: 1
    for args in ((x,), ("a", x), (x, "a"), ([x],), ({"a": x},), (1, x), (b"a", x), (x, x), ("a", "b", x), (call, x),
                 (call, [x]), (["a"], [x]), (Listed([x]),), (Gone([x]),), (Mapped({x: x}),), (call, Gone([x]))):
        made = tried(name, function, args)
        if not isinstance(made, PLAIN) and made is not x:
            methods(name, made)
    for key in ("key", "dialect", "encoding", "default", "cls", "initial", "data", "hex", "stream", "file"):
        tried(f"{name}({key}=)", function, ("a",), {key: x})
found
"""


class Asked:
    """Does what the language asks of objects, and notes which other names are asked for."""

    title = "t"

    def __init__(self) -> None:
        self.__dict__["names"] = list[str]()

    def __getattribute__(self, name: str) -> Any:
        if name == "title" or (name.startswith("__") and name.endswith("__")):
            return object.__getattribute__(self, name)
        object.__getattribute__(self, "__dict__")["names"].append(name)
        return lambda *_, **__: [("secret", 1)]

    def __iter__(self) -> Any:
        return iter([("a", 1)])

    def __len__(self) -> int:
        return 1

    def __getitem__(self, at: Any) -> Any:
        if at == 5:
            raise IndexError
        return "v"

    def __contains__(self, one: object) -> bool:
        return True

    def __call__(self, *_: Any, **__: Any) -> int:
        return 1

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __next__(self) -> Any:
        raise StopIteration

    def __index__(self) -> int:
        return 3

    def __float__(self) -> float:
        return 3.0

    def __str__(self) -> str:
        return "text"

    def __fspath__(self) -> str:
        return "a"

    def __add__(self, other: Any) -> int:
        return 1

    __int__ = __index__
    __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __and__ = __or__ = __add__


@pytest.mark.threat("L2")
@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize("module", sorted(STANDARD - WAITING))
def test_no_method_of_the_hosts_is_used_that_is_not_granted(module: str, granted: bool) -> None:
    one = Asked()
    names = vars(one)["names"]
    policy = Policy(also=RARE).fn(lambda: tuple(names), name="asked").fn(lambda: one, name="given")
    policy = policy.cls(Asked, include=["title"]) if granted else policy
    with local_session(policy=policy, limits=ExecutionLimits(timeout_seconds=60)) as session:
        assert session.run("x = given()").ok
        cell = session.run(SWEEP.replace("MODULE", module))
        assert cell.ok, cell.error
        used = {name for _, some in cell.value for name in some} - OF_THE_LANGUAGE
        assert not used, [one for one in cell.value if not OF_THE_LANGUAGE.issuperset(one[1])]
