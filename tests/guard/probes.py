"""Probes: one or few lines each, over any operands, that show what they come to. A seed gives a program of some.

Where `grown` goes through forms in each other, these go through protocols: operators and methods on operands of any
type, classes with any of the language's methods that answer well or badly, wrong arguments, and the library.
"""

# ruff: noqa: E501, SIM905 - tables of sources

from __future__ import annotations

import builtins
import importlib
import random
import re

PRELUDE = '''
import abc, array, base64, bisect, calendar, cmath, collections, contextlib, copy, csv, dataclasses, datetime, decimal, difflib, enum, fractions, functools
import hashlib, heapq, html, inspect, io, itertools, json, keyword, math, numbers, operator, pprint, re, statistics, string, struct, textwrap, types, typing, unicodedata, uuid, zlib
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from fractions import Fraction
from functools import partial, reduce
def show(x, deep=True):
    if isinstance(x, (set, frozenset)): print(type(x).__name__, len(x), sorted(map(repr, x)))
    elif isinstance(x, type) or callable(x): print("called", getattr(x, "__name__", None) if isinstance(x, type) else "")
    elif not hasattr(type(x), "__next__"): print(type(x).__name__, repr(x))
    elif deep:
        print("iterator")
        for one in itertools.islice(x, 12): show(one, False)
class MyInt(int): pass
class MyStr(str): pass
class MyList(list): pass
class MyDict(dict): pass
class MyTuple(tuple): pass
class MyFloat(float): pass
class MySet(set): pass
class MyBytes(bytes): pass
class Missing(dict):
    def __missing__(self, key): return ("missing", key)
class Point(namedtuple("Point", "x y", defaults=[5])): pass
@dataclass(order=True)
class Data:
    a: int = 1
    b: list = field(default_factory=list, compare=False)
@dataclass(frozen=True, slots=True)
class Frozen:
    a: int = 1
class Colour(Enum):
    RED = 1
    BLUE = "b"
class Perm(IntFlag):
    R = 4
    W = 2
class Level(IntEnum):
    LOW = 1
class Mode(StrEnum):
    FAST = "fast"
class Plain:
    def __init__(self, *a, **k): self.a, self.k = a, k
    def __repr__(self): return f"Plain({self.a}, {self.k})"
    def method(self, x=1, *, y=2): return (x, y)
    @classmethod
    def build(cls, x): return cls(x)
    @staticmethod
    def fixed(x): return x
    @property
    def prop(self): return len(self.a)
class Ctx:
    def __init__(self, swallow=False): self.swallow = swallow
    def __enter__(self):
        print("in")
        return self
    def __exit__(self, *e):
        print("out", e[0] and e[0].__name__)
        return self.swallow
ticks = []
def tick():
    ticks.append(1)
    return len(ticks) % 5 == 0
def gen(*a):
    try:
        for one in a:
            got = yield one
            if got is not None: print("got", got)
        return "done"
    except ValueError as e:
        print("caught", e)
        yield "after"
    finally: print("closed")
def add(a, b=2, *c, d=4, **e): return (a, b, c, d, sorted(e))
'''

INTS = ("0", "1", "-1", "2", "3", "7", "10", "255", "-5", "True", "False", "MyInt(3)", "Level.LOW", "Perm.R", "Perm.R | Perm.W")
FLOATS = ("0.0", "-0.0", "1.5", "-2.25", "1e300", "float('nan')", "float('inf')", "MyFloat(2.5)", "0.1")
NUMBERS = (*INTS, *INTS, *FLOATS, "2**70", "-2**70", "1j", "2+3j", "Decimal('1.10')", "Decimal('NaN')", "Decimal(3)", "Fraction(1, 3)", "Fraction(4)")
TEXTS = ("''", "'a'", "'abc'", "'a,b,,c'", "' x y '", "'Straße'", "'1'", "'-1.5'", "'%s %d'", "'{} {a}'", "'a\\nb\\r\\nc'", "'\\u0130i'", "MyStr('my')", "Mode.FAST", "'aXbX'", "'0x1f'", "'\\ud800'")
BYTES = ("b''", "b'abc'", "b'a,b'", "bytearray(b'xy')", "MyBytes(b'q')", "b'\\xff'", "array.array('i', [1, 2])", "b' 7 '")
LISTS = ("[]", "[1, 2, 3]", "[3, 1, 2]", "['b', 'a']", "[1, 'a', None]", "[[1], [2, 3]]", "[1.5, 2]", "MyList([4, 5])", "[True, 0]", "[(1, 2), (3, 4)]", "[None]", "['ab', 'cd']")
TUPLES = ("()", "(1,)", "(1, 2)", "('a', 'b', 'c')", "MyTuple([1])", "Point(1)", "Point(3, 4)", "(1, (2, 3))")
SETS = ("set()", "{1, 2}", "frozenset([2, 3])", "MySet('ab')", "{'a'}", "{1: 2}.keys()", "{'a': 1}.items()")
MAPS = ("{}", "{'a': 1}", "{1: 'x', 2: 'y'}", "MyDict(b=2)", "Missing(c=3)", "OrderedDict(z=1)", "defaultdict(list)", "Counter('aab')", "ChainMap({'a': 1}, {'b': 2})", "UserDict(u=1)", "types.MappingProxyType({'p': 1})")
ITERATORS = ("iter([1, 2])", "(x for x in (1, 2))", "range(4)", "range(5, 0, -2)", "map(str, [1, 2])", "zip('ab', [1, 2])", "enumerate('ab')", "reversed([1, 2])", "(x for x in 'xyz')", "deque([1, 2], 3)", "filter(None, [0, 1])", "itertools.chain([1], [2])", "itertools.islice('abcd', 1, 3)")
FUNCTIONS = ("len", "str", "int", "add", "lambda *a: a", "lambda x: -x", "Plain", "partial(add, 1)", "operator.itemgetter(0)", "Plain().method", "None", "max", "lambda x, y: x", "repr", "'abc'.find", "list.append", "bool", "sorted")
OTHERS = ("None", "...", "NotImplemented", "Plain()", "Plain(1, k=2)", "Data()", "Data(2, [1])", "Frozen()", "Colour.RED", "slice(1, None)", "slice(None, None, -1)", "ValueError('v')", "KeyError('k')", "UserList([1])", "UserString('us')", "date(2024, 2, 29)", "datetime.datetime(2024, 1, 31, 12, 30)", "timedelta(days=1, hours=-3)", "time(1, 2)", "re.compile('a(b)?')", "re.match('(a)(?P<n>b)?', 'ab')", "object", "int", "Plain", "ExceptionGroup('g', [ValueError(1), TypeError(2)])", "types.SimpleNamespace(s=1)", "list[int]", "int | str", "Ctx()", "Ctx(True)", "contextlib.nullcontext(5)")
SPECS = ("''", "'>8'", "'08.2f'", "'x'", "'+,d'", "'^10'", "'%'", "'#b'", "'*<6'", "'e'", "'s'", "'%Y-%m'", "'_'", "'q'", "'.3'", "'=+8'", "'n'")
ATTRIBUTES = ("'a'", "'x'", "'real'", "'method'", "'prop'", "'nope'", "'name'", "'value'", "'__doc__'", "'__name__'", "1")
POOLS = {
    "i": INTS, "n": NUMBERS, "t": TEXTS, "b": BYTES, "l": LISTS, "s": (*LISTS, *TUPLES, *TEXTS), "m": MAPS, "e": (*SETS, *SETS, *LISTS), "y": (*ITERATORS, *LISTS, *TUPLES, *SETS, *MAPS, *TEXTS),
    "f": FUNCTIONS, "p": SPECS, "q": ATTRIBUTES, "o": OTHERS, "d": ("date(2024, 2, 29)", "datetime.datetime(2024, 1, 31, 12)", "timedelta(1, 5)", "time(1)", "timezone.utc"),
    "a": (*NUMBERS, *TEXTS, *BYTES, *LISTS, *TUPLES, *SETS, *MAPS, *ITERATORS, *FUNCTIONS, *OTHERS),
    "x": ("ValueError('v')", "KeyError('k')", "TypeError", "Plain()", "StopIteration(3)", "None", "ExceptionGroup('g', [ValueError(1)])", "OSError(2, 'no')", "UnicodeDecodeError('utf-8', b'x', 0, 1, 'bad')", "5", "KeyboardInterrupt"),
    "O": ("+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>", "**"),
    "C": ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"),
    "U": ("-", "+", "~", "not "),
    "B": ("object", "int", "str", "list", "dict", "tuple", "set", "float", "Exception", "Plain", "Data", "Enum", "Point", "bytes", "bool", "type", "None", "abc.ABC", "Colour", "UserList", "typing.NamedTuple", "typing.Generic[typing.TypeVar('T')]"),
}  # fmt: skip
"""What may stand for `<letter>` in a probe."""

FORMS = r"""
show(<a> <O> <a>)
show(<n> <O> <n>)
show(<e> <O> <e>)
show(<s> <O> <a>)
show(<a> <C> <a>)
show(<a> <C> <a> <C> <a>)
show(<U><a>)
v = <a>; v <O>= <a>; show(v)
v = [<a>]; v[0] <O>= <a>; show(v)
v = Plain(); v.z = <a>; v.z <O>= <a>; show(v.z)
v = <l>; w = v; v += <y>; show((v, w is v))
v = <m>; w = v; v |= <m>; show((v, w is v))
show(<a>[<a>])
show(<s>[<i>:<i>])
show(<s>[<i>:<a>:<i>])
v = <l>; v[<i>:<i>] = <y>; show(v)
v = <l>; v[::<i>] = <y>; show(v)
v = <l>; del v[<i>:<i>]; show(v)
v = <m>; v[<a>] = <a>; show(v)
v = <a>; del v[<a>]; show(v)
a, b = <y>; show((a, b))
a, *b = <y>; show((a, b))
(a, (b, *c)), d = <a>, <a>; show((a, b, c, d))
[a, b, *c] = <a>; show((a, b, c))
show([*<y>, *<y>])
show({*<y>})
show({**<m>, **<a>})
show(add(*<y>))
show(add(*<a>, **<m>))
show(add(<a>, <a>, <a>, d=<a>, z=<a>))
show(add(**<m>, d=1))
show(add(d=<a>, **{'d': 1}))
show(add(b=<a>))
show(Plain().method(<a>, y=<a>))
show(Plain().method(<a>, <a>))
show(Plain.method(<a>))
show(Plain().fixed(<a>, <a>))
show(Plain.build(<a>).prop)
show(Plain.prop)
show((lambda a, /, b, *, c=1: (a, b, c))(<a>, <a>))
show((lambda a, /, b, *, c=1: (a, b, c))(a=<a>, b=1))
show((lambda a, /, b, *, c: (a, b, c))(1, 2))
show((lambda: 0)(<a>, <a>))
show(f"{<a>!r:<p0>}")
show(f"{<n>:<p0>}|{<t>!s:<p0>}")
show(f"{<n>:{<i>}.{<i>}}")
show(f"{<d>:%Y %j|%H}")
show(f"{<a>=}")
show(<t>.format(<a>, a=<a>))
show('{0:<p0>} {1!r}'.format(<n>, <a>))
show('{a[0]} {b.real}'.format(a=<s>, b=<n>))
show('%s|%r' % (<a>, <a>))
show('%<i>d %5.1f' % (<n>, <n>))
show('%(a)s %(b)x' % <m>)
show(<t> % <a>)
show(b'%a %d' % (<a>, <n>))
show(format(<a>, <p>))
show(format(<n>, <p>))
show(round(<n>, <i>))
show(round(<a>))
show(divmod(<n>, <n>))
show(pow(<i>, <i>, <i>))
show(sum(<y>, <a>))
show(min(<y>, key=<f>, default=<a>))
show(max(<a>, <a>))
show(max(<y>, default=<a>))
show(sorted(<y>, key=<f>, reverse=<i>))
v = <l>; show(v.sort(key=<f>)); show(v)
show(list(map(<f>, <y>, <y>))[:9])
show(list(filter(<f>, <l>)))
show(list(zip(<y>, <l>, strict=<i>)))
show(list(enumerate(<l>, <i>)))
show(reversed(<a>))
show(iter(<a>))
show(iter(iter(<l>).__next__, <a>))
show(iter(<f>, <a>))
show(next(<a>, <a>))
v = iter(<y>); show(next(v)); show(next(v, 'none')); show(list(itertools.islice(v, 5)))
show(int(<a>))
show(int(<t>, <i>))
show(float(<a>))
show(complex(<n>, <n>))
show(bool(<a>))
show(str(<b>, 'utf-8', <t>))
show(bytes(<a>))
show(list(<s>))
show(tuple(<a>) if not hasattr(<a>, 'gi') else 0) if False else show(set(<s>))
show(dict(<a>))
show(dict(<a>, z=<a>))
show(frozenset(<a>))
show(slice(<a>, <a>).indices(<i>))
show(hash(<a>) == hash(<a>))
show(isinstance(<a>, <B>)); show(isinstance(<a>, (<B>, <B>)))
show(issubclass(<B>, <a>))
show(callable(<a>))
show(getattr(<a>, <q>, <a>))
show(getattr(<a>, <q>))
v = <o>; setattr(v, <q>, <a>); show(v)
v = <o>; delattr(v, <q>); show(v)
v = <a>; v.new = 1; show(v)
show(hasattr(<a>, <q>))
show(type(<a>).__name__)
show(type(<a>)(<a>))
show(len(<a>))
show(chr(<i>)); show(ord(<a>))
show(bin(<a>)); show(hex(<n>))
show(any(<a>)); show(all(<y>))
show(repr(<a>)); show(ascii(<a>))
show(range(<a>, <i>, <i>))
show(<a> in range(<i>))
show(print(<a>, <t>, sep=<t>, end='.'))
show(print(1, sep=<a>))
show(<a> if <a> else <a>)
show(<a> and <a> or <a>)
show([x for x in <y> if x][:9])
show({k: v for k, v in <a>})
show([(x, y) for x, *y in <l>])
show([y := <a>, y])
show(sum(x for x in <l>))
raise <x>
raise <x> from <x>
try: raise <x>\nexcept <x>: show('caught')
try: raise <x>\nexcept (ValueError, TypeError) as e: show(e); show(e.args); show(e.__context__)
try: raise <x>\nexcept* ValueError as g: show(g); show(g.exceptions)
try: raise ExceptionGroup('eg', [<x>, <x>])\nexcept* (KeyError, TypeError) as g: show(g)\nelse: show('else')\nfinally: show('f')
try:\n    try: raise <x>\n    finally: raise <x>\nexcept BaseException as e: show(e); show(e.__context__); show(e.__cause__); show(e.__suppress_context__)
try:\n    try: raise <x>\n    except ValueError as e: raise <x> from e\nexcept BaseException as e: show(e); show(e.__cause__)
def r():\n    for i in <y>:\n        try: return <a>\n        finally:\n            if <i>: break\n    return 'end'\nshow(r())
def r():\n    for i in [1, 2, 3]:\n        try: continue\n        finally: print(i)\n    else: return <a>\nshow(r())
def r():\n    try: raise <x>\n    finally: return <a>\nshow(r())
e = ValueError(<a>); e.add_note(<a>); show(e.__notes__); raise e
e = <x>; show(str(e)); show(e.args); show(e.with_traceback(None))
show(ExceptionGroup(<t>, <a>)); show(ExceptionGroup('g', [ValueError(1), KeyError(2)]).split(<f>))
show(ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [KeyError(2)])]).subgroup(KeyError))
assert <a>, <a>
with <o> as v: show(v)
with Ctx(<a>) as v: raise <x>
with Ctx(), Ctx(True): show(<a>[<a>])
with contextlib.suppress(ValueError, KeyError): raise <x>
with contextlib.ExitStack() as s: s.enter_context(Ctx(<i>)); s.callback(print, 'cb'); raise <x>
@contextlib.contextmanager\ndef cm():\n    try: yield <a>\n    except ValueError as e: print('cm', e)\nwith cm() as v: show(v); raise <x>
g = gen(<a>, <a>, <a>); show(next(g)); show(g.send(<a>)); show(g.throw(<x>))
g = gen(<a>); show(g.send(<a>))
g = gen(<a>, 2); next(g); show(g.close()); show(next(g, 'over'))
g = gen(<a>, 2); next(g); show(g.throw(ValueError, 'old'))
def outer():\n    r = yield from <y>\n    print('r', r)\ng = outer(); show(next(g)); show(g.send(<a>)); show(list(itertools.islice(g, 4)))
def outer():\n    r = yield from gen(1, 2)\n    yield r\ng = outer(); next(g); show(g.throw(<x>)); show(list(g))
def g():\n    x = yield\n    raise StopIteration(x)\nv = g(); next(v); v.send(<a>)
async def co(): return <a>\nc = co()\ntry: c.send(<a>)\nexcept StopIteration as e: show(e.value)
async def co():\n    async with contextlib.AsyncExitStack() as s: return <a>\ntry: co().send(None)\nexcept StopIteration as e: show(e.value)
async def ag():\n    for x in <l>: yield x\nasync def co(): return [x async for x in ag()]\ntry: co().send(None)\nexcept StopIteration as e: show(e.value)
async def co(): await <a>\nco().send(None)
async def co():\n    async for x in <a>: pass\nco().send(None)
async def co():\n    async with <a>: pass\nco().send(None)
match <a>:\n    case [x, *y]: show((x, y))\n    case {'a': x, **y}: show((x, y))\n    case int() | str() as x: show(x)\n    case _: show('no')
match <a>:\n    case Point(x, y=y): show((x, y))\n    case Data(a=a): show(a)\n    case Colour.RED: show('red')\n    case None | True: show('n')\n    case float(x): show(x)\n    case (1, 2 | 3 as z): show(z)\n    case x if x: show(x)
match <a>:\n    case 1 | 1.5 | 'a' | -1: show('lit')\n    case {}: show('map')\n    case []: show('seq')\n    case bytes(b): show(b)\n    case Plain(a=(p, *_)): show(p)
match <a>, <a>:\n    case (x, y) if x == y: show('same')\n    case (str(x), int(y)): show(x)\n    case Point(1): show('p')\n    case _: show('_')
match <o>:\n    case Plain(1): show(1)
match <a>:\n    case int(1, 2): show(1)
x = 1\ndef f():\n    global x\n    x = <a>\n    def g():\n        nonlocal_ = x\n        return nonlocal_\n    return g()\nshow(f()); show(x)
def f():\n    y = <a>\n    def g():\n        nonlocal y\n        y <O>= <a>\n        return y\n    return g(), y\nshow(f())
def f():\n    show(zz)\n    zz = 1\nf()
def f():\n    x = <a>\n    del x\n    return lambda: x\nf()()
def f(x=<a>, *, y=<a>): return x, y\nshow(f()); show(f.__defaults__); show(f.__kwdefaults__); show(f(<a>, y=<a>)); f(1, 2)
class K:\n    x = <a>\n    y = [x for _ in range(2)]\n    z = [i for i in <l>]\nshow(K.z)
class K:\n    v = <a>\n    def __getattr__(self, name): return (name, <a>)\nk = K(); show(k.v); show(k.other); show(hasattr(k, 'q')); k.z = 1; del k.z; del k.v
class K:\n    def __getattr__(self, name): raise <x>\nshow(getattr(K(), 'u', 'dflt')); show(K().u)
class K:\n    __slots__ = <s>\nk = K(); k.a = <a>; show(k.a); k.zz = 1
class K:\n    __slots__ = ('a', 'b')\nk = K(); k.a = <a>; show(k.a); del k.a; show(k.a)
class K(<B>): pass\nshow(K.__name__); show(K(<a>))
class K(<B>, <B>): pass\nshow(issubclass(K, <B>))
class K(<B>):\n    def __init__(self, *a): super().__init__(*a)\nshow(isinstance(K(<a>), <B>))
class K(<B>):\n    def __new__(cls, *a): return super().__new__(cls, *a)\nshow(type(K(<a>)).__name__)
class K:\n    def __init_subclass__(cls, /, tag=None, **k): super().__init_subclass__(**k); cls.tag = tag; print('sub', cls.__name__, tag)\nclass L(K, tag=<a>): pass\nshow(L.tag)\nclass M(K, other=1): pass
class D:\n    def __set_name__(self, owner, name): self.n = name; print('named', owner.__name__, name)\n    def __get__(self, o, t=None): return (self.n, o is None, t.__name__)\n    def __set__(self, o, v): print('set', v)\nclass K: d = D()\nk = K(); show(k.d); show(K.d); k.d = <a>; del k.d
class K:\n    @property\n    def p(self): raise <x>\nK().p
class K:\n    def __init__(self): self._v = <a>\n    @property\n    def p(self): return self._v\n    @p.setter\n    def p(self, v): self._v = v\nk = K(); k.p = <a>; k.p <O>= <a>; show(k.p); del k.p
class K:\n    @classmethod\n    def c(cls, *a): return cls.__name__, a\n    @staticmethod\n    def s(*a): return a\nclass L(K): pass\nshow(L.c(<a>)); show(L().c()); show(L.s(<a>)); show(K.__dict__['s'](1))
class K:\n    @functools.cached_property\n    def c(self): print('once'); return <a>\nk = K(); show(k.c); show(k.c); del k.c; show(k.c); k.c = 5; show(k.c)
class A:\n    def f(self): return ['A']\nclass B(A):\n    def f(self): return ['B', *super().f()]\nclass C(A):\n    def f(self): return ['C', *super().f()]\nclass E(B, C): pass\nshow(E().f()); show(super(B, E()).f()); super(A, E()).f()
class K: pass\nk = K(); k.__dict__['a'] = <a>; show(k.a); show(vars(k)); k.__dict__.update(b=1); show(k.b); show(sorted(k.__dict__))
class K: x = <a>\nk = K(); k.x <O>= <a>; show((k.x, K.x)); K.y = <a>; show(k.y); del K.x; k2 = K(); k2.x
class K:\n    def __class_getitem__(cls, i): return ('cgi', i)\nshow(K[<a>])
class K(typing.Generic[typing.TypeVar('T')]): pass\nshow(K[int]())
class M(type):\n    def __call__(cls, *a): return ('called', a)\nclass K(metaclass=M): pass\nshow(K(<a>))
class K(abc.ABC):\n    @abc.abstractmethod\n    def f(self): return <a>\nK()
class K(abc.ABC):\n    @abc.abstractmethod\n    def f(self): return <a>\nclass L(K):\n    def f(self): return super().f()\nshow(L().f())
show(type('T', (<B>,), {'a': <a>}).a)
show(type('T', (), {'f': lambda self: <a>})().f())
@dataclass\nclass D:\n    x: int\n    y: list = <a>\nshow(D(<a>)); show(D(1) == D(1)); D()
@dataclass(frozen=True)\nclass D:\n    x: int = <i>\nd = D(); show(hash(d) == hash(D())); show(dataclasses.replace(d, x=<a>)); show(dataclasses.asdict(d)); d.x = 1
@dataclass(order=True, kw_only=True)\nclass D:\n    x: int = 0\n    y: str = field(default='q', repr=False)\nshow(D(x=<i>) < D(x=<i>)); show(dataclasses.astuple(D())); D(1)
class E(Enum):\n    A = <a>\n    B = enum.auto()\nshow(list(E)); show(E(<a>))
class E(<B>, Enum):\n    A = <a>\nshow(E.A); show(E.A.value)
show(Colour(<a>)); show(Colour[<t>]); show(Perm(<i>)); show(Perm.R & <i>)
class E(Flag):\n    A = 1\n    B = 2\nshow(E.A | E.B); show(~E.A); show(E(<i>)); show(E.A in E(3)); show(list(E(3)))
show(functools.reduce(<f>, <y>, <a>)); show(functools.reduce(<f>, <l>))
show(partial(add, <a>, d=<a>)(<a>)); show(partial(<f>)(<a>))
@functools.lru_cache(maxsize=<a>)\ndef f(x): print('c'); return x\nshow(f(<a>)); show(f(1)); show(f(1)); show(f.cache_info())
@functools.wraps(<f>)\ndef w(): pass\nshow(w.__name__)
@functools.singledispatch\ndef f(x): return 'o'\n@f.register\ndef _(x: int): return 'i'\n@f.register(list)\ndef _(x): return 'l'\nshow(f(<a>)); f()
@functools.total_ordering\nclass K:\n    def __init__(self, v): self.v = v\n    def __lt__(self, o): return self.v < o.v\n    def __eq__(self, o): return self.v == o.v\nshow(K(<n>) >= K(<n>)); show(K(1) <= K(2)); K(1) > 3
show(sorted(<l>, key=functools.cmp_to_key(lambda a, b: <i>)))
show(itertools.chain(<y>, <y>)); show(itertools.zip_longest(<s>, <s>, fillvalue=<a>))
show(itertools.groupby(<l>, <f>)); show([(k, list(g)) for k, g in itertools.groupby(<s>)])
show(itertools.accumulate(<l>, <f>, initial=<a>)); show(itertools.accumulate(<s>))
show(itertools.product(<s>, repeat=2)); show(itertools.permutations(<s>, <i>)); show(itertools.combinations(<s>, <i>))
show(itertools.islice(<y>, <a>)); show(itertools.islice(<y>, <i>, <i>, <i>))
show(itertools.takewhile(<f>, <l>)); show(itertools.dropwhile(<f>, <l>)); show(itertools.starmap(<f>, <l>)); show(itertools.compress(<s>, <l>)); show(itertools.pairwise(<s>))
show(itertools.count(<n>, <n>)); show(itertools.repeat(<a>, <i>)); show(itertools.cycle(<s>)); show(itertools.tee(<l>, 2)); show(itertools.filterfalse(<f>, <l>))
show(Counter(<a>)); show(Counter(<s>).most_common(<i>)); show(Counter('ab') + Counter(<t>)); show(Counter('aab') - Counter(<t>))
v = deque(<s>, <i>); v.append(<a>); v.rotate(<i>); show(v); v.extendleft(<s>); show(v); v.insert(<i>, <a>); show(v)
v = defaultdict(<f>); show(v[<a>]); show(v)
v = defaultdict(list, <m>); v['k'].append(<a>); show(v); v |= <m>; show(v)
v = OrderedDict(<m>); v.move_to_end(<a>); show(v); show(v.popitem(<i>)); show(v == <m>)
T = namedtuple('T', <a>); show(T(<a>))
T = namedtuple('T', 'a b', defaults=<a>); show(T(<a>)); show(T._fields); show(T(1, 2)._replace(a=<a>)); show(T(1, 2)._asdict()); T(1, 2, 3)
v = ChainMap(<m>, <m>); v['n'] = <a>; show(v); show(sorted(map(str, v))); del v['nope']
v = <m>; show(v.setdefault(<a>, <a>)); show(v.pop(<a>, 'd')); show(v.pop(<a>))
for k in (v := {1: 2}): v[k + 1] = <a>
v = [1, 2, 3]\nfor x in v:\n    if len(v) < 6: v.append(x)\nshow(v)
show(json.dumps(<a>)); show(json.dumps(<a>, indent=<i>, sort_keys=True, default=<f>))
show(json.loads(<a>)); show(json.loads('{"a": [1, 2.5, null, true]}', object_hook=<f>))
show(re.findall(<t>, <t>)); show(re.sub('[abx]', <a>, <t>)); show(re.split(',', <a>, maxsplit=<i>))
show(re.match('(a)(?P<n1>b)?', <a>)); show(re.match('(a)(?P<n1>b)?', 'ab').group(<a>)); show(re.sub('(?P<z1>.)', r'<\\g<z1>>', <t>, count=<i>))
show(re.compile(<a>)); show(re.fullmatch('[a-c]+', <t>)); show(re.escape(<t>)); show([m.span() for m in re.finditer('a', <t>)])
show(<d> + <a>); show(<d> - <d>); show(<d> < <a>); show(<d> == <a>)
show(date(<i>, <i>, <i>)); show(timedelta(<n>, <n>)); show(timedelta(1) * <a>); show(timedelta(3) / <a>); show(divmod(timedelta(3), <a>))
show(date.fromisoformat(<t>)); show(datetime.datetime.strptime(<t>, '%Y')); show(<d>.strftime(<t>)); show(<d>.isoformat())
show(datetime.datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=<i>)))); show(date(2024, 2, 29).replace(year=<a>))
show(Decimal(<a>)); show(Decimal('1.25').quantize(Decimal('0.1'), rounding=<a>)); show(Decimal(1) / Decimal(<i>))
show(Fraction(<a>)); show(Fraction(<i>, <a>)); show(Fraction('1/3') <O> <n>); show(Fraction(7, 3).limit_denominator(<i>))
show(Decimal('2.5') <O> <n>); show(Decimal('2.50') <C> <n>)
show(copy.copy(<a>)); show(copy.deepcopy(<a>))
show(dataclasses.asdict(<a>)); show(dataclasses.replace(Data(), a=<a>)); dataclasses.replace(Data(), z=1)
show(operator.attrgetter(<q>)(<a>)); show(operator.methodcaller('method', <a>)(Plain())); show(operator.itemgetter(<a>, 0)(<s>))
show(bisect.bisect(<l>, <a>)); v = <l>; bisect.insort(v, <a>); show(v); show(bisect.bisect_left(<l>, <a>, key=<f>))
v = <l>; heapq.heapify(v); heapq.heappush(v, <a>); show(v); show(heapq.heappop(v)); show(heapq.nsmallest(<i>, <y>)); show(heapq.nlargest(2, <y>, key=<f>)); show(heapq.merge(<s>, <s>))
show(math.prod(<l>)); show(math.gcd(<a>, <i>)); show(math.isclose(<n>, <n>)); show(math.fsum(<l>)); show(math.floor(<a>)); show(math.dist(<s>, <s>))
show(statistics.mean(<a>)); show(statistics.median(<l>)); show(statistics.mode(<s>)); show(statistics.stdev([1, 2, <n>]))
show(struct.pack('<iH', <a>, <a>)); show(struct.unpack('<i', <b>)); show(base64.b64encode(<a>)); show(base64.b64decode(<a>))
show(textwrap.fill(<t>, <i>)); show(textwrap.dedent(<a>)); show(textwrap.shorten('a b c d', <i>)); show(textwrap.indent(<t>, <t>))
show(string.Template('$a ${b} $$').substitute(<m>)); show(string.Template('$a $').safe_substitute(<m>, b=<a>)); show(string.capwords(<t>))
show(pprint.pformat(<a>, width=<i>)); show(html.escape(<a>)); show(zlib.crc32(<a>)); show(hashlib.md5(<a>).hexdigest())
f = io.StringIO(<a>); show(f.read(<a>)); show(f.readline()); f.write(<a>); show(f.getvalue()); show(f.seek(<a>))
show(list(csv.reader(<s>))); f = io.StringIO(); csv.writer(f).writerow(<a>); show(f.getvalue()); show(list(csv.DictReader(<s>)))
show(inspect.signature(<f>)); show(typing.get_type_hints(<a>)); show(inspect.isfunction(<a>)); show(typing.cast(<a>, <a>)); show(typing.get_origin(list[<a>]))
show(uuid.UUID(<a>)); show(unicodedata.name(<a>)); show(unicodedata.normalize('NFKD', <a>)); show(calendar.monthrange(<i>, <i>)); show(difflib.get_close_matches(<t>, <l>)); show(keyword.iskeyword(<a>)); show(list(difflib.unified_diff(<l>, <l>)))
show(array.array('i', <a>)); show(array.array(<t>, <l>)); show(types.SimpleNamespace(<a>)); show(types.SimpleNamespace(**<m>)); show(types.MappingProxyType(<a>))
show(object() == <a>); show(<a> is not <a>); show(super().x)
show(Plain(<a>) == <a>); show(Data(<a>) < Data(<a>)); show(Data(<a>) == Data(<a>)); show({Frozen(<a>): 1}); show({<a>: <a>})
show(int.from_bytes(<a>, <t>)); show((<i>).to_bytes(<i>, 'big', signed=<i>)); show(float.fromhex(<t>)); show((<n>).as_integer_ratio()); show((<i>).bit_count())
show(str.maketrans(<a>)); show(str.maketrans(<t>, <t>)); show(<t>.translate(<m>)); show(<t>.join(<y>)); show(<b>.join(<y>)); show(<t>.replace(<a>, <t>)); show(<t>.split(<a>, <i>))
show(dict.fromkeys(<y>, <a>)); show(bytes.fromhex(<t>)); show(bytes(<y>)); show(bytearray(<i>)); show(object.__eq__(<a>, <a>)); show(list.__add__(<l>, <a>))
""".strip().splitlines()  # fmt: skip

ANSWERS = (
    "return NotImplemented", "return self", "return 3", "return 'text'", "return None", "return -1", "return 1.5", "return True", "return a", "return iter([1, 2])", "return [1]", "return b'x'",
    "raise ValueError('own')", "raise StopIteration", "raise TypeError('own')", "raise AttributeError('own')", "raise IndexError('own')", "print('called', a); return 1", "yield 1; yield 2", "return (1, 2)", "return 2**70",
)
"""Bodies of a method that the language calls."""
METHODS = (
    *"add radd iadd sub rsub isub mul rmul imul matmul rmatmul truediv rtruediv floordiv rfloordiv mod rmod imod pow rpow ipow lshift rlshift and rand iand or ror ior xor rxor divmod rdivmod".split(),
    *"neg pos abs invert eq ne lt le gt ge hash bool int float complex index round trunc floor ceil len length_hint getitem setitem delitem missing contains iter next reversed".split(),
    *"call enter exit repr str bytes format get set delete getattr getattribute setattr delattr dir init new init_subclass set_name class_getitem instancecheck await aiter anext aenter aexit copy deepcopy sizeof match_args".split(),
)  # fmt: skip
_STEPPING = {"next": "StopIteration", "getitem": "IndexError", "anext": "StopAsyncIteration"}
"""Methods that are called until they raise this."""
USES = r"""
show(k <O> <a>)
show(<a> <O> k)
show(k <O> k)
v = k; v <O>= <a>; show(v)
show(k <C> <a>)
show(<a> <C> k)
show(<a> <C> k <C> <a>)
show(<U>k)
show(k[<a>])
k[<a>] = <a>
del k[<a>]
show(<s>[k])
show(<s>[k:])
show(len(k))
show(bool(k)); show(not k); show(1 if k else 2)
show(list(k))
show([*k])
a, *b = k; show((a, b))
show(iter(k)); show(next(k)); show(next(k, 'd'))
for x in k: show(x); break
show(reversed(k)); show(list(reversed(k)))
show(hash(k) == hash(k)); show({k: 1} == {}); show({k})
show(str(k)); show(repr(k)); show(f'{k}'); show(f'{k!r:>5}'); show('%s %r' % (k, k)); print(k)
show(format(k, 'x')); show('{:>9}'.format(k)); show(f'{k:z}')
show(bytes(k)); show(int(k)); show(float(k)); show(complex(k)); show(round(k)); show(round(k, 2)); show(hex(k)); show(chr(k))
show(divmod(k, <a>)); show(divmod(<n>, k)); show(pow(k, 2)); show(pow(2, k)); show(pow(k, 2, 3)); show(abs(k))
show(math.floor(k)); show(math.ceil(k)); show(math.trunc(k)); show(operator.index(k)); show(range(k)); show('a' * k); show([1] * k)
show(k(<a>)); show(k(*<s>, **<m>)); show(callable(k))
with k as v: show(v)
with k: raise <x>
show(k.attr); show(hasattr(k, 'attr')); show(getattr(k, 'attr', 1)); k.attr = 2; show(k.attr); del k.attr
show(isinstance(3, k)); show(isinstance(k, K)); show(issubclass(int, k)); show(type(k).__name__)
show(K[<a>]); show(K(<a>)); show(K(a=1)); show(K.attr)
show(sum([k, k])); show(sum(k)); show(sum([1], k)); show(max(k, <a>)); show(sorted([k, k])); show(sorted(k)); show(min(k))
show(any(k)); show(all([k])); show(list(zip(k, k))); show(list(enumerate(k))); show(list(map(str, k))); show(set(k)); show(tuple(k)); show(dict(k)); show(''.join(k)); show(dict(**k))
show([k].index(k)); show([1, k].count(1)); show(k in [1]); show([k] == [k]); show((k, 1) < (k, 2)); show([1].index(k)); show({1: 2}.get(k)); show([k, 2].index(2)); show([3].remove(k))
class L:\n    d = k\nshow(L().d); show(L.d); L().d = 1; del L().d
class L(K): pass\nshow(L()); show(L() == k); show(L() < k)
match k:\n    case [x, y]: show((x, y))\n    case {'a': 1}: show('m')\n    case K(p): show(p)\n    case 3: show('three')\n    case _: show('none')
async def co(): return await k\nco().send(None)
async def co():\n    async for x in k: show(x)\nco().send(None)
async def co():\n    async with k as v: show(v)\nco().send(None)
def g():\n    x = yield from k\n    return x\nshow(list(g()))
show(copy.copy(k)); show(copy.deepcopy(k)); show(copy.deepcopy([k, k]))
show(json.dumps(k)); show(json.dumps([k], default=<f>)); show(statistics.mean([k])); show(Counter(k)); show(deque(k)); show(functools.reduce(<f>, k)); show(itertools.chain(k, k)); show(partial(k, 1)(2)); show(math.fsum(k)); show(re.sub('a', k, 'banana'))
show(Fraction(1, 3) <O> k); show(Decimal(2) <O> k); show(date(2024, 1, 1) <C> k); show(timedelta(1) <O> k); show(Colour.RED <C> k); show(Counter('a') <O> k); show(deque([1]) <C> k)
assert k, k
raise k
try: raise ValueError\nexcept k: show('c')
show(super(K, k).__repr__ is None); show(k.__eq__(k)); show(k.__len__()); show(K.__add__(k, 1)); show(k.__iter__()); show(k.__hash__() == k.__hash__()); show(k.__bool__()); show(k.__str__()); show(k.__lt__(1))
""".strip().splitlines()

BASES = ("", "", "", "", "(int)", "(str)", "(list)", "(dict)", "(tuple)", "(float)", "(set)", "(Plain)", "(Exception)", "(bytes)", "(MyList)", "(Counter)", "(deque)", "(Data)", "(frozenset)", "(complex)", "(OrderedDict)", "(date)", "(Fraction)", "(Decimal)", "(collections.abc.Sequence)", "(collections.abc.Mapping)", "(UserDict)", "(UserList)", "(abc.ABC)", "(Point)", "(IntEnum)", "(defaultdict)")
_ARGUMENTS = {"date": "(2024, 1, 2)", "Point": "(1, 2)"}
_TYPES = {"int": "i", "float": "n", "complex": "n", "str": "t", "bytes": "b", "bytearray": "b", "list": "l", "tuple": "s", "set": "e", "frozenset": "e", "dict": "m", "range": "y", "bool": "i"}  # fmt: skip
_BUILT = {
    "int": INTS, "float": FLOATS, "complex": ("1j", "2+3j"), "str": TEXTS, "bytes": BYTES[:3], "bytearray": ("bytearray(b'abc')", "bytearray()"), "list": LISTS, "tuple": TUPLES, "set": SETS[:2], "frozenset": ("frozenset([2, 3])",), "dict": MAPS[:5], "range": ("range(4)",),
    "deque": ("deque([1, 2], 3)",), "Counter": ("Counter('aab')",), "OrderedDict": ("OrderedDict(z=1, y=2)",), "defaultdict": ("defaultdict(list, a=[1])",), "Decimal": ("Decimal('1.10')",), "Fraction": ("Fraction(1, 3)",), "date": ("date(2024, 2, 29)",), "timedelta": ("timedelta(1, 5)",), "time": ("time(1, 2)",),
    "ValueError": ("ValueError('v', 1)",), "slice": ("slice(1, 5, 2)",), "ChainMap": ("ChainMap({'a': 1}, {'b': 2})",), "UserDict": ("UserDict(u=1)",), "UserList": ("UserList([1, 2])",), "UserString": ("UserString('us')",), "partial": ("partial(add, 1)",), "Point": ("Point(1, 2)",), "Colour": ("Colour.RED",), "Data": ("Data()",),
}  # fmt: skip
_MODULES = "math cmath itertools functools operator collections copy json re string textwrap bisect heapq statistics fractions decimal datetime calendar html base64 struct zlib binascii hashlib difflib pprint unicodedata keyword inspect typing dataclasses enum contextlib types numbers uuid csv io abc array".split()
_LEFT_OUT = re.compile(r"now|today|uuid[14]|utcnow|token|_c?getattr|setrecur|getsize|^id$|^dir$|^help$|^vars$|^locals$|^globals$|^input$|^exit$|^quit$|^open$|^memoryview|^eval|^exec|^compile|^breakpoint|__dir__|__sizeof__|__reduce|__getnewargs|__subclass|__init_subclass|__del__|^count$|^cycle$|^repeat$|fromtimestamp|time_ns|ctime|__class__|__new__$|display|getfullargspec|getcallargs|__hash__|localtime|^copyright$|^credits$|^license$")
_HEAVY = re.compile(r"\*\*|pow|<<|lshift|range|factorial|comb\b|perm\b|product|isqrt|prod|Decimal|ljust|rjust|center|zfill|expandtabs|\* ?|mul|repeat|bytes|bytearray|islice|indent|format|:|%|exp")


def _called() -> tuple[str, ...]:
    """Names of what may be called in the library and among built-ins."""
    found = [name for name in dir(builtins) if name[0].islower()]
    for module in _MODULES:
        there = importlib.import_module(module)
        names = getattr(there, "__all__", None) or [one for one in vars(there) if one[0] != "_"]
        found += [f"{module}.{one}" for one in sorted(names) if callable(getattr(there, one, None)) and one[0].islower()]
    return tuple(one for one in found if not _LEFT_OUT.search(one.rpartition(".")[2]))


def _methods() -> tuple[tuple[str, str], ...]:
    """Types and the names of their methods."""
    space: dict[str, object] = {}
    exec(PRELUDE, space)
    found = []
    for name in _BUILT:
        kind = space.get(name) or getattr(builtins, name)
        methods = [one for one in dir(kind) if callable(getattr(kind, one)) and (one[0] != "_" or one in _SPECIAL)]
        found += [(name, one) for one in methods if not _LEFT_OUT.search(one)]
    return tuple(found)


_SPECIAL = frozenset(f"__{one}__" for one in METHODS)
CALLED = _called()
OF_TYPES = _methods()


class Prober:
    """Probes from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def probes(self, count: int) -> list[str]:
        """Sources of cells that run one after the other, behind one that has the prelude."""
        return [self._probe() for _ in range(count)]

    def _probe(self) -> str:
        ways = (self._form, self._form, self._method, self._method, self._function, self._own, self._own)
        while True:
            source = self.random.choice(ways)()
            if "2**70" not in source or not _HEAVY.search(source.replace("2**70", "")):
                return source

    def _fill(self, form: str) -> str:
        def value(found: re.Match[str]) -> str:
            letter = found[1]
            if letter == "p0":
                return self.random.choice(SPECS)[1:-1]
            return self.random.choice(POOLS[letter])

        return re.sub(r"<([a-zA-Z]0?)>", value, form)

    def _form(self) -> str:
        return self._fill(self.random.choice(FORMS).replace("\\n", "\n"))

    def _given(self, kind: str = "") -> str:
        """Arguments: mostly such as fit somewhere."""
        choose = self.random
        letters = [_TYPES.get(kind, "a"), "a", "i", "t", "y", "l", "f", "s"]
        given = ["<" + choose.choice(letters) + ">" for _ in range(choose.choice((0, 1, 1, 1, 2, 2, 3, 4)))]
        if choose.random() < 0.12:
            given.append(choose.choice(("key", "default", "sep", "reverse", "start", "maxsplit", "x", "iterable", "strict", "encoding", "n", "repeat", "initial")) + "=<a>")
        if choose.random() < 0.05:
            given.append(choose.choice(("*<y>", "**<m>")))
        return ", ".join(given)

    def _method(self) -> str:
        kind, name = self.random.choice(OF_TYPES)
        made, given = self.random.choice(_BUILT[kind]), self._given(kind)
        return self._fill(self.random.choice((
            f"v = {made}; show(v.{name}({given})); show(v)",
            f"v = {made}; show(v.{name}({given})); show(v)",
            f"show({made}.{name}({given}))" if not made[0].isdigit() and made[0] != "-" else f"show(({made}).{name}({given}))",
            f"v = {made}; m = v.{name}; show(m({given})); show(v)",
            f"show({kind}.{name}({made}, {given}))",
            f"show({kind}.{name}({given}))",
            f"class Own({kind}): pass\nv = {made}; v = Own(v) if {kind} in (int, str, list, tuple, dict, set) else v; show(v.{name}({given})); show(v)",
            f"v = {made}; show(getattr(v, '{name}')({given})); show(v)",
            f"show(list(map({kind}.{name}, [{made}], <l>)))",
            f"def go(v): return v.{name}({given})\nshow([go(one) for one in [{made}, <a>]])",
            f"show([v.{name}({given}) for v in [{made}, {made}]])",
            f"v = {made}; show(v.{name})",
        )))

    def _function(self) -> str:
        name = self.random.choice(CALLED)
        given = self._given()
        return self._fill(self.random.choice((f"show({name}({given}))", f"show({name}({given}))", f"f = {name}; show(f({given}))", f"show(list(map({name}, <l>)))", f"show((lambda *a, **k: {name}(*a, **k))({given}))")))

    def _own(self) -> str:
        """A class with some of the language's methods, and what calls them."""
        choose = self.random
        base = choose.choice(BASES)
        lines = [f"class K{base}:"]
        for name in choose.sample(METHODS, choose.choice((1, 2, 3, 4))):
            answer = choose.choice(ANSWERS)
            if name == "getattribute":
                answer = choose.choice(("return ('got', a)", "raise AttributeError('own')"))
            if name in _STEPPING:
                answer = f"if tick(): raise {_STEPPING[name]}\n        {answer}"
            lines.append(f"    def __{name}__(self, *a{', **k' if choose.random() < 0.3 else ''}):\n        {answer}")
            if choose.random() < 0.06:
                lines[-1] = f"    __{name}__ = {choose.choice(('None', '3', 'lambda *a: 4', 'len', 'staticmethod(lambda *a: 6)', 'classmethod(lambda *a: 7)', 'partial(print, 1)', 'str'))}"
        lines.append(f"k = K{_ARGUMENTS.get(base[1:-1], choose.choice(('()', '()', '()', '()', '(1)', '([1, 2])')))}")
        for _ in range(3):
            lines.append("try:\n    " + choose.choice(USES).replace("\\n", "\n").replace("\n", "\n    ") + "\nexcept Exception as e: print(type(e).__name__, e)")
        return self._fill("\n".join(lines))
