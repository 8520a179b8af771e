#: single-underscore-attribute
class Counter:
    def __init__(self):
        self._count = 0

    def tick(self):
        self._count += 1
        return self._count

c = Counter()
c.tick()
print(c.tick(), c._count)
#: mangled-inside-and-outside
class Safe:
    def __init__(self, code):
        self.__code = code

    def opens(self, code):
        return self.__code == code

s = Safe(42)
print(s.opens(41), s.opens(42))
print(s._Safe__code)
#: mangled-read-from-outside-fails
#: raises: AttributeError
class Safe:
    def __init__(self):
        self.__code = 1

print(Safe().__code)
#: mangled-does-not-clash-with-subclass
class Base:
    def __init__(self):
        self.__x = "base"

    def base_x(self):
        return self.__x

class Child(Base):
    def __init__(self):
        super().__init__()
        self.__x = "child"

    def child_x(self):
        return self.__x

c = Child()
print(c.base_x(), c.child_x())
#: mangled-method
class Parser:
    def parse(self, text):
        return [self.__clean(part) for part in text.split(",")]

    def __clean(self, part):
        return part.strip().lower()

print(Parser().parse(" A, B ,c"))
#: mangled-class-attribute
class Registry:
    __items = {}

    @classmethod
    def add(cls, key, value):
        cls.__items[key] = value

    @classmethod
    def size(cls):
        return len(cls.__items)

Registry.add("a", 1)
Registry.add("b", 2)
print(Registry.size(), Registry._Registry__items)
#: mangled-name-in-nested-class
class Outer:
    __tag = "outer"

    class Inner:
        __tag = "inner"

        def tag(self):
            return self.__tag

    def tag(self):
        return self.__tag

print(Outer().tag(), Outer.Inner().tag(), Outer._Outer__tag, Outer.Inner._Inner__tag)
#: mangled-class-with-leading-underscores
class __Hidden:
    def __init__(self):
        self.__v = 5

    def v(self):
        return self.__v

h = __Hidden()
print(h.v(), h._Hidden__v)
#: mangled-local-variable
class A:
    def f(self):
        __local = 3
        return __local + 1

print(A().f())
#: mangled-global-name
_A__value = 17

class A:
    def f(self):
        return __value

print(A().f())
#: mangled-keyword-argument
class A:
    def f(self, __x=2):
        return __x * 2

    def g(self):
        return self.f(_A__x=5)

print(A().f(), A().g())
#: mangled-slots
class P:
    __slots__ = ("__x", "y")

    def __init__(self, x, y):
        self.__x = x
        self.y = y

    def both(self):
        return self.__x, self.y

p = P(1, 2)
print(p.both(), p._P__x)
#: private-through-getattr-and-setattr
class Box:
    pass

b = Box()
setattr(b, "_secret", 3)
print(getattr(b, "_secret"), hasattr(b, "_secret"), hasattr(b, "_other"), getattr(b, "_other", "none"))
delattr(b, "_secret")
print(hasattr(b, "_secret"))
#: private-module-level-names
_cache = {}

def _lookup(key):
    if key not in _cache:
        _cache[key] = key * 2
    return _cache[key]

print(_lookup(4), _lookup(4), _cache)
#: private-attribute-augmented-and-deleted
class Account:
    def __init__(self, balance):
        self._balance = balance
        self._log = []

    def pay(self, amount):
        self._balance -= amount
        self._log.append(("pay", amount))

    def forget(self):
        del self._log

a = Account(100)
a.pay(30)
a._balance *= 2
print(a._balance, a._log)
a.forget()
print(hasattr(a, "_log"))
#: private-tuple-targets
class Pair:
    def __init__(self):
        self._a, self._b = 1, 2
        [self._c, *self._rest] = "xyz"

p = Pair()
p._a, p._b = p._b, p._a
print(p._a, p._b, p._c, p._rest)
#: private-for-and-with-targets
class Holder:
    pass

class Managed:
    def __enter__(self):
        return "entered"

    def __exit__(self, *args):
        return False

h = Holder()
for h._i in range(3):
    pass
with Managed() as h._word:
    pass
print(h._i, h._word)
#: vars-of-own-object
class Point:
    def __init__(self, x, y):
        self.x = x
        self._y = y

print(vars(Point(1, 2)))
print(Point(3, 4).__dict__)
#: dir-lists-own-attributes
class T:
    alpha = 1

    def beta(self):
        pass

t = T()
t.gamma = 3
print([n for n in dir(t) if not n.startswith("_")])
#: own-dunder-dict-update
class Bag:
    def __init__(self, **kw):
        self.__dict__.update(kw)

b = Bag(a=1, b=2)
print(b.a + b.b, sorted(b.__dict__))
#: underscore-as-throwaway
first, *_, last = [1, 2, 3, 4]
for _ in range(2):
    first += 1
print(first, last, _)
#: class-level-private-constant
class Temperature:
    _ZERO = -273.15

    def __init__(self, celsius):
        if celsius < self._ZERO:
            raise ValueError(f"below {self._ZERO}")
        self._celsius = celsius

try:
    Temperature(-300)
except ValueError as e:
    print(e)
print(Temperature(20)._celsius)
#: own-class-dunder-name-and-doc
class Documented:
    """One line."""

    def method(self):
        """Another."""

print(Documented.__name__, Documented.__doc__, Documented.method.__name__, Documented.method.__doc__, Documented.method.__qualname__)
