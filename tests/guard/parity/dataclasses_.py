#: basic
#: needs: dataclasses
from dataclasses import dataclass

@dataclass
class P:
    x: int
    y: int = 2

print(P(1), P(1) == P(1, 2), P(3).y, P(x=5, y=6))
#: default-factory
#: needs: dataclasses
from dataclasses import dataclass, field

@dataclass
class Cart:
    items: list = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

a, b = Cart(), Cart()
a.items.append(1)
print(a, b)
#: frozen
#: needs: dataclasses
#: raises: FrozenInstanceError
from dataclasses import dataclass

@dataclass(frozen=True)
class P:
    x: int

p = P(1)
print(hash(p) == hash(P(1)), {p: "ok"}[P(1)])
p.x = 2
#: order
#: needs: dataclasses
from dataclasses import dataclass

@dataclass(order=True)
class Card:
    rank: int
    suit: str

print(sorted([Card(3, "h"), Card(1, "s"), Card(3, "c")]), Card(1, "a") < Card(1, "b"), max(Card(2, "x"), Card(1, "z")))
#: slots
#: needs: dataclasses
from dataclasses import dataclass

@dataclass(slots=True)
class P:
    x: int
    y: int = 0

p = P(1)
try:
    p.z = 3
except AttributeError:
    print("no z")
print(p, P.__slots__)
#: kw-only
#: needs: dataclasses
#: raises: TypeError
from dataclasses import dataclass, KW_ONLY

@dataclass
class C:
    a: int
    _: KW_ONLY
    b: int = 0
    c: str = "c"

print(C(1, b=2), C(1))
C(1, 2)
#: kw-only-all
#: needs: dataclasses
from dataclasses import dataclass

@dataclass(kw_only=True)
class C:
    a: int = 1
    b: int

print(C(b=2))
#: post-init-and-initvar
#: needs: dataclasses
from dataclasses import dataclass, field, InitVar

@dataclass
class Box:
    w: float
    h: float
    unit: InitVar[str] = "cm"
    area: float = field(init=False)

    def __post_init__(self, unit):
        factor = 100 if unit == "m" else 1
        self.area = self.w * factor * self.h * factor

print(Box(2, 3), Box(1, 1, unit="m").area)
#: inheritance
#: needs: dataclasses
from dataclasses import dataclass

@dataclass
class Base:
    id: int
    name: str = "none"

@dataclass
class Child(Base):
    extra: float = 0.5

print(Child(1), Child(2, "x", 1.5), Child(1) == Base(1))
#: replace-asdict-astuple-fields
#: needs: dataclasses
from dataclasses import dataclass, replace, asdict, astuple, fields, is_dataclass

@dataclass
class Inner:
    v: int

@dataclass
class Outer:
    a: Inner
    b: list[Inner]

o = Outer(Inner(1), [Inner(2), Inner(3)])
print(asdict(o))
print(astuple(o))
print(replace(o, a=Inner(9)))
print([f.name for f in fields(Outer)], is_dataclass(o), is_dataclass(Outer), is_dataclass(1))
#: field-options
#: needs: dataclasses
from dataclasses import dataclass, field, fields

@dataclass
class F:
    a: int = field(default=1, repr=False)
    b: int = field(default=2, compare=False)
    c: int = field(default=3, metadata={"unit": "kg"})

print(F(), F(b=5) == F(b=6), F(a=1) == F(a=2), fields(F)[2].metadata["unit"])
#: eq-false
#: needs: dataclasses
from dataclasses import dataclass

@dataclass(eq=False)
class E:
    x: int

e = E(1)
print(e == E(1), e == e)
#: repr-false-and-custom-str
#: needs: dataclasses
from dataclasses import dataclass

@dataclass(repr=False)
class E:
    x: int

    def __repr__(self):
        return f"<E {self.x}>"

print(E(4), [E(5)])
#: mutable-default-refused
#: needs: dataclasses
#: raises: ValueError
from dataclasses import dataclass

@dataclass
class Bad:
    items: list = []
#: non-default-after-default
#: needs: dataclasses
#: raises: TypeError
from dataclasses import dataclass

@dataclass
class Bad:
    a: int = 1
    b: int
#: methods-and-properties
#: needs: dataclasses
from dataclasses import dataclass

@dataclass
class Rect:
    w: float
    h: float

    @property
    def area(self):
        return self.w * self.h

    def scaled(self, k):
        return Rect(self.w * k, self.h * k)

    @classmethod
    def square(cls, s):
        return cls(s, s)

print(Rect(2, 3).area, Rect(1, 2).scaled(3), Rect.square(4))
#: make-dataclass
#: needs: dataclasses
from dataclasses import make_dataclass, field

P = make_dataclass("P", [("x", int), ("y", int, field(default=5)), "z"][:2], namespace={"total": lambda self: self.x + self.y})
print(P(1), P(1).total())
#: match-args-and-pattern
#: needs: dataclasses
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: int

def where(p):
    match p:
        case Point(0, 0): return "origin"
        case Point(x, 0): return f"on x at {x}"
        case Point(x=0, y=y): return f"on y at {y}"
        case Point(): return "elsewhere"

print([where(Point(*c)) for c in ((0, 0), (3, 0), (0, 4), (5, 6))], Point.__match_args__)
#: missing-argument
#: needs: dataclasses
#: raises: TypeError
from dataclasses import dataclass

@dataclass
class P:
    x: int
    y: int

P(1)
#: classvar-is-no-field
#: needs: dataclasses, typing
from dataclasses import dataclass, fields
from typing import ClassVar

@dataclass
class C:
    total: ClassVar[int] = 0
    x: int = 1

    def __post_init__(self):
        C.total += 1

C(); C()
print(C.total, [f.name for f in fields(C)])
#: unsafe-hash
#: needs: dataclasses
from dataclasses import dataclass

@dataclass(unsafe_hash=True)
class H:
    a: int
    b: str

print(len({H(1, "x"), H(1, "x"), H(2, "y")}))
#: dataclass-with-optional-and-nested
#: needs: dataclasses, typing
from dataclasses import dataclass, field
from typing import Optional

@dataclass
class Node:
    value: int
    next: Optional["Node"] = None

    def __iter__(self):
        node = self
        while node:
            yield node.value
            node = node.next

print(list(Node(1, Node(2, Node(3)))))
#: frozen-inheritance-conflict
#: needs: dataclasses
#: raises: TypeError
from dataclasses import dataclass

@dataclass(frozen=True)
class A:
    x: int

@dataclass
class B(A):
    y: int
#: recursive-repr
#: needs: dataclasses
from dataclasses import dataclass, field

@dataclass
class N:
    name: str
    peers: list = field(default_factory=list)

n = N("a")
n.peers.append(n)
print(n)
#: sort-by-hidden-index
#: needs: dataclasses
from dataclasses import dataclass, field

@dataclass(order=True)
class Job:
    sort_index: int = field(init=False, repr=False)
    name: str
    priority: int

    def __post_init__(self):
        self.sort_index = -self.priority

print(sorted([Job("low", 1), Job("high", 9), Job("mid", 5)]))
#: descriptor-typed-field
#: needs: dataclasses
from dataclasses import dataclass

@dataclass
class A:
    x: "int"
    y: "list[str]" = None

print(A.__annotations__["x"], A(1))
