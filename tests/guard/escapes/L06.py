#: rebind-builtins-name
#: threat: L6
#: from: the names that a guard injects
#: proves: canary
#: refused: name
__builtins__ = {'len': len}
result = vault._secret
#: rebind-getattr-gates
#: threat: L6
#: from: RestrictedPython: _getattr_ bound by the code
#: proves: canary
#: refused: attribute
_getattr_ = getattr
result = vault._secret
#: rebind-write-gate
#: threat: L6
#: from: RestrictedPython: _write_ bound by the code
#: proves: mutates
#: refused: store
_write_ = lambda x: x
vault._secret = 1
result = vault.__dict__
#: rebind-by-def
#: threat: L6
#: from: agex: gates bound by def
#: proves: canary
#: refused: attribute
def _getattr_(o, n): return o
def __guard__(o, n): return o
result = vault._secret
#: rebind-by-class
#: threat: L6
#: from: agex: gates bound by class
#: proves: canary
#: refused: attribute
class _getattr_: pass
result = vault._secret
#: rebind-by-argument
#: threat: L6
#: from: agex: gates bound as arguments
#: proves: canary
#: refused: attribute
def f(_getattr_, getattr):
    return vault._secret
result = f(1, 2)
#: rebind-by-except-as
#: threat: L6
#: from: agex: gates bound by except-as
#: proves: canary
#: refused: attribute
try:
    1 / 0
except Exception as _getattr_:
    result = vault._secret
#: rebind-by-import-as
#: threat: L6
#: from: agex: gates bound by import-as
#: proves: canary
#: refused: attribute
import math as _getattr_
result = vault._secret
#: rebind-by-pattern
#: threat: L6
#: from: agex: gates bound by a pattern capture
#: proves: canary
#: refused: attribute
match 1:
    case _getattr_:
        result = vault._secret
#: rebind-by-walrus
#: threat: L6
#: from: gates bound by an expression
#: proves: canary
#: refused: attribute
(_getattr_ := 1)
result = vault._secret
#: rebind-by-for-and-with
#: threat: L6
#: from: gates bound by for
#: proves: canary
#: refused: attribute
for _getattr_ in [1]:
    result = vault._secret
#: rebind-by-star-import
#: threat: L6
#: from: gates bound by a star import
#: proves: canary
#: refused: attribute
from math import *
result = vault._secret
#: rebind-isinstance-type
#: threat: L6
#: from: built-ins that a guard may call
#: proves: canary
#: refused: attribute
type = isinstance = lambda *a: str
str = int
result = vault._secret
#: rebind-type-in-globals
#: threat: L6
#: from: built-ins that a guard may call
#: proves: canary
#: refused: attribute
globals()['type'] = lambda x: str
globals()['isinstance'] = lambda *a: True
result = vault._secret
#: rebind-str-startswith
#: threat: L6
#: from: checks that call str
#: proves: canary
#: refused: attribute
class str(str):
    def startswith(self, *a): return False
result = getattr(vault, str('_secret'))
#: globals-dotted-names
#: threat: L6
#: from: names that source cannot spell, through globals()
#: proves: canary
#: refused: attribute
for name, value in list(globals().items()):
    if not name.isidentifier():
        globals()[name] = lambda *a: a[0]
result = vault._secret
#: globals-setitem-all
#: threat: L6
#: from: everything in globals() replaced
#: proves: canary
#: refused: attribute
g = globals()
for n in list(g):
    if n not in ('vault', 'g', 'n'):
        g[n] = lambda *a, **k: a[0] if a else None
result = vault._secret
#: builtins-dict-through-vars
#: threat: L6
#: from: the dict of gates through vars()
#: proves: canary
#: refused: attribute
b = vars()['__builtins__'] if '__builtins__' in vars() else {}
b = b if isinstance(b, dict) else vars(b)
for n in list(b):
    if '.' in n:
        b[n] = frozenset(['_secret'])
result = vault._secret
#: builtins-dict-through-locals
#: threat: L6
#: from: the dict of gates through locals()
#: proves: canary
#: refused: attribute
b = locals().get('__builtins__') or {}
b = b if isinstance(b, dict) else vars(b)
b.update({n: (lambda *a: a[0]) for n in list(b) if '.' in n})
result = vault._secret
#: builtins-dict-through-exec-frame
#: threat: L6
#: from: names of temporaries in locals()
#: proves: canary
#: refused: attribute
def f():
    v = vault
    a = v.name()
    return [x for x in locals().values()]
result = [vars(x) for x in f() if hasattr(x, '__dict__')]
#: del-builtins
#: threat: L6
#: from: names removed so that a fallback is found
#: proves: canary
#: refused: attribute
globals().pop('__builtins__', None)
result = vault._secret
#: global-statement-of-gates
#: threat: L6
#: from: global statements
#: proves: canary
#: refused: name
def f():
    global _getattr_, __builtins__
    _getattr_ = __builtins__ = None
f()
result = vault._secret
#: nonlocal-gates
#: threat: L6
#: from: nonlocal statements
#: proves: canary
#: refused: attribute
def outer():
    _getattr_ = None
    def inner():
        nonlocal _getattr_
        _getattr_ = getattr
        return vault._secret
    return inner()
result = outer()
#: build-class-hook
#: threat: L6
#: from: __build_class__ replaced
#: proves: canary
#: refused: name
__build_class__ = lambda f, n, *b, **k: f
class A:
    got = vault._secret
result = vault._secret
#: name-error-name-and-obj
#: threat: L6
#: from: AttributeError.obj and NameError.name
#: proves: canary
#: refused: attribute
try:
    vault._nothing
except AttributeError as e:
    result = e.obj._secret
#: attribute-error-obj-by-pattern
#: threat: L6
#: from: AttributeError.obj by a pattern
#: proves: canary
#: refused: pattern
try:
    vault.nothing
except AttributeError as e:
    match e:
        case AttributeError(obj=o):
            result = o.__dict__
#: import-error-attributes
#: threat: L6
#: from: ImportError.path and name
#: proves: canary
#: refused: attribute
try:
    import toolbox.nothing
except ImportError as e:
    result = [e.name, vault._secret]
#: unbound-local-of-temporaries
#: threat: L6
#: from: names in exceptions
#: proves: canary
#: refused: attribute
def f():
    try:
        x
    except NameError as e:
        return e.name, vault._secret
    x = 1
result = f()
#: key-error-carries-object
#: threat: L6
#: from: exceptions carry what is hidden
#: proves: canary
#: refused: attribute
try:
    {}[vault]
except KeyError as e:
    result = e.args[0]._secret
#: function-builtins-attribute
#: threat: L6
#: from: functions know their built-ins
#: proves: canary
#: refused: attribute
def f(): pass
b = f.__builtins__
result = b['__import__']('vaults').CANARY
#: function-globals-of-own
#: threat: L6
#: from: functions know their globals
#: proves: canary
#: refused: attribute
def f(): pass
b = f.__globals__['__builtins__']
result = (b if isinstance(b, dict) else vars(b))['__import__']('vaults').CANARY
#: closure-of-own-comprehension
#: threat: L6
#: from: closures show cells
#: proves: canary
#: refused: attribute
def f():
    x = vault
    return lambda: x
result = f().__closure__[0].cell_contents._secret
#: closure-of-a-stand-in
#: threat: L6
#: from: what stands in for a built-in is a closure
#: proves: canary
#: refused: attribute
f = getattr
result = (f.__closure__ or [])[0].cell_contents if hasattr(f, '__closure__') else f(vault, '_secret')
#: code-of-a-stand-in
#: threat: L6
#: from: what stands in for a built-in has code
#: proves: canary
#: refused: attribute
f = print
c = f.__self__ if hasattr(f, '__self__') else f.__globals__
result = (vars(c) if not isinstance(c, dict) else c['__builtins__'])['__import__']('vaults').CANARY
#: defaults-of-a-stand-in
#: threat: L6
#: from: what stands in for a built-in has defaults
#: proves: canary
#: refused: attribute
#: plain: the real built-in has no such attribute
f = getattr
f.__defaults__ and f.__defaults__[0]
result = f(vault, '_secret')
#: wrapped-of-a-stand-in
#: threat: L6
#: from: what stands in for a built-in wraps it
#: proves: canary
#: refused: attribute
#: plain: the real built-in has no such attribute
result = getattr.__wrapped__(vault, '_secret')
#: module-of-a-stand-in
#: threat: L6
#: from: names of modules in reprs
#: proves: canary
#: refused: import
m = type(getattr).__module__
result = __import__(m).__dict__['__import__']('vaults').CANARY
#: stand-in-type-new
#: threat: L6
#: from: the stand-in for type taken apart
#: proves: canary
#: refused: attribute
T = type(type)
result = [c for c in T.__subclasses__(object) if c.__name__ == 'Vault'][0].name.__globals__['CANARY']
#: annotations-dict
#: threat: L6
#: from: __annotations__ of the module as a way to bind names
#: proves: canary
#: refused: attribute
__annotations__ = globals()
x: 1 = 2
result = __annotations__['vault']._secret
#: class-annotations-dict
#: threat: L6
#: from: __annotations__ in a class body
#: proves: canary
#: refused: attribute
class A:
    __annotations__ = {}
    x: vault._secret
result = A.__annotations__
#: class-body-locals
#: threat: L6
#: from: locals() in a class body
#: proves: canary
#: refused: attribute
class A:
    b = locals()
    b['__getattr__'] = getattr
    r = vault._secret
result = A.r
#: comprehension-first-argument
#: threat: L6
#: from: the hidden argument of a comprehension
#: proves: canary
#: refused: attribute
result = [vars(x) if hasattr(x, '__dict__') else x for x in [vault] if locals()]
#: match-args-name-is-gate
#: threat: L6
#: from: names taken from values
#: proves: canary
#: refused: attribute
class P:
    __match_args__ = ('__builtins__',)
class Q:
    pass
result = vault._secret
#: future-annotations-smuggle
#: threat: L6
#: from: annotations that are not checked
#: proves: canary
#: refused: attribute
from __future__ import annotations
import typing
def f(x: typing.Literal[vault._secret]): pass
result = typing.get_type_hints(f)
#: nested-f-string-conversion
#: threat: L6
#: from: f-strings hide expressions
#: proves: canary
#: refused: attribute
result = f"{f'{vault._secret!r}'!s:>{len(vault._secret)}}"
#: f-string-debug
#: threat: L6
#: from: f-strings hide expressions
#: proves: canary
#: refused: attribute
result = f'{vault._secret=}'
#: lambda-default-walrus
#: threat: L6
#: from: expressions where few look
#: proves: canary
#: refused: attribute
result = (lambda x=(y := vault): x._secret)()
#: decorator-attribute
#: threat: L6
#: from: expressions where few look
#: proves: canary
#: refused: attribute
@(lambda f: vault._secret)
def result(): pass
#: subscript-and-slice-places
#: threat: L6
#: from: expressions where few look
#: proves: canary
#: refused: attribute
d = {}
d[vault._secret] = 1
result = list(d)
#: with-item-attribute-target
#: threat: L6
#: from: targets are attributes
#: proves: mutates
#: refused: store
class C:
    def __enter__(self): return 'gone'
    def __exit__(self, *a): pass
with C() as vault._secret:
    pass
#: encoding-declaration
#: threat: L6
#: from: source in an encoding that hides code
#: proves: canary
#: refused: attribute
# -*- coding: utf-7 -*-
result = vault._secret
#: form-feed-and-continuations
#: threat: L6
#: from: source that line-based checks misread
#: proves: canary
#: refused: attribute
result = vault \
    . \
    _secret
#: null-and-bidi-characters
#: threat: L6
#: from: source that is read otherwise than it looks
#: proves: canary
#: refused: attribute
result = vault._secret  # ‮ terces‬
