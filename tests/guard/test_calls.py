"""What came into the code's hands by whatever way is of no use in them: not called, not inherited from, not read."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import math
import os
import queue
import re
import subprocess
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import pytest
from tests.guard.runner import guarded

from cellblock.policy import RARE, Policy

RAW: dict[str, Any] = {
    "type": type,
    "code": types.CodeType,
    "function": types.FunctionType,
    "popen": subprocess.Popen,
    "alias": type(typing.Annotated[int, 1]),
    "module": os,
    "builtin": os.system,
    "method": queue.SimpleQueue().put,
    "code object": (lambda: 0).__code__,
    "frame": sys._getframe(),
    "generic": types.GenericAlias(subprocess.Popen, int),
}
"""Objects of the host's that no row, policy or module hands out."""

WAYS = {
    "by its name": "leak('id')",
    "under another name": "f = leak\nf('id')",
    "from a list": "[leak][0]('id')",
    "from a tuple, in a loop": "for f in (leak,): f('id')",
    "as an attribute of an object": "class A: pass\na = A()\na.f = leak\na.f('id')",
    "in place of a method": "class A:\n    def f(self, x): pass\na = A()\na.f('x')\na.f = leak\na.f('id')",
    "set on an object in a function": (
        "class A:\n    def f(self, x): pass\ndef go(a):\n    a.f('x'); a.f('y')\na = A()\ngo(a)\na.f = leak\ngo(a)"
    ),
    "through the object's dict": (
        "class A:\n    def f(self, x): pass\na = A()\na.f('x')\na.__dict__['f'] = leak\na.f('id')"
    ),
    "in a dict that the object is given": (
        "class A:\n    def f(self, x): pass\na = A()\na.f('x')\na.__dict__ = {'f': leak}\na.f('id')"
    ),
    "as an attribute of a class": "class A: f = leak\nA.f('id')",
    "as an attribute of a class, from an object": "class A: f = leak\nA().f('id')",
    "set on a class": "class A:\n    def f(self, x): pass\nA().f('x')\nA.f = leak\nA().f('id')",
    "as a static method": "class A: f = staticmethod(leak)\nA().f('id')",
    "as a class method": "class A: f = classmethod(leak)\nA().f('id')",
    "as a property": "class A: f = property(leak)\nA().f",
    "as a property that is set": "class A: f = property(None, leak)\nA().f = 'id'",
    "as a property by its getter": "class A: f = property(len).getter(leak)\nA().f",
    "as a property by its setter": "class A: f = property(len).setter(leak)\nA().f = 'id'",
    "as a property by its deleter, of the class": "class A: f = property.deleter(property(), leak)\ndel A().f",
    "as a property of an enumeration": "import enum\nclass A: f = enum.property(leak)\nA().f",
    "as a property of an enumeration by its getter": (
        "import enum\nclass A: f = enum.property(lambda self: 1).getter(leak)\nA().f"
    ),
    "as an operator": "class A: __add__ = leak\nA() + 'id'",
    "as an operator that is set": "class A: pass\nA.__add__ = leak\nA() + 'id'",
    "as an operator by setattr": "class A: pass\nsetattr(A, '__add__', leak)\nA() + 'id'",
    "as an operator, from a descriptor": (
        "class D:\n    def __get__(self, one, kind): return leak\nclass A: __add__ = D()\nA() + 'id'"
    ),
    "as what makes objects": "class A: __init__ = leak\nA()",
    "as what is called": "class A: __call__ = staticmethod(leak)\nA()('id')",
    "by a class that type() makes": "A = type('A', (), {'__add__': leak})\nA() + 'id'",
    "as a decorator": "@leak\ndef f(): pass",
    "as a decorator of a class": "@leak\nclass A: pass",
    "by map": "list(map(leak, ['id']))",
    "by map under another name": "m = map\nlist(m(leak, ['id']))",
    "by map, spread": "list(map(*(leak, ['id'])))",
    "by filter": "list(filter(leak, ['id']))",
    "as a key": "sorted(['id'], key=leak)",
    "as a key of min": "min(['id', 'x'], key=leak)",
    "as a key, spread": "sorted(['id'], **{'key': leak})",
    "as a key of a list": "x = ['id']\nx.sort(key=leak)",
    "as a key of a list, spread": "x = ['id']\nx.sort(**{'key': leak})",
    "as a key of a list, bound before": "x = ['id']\ns = x.sort\ns(key=leak)",
    "as a metaclass": "class A(metaclass=leak): pass",
    "by iter": "next(iter(leak, 'id'))",
    "by iter under another name": "i = iter\nnext(i(leak, 'id'))",
    "by reduce": "import functools\nfunctools.reduce(leak, ['id', 'id'])",
    "by partial": "import functools\nfunctools.partial(leak, 'id')()",
    "by a partial that is a key": "import functools\nsorted(['id'], key=functools.partial(leak))",
    "by partialmethod": "import functools\nclass A: f = functools.partialmethod(leak, 'id')\nA().f()",
    "by cmp_to_key": "import functools\nsorted(['id', 'x'], key=functools.cmp_to_key(leak))",
    "by lru_cache": "import functools\nfunctools.lru_cache(leak)('id')",
    "by lru_cache with a size": "import functools\nfunctools.lru_cache(9)(leak)('id')",
    "by cache": "import functools\nfunctools.cache(leak)('id')",
    "by cached_property": "import functools\nclass A: f = functools.cached_property(leak)\nA().f",
    "by singledispatch": "import functools\nfunctools.singledispatch(leak)('id')",
    "by what is dispatched to": (
        "import functools\n@functools.singledispatch\ndef f(x): pass\nf.register(str, leak)\nf('id')"
    ),
    "by singledispatchmethod": "import functools\nclass A: f = functools.singledispatchmethod(leak)\nA().f('id')",
    "by wraps": "import functools\nfunctools.wraps(print)(leak)('id')",
    "by accumulate": "import itertools\nlist(itertools.accumulate(['id', 'x'], leak))",
    "by accumulate, by name": "import itertools\nlist(itertools.accumulate(['id', 'x'], func=leak))",
    "by groupby": "import itertools\nlist(itertools.groupby(['id'], leak))",
    "by starmap": "import itertools\nlist(itertools.starmap(leak, [['id']]))",
    "by filterfalse": "import itertools\nlist(itertools.filterfalse(leak, ['id']))",
    "by takewhile": "import itertools\nlist(itertools.takewhile(leak, ['id']))",
    "by dropwhile": "import itertools\nlist(itertools.dropwhile(leak, ['id']))",
    "by re.sub": "import re\nre.sub('a', leak, 'a')",
    "by sub of a pattern": "import re\nre.compile('a').sub(leak, 'a')",
    "by subn": "import re\nre.subn('a', leak, 'a')",
    "by nlargest": "import heapq\nheapq.nlargest(2, ['id', 'x', 'y'], key=leak)",
    "by nsmallest": "import heapq\nheapq.nsmallest(2, ['id', 'x', 'y'], leak)",
    "by merge": "import heapq\nlist(heapq.merge(['id'], ['x'], key=leak))",
    "by bisect": "import bisect\nbisect.bisect([1, 2], 1, key=leak)",
    "by bisect_left": "import bisect\nbisect.bisect_left([1, 2], 1, key=leak)",
    "by insort": "import bisect\nbisect.insort([1, 2], 1, key=leak)",
    "by defaultdict": "import collections\ncollections.defaultdict(leak)['id']",
    "by defaultdict under another name": "import collections\nd = [collections.defaultdict]\nd[0](leak)['id']",
    "by a factory that is set": (
        "import collections\nd = collections.defaultdict(int)\nd.default_factory = leak\nd['id']"
    ),
    "by a factory, by setattr": (
        "import collections\nd = collections.defaultdict(int)\nsetattr(d, 'default_factory', leak)\nd['id']"
    ),
    "by a heir of defaultdict": "import collections\nclass D(collections.defaultdict): pass\nD(leak)['id']",
    "by a factory of an heir that is set": (
        "import collections\nclass D(collections.defaultdict): pass\nd = D()\nd.default_factory = leak\nd['id']"
    ),
    "by __init__ of defaultdict": (
        "import collections\nclass D(collections.defaultdict):\n"
        "    def __init__(self): super().__init__(leak)\nD()['id']"
    ),
    "by __init__ of defaultdict, from its class": (
        "import collections\nd = collections.defaultdict(int)\n"
        "collections.defaultdict.__init__(d, leak)\nd['id']"
    ),
    "by default_factory of a field": (
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n"
        "    x: int = dataclasses.field(default_factory=leak)\nA()"
    ),
    "by asdict": (
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\n"
        "dataclasses.asdict(A(), dict_factory=leak)"
    ),
    "by json.dumps": "import json\njson.dumps(object(), default=leak)",
    "by json.loads": "import json\njson.loads('{}', object_hook=leak)",
    "by pairs of json.loads": "import json\njson.loads('{}', object_pairs_hook=leak)",
    "by numbers of json.loads": "import json\njson.loads('1.5', parse_float=leak)",
    "by a decoder": "import json\njson.JSONDecoder(object_hook=leak).decode('{}')",
    "by an encoder": "import json\njson.JSONEncoder(default=leak).encode(object())",
    "by an exit stack": "import contextlib\nwith contextlib.ExitStack() as s: s.callback(leak, 'id')",
    "by push of an exit stack": "import contextlib\nwith contextlib.ExitStack() as s: s.push(leak)",
    "by contextmanager": "import contextlib\nwith contextlib.contextmanager(leak)('id'): pass",
    "by copy": "import copy\nclass A: __copy__ = leak\ncopy.copy(A())",
    "by deepcopy": "import copy\nclass A: __deepcopy__ = leak\ncopy.deepcopy(A())",
    "by a converter of arguments": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('x', type=leak)\np.parse_args(['id'])"
    ),
    "by SequenceMatcher": "import difflib\ndifflib.SequenceMatcher(leak, 'id', 'id').ratio()",
    "by HtmlDiff": "import difflib\ndifflib.HtmlDiff(8, None, leak).make_table(['a b', 'c'], ['a c', 'd'])",
    "by methodcaller": "import operator\nclass A: f = leak\noperator.methodcaller('f')(A())",
    "by operator.call": "import operator\ngetattr(operator, 'call', lambda f, x: f(x))(leak, 'id')",
    "by a context": "import contextvars\ncontextvars.copy_context().run(leak, 'id')",
    "by a weak reference": (
        "import weakref\nclass A: pass\na = A()\nr = weakref.ref(a, leak)\ndel a"
    ),
    "by timeit": "import timeit\ntimeit.timeit(leak, number=1)",
    "by the next value of an enumeration": (
        "import enum\nclass E(enum.Enum):\n    _generate_next_value_ = staticmethod(leak)\n    A = enum.auto()"
    ),
    "by a missing value of an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\n    _missing_ = classmethod(leak)\nE('id')"
    ),
    "by members of an object": "import inspect\ninspect.getmembers(1, leak)",
    "by asdict of a named tuple": "import collections\nT = collections.namedtuple('T', 'x', defaults=[leak])\nT().x()",
    "by Template": "import string\nclass M(dict): __missing__ = leak\nstring.Template('$id').substitute(M())",
    "by __missing__": "class M(dict): __missing__ = leak\nM()['id']",
    "by its __call__": "leak.__call__('id')",
    "by its __call__, bound before": "c = leak.__call__\nc('id')",
    "by its __call__, by getattr": "getattr(leak, '__call__')('id')",
    "by its __call__, by a method of object": "object.__getattribute__(leak, '__call__')('id')",
    "by its __call__, by methodcaller": "import operator\noperator.methodcaller('__call__', 'id')(leak)",
    "by its __call__, by map": "list(map(leak.__call__, ['id']))",
    "by __call__ of functions": "type(len).__call__(leak, 'id')",
    "by __call__ of partial": "import functools\nfunctools.partial.__call__(leak, 'id')",
    "by what was not to be made": (
        "import itertools\nstarmap = type(itertools.starmap(len, []))\nlist(starmap.__call__(leak, [['id']]))"
    ),
    "by print, to a file": "class W: pass\nw = W()\nw.write = leak\nprint('id', file=w)",
    "by print, to a stream that is set": (
        "import sys\nclass W: pass\nw = W()\nw.write = print\nsys.stdout = w\nw.write = leak\nprint('id')"
    ),
    "by print, to a stream within a block": (
        "import contextlib\nclass W: pass\nw = W()\nw.write = leak\nwith contextlib.redirect_stdout(w): print('id')"
    ),
    "by input": "import sys\nclass W: pass\nw = W()\nw.readline = leak\nsys.stdin = w\ninput()",
    "by dump of json": "import json\nclass W: pass\nw = W()\nw.write = leak\njson.dump('id', w)",
    "by load of json": "import json\nclass W: pass\nw = W()\nw.read = leak\njson.load(w)",
    "by a writer of csv": "import csv\nclass W: pass\nw = W()\nw.write = leak\ncsv.writer(w).writerow(['id'])",
    "by DictWriter": (
        "import csv\nclass W: pass\nw = W()\nw.write = leak\ncsv.DictWriter(w, ['id']).writeheader()"
    ),
    "by insort, into a list of its own": (
        "import bisect\nclass L(list): pass\nx = L()\nx.insert = leak\nbisect.insort(x, 'id')"
    ),
    "by a task that is done": (
        "import asyncio\nasync def f():\n    task = asyncio.current_task()\n"
        "    task.add_done_callback(leak if callable(leak) else leak())\nasyncio.run(f())"
    ),
}


@pytest.mark.sampled(119)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("leaked", RAW)
def test_what_no_row_knows_cannot_be_called(leaked: str, way: str, capfd: pytest.CaptureFixture[str]) -> None:
    if (leaked, way) == ("type", "as a metaclass"):
        pytest.skip("that is what classes have")
    shown = guarded(WAYS[way] + "\nprint('reached')", Policy(also=RARE), {"leak": RAW[leaked]})
    assert shown.error is not None, shown
    assert "reached" not in shown.text
    assert "uid=" not in capfd.readouterr().out


def _spied() -> tuple[Callable[..., object], list[object]]:
    """A callable object of the host's, and what it was called with."""
    calls: list[object] = []

    class Spy:
        def __call__(self, *given: object, **named: object) -> object:
            calls.append(given)
            return 0

    return Spy(), calls


@pytest.mark.parametrize("way", WAYS)
def test_an_object_of_the_host_is_not_even_called_in_vain(way: str) -> None:
    spy, calls = _spied()
    guarded(WAYS[way], Policy(also=RARE), {"leak": spy})
    assert calls == []


def test_a_class_that_is_not_to_be_made_is_not_made_by_its_call() -> None:
    policy = Policy().cls(Shop, include=["root"], constructable=False)
    for source in ("Shop.__call__()", "getattr(Shop, '__call__')()", "Shop()"):
        shown = guarded(f"{source}\nprint('reached')", policy)
        assert shown.error in ("SecurityError", "TypeError")
        assert not shown.text


@pytest.mark.parametrize("leaked", ["type", "code", "popen", "alias"])
def test_what_no_row_knows_cannot_be_inherited_from(leaked: str) -> None:
    shown = guarded("class A(leak): pass\nprint('reached')", Policy(), {"leak": RAW[leaked]})
    assert shown.error == "SecurityError"
    assert not shown.text


@pytest.mark.parametrize("name", ["__subclasses__", "__mro__", "system", "co_code", "f_globals", "__dict__", "run"])
@pytest.mark.parametrize("leaked", RAW)
def test_what_no_row_knows_has_no_attributes(leaked: str, name: str) -> None:
    shown = guarded(f"print(getattr(leak, {name!r}, 'none'))", Policy(), {"leak": RAW[leaked]})
    assert shown.text in ("none\n", ""), shown


SWITCHED_OFF = {
    "metaclasses": ["class M(type): pass", "M = type('M', (type,), {})", "class A(metaclass=lambda *_: 0): pass"],
    "hooks": [
        "class A:\n    @classmethod\n    def __subclasshook__(cls, kind): return True",
        "type('A', (), {'__subclasshook__': classmethod(lambda cls, kind: True)})",
        "class A:\n    def __mro_entries__(self, bases): return ()",
        "import abc\nclass A(abc.ABC): pass\nA.register(int)",
        "class S(str):\n    def __eq__(self, other): return True",
        "class N(int):\n    __hash__ = lambda self: 1",
        "class M:\n    def __hash__(self): return 1\nclass S(M, str): pass",
        "class S(str): pass\nS.__eq__ = lambda self, other: True",
    ],
}


@pytest.mark.parametrize(("feature", "source"), [(one, text) for one, texts in SWITCHED_OFF.items() for text in texts])
def test_rare_parts_of_the_language_are_had_by_name(feature: str, source: str) -> None:
    refused = guarded(source, Policy())
    assert refused.error in ("refused", "SecurityError")
    assert f"[{feature}]" in refused.message
    assert guarded(source, Policy(also=[feature])).error is None


@pytest.mark.parametrize("name", ["open", "memoryview", "len", "property", "map", "breakpoint"])
def test_a_name_of_pythons_own_is_the_codes_where_it_binds_it(name: str) -> None:
    assert guarded(f"def {name}(given): return given + '!'\nprint({name}('a'))").text == "a!\n"


class Shop:
    """A class of the host's, with functions of several kinds among its attributes."""

    root = staticmethod(math.sqrt)
    double = staticmethod(lambda n: 2 * n)
    part = functools.partial(pow, 2)

    def __init__(self) -> None:
        self.square = math.exp

    @functools.lru_cache  # noqa: B019 - one object
    def cached(self, n: int) -> int:
        return n


@pytest.mark.parametrize(
    "source",
    [
        "f = shop.root\nprint(f(4.0))",
        "f = shop.double\nprint(f(2))",
        "f = shop.part\nprint(f(2))",
        "f = [shop.square]\nprint(f[0](0))",
        "f = shop.cached\nprint(f(4))",
        "print(shop.root(4), shop.part(2), shop.cached(4))",
    ],
)
def test_what_a_granted_object_hands_out_is_called_under_any_name(source: str) -> None:
    plain = io.StringIO()
    with contextlib.redirect_stdout(plain):
        exec(source, {"shop": Shop()})
    assert guarded(source, Policy().cls(Shop), {"shop": Shop()}).text == plain.getvalue()


@pytest.mark.parametrize("name", ["x", "__annotations__", "__doc__", "__module__", "__wrapped__", "__name__", "_x"])
@pytest.mark.parametrize(
    "target", ["base64.b64encode", "len", "typing.AnyStr", "given", "functools.partial", "[].append"]
)
def test_nothing_is_set_on_what_the_code_did_not_make(target: str, name: str) -> None:
    def given() -> None: ...

    before = {one: getattr(given, one, None) for one in ("x", "__annotations__", "__doc__", "__name__")}
    source = f"import functools, base64, typing\nt = {target}\nsetattr(t, {name!r}, 'changed')"
    assert guarded(source, Policy(), {"given": given}).error in ("SecurityError", "AttributeError", "TypeError")
    assert before == {one: getattr(given, one, None) for one in before}
    assert "changed" not in (
        str(getattr(base64.b64encode, name, "")),
        str(getattr(len, name, "")),
        typing.AnyStr.__name__,
    )


def test_a_class_tells_nothing_that_reads_past_its_grant() -> None:
    class Host:
        def __init_subclass__(cls) -> None:
            cls._token = "CANARY"

        def __init__(self) -> None:
            self._secret = "CANARY"

    policy = Policy().cls(Host, include=["name"], subclassable=True)
    source = "class A: pass\nclass H(A, Host): __version__ = vars(A).get('__dict__')\n"
    source += "print(H().__version__, vars(H), H.__dict__)"
    assert "CANARY" not in guarded(source, policy).text


def test_a_parameter_of_a_class_statement_may_have_any_name() -> None:
    source = (
        "class B:\n    def __init_subclass__(cls, name=0, bases=0, defined=0): cls.told = name, bases, defined\n"
        "class A(B, name='a', bases=1, defined=2): pass\nprint(A.told)"
    )
    assert guarded(source).text == "('a', 1, 2)\n"


def test_flags_of_patterns_are_numbers() -> None:
    source = (
        "import re\nclass F:\n    def __hash__(self): return hash(0)\n    def __eq__(self, other): return True\n"
        "    def __index__(self): return 2\n    __and__ = __rand__ = __or__ = __ror__ = lambda self, other: 2\n"
        "print(bool(re.compile('^only-here$', F()).match('ONLY-HERE')))"
    )
    assert guarded(source).text == "True\n"
    assert not re.compile("^only-here$").match("ONLY-HERE")
