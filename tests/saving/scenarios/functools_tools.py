# %%
import functools
from functools import partial, lru_cache, cache, singledispatch, wraps, reduce, total_ordering, partialmethod, singledispatchmethod
@lru_cache(maxsize=100)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(20)
@cache
def unused(n): return n
@singledispatch
def show(x): return 'any'
@show.register
def _show_int(x: int): return 'int'
class Mine: pass
@show.register(Mine)
def _show_mine(x): return 'mine'
base2 = partial(int, base=2)
nested = partial(partial(lambda a, b, c: (a, b, c), 1), 2)
def deco(f):
    @wraps(f)
    def wrapper(*a, **k): return ('wrapped', f(*a, **k))
    wrapper.calls = 3
    return wrapper
@deco
def work(x):
    "doc of work"
    return x
@total_ordering
class V:
    def __init__(self, n): self.n = n
    def __eq__(self, o): return self.n == o.n
    def __lt__(self, o): return self.n < o.n
    @singledispatchmethod
    def take(self, x): return 'any'
    @take.register
    def _(self, x: int): return 'int'
    half = partialmethod(lambda self, k: self.n / k, 2)
key = functools.cmp_to_key(lambda a, b: b - a)
# %% check
fib(30) == 832040 and fib.cache_parameters()['maxsize'] == 100
unused(3) == 3
show(1) == 'int' and show(Mine()) == 'mine' and show('') == 'any'
base2('101') == 5 and nested(3) == (1, 2, 3)
work(1) == ('wrapped', 1) and work.__doc__ == 'doc of work' and work.__wrapped__(2) == 2 and work.calls == 3 and work.__name__ == 'work'
V(1) <= V(2) and V(1).take(3) == 'int' and V(1).take('') == 'any' and V(3).half() == 1.5
sorted([1, 3, 2], key=key) == [3, 2, 1]
# %% then
@show.register(list)
def _l(x): return 'list'
# %% check
show([]) == 'list'
