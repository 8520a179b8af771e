#: data-descriptor
class Positive:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, objtype=None):
        if obj is None:
            return self
        return obj.__dict__.get(self.name, 0)

    def __set__(self, obj, value):
        if value < 0:
            raise ValueError(f"{self.name} must not be negative")
        obj.__dict__[self.name] = value

class Item:
    price = Positive()
    stock = Positive()

i = Item()
i.price = 3
print(i.price, i.stock, Item.price.name)
try:
    i.stock = -1
except ValueError as e:
    print(e)
#: non-data-descriptor
class Lazy:
    def __init__(self, f):
        self.f = f

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner):
        if obj is None:
            return self
        value = self.f(obj)
        setattr(obj, self.name, value)
        return value

class Page:
    @Lazy
    def words(self):
        print("counting")
        return 120

p = Page()
print(p.words, p.words)
#: delete-descriptor
class Tracked:
    def __set_name__(self, owner, name):
        self.key = "_" + name

    def __get__(self, obj, owner):
        return getattr(obj, self.key)

    def __set__(self, obj, v):
        print("set", v)
        setattr(obj, self.key, v)

    def __delete__(self, obj):
        print("delete")
        delattr(obj, self.key)

class A:
    x = Tracked()

a = A()
a.x = 1
del a.x
print(hasattr(a, "x"))
#: function-descriptor-binding
class A:
    def f(self):
        return "f of " + self.name

a = A()
a.name = "a"
bound = a.f
a.name = "b"
print(bound(), A.f(a))
#: method-added-later
class A:
    def __init__(self, n):
        self.n = n

def double(self):
    return self.n * 2

A.double = double
print(A(4).double())
#: function-on-instance-is-not-bound
class A:
    pass

a = A()
a.f = lambda x: x + 1
print(a.f(1))
#: typed-field-descriptor
class Typed:
    def __init__(self, kind):
        self.kind = kind

    def __set_name__(self, owner, name):
        self.slot = f"_{owner.__name__}_{name}"

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.slot, None)

    def __set__(self, obj, value):
        if not isinstance(value, self.kind):
            raise TypeError(f"expected {self.kind.__name__}, got {type(value).__name__}")
        setattr(obj, self.slot, value)

class User:
    name = Typed(str)
    age = Typed(int)

u = User()
u.name = "x"
try:
    u.age = "old"
except TypeError as e:
    print(e)
print(u.name, u.age)
#: slots-basic
class P:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

p = P(1, 2)
p.x += 5
print(p.x, p.y, P.__slots__)
try:
    p.z = 3
except AttributeError as e:
    print(type(e).__name__)
#: slots-unset
#: raises: AttributeError
class P:
    __slots__ = ("x",)

P().x
#: slots-inheritance
class A:
    __slots__ = ("a",)

class B(A):
    __slots__ = ("b",)

class C(B):
    pass

b = B()
b.a, b.b = 1, 2
c = C()
c.anything = 3
print(b.a, b.b, c.anything, hasattr(b, "__dict__"), hasattr(c, "__dict__"))
#: slots-with-defaults-conflict
#: raises: ValueError
class A:
    __slots__ = ("x",)
    x = 1
#: slots-string-and-delete
class A:
    __slots__ = "only"

a = A()
a.only = 1
del a.only
print(hasattr(a, "only"))
#: init-subclass-registry
class Plugin:
    registry = {}

    def __init_subclass__(cls, /, key=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.registry[key or cls.__name__.lower()] = cls

class Csv(Plugin): pass
class Json(Plugin, key="js"): pass

print({k: v.__name__ for k, v in Plugin.registry.items()})
#: init-subclass-unexpected-keyword
#: raises: TypeError
class A:
    pass

class B(A, colour="red"):
    pass
#: class-getitem
class Vec:
    def __class_getitem__(cls, n):
        return f"{cls.__name__}<{n}>"

print(Vec[3], Vec[int, 2])
#: set-name-order
class Field:
    seen = []

    def __set_name__(self, owner, name):
        Field.seen.append((owner.__name__, name))

class Form:
    b = Field()
    a = Field()

print(Field.seen)
#: getattr-hook
class Lenient:
    def __init__(self):
        self.real = 1

    def __getattr__(self, name):
        if name.startswith("x_"):
            return name[2:]
        raise AttributeError(f"no {name}")

l = Lenient()
print(l.real, l.x_hello, getattr(l, "y", "default"))
try:
    l.y
except AttributeError as e:
    print(e)
#: getattribute-hook
class Logged:
    def __init__(self):
        self.value = 5

    def __getattribute__(self, name):
        if name == "secret":
            return "intercepted"
        return super().__getattribute__(name)

l = Logged()
print(l.value, l.secret)
#: setattr-hook
class Frozen:
    def __init__(self, **kw):
        for k, v in kw.items():
            object.__setattr__(self, k, v)

    def __setattr__(self, name, value):
        raise TypeError(f"cannot set {name}")

    def __delattr__(self, name):
        raise TypeError(f"cannot delete {name}")

f = Frozen(a=1)
for action in ("set", "delete"):
    try:
        if action == "set":
            f.a = 2
        else:
            del f.a
    except TypeError as e:
        print(e)
print(f.a)
#: dir-hook
class D:
    def __dir__(self):
        return ["b", "a"]

print(dir(D()))
#: callable-class-as-decorator-descriptor
class CountCalls:
    def __init__(self, f):
        self.f = f
        self.n = 0

    def __call__(self, *args):
        self.n += 1
        return self.f(*args)

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return lambda *args: self(obj, *args)

class A:
    @CountCalls
    def go(self, x):
        return x + 1

a = A()
print(a.go(1), a.go(2), A.go.n)
