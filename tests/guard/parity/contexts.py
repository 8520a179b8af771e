#: tuple-target
class Pair:
    def __enter__(self): return 1, (2, 3)
    def __exit__(self, *a): pass

with Pair() as (a, (b, c)):
    print(a, b, c)
#: attribute-and-subscript-targets
class CM:
    def __init__(self, v): self.v = v
    def __enter__(self): return self.v
    def __exit__(self, *a): pass

class O: pass

o, d = O(), {}
with CM(1) as o.x, CM(2) as d["k"], CM([3, 4, 5]) as [first, *rest]:
    print(o.x, d, first, rest)
#: suppressing
class Quiet:
    def __init__(self, *kinds): self.kinds = kinds
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        self.got = v
        return t is not None and issubclass(t, self.kinds)

with Quiet(ZeroDivisionError, KeyError) as q:
    1 / 0
print(repr(q.got))
with Quiet(KeyError):
    print({}["x"])
print("on")
#: not-suppressing
#: raises: ZeroDivisionError
class Loud:
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        print("leaving with", t.__name__)
        return False

with Loud():
    1 / 0
#: order-of-exits
class N:
    def __init__(self, n): self.n = n
    def __enter__(self): print("in", self.n); return self
    def __exit__(self, *a): print("out", self.n)

with N(1), N(2) as two, N(3):
    print("body", two.n)
#: parenthesised
class N:
    def __init__(self, n): self.n = n
    def __enter__(self): return self.n
    def __exit__(self, *a): print("out", self.n)

with (
    N(1) as a,
    N(2) as b,
):
    print(a + b)
#: exit-raises-another
class Bad:
    def __enter__(self): pass
    def __exit__(self, *a): raise KeyError("from exit")

try:
    with Bad():
        raise ValueError("from body")
except KeyError as e:
    print(repr(e), repr(e.__context__))
#: return-through-with
class N:
    def __enter__(self): return self
    def __exit__(self, *a): print("exit", a)

def f():
    with N():
        return "value"

def g():
    for i in range(5):
        with N():
            if i == 0: continue
            break
    return i

print(f(), g())
#: contextmanager-decorator
#: needs: contextlib
from contextlib import contextmanager

@contextmanager
def tag(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    finally:
        print(f"</{name}>")

with tag("b") as t, tag("i"):
    print(t)
try:
    with tag("p"):
        raise ValueError("inside")
except ValueError as e:
    print("caught", e)
#: contextmanager-swallows
#: needs: contextlib
from contextlib import contextmanager

@contextmanager
def ignore(kind):
    try:
        yield
    except kind as e:
        print("ignored", e)

with ignore(KeyError):
    {}["nope"]
print("ok")
#: contextmanager-as-decorator
#: needs: contextlib
from contextlib import contextmanager, ContextDecorator

@contextmanager
def noisy():
    print("before")
    yield
    print("after")

@noisy()
def f(x):
    print("f", x)
    return x

class Deco(ContextDecorator):
    def __enter__(self): print("[", end="")
    def __exit__(self, *a): print("]")

@Deco()
def g():
    print("g", end="")

print(f(3)); g()
#: suppress-and-nullcontext
#: needs: contextlib
from contextlib import suppress, nullcontext

with suppress(KeyError, IndexError):
    [][0]
with nullcontext(5) as x:
    print(x)
#: exit-stack
#: needs: contextlib
from contextlib import ExitStack, contextmanager

@contextmanager
def res(n):
    print("open", n)
    yield n
    print("close", n)

with ExitStack() as stack:
    got = [stack.enter_context(res(i)) for i in range(3)]
    stack.callback(print, "callback", 1)
    print(got)
#: exit-stack-push-and-pop-all
#: needs: contextlib
from contextlib import ExitStack

def handler(t, v, tb):
    print("handler saw", t.__name__ if t else None)
    return True

with ExitStack() as s:
    s.push(handler)
    raise ValueError
s = ExitStack()
s.callback(print, "late")
kept = s.pop_all()
s.close()
print("now")
kept.close()
#: closing
#: needs: contextlib
from contextlib import closing

class R:
    def close(self): print("closed")

with closing(R()) as r:
    print("using", type(r).__name__)
#: redirect-stdout
#: needs: contextlib, io
from contextlib import redirect_stdout
import io

buf = io.StringIO()
with redirect_stdout(buf):
    print("hidden")
print("shown", repr(buf.getvalue()))
#: not-a-context-manager
#: raises: TypeError
class A: pass

with A():
    pass
#: enter-raises
class Bad:
    def __enter__(self): raise ValueError("enter")
    def __exit__(self, *a): print("never")

class Good:
    def __enter__(self): return 1
    def __exit__(self, *a): print("good exits")

try:
    with Good(), Bad():
        print("never")
except ValueError as e:
    print(e)
#: transaction
class Tx:
    def __init__(self, db): self.db = db
    def __enter__(self):
        self.saved = dict(self.db)
        return self.db
    def __exit__(self, t, v, tb):
        if t:
            self.db.clear()
            self.db.update(self.saved)
            print("rolled back:", v)
        return True

db = {"a": 1}
with Tx(db) as d:
    d["b"] = 2
with Tx(db) as d:
    d["c"] = 3
    raise RuntimeError("oops")
print(db)
#: reentrant-counter
class Indent:
    level = 0
    def __enter__(self):
        Indent.level += 1
        return self
    def __exit__(self, *a):
        Indent.level -= 1
    def say(self, t):
        print("  " * self.level + t)

i = Indent()
with i:
    i.say("one")
    with i:
        i.say("two")
    i.say("three")
