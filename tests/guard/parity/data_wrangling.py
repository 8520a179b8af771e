#: group-and-aggregate
#: needs: collections, statistics
from collections import defaultdict
from statistics import mean
rows = [("n", "a", 3), ("s", "a", 5), ("n", "b", 7), ("s", "b", 1), ("n", "a", 9)]
by = defaultdict(list)
for region, kind, v in rows: by[region, kind].append(v)
print({f"{r}/{k}": (len(v), sum(v), mean(v)) for (r, k), v in sorted(by.items())})
#: pivot-table
rows = [("jan", "x", 1), ("jan", "y", 2), ("feb", "x", 3)]
cols = sorted({c for _, c, _ in rows})
table = {m: {c: 0 for c in cols} for m, *_ in rows}
for m, c, v in rows: table[m][c] += v
print("     ", *cols)
for m, r in table.items(): print(f"{m:<5}", *(f"{r[c]}" for c in cols), sum(r.values()))
#: join-two-tables
users = [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]
orders = [{"u": 1, "t": 5}, {"u": 1, "t": 7}, {"u": 3, "t": 9}]
idx = {u["id"]: u for u in users}
print([{**idx[o["u"]], **o} for o in orders if o["u"] in idx], [u["n"] for u in users if not any(o["u"] == u["id"] for o in orders)])
#: clean-messy-input
raw = [" 1,200 ", "n/a", "$3.50", "", "-7", "1e3", None]
def num(s):
    try: return float(s.strip().replace(",", "").lstrip("$"))
    except (ValueError, AttributeError): return None
print([num(s) for s in raw], sum(filter(None, map(num, raw))))
#: moving-average-and-outliers
#: needs: statistics
import statistics as st
xs = [10, 12, 11, 13, 12, 50, 11]
print([round(sum(xs[max(0, i - 2):i + 1]) / len(xs[max(0, i - 2):i + 1]), 2) for i in range(len(xs))])
m, s = st.mean(xs), st.stdev(xs)
print([x for x in xs if abs(x - m) > 2 * s], round(m, 2), round(s, 2), st.median(xs))
#: linear-regression-by-hand
xs, ys = [1, 2, 3, 4], [2.1, 3.9, 6.2, 7.8]
n = len(xs); mx, my = sum(xs) / n, sum(ys) / n
b = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)
print(f"y = {my - b * mx:.3f} + {b:.3f}x", f"r2 = {1 - sum((y - (my - b * mx + b * x)) ** 2 for x, y in zip(xs, ys)) / sum((y - my) ** 2 for y in ys):.4f}")
#: histogram
data = [1, 3, 2, 3, 3, 5, 1, 4]
for v in range(min(data), max(data) + 1): print(f"{v:>2} | {'#' * data.count(v)}")
#: flatten-nested-config
def flat(d, p=""):
    for k, v in d.items():
        key = f"{p}.{k}" if p else k
        if isinstance(v, dict): yield from flat(v, key)
        elif isinstance(v, list): yield from ((f"{key}[{i}]", x) for i, x in enumerate(v))
        else: yield key, v
print(dict(flat({"a": {"b": 1, "c": [2, 3]}, "d": {"e": {"f": None}}})))
#: diff-of-dicts
def diff(a, b):
    return {"added": sorted(b.keys() - a.keys()), "removed": sorted(a.keys() - b.keys()), "changed": {k: (a[k], b[k]) for k in sorted(a.keys() & b.keys()) if a[k] != b[k]}}
print(diff({"x": 1, "y": 2, "z": 3}, {"y": 2, "z": 4, "w": 0}))
#: word-count-and-bigrams
#: needs: re, collections, itertools
import re
from collections import Counter
from itertools import pairwise
t = "To be, or not to be: that is the question. To be!"
w = re.findall(r"[a-z']+", t.lower())
print(Counter(w).most_common(3), Counter(pairwise(w)).most_common(2), len(set(w)) / len(w))
#: time-series-resample
#: needs: datetime, itertools
from datetime import datetime, timedelta
from itertools import groupby
t0 = datetime(2024, 1, 1)
s = [(t0 + timedelta(hours=7 * i), i * i) for i in range(8)]
print({str(d): sum(v for _, v in g) for d, g in groupby(s, key=lambda p: p[0].date())})
#: validate-records
def check(r):
    errs = []
    if not isinstance(r.get("age"), int): errs.append("age must be a number")
    elif not 0 <= r["age"] < 150: errs.append(f"age {r['age']} out of range")
    if "@" not in r.get("mail", ""): errs.append("mail is malformed")
    return errs
for r in ({"age": 5, "mail": "a@b"}, {"age": "x"}, {"age": 200, "mail": "q"}): print(check(r) or "ok")
#: report-table
rows = [{"item": "pen", "qty": 3, "price": 1.2}, {"item": "notebook", "qty": 10, "price": 2.5}]
w = {k: max(len(k), *(len(str(r[k])) for r in rows)) for k in rows[0]}
print(" | ".join(k.ljust(w[k]) for k in w)); print("-+-".join("-" * n for n in w.values()))
for r in rows: print(" | ".join(str(r[k]).rjust(w[k]) if isinstance(r[k], (int, float)) else r[k].ljust(w[k]) for k in w))
print(f"total {sum(r['qty'] * r['price'] for r in rows):.2f}")
#: batch-with-errors-collected
jobs = {"a": lambda: 1, "b": lambda: 1 / 0, "c": lambda: int("x"), "d": lambda: [][0]}
done, failed = {}, {}
for n, j in jobs.items():
    try: done[n] = j()
    except Exception as e: failed[n] = f"{type(e).__name__}: {e}"
print(done, failed)
#: kwargs-pipeline
def step(f): f.is_step = True; return f
class Pipe:
    @step
    def strip(self, s): return s.strip()
    @step
    def title(self, s): return s.title()
    def other(self, s): return "never"
    def run(self, s):
        for n in ("strip", "title", "other"):
            f = getattr(self, n)
            if getattr(f, "is_step", False): s = f(s)
        return s
print(Pipe().run("  hello world "))
#: unit-conversion-graph
edges = {("km", "m"): 1000, ("m", "cm"): 100, ("mi", "km"): 1.609344}
g = {}
for (a, b), f in edges.items(): g.setdefault(a, {})[b] = f; g.setdefault(b, {})[a] = 1 / f
def conv(v, a, b, seen=()):
    if a == b: return v
    for c, f in g[a].items():
        if c not in seen and (r := conv(v * f, c, b, (*seen, a))) is not None: return r
print(round(conv(1, "mi", "cm"), 2), conv(5, "m", "km"))
#: notebook-style-cells
# load
sales = [("mon", 3), ("tue", 5), ("wed", None), ("thu", 8)]
# clean
clean = [(d, v) for d, v in sales if v is not None]
missing = len(sales) - len(clean)
# analyse
total = sum(v for _, v in clean); best = max(clean, key=lambda p: p[1])
growth = [(b[0], round((b[1] - a[1]) / a[1] * 100, 1)) for a, b in zip(clean, clean[1:])]
print(f"{total=} {best=} {missing=}"); print(growth)
#: decision-tree-by-hand
rows = [((1, 0), "n"), ((1, 1), "y"), ((0, 1), "n"), ((0, 0), "n")]
def gini(ls): return 1 - sum((ls.count(c) / len(ls)) ** 2 for c in set(ls)) if ls else 0
def build(rows):
    ls = [l for _, l in rows]
    if len(set(ls)) == 1: return ls[0]
    f = min(range(2), key=lambda f: sum(len(p) * gini([l for _, l in p]) for p in ([r for r in rows if r[0][f] == v] for v in (0, 1)) if p))
    return (f, *(build([r for r in rows if r[0][f] == v]) for v in (0, 1)))
print(build(rows))
#: markov-text
#: needs: random, collections
import random
from collections import defaultdict
rng, model = random.Random(2), defaultdict(list)
w = "the cat sat on the mat and the dog sat on the cat".split()
for a, b in zip(w, w[1:]): model[a].append(b)
out = ["the"]
while len(out) < 8 and model[out[-1]]: out.append(rng.choice(model[out[-1]]))
print(" ".join(out))
