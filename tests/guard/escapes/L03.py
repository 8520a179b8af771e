#: subclasses-of-object
#: threat: L3
#: from: the first of all pyjails
#: proves: canary
#: refused: attribute
result = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: subclasses-by-mro
#: threat: L3
#: from: the first of all pyjails
#: proves: canary
#: refused: attribute
result = [c for c in ''.__class__.__mro__[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: subclasses-by-bases
#: threat: L3
#: from: pyjails
#: proves: canary
#: refused: attribute
result = [c for c in [].__class__.__bases__[0].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: object-subclasses
#: threat: L3
#: from: object is a built-in
#: proves: canary
#: refused: attribute
result = [c for c in object.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: type-subclasses-unbound
#: threat: L3
#: from: type's methods applied to a class
#: proves: canary
#: refused: attribute
result = [c for c in type.__subclasses__(object) if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: mro-method
#: threat: L3
#: from: pyjails
#: proves: canary
#: refused: attribute
result = [c for c in int.mro()[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: type-of-vault-globals
#: threat: L3
#: from: functions' globals
#: proves: canary
#: refused: attribute
result = type(vault).name.__globals__['CANARY']
#: bound-method-globals
#: threat: L3
#: from: functions' globals
#: proves: canary
#: refused: attribute
result = vault.name.__globals__['CANARY']
#: bound-method-func
#: threat: L3
#: from: bound methods
#: proves: canary
#: refused: attribute
result = vault.name.__func__.__globals__['CANARY']
#: host-function-globals
#: threat: L3
#: from: functions' globals
#: proves: canary
#: refused: attribute
result = greet.__globals__['CANARY']
#: init-globals-of-a-class
#: threat: L3
#: from: pyjails: the __init__ of a class written in Python
#: proves: canary
#: refused: attribute
result = type(vault).__init__.__globals__['CANARY']
#: builtin-self
#: threat: L3
#: from: built-in functions know their module
#: proves: canary
#: refused: attribute
result = print.__self__.__import__('vaults').CANARY
#: builtin-method-self
#: threat: L3
#: from: bound built-ins
#: proves: canary
#: refused: type
result = [].append.__self__.__class__.__base__.__subclasses__() and len.__self__.__dict__['__import__']('vaults').CANARY
#: class-via-dunder-class-store
#: threat: L3
#: from: an object's class is set
#: proves: canary
#: refused: store
class A:
    def name(self): return self._secret
vault.__class__ = A
result = vault.name()
#: class-cell-type
#: threat: L3
#: from: __class__ in methods
#: proves: canary
#: refused: attribute
class A:
    def f(self):
        return [c for c in __class__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
result = A().f()
#: metaclass-mro
#: threat: L3
#: from: a metaclass that defines mro
#: proves: canary
#: refused: attribute
class M(type):
    def mro(cls):
        global result
        m = type.mro(cls)
        result = [c for c in m[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
        return m
class A(metaclass=M): pass
#: metaclass-of-three-arguments
#: threat: L3
#: from: type() called with three arguments
#: proves: canary
#: refused: type
B = type('B', (type,), {'go': lambda cls: type.__subclasses__(object)})
class A(metaclass=B): pass
result = [c for c in A.go() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: mro-entries
#: threat: L3
#: from: __mro_entries__ is handed bases
#: proves: canary
#: refused: attribute
got = []
class E:
    def __mro_entries__(self, bases):
        return (object,)
class A(E()): pass
result = [c for c in A.__mro__[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: init-subclass-hands-classes
#: threat: L3
#: from: __init_subclass__ is handed the class
#: proves: canary
#: refused: attribute
class A:
    def __init_subclass__(cls):
        global result
        result = [c for c in cls.__base__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
class B(A): pass
#: set-name-hands-the-owner
#: threat: L3
#: from: __set_name__ is handed the class
#: proves: canary
#: refused: attribute
class D:
    def __set_name__(self, owner, name):
        global result
        result = [c for c in owner.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
class A:
    d = D()
#: descriptor-get-hands-the-owner
#: threat: L3
#: from: __get__ is handed the class
#: proves: canary
#: refused: type
class D:
    def __get__(self, o, owner):
        return owner.__base__.__subclasses__()
class A:
    d = D()
result = [c for c in A.d if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: class-getitem-hands-the-class
#: threat: L3
#: from: __class_getitem__ is handed the class
#: proves: canary
#: refused: type
class A:
    def __class_getitem__(cls, i):
        return cls.__base__.__subclasses__()
result = [c for c in A[0] if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: generic-alias-origin
#: threat: L3
#: from: aliases know their class
#: proves: canary
#: refused: attribute
result = [c for c in list[int].__origin__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: generic-alias-getattr
#: threat: L3
#: from: aliases forward attributes
#: proves: canary
#: refused: attribute
result = [c for c in list[int].__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: generic-alias-mro-entries
#: threat: L3
#: from: types.GenericAlias
#: proves: canary
#: refused: attribute
a = type(list[int])(object, int)
result = [c for c in a.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: union-args
#: threat: L3
#: from: unions know their members
#: proves: canary
#: refused: attribute
result = [c for c in (int | object).__args__[1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: abc-registry
#: threat: L3
#: from: abc keeps registries
#: proves: canary
#: refused: attribute
import abc
class A(abc.ABC): pass
result = [c for c in A.__base__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: abc-subclasscheck-hook
#: threat: L3
#: from: __subclasshook__ is handed classes
#: proves: canary
#: refused: attribute
import abc
class A(abc.ABC):
    @classmethod
    def __subclasshook__(cls, C):
        global result
        result = C.name.__globals__['CANARY']
        return True
issubclass(type(vault), A)
#: instancecheck-hands-the-object
#: threat: L3
#: from: __instancecheck__ is handed objects
#: proves: canary
#: refused: attribute
class M(type):
    def __instancecheck__(cls, o):
        global result
        result = o._secret
        return True
class A(metaclass=M): pass
isinstance(vault, A)
#: enum-metaclass
#: threat: L3
#: from: metaclasses of granted modules
#: proves: canary
#: refused: attribute
import enum
class E(enum.Enum):
    A = 1
result = [c for c in type(E).__mro__[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: namedtuple-mro
#: threat: L3
#: from: classes made by granted modules
#: proves: canary
#: refused: attribute
import collections
P = collections.namedtuple('P', 'x')
result = [c for c in P.__mro__[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: exception-mro
#: threat: L3
#: from: exceptions have classes
#: proves: canary
#: refused: attribute
try:
    1 / 0
except Exception as e:
    result = [c for c in e.__class__.__mro__[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: inspect-getmro
#: threat: L3
#: from: inspect reads what attributes hide
#: proves: canary
#: refused: attribute
import inspect
result = [c for c in inspect.getmro(int)[-1].__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: typing-get-type-hints-globals
#: threat: L3
#: from: typing reads __globals__ and evaluates
#: proves: canary
#: refused: attribute
import typing
def f(x: 'CANARY'): pass
f.__globals__.update(greet.__globals__)
result = typing.get_type_hints(f)
#: functools-wraps-copies-dict
#: threat: L3
#: from: functools.wraps copies attributes
#: proves: canary
#: refused: attribute
import functools
class T: pass
t = functools.update_wrapper(T(), vault, assigned=('_secret',), updated=())
result = t._secret
#: functools-wraps-updates-dict
#: threat: L3
#: from: functools.wraps reads __dict__
#: proves: canary
#: refused: attribute
import functools
class T: pass
t = functools.update_wrapper(T(), vault)
result = t.__dict__['_secret']
#: partial-func
#: threat: L3
#: from: functools.partial shows its function
#: proves: canary
#: refused: attribute
import functools
result = functools.partial(greet).func.__globals__['CANARY']
#: staticmethod-func
#: threat: L3
#: from: staticmethod shows its function
#: proves: canary
#: refused: attribute
result = staticmethod(greet).__func__.__globals__['CANARY']
#: classmethod-wrapped
#: threat: L3
#: from: classmethod shows its function
#: proves: canary
#: refused: attribute
result = classmethod(greet).__wrapped__.__globals__['CANARY']
#: property-fget-of-host
#: threat: L3
#: from: property shows its function
#: proves: canary
#: refused: attribute
result = type(vault).label.fget.__globals__['CANARY']
#: super-thisclass
#: threat: L3
#: from: super objects know their class
#: proves: canary
#: refused: attribute
class A:
    def f(self):
        return [c for c in super().__thisclass__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
result = A().f()
#: super-self-class
#: threat: L3
#: from: super over a host class
#: proves: canary
#: refused: attribute
result = super(type(vault), vault).__self__.__dict__['_secret']
#: objclass-of-a-method-descriptor
#: threat: L3
#: from: descriptors know their class
#: proves: canary
#: refused: attribute
result = [c for c in str.upper.__objclass__.__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: dict-subclass-as-namespace
#: threat: L3
#: from: __prepare__ hands the class's namespace
#: proves: canary
#: refused: attribute
class M(type):
    @classmethod
    def __prepare__(m, n, b):
        class D(dict):
            def __missing__(s, k):
                if k == 'leak':
                    return [c for c in type(vault).__base__.__subclasses__() if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
                raise KeyError(k)
        return D()
class A(metaclass=M):
    got = leak
result = A.got
