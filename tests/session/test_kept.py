"""Sessions at `local` that last: names as portable data and checked source, with nothing run again (N9, N10, N11)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator

import pytest

from cellblock import Policy, Session, UnpicklableError, Versioned
from cellblock.errors import RestoreFailed, StoreError
from cellblock.policy import RARE

Open = Callable[..., Session]


@pytest.fixture
def opened(url: str) -> Iterator[Open]:
    """Opens local sessions of that store, and closes them."""
    sessions: list[Session] = []

    def open_one(name: str = "one", **options: object) -> Session:
        if sessions:
            sessions[-1].close()
        sessions.append(Session(name, state=Versioned(url), **{"trust_level": "local", **options}))  # type: ignore[arg-type]
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


MAKES = {
    "shared objects": (
        "rows = [1, 2]\nview, both, deep = rows, (rows, 'x'), {'a': [rows]}\nloop = [rows]; loop.append(loop)",
        "(view is rows, both[0] is rows, deep['a'][0] is rows, loop[1] is loop, loop[0] is rows)",
    ),
    "plain values": (
        "import datetime, decimal, fractions, uuid, pathlib, re\n"
        "values = [None, True, 2**80, float('inf'), 1j, 'ä', b'x', bytearray(b'y'), range(3), {1}, ...,\n"
        "  frozenset((2,)), datetime.date(2024, 1, 2), decimal.Decimal('1.50'), fractions.Fraction(1, 3),\n"
        "  uuid.UUID(int=7), pathlib.PurePath('a'), slice(1, None), {(1, 'a'): [b'']}]\n"
        "pattern = re.compile('(a+)b', re.I)",
        "values, pattern.match('AAB').group(1)",
    ),
    "collections": (
        "from collections import Counter, OrderedDict, defaultdict, deque, namedtuple\n"
        "P = namedtuple('P', 'x y', defaults=[5])\np, c, o = P(1), Counter('aab'), OrderedDict(b=1, a=2)\n"
        "d, q = defaultdict(list, {'k': [1]}), deque([1, 2, 3], maxlen=2)",
        "(p, p.y, type(p) is P, P(2), c, list(o), d['new'], d, q, q.maxlen)",
    ),
    "functions": (
        "k = 2\ndef f(x, y=[1], *, z=3) -> int:\n    'says so'\n    y.append(x)\n    return x * k + z\n"
        "f(1); f.calls = 1\nadd = lambda x: x + k\nalias = f",
        "(f(2), f.__doc__, f.calls, add(1), alias is f, f.__annotations__['return'] is int)",
    ),
    "closures": (
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
        "    def now(): return n\n    return up, now\nup, now = counter()\nup()\n"
        "def fact(n): return n * fact(n - 1) if n else 1",
        "(up(), now(), fact(5))",
    ),
    "classes": (
        "class A:\n    count = 0\n    def __init__(self, v): self.v = v; A.count += 1\n"
        "    def get(self): return self.v\nclass B(A):\n    __slots__ = ('s',)\n"
        "    def get(self): return super().get() + 1\n"
        "    @property\n"
        "    def twice(self): return self.v * 2\n    @classmethod\n"
        "    def make(cls): return cls(7)\n"
        "a, b = A(1), B(2)\na.other, b.s, bound = b, a, b.get\nA.later = lambda self: 'later'",
        "(a.get(), b.get(), b.twice, B.make().v, a.other is b, b.s is a, bound(), A.count, a.later(), type(b) is B)",
    ),
    "records": (
        "from dataclasses import dataclass, field\nfrom enum import Enum\nfrom typing import NamedTuple\n"
        "class Color(Enum):\n    RED = 1\n    def say(self): return self.name.lower()\n"
        "@dataclass(frozen=True, slots=True)\nclass D:\n    x: int\n    l: list = field(default_factory=list)\n"
        "class N(NamedTuple):\n    a: int = 1\nd, color, n = D(3), Color.RED, N()\nseen = {d.x: d, color: n}",
        "(d == D(3), color is Color.RED, color.say(), n.a, N(a=2), seen[Color.RED] is n, seen[3] is d)",
    ),
    "heirs of built-in types": (
        "class L(list):\n    def last(self): return self[-1]\nclass M(dict):\n    pass\nclass I(int):\n    pass\n"
        "class E(ValueError):\n    pass\nl, m, i, e = L([1, 2]), M(a=1), I(5), E('told', 3)\nl.mark = m; e.more = l",
        "(l.last(), l.mark is m, m, i + 1, type(i) is I, e.args, e.more is l)",
    ),
    "what the library makes of functions": (
        "import functools, contextlib\n@functools.lru_cache(maxsize=3)\ndef slow(x): return x * 2\n"
        "@contextlib.contextmanager\ndef scope(v):\n    yield v\npart = functools.partial(max, 5)",
        "(slow(4), slow.cache_parameters()['maxsize'], part(3), [v for v in [1] if scope])",
    ),
    "imports and aliases": (
        "import math, json as j\nfrom math import sqrt as root\nfrom collections import Counter as C\n"
        "show, Rows = print, list[int]",
        "(math.pi, j.dumps([1]), root(4), C('a'), show is print, Rows)",
    ),
    "where random numbers go on": (
        "import random\nrandom.seed(3); random.random(); own = random.Random(4)",
        "(random.random(), own.random())",
    ),
    "what `from __future__` set": (
        "from __future__ import annotations\ndef f(x: nothing): return x",
        "(f(1), f.__annotations__ and 1)",
    ),
    "a definition within a block": (
        "if True:\n    class W:\n        def f(self):\n            return 'within'\n    def g(): return W().f()\n"
        "w = W()",
        "(w.f(), g(), type(w) is W)",
    ),
    "keys with a hash of their own": (
        "class K:\n    def __init__(self, v): self.v = v\n    def __hash__(self): return hash(self.v)\n"
        "    def __eq__(self, other): return self.v == other.v\nd, s, f = {K(1): [K(2)]}, {K(3)}, frozenset((K(4),))",
        "(d[K(1)][0].v, K(3) in s, K(4) in f)",
    ),
    "a list of many objects": (
        "class Node:\n    def __init__(self, v, rest): self.v, self.rest = v, rest\nlast = None\n"
        "for i in range(3000): last = Node(i, last)",
        "(last.v, last.rest.rest.v)",
    ),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", MAKES)
def test_names_are_as_they_were_and_no_cell_is_run_again(opened: Open, what: str) -> None:
    source, look = MAKES[what]
    session = opened()
    cell = session.run(source)
    assert cell.error is None, cell.text
    session.tag("made")
    expected = session.run(f"repr({look})").value
    session.checkout("made")
    names = {name: one.type for name, one in session.names().items()}
    for _ in range(2):  # what was read back is kept as well
        session = opened()
        assert session.resumed is not None
        assert (session.resumed.replayed, session.resumed.lost) == ((), ())
        assert {name: one.type for name, one in session.names().items()} == names
        assert session.run(f"repr({look})").value == expected
        session.checkout("made")
        session.run("None")


def test_functions_see_the_names_of_the_session_they_are_resumed_in(opened: Open) -> None:
    opened().run("k = 2\ndef f(x): return x * k\nclass P:\n    def m(self): return k\np = P()")
    session = opened()
    assert session.run("k = 5\nf(10), p.m(), P().m()").value == (50, 5, 5)
    assert session.run("def g(): return f(1)\ng()").value == 5


def test_what_a_policy_grants_is_bound_again_by_name_and_not_called(opened: Open) -> None:
    calls = []

    def pay(amount: int) -> int:
        calls.append(amount)
        return amount

    policy = Policy().fn(pay).cls(Basket)
    session = opened(policy=policy)
    session.run("paid = pay(3)\nalias, kinds = pay, [Basket]\ndef again(): return pay(4)")
    session = opened(policy=policy)
    assert calls == [3]
    assert session.run("paid, alias is pay, isinstance(kinds[0](), Basket), again()").value == (3, True, True, 4)
    session = opened(policy=Policy().fn(lambda amount: -amount, name="pay"))
    assert session.resumed is not None
    assert [(one.name, one.reason) for one in session.resumed.lost] == [("kinds", "Basket is not granted here")]
    assert session.run("alias(1), again()").value == (-1, -4)


def test_what_a_policy_grants_no_more_is_lost(opened: Open) -> None:
    opened().run(
        "import math\nfrom math import pi, floor\nk = 2\ndef f(x):\n    import math\n    return x\n"
        "held = [f]\ndef g(): return k"
    )
    session = opened(policy=Policy(modules=["json"]))
    assert session.resumed is not None
    lost = {one.name: one.reason for one in session.resumed.lost}
    assert lost.keys() == {"math", "floor", "f", "held", "g"}  # g is of the same cell, which is refused whole
    assert lost["math"] == "ModuleNotFoundError: No module named 'math' is granted [import]"
    assert lost["f"] == lost["held"]
    assert lost["f"].startswith("line 1: math is not granted [import]")
    assert session.run("pi, k").value == (3.141592653589793, 2)


IN_FUNCTION = "def make():\n    class Inner: pass\n    it = iter([1])\n    return lambda: it, Inner()\n"
REFUSED = {
    "lines = (n for n in range(3))": ("lines is a generator", ": a generator", "keep list(...) of it"),
    "deep = {'a': [1, iter([2])]}": ("deep is a dict", "deep['a'][1]: a list_iterator, which has", "make it again"),
    "class P: pass\np = P(); p.held = (n for n in [])": ("p is a P", "p.held: a generator", "keep list(...) of it"),
    "def f(x=iter([1])): return x": ("f is a function", "f.__defaults__[0]: a list_iterator", "make it again"),
    f"{IN_FUNCTION}g = make()[0]": ("g is a function", "g's it: a list_iterator", "make it again"),
    f"{IN_FUNCTION}i = make()[1]": ("i is a make.<locals>.Inner", "the class Inner, which was not", "define it there"),
    "T = type('T', (), {})": ("T is a type", "the class T, which no class statement made", "at top level"),
    "import re\nm = re.match('a', 'a')": ("m is a Match", "the match of a pattern", "keep its groups"),
    "b = make_basket()": ("b is a Basket", "a Basket, which has no portable form", "make it again in the next cell"),
    "class P: pass\nP.late = property(lambda self: 1)": (
        "P is a type",
        "the property late, which was set",
        "within the",
    ),
}


class Basket:
    pass


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with a live object of the host's."""

    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/cells.db"
    policy = Policy().cls(Basket).fn(Basket, name="make_basket")
    with Session("one", state=Versioned(url), trust_level="local", policy=policy) as session:
        session.run("x = [1]")
        yield session


@pytest.mark.parametrize("source", REFUSED)
def test_what_cannot_be_kept_is_refused_with_its_name_its_type_and_a_remedy(shop: Session, source: str) -> None:
    cell = shop.run(f"x.append(2)\nprint('shown')\n{source}")
    assert cell.error is not None
    what, reason, remedy = REFUSED[source]
    assert (cell.error.type, cell.error.kind, cell.rolled_back) == ("UnpicklableError", "refused", True)
    assert cell.error.message.startswith(f"{what}, which cannot be saved: ")
    assert reason in cell.error.message
    assert remedy in cell.error.hint
    assert "state=Live()" in cell.error.hint
    assert cell.text.startswith("shown")
    assert (shop["x"], set(shop.names())) == ([1], {"x"})


def test_a_refused_cell_is_in_the_notebook_and_the_log(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    for _ in range(2):
        assert session.run("x = 2; it = iter([1])").rolled_back
    assert session.run("x").value == 1
    for look in (session, opened()):
        assert [(cell.number, cell.ok, cell.rolled_back) for cell in look.notebook] == [
            (1, True, False),
            (2, False, True),
            (3, False, True),
            (4, True, False),
        ]
        assert len({cell.id for cell in look.notebook}) == 4
    assert [commit.number for commit in look.log()] == [4, 3, 2, 1, 0]


def test_what_the_host_binds_has_to_be_kept_as_well(opened: Open) -> None:
    session = opened()
    session["given"] = [1, {2}]
    with pytest.raises(UnpicklableError, match="other: Path2 cannot be kept in a store"):
        session["other"] = type("Path2", (), {})()
    assert opened().run("given").value == [1, {2}]


HOOKS = {
    "__repr__": "''", "__str__": "''", "__iter__": "iter(())", "__len__": "0", "__hash__": "1", "__eq__": "False",
    "__bool__": "True", "__getitem__": "0", "__contains__": "False", "__getattr__": "0", "__index__": "1",
}  # fmt: skip
"""Methods that Python or a library calls by itself, and what they give."""


def test_no_code_of_the_cells_runs_while_names_are_kept(opened: Open) -> None:
    source = "calls, on = [], False\n"
    for title, base in (("O", "object"), ("L", "list"), ("D", "dict"), ("E", "ValueError")):
        source += f"class {title}({base}):\n"
        for name, value in HOOKS.items():
            body = f"        if on: calls.append('{title}.{name}')\n        return {value}\n"
            source += f"    def {name}(self, *given):\n{body}"
    source += "class M(type):\n"
    for name in ("__repr__", "__bool__", "__iter__"):
        source += (
            f"    def {name}(self, *given):\n        if on: calls.append('M.{name}')\n        return {HOOKS[name]}\n"
        )
    source += "class Made(metaclass=M): pass\nmade, key = Made(), {'a': Made()}\n"
    session = opened(policy=Policy(also=RARE))
    cell = session.run(f"{source}o, l, d, e = O(), L([1]), D(a=1), E('x')\nholds = [o, l, d, e, {{1: o}}]\non = True")
    assert cell.error is None, cell.text
    session.run("repr(o); calls.clear(); x = 1")
    assert session.run("list(calls)").value == []
    assert opened(policy=Policy(also=RARE)).run("list(calls)").value == []


def test_a_group_that_looks_as_before_is_told_from_one_that_is(opened: Open) -> None:
    session = opened()
    session.run("x = [1, 'a', 0.0]; y = 1")
    session.run("x = [True, 'a', -0.0]; y = 1.0")
    session.run("z = 3")
    assert repr(opened().run("x, y, z").value) == "([True, 'a', -0.0], 1.0, 3)"


@pytest.mark.parametrize("back", ["undo", "checkout"])
def test_a_state_that_the_store_was_not_told_of_is_told_with_the_next_step(
    opened: Open, monkeypatch: pytest.MonkeyPatch, back: str
) -> None:
    session = opened()
    for x in range(4):
        session.run(f"x = {x}")
    session.flush()
    lasting = session._session._lasting  # type: ignore[attr-defined]

    def fails(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(lasting._held, "move", fails)
        with pytest.raises(StoreError, match="is told with the next step: the disk is full"):
            session.undo() if back == "undo" else session.checkout("HEAD~1")
    assert session["x"] == 2
    session.run("y = 1")
    session = opened()
    assert session.run("x, y").value == (2, 1)


def test_what_a_failed_commit_kept_out_of_the_store_is_in_the_next(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened()
    session.run("x = [1]")
    committer = session._session._lasting.committer  # type: ignore[attr-defined]

    def fails(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(committer._writer, "write", fails)
        with pytest.raises(StoreError, match="the disk is full"):
            session.run("x.append(2); y = ['y']")
    session.run("z = 3")
    session.flush()
    session = opened()
    assert session.resumed is not None
    assert (session.resumed.lost, session.run("x, y, z").value) == ((), ([1, 2], ["y"], 3))


def test_versions_at_local(opened: Open) -> None:
    session = opened()
    session.run("rows = [1]; view = rows")
    session.run("rows.append(2); note = 'a'")
    assert str(session.diff()).splitlines()[1:] == [
        "+ note: 'a' (str)",
        "~ rows: [1] (list) → [1, 2] (list)",
        "~ view: [1] (list) → [1, 2] (list)",
    ]
    session.run("note = 'b'")
    assert str(session.diff()).splitlines()[1:] == ["~ note: 'a' (str) → 'b' (str)"]
    session.undo(2)
    assert session.run("view.append(9); rows, 'note' in globals()").value == ([1, 9], False)
    session.hibernate()
    assert session.run("rows is view").value is True


def test_names_are_as_they_were_before_a_cell_that_was_killed(opened: Open) -> None:
    session = opened()
    session.run("x = [1]")
    threading.Timer(0.1, session.kill).start()
    cell = session.run("x.append(2)\nwhile True: pass")
    assert (cell.rolled_back, cell.lost, list(session.names())) == (True, (), ["x"])
    assert session.run("x").value == [1]


def test_a_session_is_read_at_the_level_that_saved_it(opened: Open) -> None:
    opened().run("x = 1")
    with pytest.raises(RestoreFailed, match="saved at the level local"):
        opened(trust_level="isolated")
    opened("two", trust_level="isolated").run("x = 1")
    with pytest.raises(RestoreFailed, match="saved at another level"):
        opened("two")
    assert opened().run("x").value == 1


@pytest.mark.sampled(0)
def test_a_cell_that_would_call_the_host_again_is_not_repeated(opened: Open, url: str) -> None:
    program = f"""
        from cellblock import *
        import os, signal, time
        calls = []
        policy = Policy().fn(calls.append, name='pay')
        session = Session('one', state=Versioned({url!r}), trust_level='local', policy=policy)
        session.run('x = 1')
        session._session._lasting.committer._work = time.sleep  # commits stop, as if the program died before the next
        import threading
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGKILL)).start()
        session.run('pay(1); x = 2')
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    calls: list[int] = []
    session = opened(policy=Policy().fn(calls.append, name="pay"))
    assert (session.run("x").value, calls) == (1, [])
    assert [(cell.number, cell.error and cell.error.type) for cell in session.notebook] == [
        (1, None),
        (2, "NotRepeated"),
        (3, None),
    ]
    assert os.path.exists(url.removeprefix("sqlite:///"))
