"""Sorting with keys, and three sorts written out."""

import random


def bubble(values):
    values = list(values)
    for end in range(len(values) - 1, 0, -1):
        for i in range(end):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]
    return values


def quick(values):
    if len(values) < 2:
        return values
    pivot, *rest = values
    return quick([v for v in rest if v < pivot]) + [pivot] + quick([v for v in rest if v >= pivot])


def merge(values):
    if len(values) < 2:
        return values
    middle = len(values) // 2
    left, right = merge(values[:middle]), merge(values[middle:])
    out = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


random.seed(7)
values = [random.randrange(10_000) for _ in range(5000)]
people = [{"name": f"n{v % 97}", "age": v % 80, "score": v / 7} for v in values]
by_age = sorted(people, key=lambda one: (one["age"], -one["score"]))
by_name = sorted(people, key=lambda one: one["name"].lower(), reverse=True)
assert quick(values) == merge(values) == sorted(values)
result = bubble(values[:250]), by_age[0], by_name[0], max(people, key=lambda one: one["score"])
