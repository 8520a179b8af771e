#: getter-only
class Circle:
    def __init__(self, r):
        self._r = r

    @property
    def area(self):
        return round(3.14159 * self._r ** 2, 3)

print(Circle(2).area)
#: setting-a-getter-only-property
#: raises: AttributeError
class Circle:
    @property
    def area(self):
        return 1

Circle().area = 3
#: getter-setter-deleter
class Person:
    def __init__(self, name):
        self.name = name

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, value):
        if not value:
            raise ValueError("empty name")
        self._name = value.title()

    @name.deleter
    def name(self):
        print("deleting")
        del self._name

p = Person("ada")
print(p.name)
p.name = "grace hopper"
print(p.name)
del p.name
print(hasattr(p, "name"))
try:
    p.name = ""
except ValueError as e:
    print("error:", e)
#: property-called-as-function
class A:
    def get(self):
        return self._v

    def put(self, v):
        self._v = v

    v = property(get, put, doc="the v")

a = A()
a.v = 9
print(a.v, A.v.__doc__)
#: property-inherited-and-overridden
class Base:
    @property
    def kind(self):
        return "base"

class Child(Base):
    @property
    def kind(self):
        return "child of " + super().kind

print(Base().kind, Child().kind)
#: property-extended-by-subclass
class Base:
    def __init__(self):
        self._x = 1

    @property
    def x(self):
        return self._x

class Child(Base):
    @Base.x.setter
    def x(self, value):
        self._x = value

c = Child()
c.x = 10
print(c.x)
#: property-raising-attribute-error
class A:
    @property
    def broken(self):
        raise AttributeError("not ready")

print(hasattr(A(), "broken"), getattr(A(), "broken", "fallback"))
#: property-with-getattr-fallback
class A:
    @property
    def broken(self):
        raise AttributeError("inner")

    def __getattr__(self, name):
        return f"fallback for {name}"

print(A().broken)
#: augmented-assignment-through-property
class Meter:
    def __init__(self):
        self._v = 0
        self.reads = 0

    @property
    def v(self):
        self.reads += 1
        return self._v

    @v.setter
    def v(self, value):
        self._v = value

m = Meter()
m.v += 5
m.v *= 3
print(m.v, m.reads)
#: property-in-tuple-assignment
class P:
    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, v):
        self._x = v * 10

p = P()
p.x, y = 1, 2
print(p.x, y)
#: classmethod-and-staticmethod
class Pizza:
    count = 0

    def __init__(self, toppings):
        self.toppings = toppings
        type(self).count += 1

    @classmethod
    def margherita(cls):
        return cls(["tomato", "cheese"])

    @staticmethod
    def price(n):
        return 5 + n

p = Pizza.margherita()
print(p.toppings, Pizza.price(len(p.toppings)), Pizza.count, p.margherita().toppings)
#: abstract-property
#: needs: abc
from abc import ABC, abstractmethod

class Shape(ABC):
    @property
    @abstractmethod
    def area(self): ...

class Square(Shape):
    def __init__(self, s):
        self.s = s

    @property
    def area(self):
        return self.s ** 2

print(Square(3).area)
try:
    Shape()
except TypeError as e:
    print("cannot instantiate" in str(e).lower())
#: cached-property
#: needs: functools
from functools import cached_property

class Data:
    def __init__(self, rows):
        self.rows = rows

    @cached_property
    def total(self):
        print("computing")
        return sum(self.rows)

d = Data([1, 2, 3])
print(d.total, d.total)
del d.total
print(d.total)
#: property-on-metaclass
class Meta(type):
    @property
    def label(cls):
        return cls.__name__.lower()

class Thing(metaclass=Meta):
    pass

print(Thing.label)
#: temperature-both-ways
class Temp:
    def __init__(self, c=0):
        self.c = c

    @property
    def f(self):
        return self.c * 9 / 5 + 32

    @f.setter
    def f(self, value):
        self.c = (value - 32) * 5 / 9

t = Temp(100)
print(t.f)
t.f = 32
print(t.c)
#: lambda-property
class V:
    def __init__(self, *xs):
        self.xs = xs

    norm2 = property(lambda self: sum(x * x for x in self.xs))

print(V(3, 4).norm2)
