"""Loops at the top of a script, as cells are often written."""

total = 0
counts = {}
rows = []
for i in range(30_000):
    bucket = i % 17
    counts[bucket] = counts.get(bucket, 0) + i * 3
    if i % 5 == 0:
        rows.append((bucket, i * i))
    total += i * bucket
for bucket, square in rows:
    total -= square % 1000
result = total, sorted(counts.items())
