"""Counting and grouping with dicts, `Counter` and `defaultdict`."""

from collections import Counter, defaultdict


def group(records):
    by_city = defaultdict(list)
    for record in records:
        by_city[record["city"]].append(record["age"])
    return {city: sum(ages) / len(ages) for city, ages in sorted(by_city.items())}


def invert(mapping):
    found = {}
    for key, value in mapping.items():
        found.setdefault(value, []).append(key)
    return found


cities = ["Oslo", "Lima", "Kyoto", "Accra", "Quito", "Turin"]
records = [{"name": f"n{i}", "city": cities[i * 7 % 6], "age": i % 60 + 18} for i in range(12_000)]
letters = Counter()
for record in records:
    letters.update(record["city"].lower())
pairs = Counter((record["city"], record["age"] // 10) for record in records)
ages = {record["name"]: record["age"] for record in records}
oldest = {}
for record in records:
    if record["age"] > oldest.get(record["city"], 0):
        oldest[record["city"]] = record["age"]
result = group(records), letters.most_common(5), pairs.most_common(3), oldest, len(invert(ages))
