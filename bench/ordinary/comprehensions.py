"""List, set and dict comprehensions over rows."""

from collections import namedtuple

Row = namedtuple("Row", "id name score tags")
rows = [Row(i, f"name{i % 50}", i * 37 % 101, {f"t{i % 7}", f"t{i % 11}"}) for i in range(6000)]
passed = [row.name.upper() for row in rows if row.score > 50]
best = {row.name: row.score for row in rows if row.score % 2 == 0}
tags = {tag for row in rows for tag in row.tags if row.id % 3}
squares = [n * n for n in range(20_000) if n % 3]
matrix = [[i * j for j in range(60)] for i in range(60)]
transposed = [[row[i] for row in matrix] for i in range(60)]
flat = [cell for row in transposed for cell in row if cell % 2]
lengths = {name: len(name) for name in passed}
total = sum(row.score * 2 for row in rows if row.name.endswith("3"))
result = len(passed), sorted(best.items())[:5], sorted(tags), sum(squares), len(flat), len(lengths), total
