#: iter-until-ends-with-its-function
rows = iter([3, 1, 2])
print(list(iter(rows.__next__, 5)), list(iter([2, 1, 0].pop, 2)), type(iter(int, 1)).__name__)
def ended():
    raise StopIteration("told")
print(list(iter(ended, None)), next(iter(ended, None), "none"))
#: iter-until-raises
def broken():
    raise ValueError("own")
try:
    for _ in iter(broken, 1):
        print("never")
except ValueError as error:
    print(error)
#: lists-ask-for-a-length
class Sized:
    def __iter__(self):
        print("iterator")
        return iter((3, 1))
    def __len__(self):
        print("length")
        return 2
print(list(Sized()), tuple(Sized()), sorted(Sized()), [*Sized()], set(Sized()), ",".join(map(str, Sized())))
found = []
found.extend(Sized())
print(found)
class Broken(Sized):
    def __len__(self):
        raise IndexError("own")
for make in (list, tuple, sorted, found.extend, found.__iadd__):
    try:
        print(make(Broken()))
    except IndexError as error:
        print("told", error)
class Hinting:
    def __iter__(self):
        return iter("ab")
    def __length_hint__(self):
        return -1
try:
    print(list(Hinting()))
except ValueError as error:
    print(error)
#: nobody-asks-an-object-for-its-class
class Asked:
    def __getattribute__(self, name):
        print("asked", name)
        return object.__getattribute__(self, name)
one = Asked()
print(len(str(one)) > 3, len(f"{one}|{one!r:>4}") > 3, one == 1, one in [1, [2]], len([one]))
for text in ("one + 1", "2 ** one", "one * 2", "one % 3"):
    try:
        {"one + 1": lambda: one + 1, "2 ** one": lambda: 2 ** one, "one * 2": lambda: one * 2, "one % 3": lambda: one % 3}[text]()
    except TypeError as error:
        print(error)
for call in ("a".join, "a".replace, "a".strip, "a".split, "a".translate, "a".ljust, "a".expandtabs, sum, bytes, print):
    try:
        call(one, end=one) if call is print else call(one)
    except TypeError:
        print("wrong")
class Lying:
    def __getattribute__(self, name):
        return ("anything", name)
print(len(str(Lying())) > 3, len("%s" % Lying()) > 3, Lying() == 1)
#: endless-iterators
import enum
import itertools
class Bit(enum.IntFlag):
    ONE = 1
print(type(next(itertools.count(Bit.ONE, 2))).__name__, next(itertools.count(True)), list(itertools.islice(itertools.count(1.5, -1), 3)))
for wrong in ("a", None, []):
    try:
        itertools.count(wrong)
    except TypeError as error:
        print(error)
print(list(itertools.repeat(object=3, times=2)), list(itertools.islice(itertools.count(step=2), 3)))
for made in (itertools.product("ab"), itertools.repeat(1), itertools.permutations("ab"), itertools.combinations("ab", 1), itertools.count()):
    print(hasattr(type(made), "__next__"), made.__next__(), made.__iter__() is made)
#: dispatch-on-classes
from functools import singledispatch
@singledispatch
def kind(x):
    return "any"
@kind.register
def _(x: int):
    return "number"
class Own:
    pass
print(kind(int), kind(Own), kind(Own()), kind(True), kind(type))
@kind.register
def _(x: type):
    return "class"
print(kind(int), kind(Own), kind(3), kind(type))
#: copies-of-unions
import copy
print(copy.copy(int | str), copy.deepcopy(int | str), copy.deepcopy({"a": [int | None, list[int]]}))
#: namespaces-by-name
import types
one = types.SimpleNamespace(a=1)
one.b = types.SimpleNamespace(c=[one.a])
class Own(types.SimpleNamespace):
    pass
print(type(one).__name__, one, Own(x=one))
#: contexts-of-decimals
import decimal
with decimal.localcontext() as inner:
    inner.prec = 3
    print(decimal.Decimal(1) / 3)
kept = decimal.localcontext()
decimal.getcontext().prec = 6
with kept:
    print(decimal.Decimal(1) / 3)
print(decimal.Decimal(1) / 3)
for wrong in (5, "a", [1]):
    try:
        decimal.localcontext(wrong)
    except TypeError as error:
        print(error)
#: managers-that-are-none
class Entered:
    def __enter__(self):
        pass
    async def __aenter__(self):
        pass
def held(manager):
    with manager:
        yield 1
async def awaited(manager):
    async with manager:
        pass
for manager in (Entered(), 3):
    for start in (lambda: next(held(manager)), lambda: awaited(manager).send(None)):
        try:
            start()
        except TypeError as error:
            print(error)
#: attributes-by-methods
class Own:
    pass
one = Own()
one.__setattr__("a", 1)
object.__setattr__(one, "b", 2)
print(one.__getattribute__("a"), object.__getattribute__(one, "b"), vars(one))
one.__delattr__("a")
for wrong in (lambda: one.__delattr__("a"), lambda: one.__getattribute__("a"), lambda: one.__setattr__(1, 2)):
    try:
        wrong()
    except (AttributeError, TypeError) as error:
        print(type(error).__name__, error)
#: kinds-of-iterators
import itertools
from array import array
from collections import Counter, OrderedDict, deque
pairs = {1: 2}
made = [
    reversed(deque([1])), reversed(pairs.items()), reversed(pairs.values()), reversed(OrderedDict(a=1)), iter(array("i", [1])),
    next(itertools.groupby("a"))[1], itertools.tee("a")[0], Counter("a").elements(), itertools.zip_longest("a"), iter(list[int]),
]
print([(hasattr(type(one), "__next__"), one.__iter__() is one) for one in made], [one.__next__() for one in made if one is not made[5]])
#: numbers-with-truth-of-their-own
from decimal import Decimal
class Odd(Decimal):
    def __bool__(self):
        raise ValueError("own")
print(repr(Odd("1.5")), Odd(2) + 1)
