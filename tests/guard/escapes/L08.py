#: argument-list-appended
#: threat: L8
#: from: changes to an argument
#: proves: mutates
#: harmless: values cross into a session as copies
rows.append(4)
#: argument-nested-list
#: threat: L8
#: from: changes within an argument
#: proves: mutates
#: harmless: values cross into a session as copies
rows[1].append(9)
#: argument-nested-dict
#: threat: L8
#: from: changes within an argument
#: proves: mutates
#: harmless: values cross into a session as copies
rows[2]['k'] = 'w'
#: argument-cleared
#: threat: L8
#: from: changes to an argument
#: proves: mutates
#: harmless: values cross into a session as copies
rows.clear()
#: argument-slice-deleted
#: threat: L8
#: from: changes to an argument
#: proves: mutates
#: harmless: values cross into a session as copies
del rows[:2]
#: argument-sorted-in-place
#: threat: L8
#: from: changes to an argument
#: proves: mutates
#: harmless: values cross into a session as copies
rows.reverse()
#: argument-augmented
#: threat: L8
#: from: changes to an argument
#: proves: mutates
#: harmless: values cross into a session as copies
rows += [5]
#: argument-through-heapq
#: threat: L8
#: from: C functions that change lists
#: proves: mutates
#: harmless: values cross into a session as copies
import heapq
heapq.heappush(rows[1], 0)
#: argument-through-random-shuffle
#: threat: L8
#: from: functions that change lists
#: proves: mutates
#: harmless: values cross into a session as copies
import random
random.Random(1).shuffle(rows)
#: argument-through-bisect
#: threat: L8
#: from: C functions that change lists
#: proves: mutates
#: harmless: values cross into a session as copies
import bisect
bisect.insort(rows[1], 2)
#: argument-through-pattern
#: threat: L8
#: from: changes by a captured part
#: proves: mutates
#: harmless: values cross into a session as copies
match rows:
    case [_, inner, *_]:
        inner[:] = []
#: argument-through-list-unbound
#: threat: L8
#: from: methods of the class
#: proves: mutates
#: harmless: values cross into a session as copies
list.append(rows, 7)
#: argument-through-operator
#: threat: L8
#: from: C functions that change lists
#: proves: mutates
#: harmless: values cross into a session as copies
import operator
operator.setitem(rows, 0, 'changed')
#: host-attribute-set
#: threat: L8
#: from: attributes of a host object
#: proves: mutates
#: refused: store
vault.name = lambda: 'x'
#: host-private-attribute-set
#: threat: L8
#: from: attributes of a host object
#: proves: mutates
#: refused: store
vault._name = 'x'
#: host-attribute-by-setattr
#: threat: L8
#: from: setattr
#: proves: mutates
#: refused: store
setattr(vault, 'x', 1)
#: host-attribute-by-object-setattr
#: threat: L8
#: from: object.__setattr__
#: proves: mutates
#: refused: store
object.__setattr__(vault, '_name', 'x')
#: host-attribute-deleted
#: threat: L8
#: from: del
#: proves: mutates
#: refused: store
del vault._name
#: host-attribute-by-delattr
#: threat: L8
#: from: delattr
#: proves: mutates
#: refused: store
delattr(vault, '_name')
#: host-attribute-by-for-target
#: threat: L8
#: from: stores without an assignment
#: proves: mutates
#: refused: store
for vault._name in ['x']: pass
#: host-attribute-by-with-target
#: threat: L8
#: from: stores without an assignment
#: proves: mutates
#: refused: store
class C:
    def __enter__(self): return 'x'
    def __exit__(self, *a): pass
with C() as vault._name: pass
#: host-attribute-by-comprehension-target
#: threat: L8
#: from: stores without an assignment
#: proves: mutates
#: refused: store
[0 for vault._name in 'x']
#: host-attribute-by-augmented
#: threat: L8
#: from: stores without an assignment
#: proves: mutates
#: refused: store
vault._name += 'x'
#: host-attribute-by-unpacking
#: threat: L8
#: from: stores without an assignment
#: proves: mutates
#: refused: store
(vault._name, *vault.rest), y = 'xyz', 1
#: host-dict-update
#: threat: L8
#: from: the dict of a host object
#: proves: mutates
#: refused: attribute
vault.__dict__.update(_name='x')
#: host-class-attribute
#: threat: L8
#: from: attributes of a host's class
#: proves: mutates
#: refused: store
type(vault).opened = 99
#: host-class-method
#: threat: L8
#: from: methods of a host's class
#: proves: mutates
#: refused: store
type(vault).name = lambda self: 'x'
#: host-class-by-type-setattr
#: threat: L8
#: from: type.__setattr__
#: proves: mutates
#: refused: type
type.__setattr__(type(vault), 'opened', 1)
#: host-class-annotations
#: threat: L8
#: from: attributes of a host's class
#: proves: mutates
#: refused: attribute
vault.__class__.__annotations__ = {'x': int}
#: class-in-module-attribute
#: threat: L8
#: from: classes of a granted module
#: proves: mutates
#: refused: store
import toolbox
toolbox.Tool.kinds = []
#: class-in-module-list
#: threat: L8
#: from: lists of a granted class
#: proves: mutates
#: harmless: a list of the host is handed out as a copy
import toolbox
toolbox.Tool.kinds.append('x')
#: module-attribute-set
#: threat: L8
#: from: attributes of a module
#: proves: mutates
#: refused: store
import toolbox
toolbox.shout = lambda t: t
#: module-attribute-deleted
#: threat: L8
#: from: attributes of a module
#: proves: mutates
#: refused: store
import toolbox
del toolbox.shout
#: module-list-changed
#: threat: L8
#: from: lists of a module
#: proves: mutates
#: harmless: a list of the host is handed out as a copy
import toolbox
toolbox.SIZES.append('huge')
#: module-dict-changed
#: threat: L8
#: from: the dict of a module
#: proves: mutates
#: harmless: a module's namespace is shown through a read-only view
import toolbox
vars(toolbox)['SIZES'] = None
#: module-attribute-by-import-target
#: threat: L8
#: from: stores by import
#: proves: mutates
#: harmless: a module's namespace is shown through a read-only view
import toolbox
import math as m
toolbox.__dict__['m'] = m
#: stdlib-attribute-set
#: threat: L8
#: from: attributes of the standard library
#: proves: mutates
#: refused: store
import json
json.dumps = lambda o: 'x'
#: stdlib-class-attribute
#: threat: L8
#: from: classes of the standard library
#: proves: mutates
#: refused: store
import json
json.JSONEncoder.item_separator = ';'
import textwrap
textwrap.TextWrapper.unicode_whitespace_trans = {}
import math
math.pi = 3
#: stdlib-constant
#: threat: L8
#: from: lists and dicts of the standard library
#: proves: mutates
#: refused: store
import random
random.seed = None
#: stdlib-string-constants
#: threat: L8
#: from: constants of the standard library
#: proves: mutates
#: refused: store
import string
string.digits = ''
#: random-state-of-the-host
#: threat: L8
#: from: the host's random state
#: proves: mutates
#: harmless: random numbers are the session's own
import random
random.seed(1)
#: random-state-advanced
#: threat: L8
#: from: the host's random state
#: proves: mutates
#: harmless: random numbers are the session's own
import random
[random.random() for _ in range(3)]
#: decimal-context-of-the-host
#: threat: L8
#: from: the host's decimal context
#: proves: mutates
#: harmless: the decimal context is the session's own
import decimal
decimal.getcontext().prec = 3
#: decimal-setcontext
#: threat: L8
#: from: the host's decimal context
#: proves: mutates
#: harmless: the decimal context is the session's own
import decimal
decimal.setcontext(decimal.Context(prec=2))
#: decimal-default-context
#: threat: L8
#: from: the decimal defaults
#: proves: mutates
#: refused: import
import decimal
decimal.DefaultContext.prec = 2
decimal.getcontext().prec = 2
#: warnings-filters-of-the-host
#: threat: L8
#: from: the host's warning filters
#: proves: mutates
#: harmless: warnings are the session's own
import warnings
warnings.simplefilter('error')
#: warnings-showwarning
#: threat: L8
#: from: the host's warnings hook
#: proves: mutates
#: refused: store
import warnings
warnings.showwarning = None
warnings.filters.clear()
#: function-defaults
#: threat: L8
#: from: defaults of a host's function
#: proves: mutates
#: refused: store
greet.__defaults__ = ('?',)
#: function-attribute
#: threat: L8
#: from: attributes of a host's function
#: proves: mutates
#: harmless: a function of the host is handed out behind one of the session's
greet.calls = 1
#: function-kwdefaults
#: threat: L8
#: from: defaults of a host's function
#: proves: mutates
#: refused: store
greet.__kwdefaults__ = {'x': 1}
#: function-code-of-host
#: threat: L8
#: from: code of a host's function
#: proves: mutates
#: refused: attribute
greet.__code__ = (lambda name, punctuation='!': 'x').__code__
#: method-function-attribute
#: threat: L8
#: from: attributes of a host's method
#: proves: mutates
#: refused: attribute
type(vault).name.__func__ = 1 if False else None
type(vault).name = None
#: builtins-attribute
#: threat: L8
#: from: built-ins of the process
#: proves: mutates
#: refused: import
import builtins
builtins.len = lambda x: 0
#: builtins-by-globals
#: threat: L8
#: from: built-ins of the process
#: proves: mutates
#: harmless: globals() shows the code's own names alone
b = globals()['__builtins__']
(b if isinstance(b, dict) else vars(b))['extra_name'] = 1
#: sys-recursion-limit
#: threat: L8
#: from: settings of the interpreter
#: proves: mutates
#: harmless: the recursion limit is the process's: setting it does nothing
import sys
sys.setrecursionlimit(5000)
#: sys-stdout
#: threat: L8
#: from: streams of the process
#: proves: mutates
#: refused: store
import sys
sys.stderr = None
sys.excepthook = None
#: sys-path
#: threat: L8
#: from: settings of the interpreter
#: proves: mutates
#: harmless: sys.path is a list of the session's own
import sys
sys.path.append('/x')
#: environment
#: threat: L8
#: from: environment of the process
#: proves: mutates
#: refused: import
import os
os.environ['X'] = '1'
#: working-directory
#: threat: L8
#: from: directory of the process
#: proves: mutates
#: refused: import
import os
os.chdir('/')
#: copyreg-dispatch
#: threat: L8
#: from: tables of the process
#: proves: mutates
#: refused: import
import copyreg, copy
class A: pass
copyreg.pickle(type(vault), lambda v: (str, ()))
vault._name = 'x'
#: abc-register-host-class
#: threat: L8
#: from: registers of the process
#: proves: mutates
#: refused: type
import collections.abc
collections.abc.Sized.register(type(vault))
type(vault).extra = isinstance(vault, collections.abc.Sized)
#: functools-wraps-onto-host
#: threat: L8
#: from: functools sets attributes on what it is given
#: proves: mutates
#: harmless: a function of the host is handed out behind one of the session's
import functools
def f(): pass
functools.update_wrapper(greet, f)
#: functools-cached-property-onto-host
#: threat: L8
#: from: descriptors that write into instances
#: proves: mutates
#: refused: attribute
import functools
class P: pass
c = functools.cached_property(lambda s: 1)
c.__set_name__(P, '_name')
c.__get__(vault, type(vault))
vault.__dict__['_name'] = 1
#: total-ordering-onto-host
#: threat: L8
#: from: decorators that set attributes on classes
#: proves: mutates
#: refused: store
import functools
type(vault).__lt__ = lambda a, b: True
functools.total_ordering(type(vault))
#: dataclass-onto-host
#: threat: L8
#: from: decorators that set attributes on classes
#: proves: mutates
#: refused: class
import dataclasses
dataclasses.dataclass(type(vault))
#: abstractmethod-onto-host
#: threat: L8
#: from: decorators that set attributes
#: proves: mutates
#: refused: store
import abc
abc.abstractmethod(greet)
#: typing-final-onto-host
#: threat: L8
#: from: decorators that set attributes
#: proves: mutates
#: harmless: final() gives back what it takes and marks nothing
import typing
typing.final(greet)
#: typing-no-type-check-onto-host
#: threat: L8
#: from: decorators that set attributes
#: proves: mutates
#: harmless: no_type_check() gives back what it takes and marks nothing
import typing
typing.no_type_check(greet)
#: runtime-checkable-and-overload
#: threat: L8
#: from: decorators that set attributes
#: proves: mutates
#: harmless: a function of the host is handed out behind one of the session's
#: python: 3.12
import typing
typing.override(greet)
#: enum-onto-host
#: threat: L8
#: from: descriptors bound by __set_name__
#: proves: mutates
#: refused: store
import enum
class D:
    def __set_name__(self, owner, name):
        type(vault).opened = 5
class A:
    d = D()
#: super-init-again
#: threat: L8
#: from: __init__ called again on a host object
#: proves: mutates
#: refused: store
type(vault).__init__(vault, 'renamed')
#: subclass-method-applied
#: threat: L8
#: from: own methods applied to a host object
#: proves: mutates
#: refused: store
class A:
    def go(self): self._name = 'x'
A.go(vault)
#: property-setter-applied
#: threat: L8
#: from: own descriptors applied to a host object
#: proves: mutates
#: refused: store
class A:
    @property
    def p(self): return 1
    @p.setter
    def p(self, v): self._name = v
A.p.fset(vault, 'x')
A.p.__set__(vault, 'x')
#: slot-member-applied
#: threat: L8
#: from: own slot descriptors applied to a host object
#: proves: mutates
#: refused: store
object.__setattr__(vault, '_name', 'x')
class A:
    __slots__ = ('_name',)
A._name.__set__(vault, 'x')
#: exception-class-attribute
#: threat: L8
#: from: classes of built-in exceptions
#: proves: mutates
#: refused: store
import toolbox
toolbox.ToolError.args = ()
#: callback-changes-host
#: threat: L8
#: from: host functions that call back
#: proves: mutates
#: harmless: the host's function is called with the code's own values
import toolbox
toolbox.measure([rows], key=lambda r: r.append(1) or 0)
#: view-compared-hands-over-its-dict
#: threat: L8
#: from: pyjails: comparing a read-only view hands its dict to __eq__ of the other side
#: proves: canary
#: harmless: a view is one of a copy
import re
class Got:
    def __eq__(self, other):
        other["seen"] = vault
re.RegexFlag.__members__ == Got()
result = re.RegexFlag.__members__["seen"].__dict__
#: view-merged-hands-over-its-dict
#: threat: L8
#: from: pyjails: a view on the left of | hands its dict to __ror__ of the right side
#: proves: canary
#: harmless: a view is one of a copy
import re
class Got:
    def __ror__(self, other):
        other["seen"] = vault
re.compile("(?P<a>x)").groupindex | Got()
result = re.compile("(?P<a>x)").groupindex["seen"].__dict__
#: argparse-sets-attributes-of-an-object
#: threat: L8
#: from: parse_args(namespace=…)
#: proves: mutates
#: refused: store
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--name', dest='_name')
parser.parse_args(['--name', 'mine'], namespace=vault)
#: argparse-reads-attributes-of-an-object
#: threat: L8
#: from: parse_args(namespace=…) asks for attributes by name
#: proves: canary
#: refused: store
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--name', dest='_secret')
result = vars(parser.parse_args([], namespace=vault))
#: abstract-classmethod-onto-host
#: threat: L8
#: from: decorators that mark what they are given
#: proves: mutates
#: refused: store
import abc
abc.abstractclassmethod(vault)
#: abstract-staticmethod-onto-host
#: threat: L8
#: from: decorators that mark what they are given
#: proves: mutates
#: refused: store
import abc
abc.abstractstaticmethod(vault)
#: init-through-a-generic-alias
#: threat: L8
#: from: what an alias of a generic class is asked for, its origin is asked for
#: proves: mutates
#: refused: attribute
import types
types.GenericAlias(vault, int).__init__("renamed")
