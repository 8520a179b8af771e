#: metaclass-new
class Upper(type):
    def __new__(mcs, name, bases, ns):
        return super().__new__(mcs, name, bases, {k.upper() if not k.startswith("__") else k: v for k, v in ns.items()})

class A(metaclass=Upper):
    value = 3

print(A.VALUE, hasattr(A, "value"))
#: metaclass-init
class Registered(type):
    all = []

    def __init__(cls, name, bases, ns):
        super().__init__(name, bases, ns)
        Registered.all.append(name)

class A(metaclass=Registered): pass
class B(A): pass

print(Registered.all)
#: metaclass-call-singleton
class Singleton(type):
    _instances = {}

    def __call__(cls, *args, **kwargs):
        if cls not in cls._instances:
            cls._instances[cls] = super().__call__(*args, **kwargs)
        return cls._instances[cls]

class Config(metaclass=Singleton):
    def __init__(self, v=0):
        self.v = v

print(Config(1) is Config(2), Config().v)
#: metaclass-keyword
class M(type):
    def __new__(mcs, name, bases, ns, *, prefix="", **kw):
        cls = super().__new__(mcs, name, bases, ns, **kw)
        cls.full = prefix + name
        return cls

    def __init__(cls, name, bases, ns, *, prefix="", **kw):
        super().__init__(name, bases, ns)

class A(metaclass=M, prefix="pre_"): pass

print(A.full)
#: metaclass-instancecheck
class Even(type):
    def __instancecheck__(cls, x):
        return isinstance(x, int) and x % 2 == 0

class EvenInt(metaclass=Even): pass

print(isinstance(4, EvenInt), isinstance(3, EvenInt), isinstance("x", EvenInt))
#: metaclass-subclasscheck
class M(type):
    def __subclasscheck__(cls, other):
        return hasattr(other, "quack")

class Duck(metaclass=M): pass

class Robot:
    def quack(self): pass

print(issubclass(Robot, Duck), issubclass(int, Duck))
#: metaclass-len-getitem-iter
class Table(type):
    def __len__(cls):
        return len(cls.rows)

    def __getitem__(cls, i):
        return cls.rows[i]

    def __iter__(cls):
        return iter(cls.rows)

    def __contains__(cls, x):
        return x in cls.rows

class T(metaclass=Table):
    rows = [10, 20, 30]

print(len(T), T[1], list(T), 20 in T, 5 in T)
#: metaclass-repr
class M(type):
    def __repr__(cls):
        return f"<the {cls.__name__}>"

class A(metaclass=M): pass

print(A, repr(A), f"{A}")
#: metaclass-operators
class M(type):
    def __or__(cls, other):
        return f"{cls.__name__} or {other.__name__}"

    def __lt__(cls, other):
        return cls.__name__ < other.__name__

class A(metaclass=M): pass
class B(metaclass=M): pass

print(A | B, A < B, sorted([B, A])[0].__name__)
#: metaclass-conflict
#: raises: TypeError
class M1(type): pass
class M2(type): pass
class A(metaclass=M1): pass
class B(metaclass=M2): pass
class C(A, B): pass
#: metaclass-inherited
class M(type):
    def hello(cls):
        return "hello from " + cls.__name__

class A(metaclass=M): pass
class B(A): pass

print(A.hello(), B.hello(), type(B) is M, hasattr(B(), "hello"))
#: metaclass-getattr
class M(type):
    def __getattr__(cls, name):
        return f"{cls.__name__}.{name}?"

class A(metaclass=M):
    real = 1

print(A.real, A.unknown)
#: metaclass-prepare
class Ordered(type):
    @classmethod
    def __prepare__(mcs, name, bases):
        return {"injected": 7}

class A(metaclass=Ordered):
    twice = injected * 2

print(A.twice, A.injected)
#: function-as-metaclass
def make(name, bases, ns):
    return (name, len(bases), sorted(k for k in ns if not k.startswith("__")))

class A(metaclass=make):
    x = 1
    y = 2

print(A)
#: three-argument-type
Point = type("Point", (), {"x": 1, "describe": lambda self: f"x={self.x}"})
p = Point()
print(p.describe(), Point.__name__, type(p).__name__)
#: three-argument-type-with-base
class Base:
    def greet(self):
        return "hi from " + type(self).__name__

Child = type("Child", (Base,), {})
print(Child().greet(), issubclass(Child, Base))
#: type-of-values
for value in (1, 1.0, "s", b"b", [], (), {}, set(), None, True, 1j, range(3), len, lambda: 0):
    print(type(value).__name__, end=" ")
print()
#: type-comparison-and-call
def convert(text, example):
    return type(example)(text)

print(convert("5", 1), convert("5", 1.5), convert("5", ""), type(3) is int, type("") == str)
#: repr-of-types
class Own:
    pass

print(int, type(1), type(None), type([]), Own, type(Own()), type, object)
#: class-decorator
def with_repr(cls):
    def __repr__(self):
        args = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{cls.__name__}({args})"
    cls.__repr__ = __repr__
    return cls

@with_repr
class P:
    def __init__(self, x, y):
        self.x = x
        self.y = y

print(P(1, "two"))
#: isinstance-with-own-hierarchy
class A: pass
class B(A): pass
class C(B): pass

print(isinstance(C(), A), isinstance(A(), C), isinstance(C(), (int, B)), isinstance(1, int | str), issubclass(C, A), issubclass(bool, int))
#: new-that-returns-another
class Num:
    def __new__(cls, v):
        if v < 0:
            return "negative"
        return super().__new__(cls)

    def __init__(self, v):
        self.v = v

print(Num(-1), Num(3).v)
#: new-on-immutable-subclass
class Celsius(float):
    def __new__(cls, value):
        return super().__new__(cls, round(value, 1))

    def __str__(self):
        return f"{float(self)}°C"

c = Celsius(21.456)
print(c, c + 1, isinstance(c, float))
#: instance-cache-in-new
class Symbol:
    _known = {}

    def __new__(cls, name):
        if name not in cls._known:
            self = super().__new__(cls)
            self.name = name
            cls._known[name] = self
        return cls._known[name]

print(Symbol("a") is Symbol("a"), Symbol("a") is Symbol("b"))
#: prepare-with-an-ordered-dict
from collections import OrderedDict
class Ordered(type):
    @classmethod
    def __prepare__(meta, name, bases):
        return OrderedDict()

    def __new__(meta, name, bases, space):
        made = super().__new__(meta, name, bases, dict(space))
        made.order = [key for key in space if not key.startswith("__")]
        return made

class Form(metaclass=Ordered):
    name = "n"
    age = 3
    def check(self): return self.age
    size = [age * k for k in (1, 2)] if False else age

print(Form.order, Form().check(), Form.size)
#: names-of-python-2-in-classes
class Number:
    __metaclass__ = type
    def __init__(self, n): self.n = n
    def __unicode__(self): return "unicode"
    def __nonzero__(self): return False
    def __cmp__(self, other): return 0
    def __div__(self, other): return "old"
    def __long__(self): return 1

print(bool(Number(0)), Number(1) == Number(1))
