#: try-except-else-finally
def f(x):
    try:
        r = 10 / x
    except ZeroDivisionError:
        return "zero"
    else:
        return r
    finally:
        print("finally", x)

print(f(2), f(0))
#: finally-overrides-return
def f():
    try:
        return "try"
    finally:
        return "finally"

print(f())
#: finally-swallows-by-return
def f():
    try:
        1 / 0
    finally:
        return "swallowed"

print(f())
#: break-and-continue-in-finally
def f():
    for i in range(3):
        try:
            if i == 1:
                break
        finally:
            print("f", i)
    while True:
        try:
            1 / 0
        finally:
            break
    return "done"

print(f())
#: chained-from
try:
    try:
        {}["k"]
    except KeyError as e:
        raise ValueError("bad key") from e
except ValueError as e:
    print(e, repr(e.__cause__), e.__suppress_context__)
#: implicit-context
try:
    try:
        1 / 0
    except ZeroDivisionError:
        int("x")
except ValueError as e:
    print(type(e.__context__).__name__, e.__cause__)
#: from-none
try:
    try:
        1 / 0
    except ZeroDivisionError:
        raise ValueError("clean") from None
except ValueError as e:
    print(e.__cause__, e.__suppress_context__, type(e.__context__).__name__)
#: reraise
def f():
    try:
        raise KeyError("first")
    except KeyError:
        print("logging")
        raise

try:
    f()
except KeyError as e:
    print(repr(e))
#: bare-raise-outside
#: raises: RuntimeError
raise
#: exception-name-is-deleted
#: raises: NameError
e = 1
try:
    1 / 0
except ZeroDivisionError as e:
    pass
print(e)
#: tuple-of-types
for bad in ("int('x')", "missing"):
    try:
        if bad == "missing":
            [][1]
        int("x")
    except (ValueError, IndexError) as e:
        print(type(e).__name__, e)
#: custom-hierarchy
class AppError(Exception): pass
class NetError(AppError):
    def __init__(self, host, code):
        super().__init__(f"{host}: {code}")
        self.host, self.code = host, code

try:
    raise NetError("example", 503)
except AppError as e:
    print(e, e.host, e.code, e.args)
#: custom-str
#: raises: Odd
class Odd(Exception):
    def __str__(self):
        return "odd: " + ", ".join(map(str, self.args))

raise Odd(1, 2)
#: raise-class-not-instance
try:
    raise ValueError
except ValueError as e:
    print(repr(e), e.args)
#: raise-nonsense
#: raises: TypeError
raise "text"
#: catching-nonsense
#: raises: TypeError
try:
    1 / 0
except "text":
    pass
#: assertion
#: raises: AssertionError
x = 3
assert x == 3
assert x == 4, f"x is {x}"
#: line-number-deep
#: raises: IndexError
def a(xs):
    return b(xs)

def b(xs):
    return xs[10]

values = [1,
          2]
a(values)
#: line-number-of-multiline-expression
#: raises: ZeroDivisionError
x = [
    1,
    2,
    3 / 0,
    4,
]
#: line-number-in-comprehension
#: raises: ZeroDivisionError
rows = [1, 0, 2]
result = [
    10 / r
    for r in rows
]
#: line-number-in-method-chain
#: raises: AttributeError
text = "abc"
(text
    .upper()
    .lower()
    .missing())
#: line-number-in-call-arguments
#: raises: NameError
print(
    "a",
    undefined_name,
)
#: line-number-in-decorated-function
#: raises: ValueError
def deco(f):
    def inner(*a):
        return f(*a)
    return inner

@deco
def g(x):
    if x:
        raise ValueError("in g")

g(1)
#: common-messages
tests = [
    lambda: 1 + "a", lambda: "a" + 1, lambda: [1][5], lambda: {}["k"], lambda: int("3.5"), lambda: None.x, lambda: (1, 2).append(3),
    lambda: len(5), lambda: "abc"[1.5], lambda: [] < {}, lambda: max([]), lambda: float("x"), lambda: "x".index("y"), lambda: [].pop(),
    lambda: {}.popitem(), lambda: next(iter([])), lambda: 5(), lambda: "%d" % "x", lambda: "{}".format(), lambda: "{a}".format(), lambda: chr(-1),
    lambda: ord("ab"), lambda: bytes([300]), lambda: b"\xff".decode(), lambda: "é".encode("ascii"), lambda: range(1, 2, 0), lambda: [1, 2].remove(3), lambda: {1}.remove(2),
    lambda: sorted([1, "a"]), lambda: sum(["a"]), lambda: round("x"), lambda: abs("x"), lambda: 1 // 0, lambda: 1 % 0, lambda: 1.0 / 0, lambda: divmod(1, 0), lambda: 0 ** -1, 
    lambda: 2 .foo, lambda: (lambda x: x)(), lambda: (lambda: 0)(1), lambda: (lambda *, k: k)(), lambda: dict([1]), lambda: dict([(1, 2, 3)]), lambda: tuple(5), lambda: isinstance(1, 2), lambda: int([]), lambda: int("12", 99), lambda: hash([]), lambda: {[]: 1},
]
for t in tests:
    try:
        t()
    except Exception as e:
        print(type(e).__name__, "|", e)
#: unpack-messages
for code in range(5):
    try:
        if code == 0: a, b = [1]
        if code == 1: a, b = [1, 2, 3]
        if code == 2: a, *b, c = [1]
        if code == 3: a, b = 5
        if code == 4: print(*5)
    except (ValueError, TypeError) as e:
        print(type(e).__name__, "|", e)
#: unbound-local
#: raises: UnboundLocalError
n = 1
def f():
    print(n)
    n = 2

f()
#: name-error-suggestion
#: raises: NameError
counter = 1
print(countre)
#: attribute-error-on-own-class
#: raises: AttributeError
class Widget:
    def __init__(self):
        self.width = 3

Widget().widht
#: attribute-error-on-builtin
#: raises: AttributeError
[1, 2].push(3)
#: attribute-error-on-none
#: raises: AttributeError
def find(x):
    return None

find(1).name
#: setting-attributes-on-builtins
for target in (1, "s", [], None, len, int):
    try:
        target.attr = 1
    except (AttributeError, TypeError):
        print("cannot")
#: missing-argument-messages
#: raises: TypeError
def f(a, b, *, c):
    pass

f(1)
#: too-many-arguments
#: raises: TypeError
class A:
    def f(self, a): pass

A().f(1, 2)
#: unexpected-keyword
#: raises: TypeError
def f(a): pass

f(a=1, colour=2)
#: add-note
e = ValueError("main")
e.add_note("note one")
e.add_note("note two")
print(e.__notes__)
try:
    raise e
except ValueError as x:
    print(x, x.__notes__)
#: exception-attributes
try:
    {}["key"]
except KeyError as e:
    print(e.args, str(e))
try:
    next(iter(()))
except StopIteration as e:
    print(e.value)
try:
    b"\xff".decode("utf-8")
except UnicodeDecodeError as e:
    print(e.encoding, e.start, e.end, e.reason, e.object)
#: nested-handlers
def f(n):
    try:
        try:
            if n == 0: raise ValueError("v")
            if n == 1: raise KeyError("k")
            if n == 2: raise IndexError("i")
        except ValueError as e:
            print("inner", e)
            raise TypeError("t")
        finally:
            print("inner finally")
    except (TypeError, KeyError) as e:
        print("outer", type(e).__name__)
    except LookupError as e:
        print("lookup", type(e).__name__)

for n in range(4):
    f(n)
#: try-in-loop-with-retries
attempts = 0
def flaky():
    global attempts
    attempts += 1
    if attempts < 3:
        raise ConnectionError(f"attempt {attempts}")
    return "ok"

for i in range(5):
    try:
        print(flaky())
        break
    except ConnectionError as e:
        print("retry after", e)
else:
    print("gave up")
#: warnings-as-values
#: needs: warnings
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("careful", UserWarning)
print(len(caught), str(caught[0].message))
#: exception-in-init
class A:
    def __init__(self, v):
        if v < 0:
            raise ValueError(f"negative: {v}")
        self.v = v

out = []
for v in (1, -1, 2):
    try:
        out.append(A(v).v)
    except ValueError as e:
        out.append(str(e))
print(out)
#: bare-except
try:
    undefined
except:
    print("caught everything")
#: base-exception-classes
for cls in (KeyboardInterrupt, SystemExit, GeneratorExit):
    try:
        raise cls("x")
    except Exception:
        print("never")
    except BaseException as e:
        print(type(e).__name__, e)
#: equality-and-repr-of-exceptions
print(ValueError("a") == ValueError("a"), repr(ValueError("a", 1)), str(ValueError("a", 1)), str(KeyError("k")), repr(OSError(2, "gone")), OSError(2, "gone").errno)
#: recursion-error
def f(n):
    return f(n + 1)

try:
    f(0)
except RecursionError as e:
    print("too deep")
#: exception-groups-sub
eg = ExceptionGroup("many", [ValueError(1), TypeError(2), ExceptionGroup("inner", [ValueError(3)])])
print(eg, len(eg.exceptions), eg.message)
only = eg.subgroup(ValueError)
rest = eg.split(ValueError)[1]
print(only, rest, [type(x).__name__ for x in rest.exceptions])
#: except-star
def run(*errors):
    try:
        raise ExceptionGroup("g", list(errors))
    except* ValueError as e:
        print("values", [str(x) for x in e.exceptions])
    except* (TypeError, KeyError) as e:
        print("types", [repr(x) for x in e.exceptions])
    else:
        print("no error")
    finally:
        print("--")

run(ValueError(1), TypeError(2), ValueError(3))
run(KeyError("k"))
#: except-star-leaves-the-rest
#: raises: ExceptionGroup
try:
    raise ExceptionGroup("g", [ValueError(1), OSError("left")])
except* ValueError as e:
    print("handled", e.exceptions)
#: except-star-on-plain-exception
try:
    raise ValueError("plain")
except* ValueError as e:
    print(type(e).__name__, e.exceptions)
#: except-star-raising
#: raises: KeyError
try:
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError:
        raise KeyError("new")
    except* TypeError:
        pass
except ExceptionGroup as eg:
    print(sorted(type(x).__name__ for x in eg.exceptions))
#: nested-groups-with-star
try:
    raise ExceptionGroup("o", [ExceptionGroup("i", [ValueError("a"), KeyError("b")]), ValueError("c")])
except* ValueError as e:
    def leaves(g):
        for x in g.exceptions:
            if isinstance(x, ExceptionGroup):
                yield from leaves(x)
            else:
                yield str(x)
    print(sorted(leaves(e)))
except* KeyError as e:
    print("keys", e)
#: subclass-of-exception-group
class Errors(ExceptionGroup):
    def derive(self, excs):
        return Errors(self.message, excs)

try:
    raise Errors("mine", [ValueError(1), KeyError(2)])
except* KeyError as e:
    print(type(e).__name__, e.message)
except* ValueError as e:
    print(type(e).__name__)
#: with-traceback-none
try:
    raise ValueError("x").with_traceback(None)
except ValueError as e:
    print(e)
#: return-in-except-and-finally-order
def f(log):
    try:
        log.append("try")
        raise ValueError
    except ValueError:
        log.append("except")
        return log
    finally:
        log.append("finally")

print(f([]))
#: exception-in-finally
#: raises: KeyError
def f():
    try:
        raise ValueError("first")
    finally:
        raise KeyError("second")

f()
#: system-exit
#: raises: SystemExit
print("before")
raise SystemExit(3)
#: an-attribute-that-an-error-lacks
import datetime, decimal

def told(e):
    if hasattr(e, "message"):
        return e.message, e.code
    return str(e), getattr(e, "errno", None)

try:
    int("x")
except ValueError as e:
    print(told(e))
for one in (KeyError("a"), datetime.date(2024, 1, 2), decimal.Decimal(3)):
    try:
        one.hours
    except AttributeError as e:
        print(type(e), e, e.name)
