#: super-chain
class A:
    def who(self):
        return ["A"]

class B(A):
    def who(self):
        return ["B", *super().who()]

class C(A):
    def who(self):
        return ["C", *super().who()]

class D(B, C):
    def who(self):
        return ["D", *super().who()]

print(D().who())
#: diamond-init
class Base:
    def __init__(self, **kw):
        self.log = ["base"]

class Left(Base):
    def __init__(self, left=1, **kw):
        super().__init__(**kw)
        self.left = left
        self.log.append("left")

class Right(Base):
    def __init__(self, right=2, **kw):
        super().__init__(**kw)
        self.right = right
        self.log.append("right")

class Both(Left, Right):
    def __init__(self, **kw):
        super().__init__(**kw)

b = Both(left=10, right=20)
print(b.left, b.right, b.log)
#: mro-conflict
#: raises: TypeError
class A: pass
class B(A): pass
class C(A, B): pass
#: super-two-arguments
class A:
    def f(self):
        return "A.f"

class B(A):
    def f(self):
        return "B.f"

class C(B):
    def f(self):
        return super(B, self).f()

print(C().f())
#: super-in-classmethod-and-staticmethod
class A:
    @classmethod
    def make(cls):
        return f"A.make for {cls.__name__}"

class B(A):
    @classmethod
    def make(cls):
        return "B then " + super().make()

print(B.make())
#: super-missing-attribute
#: raises: AttributeError
class A:
    pass

class B(A):
    def f(self):
        return super().f()

B().f()
#: subclass-of-list
class Stack(list):
    def push(self, x):
        self.append(x)
        return self

    @property
    def top(self):
        return self[-1]

s = Stack([1])
s.push(2).push(3)
print(s, s.top, len(s), s == [1, 2, 3], s[1:])
#: subclass-of-dict-missing
class Default(dict):
    def __missing__(self, key):
        self[key] = value = key * 2
        return value

d = Default(a=1)
print(d["a"], d["xy"], d)
#: subclass-of-str
class Name(str):
    def initials(self):
        return "".join(w[0] for w in self.split())

n = Name("ada king lovelace")
print(n.initials(), n.upper(), len(n), type(n.upper()).__name__)
#: subclass-of-int-with-operators
class Mod7(int):
    def __new__(cls, v):
        return super().__new__(cls, v % 7)

    def __add__(self, other):
        return Mod7(int(self) + int(other))

    def __mul__(self, other):
        return Mod7(int(self) * int(other))

print(Mod7(5) + Mod7(4), Mod7(5) * 3, Mod7(10), type(Mod7(1) + 1).__name__)
#: subclass-of-tuple
class Vec(tuple):
    def __new__(cls, *xs):
        return super().__new__(cls, xs)

    def __add__(self, other):
        return Vec(*(a + b for a, b in zip(self, other)))

print(Vec(1, 2) + Vec(3, 4), len(Vec(1, 2, 3)))
#: subclass-of-set
class Lower(set):
    def add(self, x):
        super().add(x.lower())

s = Lower()
s.add("A")
s.add("a")
print(s, len(s))
#: subclass-of-exception
class AppError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

class NotFound(AppError):
    def __init__(self, what):
        super().__init__(404, f"{what} not found")

try:
    raise NotFound("page")
except AppError as e:
    print(e.code, e, e.args, type(e).__name__)
#: mixins
class JsonMixin:
    def to_json(self):
        parts = ", ".join(f'"{k}": {v}' for k, v in sorted(vars(self).items()))
        return "{" + parts + "}"

class EqMixin:
    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

class P(JsonMixin, EqMixin):
    def __init__(self, x, y):
        self.x, self.y = x, y

print(P(1, 2).to_json(), P(1, 2) == P(1, 2), P(1, 2) == P(2, 1))
#: abstract-base-class
#: needs: abc
import abc

class Animal(abc.ABC):
    @abc.abstractmethod
    def sound(self):
        """What it says."""

    def speak(self):
        return f"{type(self).__name__} says {self.sound()}"

class Dog(Animal):
    def sound(self):
        return "woof"

print(Dog().speak())
#: abstract-class-cannot-be-made
#: needs: abc
#: raises: TypeError
from abc import ABC, abstractmethod

class A(ABC):
    @abstractmethod
    def f(self): ...

A()
#: abc-register
#: needs: abc
from abc import ABC

class Sized(ABC):
    pass

class Mine:
    pass

Sized.register(Mine)
print(isinstance(Mine(), Sized), issubclass(Mine, Sized))
#: template-method
class Report:
    def render(self):
        return "\n".join([self.header(), *self.lines(), self.footer()])

    def header(self):
        return "=" * 10

    def footer(self):
        return "-" * 10

    def lines(self):
        return []

class Sales(Report):
    def __init__(self, rows):
        self.rows = rows

    def lines(self):
        return [f"{k}: {v}" for k, v in self.rows]

print(Sales([("a", 1), ("b", 2)]).render())
#: class-attribute-shadowing
class A:
    items = []
    n = 0

a, b = A(), A()
a.items.append(1)
a.n += 1
print(b.items, A.n, a.n, b.n, "n" in vars(a), "n" in vars(b))
#: class-variables-through-type-self
class Base:
    count = 0

    def __init__(self):
        type(self).count += 1

class Child(Base):
    count = 100

Base(); Base(); Child()
print(Base.count, Child.count)
#: dunder-class-of-own-instance
class A:
    def clone(self):
        return self.__class__()

class B(A):
    pass

print(type(B().clone()).__name__, B().__class__.__name__)
#: class-names-and-isinstance-list
class Shape: pass
class Circle(Shape): pass
class Square(Shape): pass

shapes = [Circle(), Square(), Circle()]
print([type(s).__name__ for s in shapes], sum(isinstance(s, Circle) for s in shapes))
#: nested-classes
class Tree:
    class Node:
        def __init__(self, v):
            self.v, self.left, self.right = v, None, None

    def __init__(self):
        self.root = None

    def add(self, v):
        if self.root is None:
            self.root = self.Node(v)
            return
        node = self.root
        while True:
            side = "left" if v < node.v else "right"
            child = getattr(node, side)
            if child is None:
                setattr(node, side, Tree.Node(v))
                return
            node = child

    def __iter__(self):
        def walk(n):
            if n:
                yield from walk(n.left)
                yield n.v
                yield from walk(n.right)
        return walk(self.root)

t = Tree()
for v in (5, 2, 8, 1, 9, 3):
    t.add(v)
print(list(t))
#: inherit-from-generic-builtin-alias
class Ints(list[int]):
    def total(self):
        return sum(self)

print(Ints([1, 2, 3]).total())
#: method-resolution-with-attributes
class A:
    x = "A"

class B(A):
    pass

class C(A):
    x = "C"

class D(B, C):
    pass

print(D.x, D().x)
#: dict-subclass-with-attribute-access
class Attr(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        del self[name]

a = Attr(x=1)
a.y = 2
del a.x
print(a, a.y, hasattr(a, "x"))
