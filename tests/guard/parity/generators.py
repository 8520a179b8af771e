#: simple
def count(n):
    i = 0
    while i < n:
        yield i
        i += 1

print(list(count(4)), sum(count(5)), tuple(count(0)))
#: send
def averager():
    total, n, avg = 0, 0, None
    while True:
        x = yield avg
        total += x
        n += 1
        avg = total / n

g = averager()
next(g)
print(g.send(10), g.send(20), g.send(3))
#: throw-caught-inside
def g():
    while True:
        try:
            x = yield "ready"
            print("got", x)
        except ValueError as e:
            print("caught", e)
            yield "recovered"

it = g()
print(next(it))
print(it.throw(ValueError("bad")))
print(next(it))
print(it.send(5))
#: throw-not-caught
#: raises: KeyError
def g():
    yield 1

it = g()
next(it)
it.throw(KeyError("k"))
#: close-runs-finally
def g():
    try:
        yield 1
        yield 2
    finally:
        print("cleanup")

it = g()
print(next(it))
it.close()
print(list(it))
#: close-with-generator-exit
def g():
    try:
        yield 1
    except GeneratorExit:
        print("exiting")
        raise

it = g()
next(it)
it.close()
print("closed")
#: close-ignored
#: raises: RuntimeError
def g():
    while True:
        try:
            yield 1
        except GeneratorExit:
            pass

it = g()
next(it)
it.close()
#: return-value
def g():
    yield 1
    return "the end"

it = g()
next(it)
try:
    next(it)
except StopIteration as e:
    print(e.value)
#: yield-from-return-value
def inner():
    x = yield 1
    return x * 2

def outer():
    r = yield from inner()
    yield f"inner gave {r}"

g = outer()
print(next(g), g.send(21))
#: yield-from-delegates-throw
def inner():
    try:
        yield 1
    except ValueError:
        yield "handled"

def outer():
    yield from inner()
    yield "after"

g = outer()
print(next(g), g.throw(ValueError), next(g))
#: yield-from-iterables
def flat(*its):
    for it in its:
        yield from it

print(list(flat([1, 2], "ab", range(2), {"k": 1}, (x for x in (9,)))))
#: recursive-flatten
def flatten(x):
    if isinstance(x, list):
        for y in x:
            yield from flatten(y)
    else:
        yield x

print(list(flatten([1, [2, [3, [4, []]], 5], [[6]]])))
#: stop-iteration-inside
#: raises: RuntimeError
def g():
    yield next(iter([]))

list(g())
#: infinite-with-islice
#: needs: itertools
from itertools import islice

def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b

print(list(islice(fib(), 10)), list(islice(fib(), 5, 15, 3)))
#: generator-expression
g = (x * x for x in range(5) if x % 2)
print(next(g), list(g), list(g))
#: generator-expression-laziness
n = 2
g = (x * n for x in [1, 2])
n = 10
print(list(g))
#: generator-expression-first-iterable-eager
#: raises: TypeError
g = (x for x in None)
#: pipeline
def read():
    yield from ["a 1", "", "b 2", "# skip", "c 3"]

def clean(lines):
    return (l.strip() for l in lines if l and not l.startswith("#"))

def parse(lines):
    for l in lines:
        k, v = l.split()
        yield k, int(v)

print(dict(parse(clean(read()))))
#: coroutine-style-with-decorator
def coroutine(f):
    def start(*a, **k):
        g = f(*a, **k)
        next(g)
        return g
    return start

@coroutine
def grep(pattern, target):
    while True:
        line = yield
        if pattern in line:
            target.append(line)

found = []
g = grep("py", found)
for w in ("python", "ruby", "numpy"):
    g.send(w)
print(found)
#: generator-as-iterator-class
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self):
        for i in range(self.n, 0, -1):
            yield i

c = Countdown(3)
print(list(c), list(c), max(c), 2 in c)
#: iterator-class
class Evens:
    def __init__(self, limit): self.i, self.limit = 0, limit
    def __iter__(self): return self
    def __next__(self):
        if self.i >= self.limit:
            raise StopIteration
        self.i += 2
        return self.i

e = Evens(6)
print(next(e), list(e), next(e, "done"))
#: generator-in-with-and-finally-order
def g():
    print("start")
    try:
        for i in range(3):
            yield i
    finally:
        print("end")

for i in g():
    print(i)
    if i == 1:
        break
print("after")
#: send-to-fresh-generator
#: raises: TypeError
def g():
    yield

g().send(1)
#: generator-already-executing
#: raises: ValueError
def g():
    yield next(me)

me = g()
next(me)
#: yield-as-expression
def g():
    x = (yield 1) + (yield 2)
    print("sum", x)
    y = [(yield 3), (yield 4)]
    yield y

it = g()
print(next(it), it.send(10), it.send(20), it.send("a"), it.send("b"))
#: tee-and-chain
#: needs: itertools
import itertools

a, b = itertools.tee(x * 2 for x in range(3))
print(list(a), list(b), list(itertools.chain.from_iterable(([1], [2, 3]))))
#: peekable
class Peek:
    def __init__(self, it):
        self.it = iter(it)
        self.buf = []

    def peek(self):
        if not self.buf:
            self.buf.append(next(self.it))
        return self.buf[0]

    def __next__(self):
        return self.buf.pop() if self.buf else next(self.it)

    def __iter__(self):
        return self

p = Peek("abc")
print(p.peek(), next(p), p.peek(), list(p))
#: round-robin-scheduler
#: needs: collections
from collections import deque

def task(name, n):
    for i in range(n):
        print(name, i)
        yield

q = deque([task("A", 2), task("B", 3)])
while q:
    t = q.popleft()
    try:
        next(t)
        q.append(t)
    except StopIteration:
        pass
#: iter-with-sentinel
values = iter([3, 1, 4, 0, 5])
print(list(iter(lambda: next(values), 0)))
#: generator-and-exceptions-line
#: raises: ZeroDivisionError
def g():
    yield 1
    x = 0
    yield 1 / x

for v in g():
    print(v)
#: permutations-by-hand
def perms(xs):
    if not xs:
        yield []
    for i, x in enumerate(xs):
        for rest in perms(xs[:i] + xs[i + 1:]):
            yield [x] + rest

print(len(list(perms([1, 2, 3, 4]))), list(perms("ab")))
