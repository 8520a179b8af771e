#: stdout-set-and-set-back
import io, sys
kept, buffer = sys.stdout, io.StringIO()
sys.stdout = buffer
print("hidden")
sys.stdout = kept
print(repr(buffer.getvalue()))
sys.stdout = buffer
print("again", end="")
sys.stdout = sys.__stdout__
print(buffer.getvalue().split())
#: stdout-set-inside-a-redirection
import contextlib, io, sys
one, two = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(one):
    print("one")
    kept = sys.stdout
    sys.stdout = two
    print("two")
    sys.stdout = kept
    print("three")
print(one.getvalue().split(), two.getvalue().split())
#: stdin-set-to-text
import io, sys
sys.stdin = io.StringIO("first\nsecond\n\nlast")
print([input("? "), input(), input(), input()])
try:
    input("more? ")
except EOFError as error:
    print(repr(error))
#: stdin-has-nothing
#: raises: EOFError
print("asked")
name = input("name: ")
#: exit-inside-a-function
#: raises: SystemExit
def stop(code):
    print("stopping")
    exit(code)

stop(3)
#: quit-with-a-reason
#: raises: SystemExit
quit("done")
#: exit-can-be-caught
try:
    exit()
except SystemExit as error:
    print(repr(error), error.code)
#: exc-info
import sys
def what():
    try:
        {}["k"]
    except KeyError:
        kind, value, _ = sys.exc_info()
        return kind.__name__, value.args, kind is KeyError, sys.exception() is value

print(what(), sys.exc_info())
#: set-int-max-str-digits
import sys
sys.set_int_max_str_digits(5000)
print(sys.get_int_max_str_digits())
try:
    sys.set_int_max_str_digits(5)
except ValueError as error:
    print(error)
#: names-of-classes-of-any-value
class Own:
    pass

def f():
    pass

print([x.__class__.__name__ for x in (1, "a", b"", None, [], {}, (), {1}, 1.5, True, ValueError("v"), int, f, Own(), Own)])
print((x := 3).__class__.__qualname__, [].__class__.__name__.upper(), f"{'s'.__class__.__name__!r}")
#: class-of-an-error
try:
    int("x")
except Exception as error:
    print(error.__class__.__name__, error.__class__ is ValueError, error.__class__)
    other = error.__class__("again")
    print(repr(other), isinstance(other, error.__class__))
#: class-of-a-library-object
import collections, datetime, decimal, fractions
for x in (collections.Counter("a"), datetime.date(2020, 1, 1), decimal.Decimal(1), fractions.Fraction(1, 2), collections.deque([1])):
    print(x.__class__.__name__, x.__class__ is type(x), isinstance(x, x.__class__))
#: class-of-a-class
class Own:
    pass

class Meta(type):
    pass

class Made(metaclass=Meta):
    pass

print(Own.__class__ is type, Made.__class__ is Meta, Made.__class__.__class__ is type, Made().__class__ is Made)
#: type-in-annotations
import typing
def f(x: type, y: type[int]) -> type | None: pass
print(type[int].__origin__ is type, type[int], typing.Type[int].__origin__ is type)
print(typing.get_origin(typing.Type[int]) is type, type in typing.get_args(type | int), (type | int).__args__[0] is type)
print(typing.get_origin(type[int]) is type, f.__annotations__["x"] is type)
#: calling-type-subscripted
try:
    print(type[int](5) is int)
except TypeError as error:
    print(error)
#: base-that-is-no-class
for bad in (5, None, "x", [], 1.5, (1,), {}):
    try:
        class A(bad):
            print("body")
    except TypeError as error:
        print(type(error).__name__, error)
#: base-that-cannot-be-one
for bad in (bool, range, slice, type(None), type(len), type(lambda: 0), type(...)):
    try:
        class A(bad):
            pass
    except TypeError as error:
        print(error)
#: base-that-is-a-module
import math
try:
    class A(math):
        pass
except TypeError as error:
    print(error)
#: bases-that-do-not-go-together
class A: pass
class B(A): pass
for bases in ((A, 5), (A, B), (int, str), (B, B)):
    try:
        type("C", bases, {})
    except TypeError as error:
        print(str(error).split("\n")[0][:50])
#: subclasses-of-iterators
class Numbered(enumerate):
    def pairs(self):
        return list(self)

class Doubled(map):
    pass

class Both(zip):
    pass

print(Numbered("ab", 1).pairs(), list(Doubled(lambda x: x * 2, [1, 2])), list(Both([1], [2])))
#: a-method-called-dict
class Tree:
    def __init__(self, label, children=()):
        self.label = label
        self.children = children

    def __dict__(self):
        return {self.label: [one.__dict__() for one in self.children]}

print(Tree("a", [Tree("b"), Tree("c", [Tree("d")])]).__dict__())
#: a-property-called-dict
class Row:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1, 2

    @property
    def __dict__(self):
        return {name: getattr(self, name) for name in self.__slots__}

print(Row().__dict__)
#: module-of-a-made-class
class Meta(type):
    def __new__(meta, name, bases, space):
        return super().__new__(meta, name, bases, space)

print(type("X", (), {}), type("X", (), {}).__module__, Meta("Y", (), {}), Meta("Z", (), {"__module__": "mine"}))
#: time-tuples
import datetime
t = datetime.datetime(2024, 2, 29, 12, 30, 5).timetuple()
print(t.tm_year, t.tm_yday, t.tm_wday, t[:3], datetime.date(2024, 12, 31).timetuple().tm_yday)
#: type-hints-of-texts
from typing import *
class Node:
    a: 'int'
    b: 'List[Node]'
    c: List['Node']
    d: 'Optional[Node]' = None
    e: 'list[Node] | None'
    f: "Callable[['Node'], 'int']"
    g: ClassVar['Node']
    h: Literal['Node']
    i: Annotated['Node', 'int']
    j: dict[str, 'Node'] | None
    k: None
    l: "type[Node]"

class Child(Node):
    a: 'str'

for name, hint in get_type_hints(Child).items():
    print(name, hint)
print(get_type_hints(Node, include_extras=True)["i"])
#: type-hints-of-functions
import typing
def f(x: 'int', y: 'list[str]' = None, *z: 'float') -> 'dict[str, int]': ...
print(typing.get_type_hints(f))
def g(x: 'undefined'): ...
try:
    typing.get_type_hints(g)
except NameError as error:
    print(error)
print(typing.get_type_hints(g, None, {"undefined": int}))
#: type-hints-under-future-annotations
from __future__ import annotations
import dataclasses, typing

@dataclasses.dataclass
class Point:
    x: int
    y: typing.Optional[Point] = None
    z: typing.ClassVar[int] = 3

print(typing.get_type_hints(Point), [f.name for f in dataclasses.fields(Point)], Point(1, Point(2)))
#: dataclass-with-special-fields-as-texts
from __future__ import annotations
import dataclasses
from dataclasses import dataclass, field, InitVar, KW_ONLY
from typing import ClassVar

@dataclass
class Account:
    owner: str
    start: InitVar[int]
    made: ClassVar[int] = 0
    _: KW_ONLY
    note: str = ""
    history: list[int] = field(default_factory=list, init=False)

    def __post_init__(self, start):
        self.history.append(start)
        Account.made += 1

print(Account("a", 5, note="n"), Account.made, [(f.name, f.type) for f in dataclasses.fields(Account)])
print(Account.__annotations__)
#: the-interpreter-by-name
import sys

print(sys.implementation.name, sys.implementation.version == sys.version_info, sys.implementation.cache_tag)
for given in ((), (None,), (3,), ("bye",), (1, 2)):
    try:
        sys.exit(*given)
    except SystemExit as e:
        print(e.args, e.code)
    except TypeError as e:
        print(e)
#: classes-that-are-compared
class Money:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return other.__class__ is self.__class__ and other.n == self.n

print(Money(1) == Money(1), Money(1) == 1, Money(1) == None, Money(1) == "x")
print([one.__class__ == type(one) for one in (1, "a", b"", None, [], {}, (), {1}, 1.5, True)])
print(int.__class__ is type, (lambda: 0).__class__ is not int, 1 .__class__ == int != "".__class__)
#: an-attribute-that-a-class-lacks
from datetime import datetime
import collections

for kind, name in ((datetime, "datetime"), (collections.Counter, "counts"), (int, "parse")):
    try:
        getattr(kind, name)
    except AttributeError as e:
        print(type(e), e)
try:
    datetime.datetime(2024, 1, 2)
except AttributeError as e:
    print(e)
#: a-copy-of-the-globals
x = 1
kept = globals().copy()
y = 2
print(sorted(name for name in kept if not name.startswith("__")), type(kept) is dict)
#: types-say-their-modules
import datetime, re

print(type(re.compile("a")), type(re.match("a", "a")), type(datetime.timedelta()), type(iter([])), type(None))
print(type(re.compile("a")).__name__, type(iter([])).__qualname__, type(re.match("a", "a")).__module__)
#: what-a-namespace-holds
from types import SimpleNamespace

n = SimpleNamespace(a=1, b=2)
print(n, vars(n), n.__dict__ == {"a": 1, "b": 2})
n.__dict__["c"] = 3
vars(n).update(d=4)
del n.__dict__["a"]
print(n, sorted(vars(n)), SimpleNamespace(**vars(n)) == n)
