"""Closures, decorators, caching, composition."""

import functools


def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


def memoized(function):
    known = {}

    def wrapper(n):
        if n not in known:
            known[n] = function(n)
        return known[n]

    return wrapper


@counted
def add(a, b=1):
    return a + b


@memoized
def ways(n):
    return 1 if n < 2 else ways(n - 1) + ways(n - 2)


@functools.lru_cache(maxsize=None)
def partitions(n, largest):
    if n == 0:
        return 1
    return sum(partitions(n - k, min(k, n - k)) for k in range(1, min(largest, n) + 1))


def counter():
    count = 0

    def step(by=1):
        nonlocal count
        count += by
        return count

    return step


def compose(*functions):
    return lambda value: functools.reduce(lambda found, function: function(found), functions, value)


step = counter()
for i in range(20_000):
    add(i, b=2)
    step(i % 3)
pipeline = compose(lambda x: x + 1, lambda x: x * 2, str, len)
result = add.calls, step(0), ways(150), partitions(50, 50), sum(map(pipeline, range(5000)))
