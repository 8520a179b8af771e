#: all-kinds-of-parameters
def f(a, b=2, /, c=3, *args, d, e=5, **kw):
    return a, b, c, args, d, e, kw

print(f(1, d=4))
print(f(1, 20, 30, 40, 50, d=4, z=9, a=7))
#: positional-only-violation
#: raises: TypeError
def f(a, /): return a
f(a=1)
#: keyword-only-violation
#: raises: TypeError
def f(*, k): return k
f(1)
#: star-calls
def f(*args, **kw): return args, kw

print(f(*[1, 2], *(3,), **{"a": 1}, **{"b": 2}), f(*"ab", 1, *range(2), k=1, **{}))
#: duplicate-keyword-in-call
#: raises: TypeError
def f(**kw): return kw
f(a=1, **{"a": 2})
#: decorators-with-arguments
def repeat(n):
    def deco(f):
        def inner(*a, **k):
            return [f(*a, **k) for _ in range(n)]
        return inner
    return deco

@repeat(3)
def hi(name): return f"hi {name}"

print(hi("bo"))
#: stacked-decorators
def a(f): return lambda *x: "a(" + f(*x) + ")"
def b(f): return lambda *x: "b(" + f(*x) + ")"

@a
@b
def f(x): return x

print(f("x"))
#: class-as-decorator
class Memo:
    def __init__(self, f): self.f, self.cache = f, {}
    def __call__(self, *a):
        if a not in self.cache:
            self.cache[a] = self.f(*a)
        return self.cache[a]

@Memo
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

print(fib(50), len(fib.cache))
#: decorator-expression
decos = {"up": lambda f: lambda: f().upper()}

@decos["up"]
def f(): return "text"

@(lambda f: f())
def value(): return 42

print(f(), value)
#: wraps
#: needs: functools
import functools

def log(f):
    @functools.wraps(f)
    def inner(*a):
        print("call", f.__name__, a)
        return f(*a)
    return inner

@log
def add(x, y):
    "Adds."
    return x + y

print(add(1, 2), add.__name__, add.__doc__, add.__wrapped__(3, 4))
#: function-attributes
def f():
    f.calls += 1
    return f.calls

f.calls = 0
f(); f()
print(f.calls, hasattr(f, "other"))
#: partial
#: needs: functools
from functools import partial, partialmethod

base2 = partial(int, base=2)
print(base2("101"), partial(print, "a", sep="-")("b"), partial(pow, 2)(5))
class L:
    def set(self, v): self.v = v
    on = partialmethod(set, True)
l = L(); l.on(); print(l.v)
#: lru-cache
#: needs: functools
from functools import lru_cache, cache

@lru_cache(maxsize=2)
def sq(x):
    print("computing", x)
    return x * x

sq(1); sq(1); sq(2); sq(3); sq(1)
print(sq.cache_info())
sq.cache_clear()
print(sq.cache_info().hits)

@cache
def fact(n): return n * fact(n - 1) if n else 1
print(fact(20))
#: singledispatch
#: needs: functools
from functools import singledispatch, singledispatchmethod

@singledispatch
def show(x): return f"object {x}"

@show.register
def _(x: int): return f"int {x}"

@show.register(list)
def _(x): return f"list of {len(x)}"

class A:
    @singledispatchmethod
    def f(self, x): return "other"
    @f.register
    def _(self, x: str): return "str " + x

print(show(1), show([1, 2]), show("s"), show(True), A().f("a"), A().f(1))
#: reduce-and-accumulate
#: needs: functools, itertools, operator
from functools import reduce
from itertools import accumulate
import operator

print(reduce(operator.add, [1, 2, 3]), reduce(lambda a, b: a * b, range(1, 6), 1), list(accumulate([1, 2, 3], operator.mul)))
#: higher-order
def compose(*fs):
    def run(x):
        for f in reversed(fs):
            x = f(x)
        return x
    return run

print(compose(str, abs, lambda x: x - 10)(3), list(map(lambda x, y: x * y, [1, 2], [3, 4])), list(filter(None, [0, 1, "", "a"])))
#: currying
def curry(f, n):
    def step(*args):
        return f(*args) if len(args) >= n else lambda *more: step(*args, *more)
    return step

print(curry(lambda a, b, c: (a, b, c), 3)(1)(2)(3))
#: returns-multiple
def stats(xs): return min(xs), max(xs), sum(xs) / len(xs)
lo, hi, mean = stats([1, 2, 6])
print(lo, hi, mean, stats([5]))
#: implicit-none
def f(): pass
def g(): return
print(f(), g(), print("x"))
#: recursion-hanoi
def hanoi(n, a="A", b="B", c="C"):
    return [] if n == 0 else hanoi(n - 1, a, c, b) + [(a, c)] + hanoi(n - 1, b, a, c)

print(len(hanoi(6)), hanoi(2))
#: argument-evaluation-order
def t(x):
    print(x, end=" ")
    return x

def f(*a, **k): return a, k
print(f(t(1), *[t(2)], k=t(3), **{"z": t(4)}))
d = {}
d[t("k")] = t("v")
#: chained-assignment-order
def t(x, v=None):
    print(x, end=" ")
    return v

a = [0, 0]
a[t("i", 0)] = a[t("j", 1)] = t("value", 5)
print(a)
#: bound-and-unbound
class A:
    def __init__(self, v): self.v = v
    def f(self, x): return self.v + x

m = A(1).f
print(m(2), A.f(A(10), 5), list(map(A(100).f, [1, 2])))
#: builtin-methods-as-values
print(list(map(str.upper, "ab")), list(map(len, ["a", "bc"])), sorted("bA", key=str.lower), [f("x") for f in (str.upper, "-{}-".format)], dict.fromkeys("ab", 0), list(map("{:>3}".format, [1, 22])))
#: types-as-values
kinds = {"int": int, "float": float, "list": list, "dict": dict}
print([k(v) for k, v in (("int", "5"),) for k in [kinds["int"]]], kinds["list"]("ab"), kinds["dict"](a=1), list(map(int, "123")), list(map(type, [1, "a"])))
#: iter-as-value
f = iter
n = next
it = f([1, 2])
print(n(it), n(it), n(it, "end"), list(zip(*[iter("abcdef")] * 2)))
#: defaults-and-kwdefaults
def f(a, b=1, *, c=2): return a + b + c
print(f.__defaults__, f.__kwdefaults__, f(1), f(1, c=10))
#: keyword-arguments-from-dict-with-odd-names
def f(**kw): return sorted(kw)
print(f(**{"a b": 1, "class": 2, "é": 3}))
#: lambda-forms
print((lambda: 1)(), (lambda x, y=2, *a, k, **kw: (x, y, a, k, kw))(1, k=3, z=4), (lambda *, a: a)(a=5), (lambda x, /: x)(6))
#: inner-function-with-state
def make_logger(prefix):
    lines = []
    def log(msg, *args):
        lines.append(f"{prefix}: {msg % args if args else msg}")
        return len(lines)
    log.lines = lines
    return log

log = make_logger("app")
log("start"); log("value %d of %s", 3, "x")
print(log.lines)
#: memo-with-dict-default
def collatz(n, memo={1: 1}):
    if n not in memo:
        memo[n] = 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)
    return memo[n]

print(max(range(1, 200), key=collatz), collatz(27))
#: varargs-forwarding
class Base:
    def __init__(self, *args, **kw): self.args, self.kw = args, kw
class Child(Base):
    def __init__(self, first, *rest, flag=False, **kw):
        super().__init__(*rest, **kw)
        self.first, self.flag = first, flag

c = Child(1, 2, 3, flag=True, x=9)
print(c.first, c.args, c.flag, c.kw)
#: generator-function-as-argument
print(sum(x for x in range(4)), max((len(w), w) for w in ["a", "ccc", "bb"]), any(c.isdigit() for c in "a1"), all([]), ",".join(str(i) for i in range(3)))
#: calls-of-methods-that-search
order = list(range(2000))
print(list(map(order.index, [3, 1999])), list(filter([0, 1, (2,)].count, [0, 5, (2,)])), sorted([5, 1, 3], key=order.index))
words = ["b", "a", "c", "a"] * 60
print(max(words, key=words.count), min(["c", "a"], key=words.index), list(map(words.__contains__, "az")))
shuffled = ["c", "a"]
shuffled.sort(key=words.index, reverse=True)
print(shuffled, list(map(list.count, [[1, 1], [2]], [1, 1])), list(map(tuple, ["ab", [1]])), list(map(max, [1, 5], [3, 2])))
try:
    list(map(order.index, [-1]))
except ValueError as error:
    print(type(error).__name__, error)
print(type(map(order.index, [])) is map, isinstance(filter(order.count, []), filter), list(map(None or str, [1])))
try:
    map()
except TypeError as error:
    print(error)
#: names-of-its-own-for-map-and-zip
def map(f, values): return f
def zip(*rows): return rows
def sorted(values, key): return key
order = list(range(2000))
print(map(order.index, []) == order.index, zip(*[[1], [2]] * 20)[0], sorted([], key=order.count) == order.count)
#: zip-of-many-rows
rows = [[n, n + 1, n + 2] for n in range(40)]
print(list(zip(*rows))[1][:5], len(list(zip(*rows))), list(zip([7, 8, 9], *rows))[2][:3], list(zip(*[])), list(zip(*iter(rows)))[0][:2])
print(dict(zip(*[["a", "b"], [1, 2]])), list(zip(*{"ab": 1, "cd": 2})), list(zip(*(iter(row) for row in rows)))[0][:3])
for wrong in (5, [1, 2], [[1]] * 20 + [3], [4] + [[1]] * 20):
    try:
        print(list(zip(*wrong)))
    except TypeError as error:
        print("TypeError")
#: sets-of-many-others
sets = [{n, n + 1, 100} for n in range(40)]
print(sorted(set().union(*sets))[-3:], set.union(*sets) == set().union(*sets), sets[0].intersection(*sets), set.intersection(*sets))
print(sorted(set(range(50)).difference(*sets)), frozenset(range(3)).union(*sets) == frozenset({*range(41), 100}))
print(type(frozenset(range(3)).union(*sets)).__name__, type(frozenset({100}).intersection(*sets)).__name__, frozenset(range(60)).difference(*sets) == frozenset(range(41, 60)))
found = set()
print(found.update(*sets), len(found), found.intersection_update(*sets), found, found.difference_update(*sets), found)
print(sorted(set().union(*["ab", [1]] * 1, *[(2,)] * 20), key=str), len({1}.union(*[iter([n]) for n in range(30)])))
try:
    set().union(*[[1]] * 20, 5)
except TypeError as error:
    print(error)
class Kept(set):
    def update(self, *others): return len(others)
print(Kept().update(*sets), type(Kept({1}).union(*sets)).__name__, len(Kept({1}).union(*sets)))
#: displays-of-what-others-hold
x, y = [1, 2], (3,)
print([*x, *y], (*x, 0, *y), {*x, *y}, [0, *x], (*x,))
x[:0] = y
x[1:2] = [*x, *x]
a, *b = *x, *y
print(x, a, b)
#: functions-that-iterate
#: needs: itertools, functools, operator
import functools, itertools, operator
rows = [[0, 1]] * 3
print(list(itertools.accumulate(rows)), list(itertools.accumulate([1, 2, 3], operator.mul, initial=2)), list(itertools.accumulate([])))
print(functools.reduce(operator.add, rows), functools.reduce(max, [1, 5, 2], 9), functools.reduce(operator.concat, [], []))
print([(k, list(g)) for k, g in itertools.groupby("aab")], [(k, list(g)) for k, g in itertools.groupby([1, 1, 2], [2, 2].count)])
print(list(itertools.takewhile([1, 2].count, iter([1, 2, 3, 1]))), list(itertools.dropwhile([1].count, [1, 3, 1])))
print(list(itertools.filterfalse([1].count, [1, 2])), list(itertools.filterfalse(None, [0, 1])), list(itertools.starmap(max, [(1, 2), (4, 3)])))
source = iter(range(5))
print(list(itertools.takewhile((0, 1).count, source)), next(source))
for call in (lambda: functools.reduce(max, []), lambda: functools.reduce(max, 5), lambda: list(itertools.starmap(max, [5]))):
    try:
        call()
    except TypeError as error:
        print(error)
