#: closures
def counter(start=0):
    n = start
    def inc(by=1):
        nonlocal n
        n += by
        return n
    def get():
        return n
    return inc, get

inc, get = counter(10)
inc(); inc(5)
print(get())
#: late-binding
fs = [lambda: i for i in range(3)]
gs = [lambda i=i: i for i in range(3)]
print([f() for f in fs], [g() for g in gs])
#: global-statement
total = 0
def add(n):
    global total, fresh
    total += n
    fresh = "made"

add(3); add(4)
print(total, fresh)
#: nonlocal-through-levels
def a():
    x = 1
    def b():
        def c():
            nonlocal x
            x = 2
        c()
    b()
    return x

print(a())
#: class-scope-does-not-leak
x = "global"
class A:
    x = "class"
    def f(self):
        return x
    y = x
    g = lambda self: x

print(A().f(), A.y, A().g())
#: class-scope-comprehension
#: raises: NameError
class A:
    n = 3
    first = [i for i in range(n)]
    second = [n * i for i in range(2)]
#: class-scope-comprehension-first-iterable
class A:
    rows = [1, 2, 3]
    doubled = [r * 2 for r in rows]
    pairs = dict(zip("ab", rows))

print(A.doubled, A.pairs)
#: class-body-reads-function-scope
def make():
    n = 5
    class A:
        value = n
        def f(self):
            return n + 1
    n = 10
    return A

A = make()
print(A.value, A().f())
#: class-body-local-then-global
v = "global"
class A:
    before = v
    v = "class"
    after = v
    del v
    again = v

print(A.before, A.after, A.again, hasattr(A, "v"))
#: nonlocal-in-class-method
def outer():
    count = 0
    class C:
        def hit(self):
            nonlocal count
            count += 1
            return count
    return C()

c = outer()
c.hit()
print(c.hit())
#: dunder-class-cell
class A:
    def who(self):
        return __class__.__name__

class B(A):
    pass

print(B().who())
#: del-names
x = 1
del x
try:
    x
except NameError as e:
    print(e)
a = [1, 2, 3, 4, 5]
del a[0], a[-1]
d = {"a": 1, "b": 2}
del d["a"]
print(a, d)
del (a), [d]
print("a" in globals())
#: del-local-then-use
#: raises: UnboundLocalError
def f():
    x = 1
    del x
    return x

f()
#: comprehension-scope
x = "outer"
squares = [x * x for x in range(3)]
print(x, squares)
#: walrus-binds-outside
if (n := len("abcd")) > 3:
    print(n)
hits = [y for x in range(5) if (y := x * x) > 3]
print(hits, y)
#: walrus-in-while
data = iter([3, 2, 0, 1])
while (v := next(data)):
    print(v)
print("stopped at", v)
#: walrus-in-function-comprehension
def f(xs):
    total = 0
    running = [total := total + x for x in xs]
    return running, total

print(f([1, 2, 3]))
#: walrus-everywhere
print((a := 1) + (b := 2), a, b)
d = {(k := "key"): (v := "value")}
print(d, k, v, [z := 5, z + 1], f"{(w := 7)}", w)
def f(x=(dflt := 9)): return x
print(f(), dflt)
#: default-arguments-evaluated-once
def f(x, acc=[]):
    acc.append(x)
    return acc

print(f(1), f(2), f(3, []))
#: shadowing-builtins
def f():
    list = [1, 2]
    len = lambda x: "mine"
    return list, len(list)

sum = 10
print(f(), sum + 1)
del sum
print(sum([1, 2]))
#: globals-and-locals
x = 5
def f(a):
    b = a + 1
    return sorted(locals().items())

print(f(1), globals()["x"])
#: globals-write
globals()["made_up"] = 12
print(made_up)
#: import-inside-function
#: needs: math
def area(r):
    import math
    return round(math.pi * r * r, 2)

print(area(2))
try:
    math
except NameError:
    print("not global")
#: import-forms
#: needs: math, collections
import math as m
from math import sqrt, floor as fl
import collections.abc
from collections import OrderedDict as OD, Counter

print(m.ceil(1.2), sqrt(16), fl(2.9), OD(a=1)["a"], Counter("aab")["a"], collections.abc.Sized.__name__)
#: import-star
#: needs: math
from math import *

print(sqrt(9), pi > 3, gcd(12, 18))
#: missing-name-in-module
#: needs: math
try:
    from math import no_such_function
except ImportError:
    print("no such function")
#: try-import-fallback
try:
    import surely_no_such_module as fast
except ImportError:
    fast = None
print(fast)
#: nested-functions-see-globals-later
def f():
    return later()

def later():
    return "defined later"

print(f())
#: mutual-recursion
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
print(even(10), odd(7), even(3))
#: lambda-recursion-and-defaults
fact = lambda n, f=None: 1 if n < 2 else n * fact(n - 1)
Y = lambda g: (lambda x: g(lambda v: x(x)(v)))(lambda x: g(lambda v: x(x)(v)))
print(fact(10), Y(lambda f: lambda n: 1 if n == 0 else n * f(n - 1))(6))
#: for-else-while-else
for i in range(3):
    pass
else:
    print("for else", i)
while i:
    i -= 1
    if i == 1:
        break
else:
    print("never")
for x in []:
    pass
else:
    print("empty else")
#: loop-variable-survives
for i, (a, b) in enumerate([(1, 2), (3, 4)]):
    pass
print(i, a, b)
#: name-main
print(__name__)
#: conditional-function-definition
for flag in (True, False):
    if flag:
        def f(): return "yes"
    else:
        def f(): return "no"
    print(f())
#: exec-order-of-class-body
class A:
    print("in body")
    for i in range(2):
        locals()
        print("loop", i)
    if i:
        def m(self): return "defined in if"

print(A().m(), A.i)
#: free-variable-error
#: raises: NameError
def f():
    def g():
        return x
    g()
    x = 1

f()
