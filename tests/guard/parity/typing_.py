#: annotations-do-not-run-checks
def add(a: int, b: int = 2, *args: str, c: float = 1.0, **kw: bool) -> int:
    return a + b

print(add("x", "y"), add(1), sorted(add.__annotations__))
#: variable-annotations
x: int = 5
y: str
z: list[int] = [1]
print(x, z, "y" in globals())
#: class-annotations
class A:
    a: int
    b: str = "b"

print(A.__annotations__, A.b, hasattr(A, "a"))
#: generic-class
#: needs: typing
from typing import Generic, TypeVar

T = TypeVar("T")

class Stack(Generic[T]):
    def __init__(self) -> None:
        self._items: list[T] = []

    def push(self, item: T) -> None:
        self._items.append(item)

    def pop(self) -> T:
        return self._items.pop()

s = Stack[int]()
s.push(1); s.push(2)
print(s.pop(), Stack[str], isinstance(s, Stack))
#: protocol-runtime-checkable
#: needs: typing
from typing import Protocol, runtime_checkable

@runtime_checkable
class Quacks(Protocol):
    def quack(self) -> str: ...

class Duck:
    def quack(self):
        return "quack"

print(isinstance(Duck(), Quacks), isinstance(5, Quacks))
#: protocol-as-base
#: needs: typing
from typing import Protocol

class HasArea(Protocol):
    def area(self) -> float: ...

class Square:
    def __init__(self, s): self.s = s
    def area(self) -> float: return self.s ** 2

def total(shapes: list[HasArea]) -> float:
    return sum(s.area() for s in shapes)

print(total([Square(1), Square(2)]))
#: protocol-cannot-be-made
#: needs: typing
#: raises: TypeError
from typing import Protocol

class P(Protocol):
    x: int

P()
#: namedtuple-class
#: needs: typing
from typing import NamedTuple

class Point(NamedTuple):
    x: int
    y: int = 0

    def norm1(self):
        return abs(self.x) + abs(self.y)

p = Point(3)
print(p, p.norm1(), p._replace(y=4), p._asdict(), Point._fields, p == (3, 0), Point._make([7, 8]))
x, y = p
print(x, y, Point._field_defaults)
#: typed-dict
#: needs: typing
from typing import TypedDict, NotRequired

class Movie(TypedDict):
    title: str
    year: NotRequired[int]

m: Movie = {"title": "Up"}
m2 = Movie(title="Her", year=2013)
print(m, m2, type(m2).__name__, sorted(Movie.__required_keys__))
#: unions-and-optional
#: needs: typing
from typing import Optional, Union

print(Optional[int], Union[int, str], int | None, isinstance(3, int | str), Union[int, int])
#: aliases-and-reprs
#: needs: typing
from typing import Any, Callable, Dict, List, Literal, Tuple

print(List[int], Dict[str, List[int]], Tuple[int, ...], Callable[[int], str], Literal["a", 1], Any)
print(list[int], dict[str, int], tuple[int, ...], type[int])
#: get-origin-and-args
#: needs: typing
from typing import get_args, get_origin, Dict, List, Literal, Union

print(get_origin(Dict[str, int]) is dict, get_args(Dict[str, int]), get_args(Literal[1, 2]), get_origin(list[int]), get_args(Union[int, str]))
#: get-type-hints
#: needs: typing
from typing import get_type_hints

class A:
    x: int
    y: "str"

def f(a: int, b: list[str]) -> None: ...

print(get_type_hints(f))
print(get_type_hints(A)["x"])
#: cast-and-newtype
#: needs: typing
from typing import NewType, cast

UserId = NewType("UserId", int)
print(UserId(5), cast(str, 7), UserId.__name__)
#: final-classvar-annotated
#: needs: typing
from typing import Annotated, ClassVar, Final, get_args

LIMIT: Final = 10

class A:
    n: ClassVar[int] = 0
    w: Annotated[int, "kg"] = 3

print(LIMIT, A.n, get_args(A.__annotations__["w"]))
#: overload-and-no-return
#: needs: typing
from typing import NoReturn, overload

@overload
def f(x: int) -> int: ...
@overload
def f(x: str) -> str: ...
def f(x):
    return x * 2

def fail() -> NoReturn:
    raise ValueError("failed")

print(f(2), f("ab"))
try:
    fail()
except ValueError as e:
    print(e)
#: paramspec-decorator
#: needs: typing, functools
from typing import Callable, ParamSpec, TypeVar
from functools import wraps

P = ParamSpec("P")
R = TypeVar("R")

def twice(f: Callable[P, R]) -> Callable[P, tuple[R, R]]:
    @wraps(f)
    def inner(*args: P.args, **kwargs: P.kwargs) -> tuple[R, R]:
        return f(*args, **kwargs), f(*args, **kwargs)
    return inner

@twice
def inc(x: int) -> int:
    return x + 1

print(inc(1), inc.__name__)
#: typevar-bound
#: needs: typing
from typing import TypeVar, Sequence

N = TypeVar("N", int, float)
S = TypeVar("S", bound="Sequence")

def biggest(xs: Sequence[N]) -> N:
    return max(xs)

print(biggest([1, 3, 2]), N, N.__constraints__)
#: generic-two-parameters
#: needs: typing
from typing import Generic, TypeVar, Iterator

K = TypeVar("K")
V = TypeVar("V")

class BiMap(Generic[K, V]):
    def __init__(self):
        self._fwd: dict[K, V] = {}
        self._back: dict[V, K] = {}

    def __setitem__(self, k: K, v: V) -> None:
        self._fwd[k] = v
        self._back[v] = k

    def inverse(self, v: V) -> K:
        return self._back[v]

    def __iter__(self) -> Iterator[K]:
        return iter(self._fwd)

m: BiMap[str, int] = BiMap()
m["one"] = 1
print(m.inverse(1), list(m))
#: type-checking-and-self
#: needs: typing
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from os import PathLike

class Builder:
    def __init__(self):
        self.parts = []

    def add(self, p: str) -> Self:
        self.parts.append(p)
        return self

print(Builder().add("a").add("b").parts, TYPE_CHECKING)
#: future-annotations
#: needs: typing
from __future__ import annotations

class Node:
    def __init__(self, v: Missing, next: Node | None = None):
        self.v = v

def f(x: DoesNotExist) -> AlsoNot:
    return x

print(f(1), f.__annotations__, Node(1).v)
#: collections-abc
#: needs: collections.abc
from collections.abc import Mapping, Sequence, Iterable, Callable, Hashable, Sized, Iterator, Generator

for x in ([], {}, "", 5, iter([]), len, set()):
    print(type(x).__name__, [c.__name__ for c in (Mapping, Sequence, Iterable, Callable, Hashable, Sized, Iterator) if isinstance(x, c)])
#: mapping-subclass
#: needs: collections.abc
from collections.abc import Mapping, MutableSequence

class Lower(Mapping):
    def __init__(self, d):
        self._d = {k.lower(): v for k, v in d.items()}
    def __getitem__(self, k): return self._d[k.lower()]
    def __iter__(self): return iter(self._d)
    def __len__(self): return len(self._d)

m = Lower({"A": 1, "B": 2})
print(m["a"], "B" in m, m.get("c", 0), list(m.items()), m == {"a": 1, "b": 2})
#: assert-never-and-literal
#: needs: typing
from typing import Literal, assert_never

def f(x: Literal["a", "b"]) -> int:
    if x == "a":
        return 1
    elif x == "b":
        return 2
    assert_never(x)

print(f("a"), f("b"))
try:
    f("c")
except AssertionError as e:
    print("AssertionError")
#: annotations-as-texts-beside-other-futures
from __future__ import division, annotations
import collections
def f(x: collections.OrderedDict, y: collections.abc.Mapping[str, int * 3] = None) -> collections.Counter: ...
class A:
    z: collections.deque.missing
print(f.__annotations__, A.__annotations__)
