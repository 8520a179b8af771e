#: gi-frame
#: threat: L2
#: from: pyjails: generator frames
#: proves: canary
#: refused: frame
g = (x for x in ())
f = g.gi_frame
result = f.f_builtins['__import__']('vaults').CANARY
#: gi-frame-by-getattr
#: threat: L2
#: from: pyjails: generator frames
#: proves: canary
#: refused: frame
g = (x for x in ())
result = getattr(getattr(g, 'gi_' + 'frame'), 'f_builtins')['__import__']('vaults').CANARY
#: gi-frame-back
#: threat: L2
#: from: RestrictedPython CVE of 2023: gi_frame.f_back leads out of the sandbox
#: proves: canary
#: refused: frame
def gen():
    yield g.gi_frame.f_back
g = gen()
f = next(g)

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: gi-frame-in-generator-expression
#: threat: L2
#: from: RestrictedPython CVE of 2023: generator expressions
#: proves: canary
#: refused: frame
g = (g.gi_frame.f_back.f_back for _ in [1])
f = [*g][0]

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: gi-yieldfrom-frame
#: threat: L2
#: from: frames of what is delegated to
#: proves: canary
#: refused: frame
def inner():
    yield 1
def outer():
    yield from inner()
o = outer()
next(o)
result = o.gi_yieldfrom.gi_frame.f_builtins["__import__"]("vaults").CANARY
#: gi-code
#: threat: L2
#: from: code objects of generators
#: proves: canary
#: refused: frame
def gen():
    yield 1
c = gen().gi_code
def fake(): pass
fake.__code__ = c.replace(co_consts=(None, 1))
result = fake.__globals__["__builtins__"]
result = (result if isinstance(result, dict) else vars(result))["__import__"]("vaults").CANARY
#: cr-frame
#: threat: L2
#: from: coroutines' frames
#: proves: canary
#: refused: frame
async def f(): pass
c = f()
result = c.cr_frame.f_builtins["__import__"]("vaults").CANARY
c.close()
#: cr-await
#: threat: L2
#: from: what a coroutine waits for
#: proves: canary
#: refused: frame
class W:
    def __await__(self):
        yield
async def inner(): await W()
async def outer(): await inner()
c = outer()
c.send(None)
result = c.cr_await.cr_frame.f_builtins["__import__"]("vaults").CANARY
c.close()
#: ag-frame
#: threat: L2
#: from: asynchronous generators' frames
#: proves: canary
#: refused: frame
async def f():
    yield 1
result = f().ag_frame.f_builtins["__import__"]("vaults").CANARY
#: traceback-frame
#: threat: L2
#: from: asteval and RestrictedPython: tracebacks
#: proves: canary
#: refused: frame
try:
    1 / 0
except Exception as e:
    f = e.__traceback__.tb_frame

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: traceback-of-a-host-function
#: threat: L2
#: from: frames of the host's functions hold its variables
#: proves: canary
#: refused: attribute
import toolbox
try:
    toolbox.fail()
except Exception as e:
    t = e.__traceback__
    while t.tb_next:
        t = t.tb_next
    result = t.tb_frame.f_locals["hidden"]
#: traceback-by-class-pattern
#: threat: L2
#: from: class patterns on tracebacks
#: proves: canary
#: refused: attribute
import toolbox
try:
    toolbox.fail()
except Exception as e:
    match e:
        case Exception(__traceback__=object(tb_next=object(tb_frame=object(f_locals={"hidden": h})))):
            result = h
#: traceback-from-exit
#: threat: L2
#: from: agex: a real traceback handed to __exit__
#: proves: canary
#: refused: frame
import toolbox
class C:
    def __enter__(self): return self
    def __exit__(self, kind, value, tb):
        global result
        while tb.tb_next:
            tb = tb.tb_next
        result = tb.tb_frame.f_locals["hidden"]
        return True
with C():
    toolbox.fail()
#: traceback-from-aexit
#: threat: L2
#: from: a real traceback handed to __aexit__
#: proves: canary
#: refused: frame
import toolbox
class C:
    async def __aenter__(self): return self
    async def __aexit__(self, kind, value, tb):
        global result
        while tb.tb_next:
            tb = tb.tb_next
        result = tb.tb_frame.f_locals["hidden"]
        return True
async with C():
    toolbox.fail()
#: traceback-from-contextlib-exit-stack
#: threat: L2
#: from: callbacks of ExitStack are handed tracebacks
#: proves: canary
#: refused: frame
import contextlib, toolbox
got = []
with contextlib.ExitStack() as stack:
    stack.push(lambda kind, value, tb: got.append(tb) or True)
    toolbox.fail()
tb = got[0]
while tb.tb_next:
    tb = tb.tb_next
result = tb.tb_frame.f_locals["hidden"]
#: frames-of-host-generator
#: threat: L2
#: from: a generator that the host made
#: proves: canary
#: refused: frame
import toolbox
g = toolbox.parts()
next(g)
result = g.gi_frame.f_locals["hidden"]
#: sys-getframe
#: threat: L2
#: from: frames by sys
#: proves: canary
#: refused: frame
import sys
f = sys._getframe()

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: inspect-currentframe
#: threat: L2
#: from: frames by inspect
#: proves: canary
#: refused: frame
import inspect
f = inspect.currentframe()

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: inspect-stack
#: threat: L2
#: from: frames by inspect
#: proves: canary
#: refused: frame
import inspect
f = inspect.stack()[0].frame

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: inspect-getgeneratorlocals
#: threat: L2
#: from: inspect reads frames by itself
#: proves: canary
#: refused: import
import inspect, toolbox
g = toolbox.parts()
next(g)
result = inspect.getgeneratorlocals(g)
#: traceback-walk-tb
#: threat: L2
#: from: the traceback module walks frames
#: proves: canary
#: refused: frame
import traceback, toolbox
try:
    toolbox.fail()
except Exception as e:
    result = [f.f_locals for f, _ in traceback.walk_tb(e.__traceback__)]
#: traceback-capture-locals
#: threat: L2
#: from: traceback captures locals as text
#: proves: canary
#: refused: import
import traceback, toolbox
try:
    toolbox.fail()
except Exception as e:
    result = "".join(traceback.TracebackException.from_exception(e, capture_locals=True).format())
#: sys-exc-info
#: threat: L2
#: from: the traceback by sys.exc_info
#: proves: canary
#: refused: frame
import sys, toolbox
try:
    toolbox.fail()
except Exception:
    tb = sys.exc_info()[2]
    while tb.tb_next:
        tb = tb.tb_next
    result = tb.tb_frame.f_locals["hidden"]
#: exception-group-tracebacks
#: threat: L2
#: from: exceptions within a group
#: proves: canary
#: refused: attribute
import toolbox
try:
    try:
        toolbox.fail()
    except Exception as e:
        raise ExceptionGroup("g", [e])
except* Exception as g:
    t = g.exceptions[0].__traceback__
    while t.tb_next:
        t = t.tb_next
    result = t.tb_frame.f_locals["hidden"]
#: context-traceback
#: threat: L2
#: from: exceptions chained to another
#: proves: canary
#: refused: attribute
import toolbox
try:
    try:
        toolbox.fail()
    finally:
        raise KeyError
except KeyError as e:
    t = e.__context__.__traceback__
    while t.tb_next:
        t = t.tb_next
    result = t.tb_frame.f_locals["hidden"]
#: function-code-consts
#: threat: L2
#: from: code objects hold constants
#: proves: canary
#: refused: attribute
import toolbox
result = toolbox.shout.__code__.co_filename and toolbox.shout.__globals__['_hidden']
#: function-code-replaced
#: threat: L2
#: from: a function is given another's code
#: proves: canary
#: refused: attribute
def f(): return _hidden
import toolbox
toolbox.shout.__code__ = f.__code__
result = toolbox.shout()
#: code-type-from-function
#: threat: L2
#: from: the constructor of code objects
#: proves: canary
#: refused: attribute
def f(): pass
C = type(f.__code__)
F = type(f)
import toolbox
result = F((lambda: _hidden).__code__, toolbox.shout.__globals__)()
#: function-type-constructor
#: threat: L2
#: from: the constructor of functions
#: proves: canary
#: refused: attribute
F = type(lambda: 0)
g = F((lambda: _hidden).__code__, __import__("toolbox").__dict__)
result = g()
#: closure-cells
#: threat: L2
#: from: cells of a host's closures
#: proves: canary
#: refused: attribute
import functools, toolbox
def f(): pass
result = (f.__closure__ or toolbox.shout.__globals__["_hidden"])
#: frame-clear-and-locals-proxy
#: threat: L2
#: from: writes through a frame's locals
#: proves: canary
#: refused: frame
def f():
    x = 1
    g = (i for i in [0])
    return g.gi_frame.f_globals["__builtins__"]
b = f()
result = (b if isinstance(b, dict) else vars(b))["__import__"]("vaults").CANARY
#: settrace
#: threat: L2
#: from: a trace function is handed frames
#: proves: canary
#: refused: frame
import sys
frames = []
sys.settrace(lambda f, e, a: frames.append(f))
len([])
(lambda: 0)()
sys.settrace(None)
f = frames[0]

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: throw-and-catch-frame
#: threat: L2
#: from: tracebacks of exceptions thrown into generators
#: proves: canary
#: refused: frame
def gen():
    try:
        yield
    except Exception as e:
        yield e.__traceback__.tb_frame.f_back
g = gen()
next(g)
f = g.throw(ValueError())

while f is not None:
    if "attempt" in f.f_code.co_name or "CANARY" in f.f_globals:
        pass
    m = f.f_globals.get("vaults") or (f.f_globals.get("sys") and f.f_globals["sys"].modules.get("vaults"))
    if m is not None:
        result = m.CANARY
        break
    f = f.f_back
#: gi-frame-by-nfkc
#: threat: L2
#: from: identifiers normalised after the check
#: proves: canary
#: refused: frame
g = (x for x in ())
result = g.ｇi_frame.f_builtins['__import__']('vaults').CANARY
#: gi-frame-by-attrgetter
#: threat: L2
#: from: attribute paths in C
#: proves: canary
#: refused: frame
import operator
g = (x for x in ())
result = operator.attrgetter('gi_frame.f_builtins')(g)['__import__']('vaults').CANARY
#: gi-frame-by-format
#: threat: L2
#: from: format strings
#: proves: canary
#: refused: format
g = (x for x in ())
result = '{0.gi_frame.f_globals[vault]._secret}'.format(g)
