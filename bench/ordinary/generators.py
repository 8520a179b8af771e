"""Generators in a pipeline, and one that is sent values."""


def numbers(n):
    for i in range(n):
        yield i * 3 + 1


def odd(values):
    for value in values:
        if value % 2:
            yield value


def windows(values, size):
    window = []
    for value in values:
        window.append(value)
        if len(window) == size:
            yield sum(window)
            window.pop(0)


def averaging():
    total = count = 0
    average = None
    while True:
        value = yield average
        total += value
        count += 1
        average = total / count


def flatten(nested):
    for one in nested:
        if isinstance(one, list):
            yield from flatten(one)
        else:
            yield one


means = averaging()
next(means)
for value in windows(odd(numbers(30_000)), 5):
    last = means.send(value)
nested = [[i, [i + 1, [i + 2, i + 3]]] for i in range(2500)]
result = last, sum(flatten(nested)), sum(x for x in numbers(20_000) if x % 5 == 0)
