# %%
from functools import lru_cache, partial, reduce

@lru_cache(maxsize=None)
def partitions(n, largest=None):
    largest = n if largest is None else largest
    if n == 0:
        return 1
    return sum(partitions(n - part, min(part, n - part)) for part in range(1, min(n, largest) + 1))

partitions(30)

# %%
def compose(*functions):
    return reduce(lambda f, g: lambda x: g(f(x)), functions)

pipeline = compose(partial(pow, 2), lambda x: x + 1, str)
pipeline(5)

# %%
def counter():
    count = 0
    def increment(by=1):
        nonlocal count
        count += by
        return count
    return increment

tick, tock = counter(), counter()
tick(), tick(), tock(10)

# %%
registry = {}

def register(name):
    def wrap(function):
        registry[name] = function
        return function
    return wrap

@register("double")
def double(x):
    return 2 * x

registry["double"](21)

# %%
assert tick() == 3 and tock() == 11 and registry["double"] is double and pipeline(3) == "9" and partitions(50) == 204226
