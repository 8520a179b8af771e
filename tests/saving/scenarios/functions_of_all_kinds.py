# %%
import inspect
def f(a, b=[], *args, c, d={'k': 1}, **kw) -> int:
    "the doc"
    b.append(a)
    return b
f(1, c=2)
f.note = ['attr']; f.self = f
fs = [lambda x, i=i: x + i for i in range(3)]
table = {'sq': lambda x: x * x, 'neg': (lambda x: -x)}
def gen(n):
    yield from range(n)
async def co(x):
    return x + 1
def rec(n): return 1 if n == 0 else n * rec(n - 1)
def outer(x):
    def mid(y):
        def inner(z): return x + y + z
        return inner
    return mid
mid = outer(1); inner = mid(2)
def walrus(xs): return [y for x in xs if (y := x * 2) > 2]
def matchy(x):
    match x:
        case [a, *rest]: return ('list', a, rest)
        case {'k': v}: return ('dict', v)
        case _: return 'no'
import asyncio
# %% check
f(5, c=1) == [1, 5] and f.__kwdefaults__ == {'d': {'k': 1}} and f.note == ['attr'] and f.self is f
f.__doc__ == 'the doc' and f.__annotations__ == {'return': int}
str(inspect.signature(f)) == "(a, b=[1, 5], *args, c, d={'k': 1}, **kw) -> int"
[g(10) for g in fs] == [10, 11, 12] and table['sq'](4) == 16 and table['neg'](4) == -4
list(gen(3)) == [0, 1, 2] and asyncio.run(co(1)) == 2 and rec(5) == 120
inner(3) == 6 and mid(5)(1) == 7
walrus([1, 2, 3]) == [4, 6] and matchy([1, 2]) == ('list', 1, [2]) and matchy({'k': 3}) == ('dict', 3)
inspect.getsource(rec) == 'def rec(n): return 1 if n == 0 else n * rec(n - 1)\n'
rec.__code__.co_filename == '<cell 1>'
inspect.iscoroutinefunction(co)
