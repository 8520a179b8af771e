#: eval
#: threat: L5
#: from: eval
#: proves: canary
#: refused: builtin
result = eval("__import__('vaults').CANARY")
#: exec
#: threat: L5
#: from: exec
#: proves: canary
#: refused: builtin
exec("result = __import__('vaults').CANARY")
#: compile
#: threat: L5
#: from: compile and a function type
#: proves: canary
#: refused: builtin
c = compile("__import__('vaults').CANARY", 'x', 'eval')
result = eval(c)
#: eval-by-other-route
#: threat: L5
#: from: eval found among the built-ins
#: proves: canary
#: refused: import
e = [f for n, f in vars(__import__('builtins')).items() if n == 'eval'][0]
result = e("__import__('vaults').CANARY")
#: eval-aliased
#: threat: L5
#: from: a name bound elsewhere
#: proves: canary
#: refused: builtin
def f(run=eval):
    return run("__import__('vaults').CANARY")
result = f()
#: eval-in-map
#: threat: L5
#: from: smolagents: calls that are not call nodes of a name
#: proves: canary
#: refused: builtin
result = list(map(eval, ["__import__('vaults').CANARY"]))
#: eval-as-decorator
#: threat: L5
#: from: pyjails: decorators call without parentheses
#: proves: canary
#: refused: builtin
@eval
@'"{}"'.format
@lambda f: 'x'
def a(): pass
result = eval('vault._secret')
#: eval-by-class-getitem
#: threat: L5
#: from: pyjails: subscription that calls
#: proves: canary
#: refused: store
class A: pass
A.__class_getitem__ = eval
result = A['vault._secret']
#: eval-by-operator
#: threat: L5
#: from: pyjails: operators that call
#: proves: canary
#: refused: builtin
class M(type):
    __getitem__ = lambda cls, s: eval(s)
class A(metaclass=M): pass
result = A['vault._secret']
#: eval-nfkc
#: threat: L5
#: from: identifiers normalised after the check
#: proves: canary
#: refused: builtin
result = ｅval('vault._secret')
#: eval-in-annotation
#: threat: L5
#: from: annotations run
#: proves: canary
#: refused: builtin
def f(x: eval('vault._secret')): pass
result = f.__annotations__['x']
#: eval-in-default
#: threat: L5
#: from: defaults run
#: proves: canary
#: refused: builtin
f = lambda x=eval('vault._secret'): x
result = f()
#: get-type-hints-evaluates
#: threat: L5
#: from: typing evaluates string annotations
#: proves: canary
#: refused: attribute
import typing
class A:
    x: 'vault._secret.__class__ and typing.Literal[vault._secret]'
result = typing.get_type_hints(A, globals())
#: forward-ref-evaluates
#: threat: L5
#: from: typing.ForwardRef evaluates
#: proves: canary
#: refused: import
import typing
result = typing.ForwardRef('vault._secret and typing.Literal[vault._secret]')._evaluate(globals(), {}, recursive_guard=frozenset())
#: get-type-hints-of-function
#: threat: L5
#: from: typing evaluates string annotations
#: proves: canary
#: refused: import
import typing
def f(x: 'typing.Literal[__import__("vaults").CANARY]'): pass
result = typing.get_type_hints(f)
#: inspect-signature-evaluates
#: threat: L5
#: from: inspect evaluates string annotations
#: proves: canary
#: harmless: eval_str is ignored: annotations stay texts
import inspect
def f(x: 'vault._secret'): pass
result = inspect.signature(f, eval_str=True)
#: inspect-get-annotations
#: threat: L5
#: from: inspect evaluates string annotations
#: proves: canary
#: refused: import
import inspect
class A:
    x: 'vault._secret'
result = inspect.get_annotations(A, eval_str=True)
#: dataclass-field-name
#: threat: L5
#: from: agex: dataclasses execute field names
#: proves: canary
#: refused: attribute
import dataclasses
D = dataclasses.make_dataclass('D', [('x', 'int', dataclasses.field(default=vault._secret))])
result = D()
#: dataclass-annotations-as-code
#: threat: L5
#: from: dataclasses put names into source
#: proves: canary
#: refused: attribute
import dataclasses
class A: pass
A.__annotations__ = {'x=vault._secret if 1 else 0': int}
try:
    dataclasses.dataclass(A)
finally:
    result = vault._secret
#: dataclass-default-factory
#: threat: L5
#: from: dataclasses call factories
#: proves: canary
#: refused: attribute
import dataclasses
@dataclasses.dataclass
class D:
    x: str = dataclasses.field(default_factory=vault.__getstate__)
result = D()
#: dataclass-init-globals
#: threat: L5
#: from: functions made by dataclasses
#: proves: canary
#: refused: attribute
import dataclasses
@dataclasses.dataclass
class D:
    x: int
result = D.__init__.__globals__['vault']._secret if 'vault' in D.__init__.__globals__ else D.__init__.__builtins__['__import__']('vaults').CANARY
#: namedtuple-field-names
#: threat: L5
#: from: namedtuple once executed its field names
#: proves: canary
#: refused: attribute
import collections
P = collections.namedtuple('P', ['x'], defaults=[vault._secret])
result = P()
#: namedtuple-module
#: threat: L5
#: from: namedtuple sets __module__
#: proves: canary
#: refused: import
import collections, sys
P = collections.namedtuple('P', 'x', module='vaults')
result = sys.modules[P.__module__].CANARY
#: namedtuple-new-globals
#: threat: L5
#: from: functions made by namedtuple
#: proves: canary
#: refused: attribute
import collections
result = collections.namedtuple('P', 'x')._make.__func__.__globals__['__builtins__']['__import__']('vaults').CANARY
#: timeit
#: threat: L5
#: from: timeit runs source
#: proves: canary
#: refused: attribute
import timeit
result = []
timeit.timeit('result.append(vault._secret)', number=1, globals=globals())
#: cprofile-run
#: threat: L5
#: from: profilers run source
#: proves: canary
#: refused: import
import cProfile
cProfile.runctx('global result; result = vault._secret', globals(), {})
#: doctest-run
#: threat: L5
#: from: doctest runs source
#: proves: canary
#: refused: import
import doctest
result = []
doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest('>>> result.append(vault._secret)', globals(), 'n', 'f', 0))
#: code-interact
#: threat: L5
#: from: the code module runs source
#: proves: canary
#: refused: import
import code
code.InteractiveInterpreter(globals()).runsource('result = vault._secret')
#: pickle-loads
#: threat: L5
#: from: pickle calls what the bytes name
#: proves: canary
#: refused: import
import pickle
result = pickle.loads(b'cvaults\nCANARY\n.')
#: pickle-reduce
#: threat: L5
#: from: pickle calls what __reduce__ names
#: proves: canary
#: refused: import
import pickle
class R:
    def __reduce__(self):
        return (getattr, (vault, '_secret'))
result = pickle.loads(pickle.dumps(R()))
#: marshal
#: threat: L5
#: from: marshal makes code objects
#: proves: canary
#: refused: import
import marshal
F = type(lambda: 0)
result = F(marshal.loads(marshal.dumps((lambda: vault._secret).__code__)), globals())()
#: shelve-and-copyreg
#: threat: L5
#: from: copyreg registers constructors
#: proves: canary
#: refused: import
import copyreg, copy
class A: pass
copyreg.pickle(A, lambda a: (getattr, (vault, '_secret')))
result = copy.copy(A())
#: copy-reduce
#: threat: L5
#: from: copy calls what __reduce_ex__ names
#: proves: canary
#: refused: class
import copy
class R:
    def __reduce_ex__(self, p):
        return (getattr, (vault, '_secret'))
result = copy.copy(R())
#: deepcopy-reduce-to-vars
#: threat: L5
#: from: copy calls what __reduce__ names
#: proves: canary
#: refused: class
import copy
class R:
    def __reduce__(self):
        return (vars, (vault,))
result = copy.deepcopy(R())
#: copy-reduce-state
#: threat: L5
#: from: copy sets the state that __reduce__ names
#: proves: canary
#: refused: class
import copy
class R:
    def __reduce__(self):
        return (object.__getattribute__, (vault, '__dict__'))
result = copy.copy(R())
#: deepcopy-hook-with-memo
#: threat: L5
#: from: __deepcopy__ is handed the memo
#: proves: canary
#: refused: attribute
import copy
class R:
    def __deepcopy__(self, memo):
        memo[id(vault)] = vault
        return vars(vault)
result = copy.deepcopy([vault, R()])
#: copy-of-host-object
#: threat: L5
#: from: a copy shows what the original hid
#: proves: canary
#: refused: attribute
import copy
v = copy.deepcopy(vault)
result = v._secret
#: module-of-host-function
#: threat: L5
#: from: functions tell the name of their module
#: proves: canary
#: refused: import
result = __import__(greet.__module__).CANARY
#: string-template-subclass
#: threat: L5
#: from: Template with its own pattern
#: proves: canary
#: refused: builtin
import string
class T(string.Template):
    idpattern = '[a-z._]+'
class M(dict):
    def __missing__(self, k):
        return eval(k)
result = T('$vault._secret').substitute(M())
#: json-object-hook-eval
#: threat: L5
#: from: hooks that are handed text
#: proves: canary
#: refused: builtin
import json
result = json.loads('{"a": 1}', object_hook=lambda d: eval('vault._secret'))
#: json-parse-constant-eval
#: threat: L5
#: from: hooks that are built-ins
#: proves: canary
#: refused: builtin
import json
result = json.loads('NaN', parse_constant=lambda s: eval('vault._secret'))
#: json-parse-float-getattr
#: threat: L5
#: from: hooks that are handed names
#: proves: canary
#: refused: attribute
import json
result = json.loads('[0.1]', parse_float=lambda s: getattr(vault, '_secret'))
#: re-sub-with-eval
#: threat: L5
#: from: hooks of re
#: proves: canary
#: refused: builtin
import re
result = re.sub('.+', lambda m: str(eval(m[0])), 'vault._secret')
#: re-template-expand
#: threat: L5
#: from: re templates
#: proves: canary
#: refused: attribute
import re
result = re.match('(?P<x>.*)', 'vault._secret').expand(r'\g<x>') and vault._secret
#: logging-formatter-style
#: threat: L5
#: from: logging formats with str.format
#: proves: canary
#: refused: import
import logging
r = logging.LogRecord('n', 10, 'p', 1, 'm', (), None)
r.v = vault
result = logging.Formatter('{v._secret}', style='{').format(r)
#: logging-log-record-globals
#: threat: L5
#: from: logging finds frames
#: proves: canary
#: refused: import
import logging
result = logging.os.environ['CANARY']
#: ast-literal-and-compile
#: threat: L5
#: from: ast compiles
#: proves: canary
#: refused: builtin
import ast
result = eval(compile(ast.parse('vault._secret', mode='eval'), 'x', 'eval'))
#: types-function-type
#: threat: L5
#: from: types makes functions
#: proves: canary
#: refused: attribute
import types
result = types.FunctionType((lambda: CANARY).__code__, greet.__globals__)()
#: types-code-replace
#: threat: L5
#: from: types makes code
#: proves: canary
#: refused: attribute
import types
f = lambda: CANARY
result = types.FunctionType(f.__code__.replace(co_name='g'), greet.__globals__)()
#: types-dynamic-class
#: threat: L5
#: from: types.new_class runs a callback with the namespace
#: proves: canary
#: refused: import
import types
def body(ns):
    ns['got'] = vault._secret
result = types.new_class('A', (), {}, body).got
#: simplenamespace-vars
#: threat: L5
#: from: types.SimpleNamespace holds anything
#: proves: canary
#: refused: attribute
import types
n = types.SimpleNamespace(**vars(vault))
result = n
#: sqlite-load
#: threat: L5
#: from: sqlite opens files
#: proves: canary
#: refused: import
import sqlite3, toolbox
sqlite3.connect(toolbox.WHERE + '.db').execute('create table t (x)')
result = open(toolbox.WHERE).read()
#: doctest-runs-what-docstrings-say
#: threat: L5
#: from: doctest runs source from texts
#: proves: canary
#: plain: no
#: refused: attribute
import doctest
def f():
    """
    >>> vault._secret
    >>> print(vault.__class__.__init__.__globals__['CANARY'])
    """
print(doctest.testmod())
doctest.run_docstring_examples(f, globals(), verbose=True)
#: timeit-runs-texts
#: threat: L5
#: from: timeit compiles a statement
#: proves: canary
#: refused: attribute
import timeit
result = []
timeit.timeit('result.append(vault._secret)', globals={**globals(), 'vault': vault, 'result': result}, number=1)
#: timeit-setup-breaks-out-of-its-function
#: threat: L5
#: from: timeit compiles a statement
#: proves: canary
#: refused: attribute
import timeit
result = []
timeit.timeit('pass', setup='pass\nresult.append(vault._secret)', globals={'vault': vault, 'result': result}, number=1)
#: path-reads-a-file
#: threat: L5
#: from: pathlib opens files
#: proves: canary
#: refused: builtin
import pathlib, toolbox
result = pathlib.Path(toolbox.WHERE).read_text()
#: path-parser-is-a-module
#: threat: L4
#: from: Python 3.13 keeps posixpath in an attribute
#: python: 3.13
#: proves: canary
#: refused: attribute
import pathlib
result = pathlib.PurePath('x').parser.os.environ['CANARY']
#: argparse-reads-words-from-a-file
#: threat: L5
#: from: fromfile_prefix_chars
#: proves: canary
#: refused: builtin
import argparse, toolbox
result = argparse.ArgumentParser(fromfile_prefix_chars='@').parse_known_args(['@' + toolbox.WHERE])
#: argparse-reads-the-words-of-the-host
#: threat: L4
#: from: sys.argv by way of argparse
#: proves: canary
#: plain: no
#: harmless: without words of its own a parser has none
import argparse
result = argparse.ArgumentParser().parse_known_args()
