#: keys
people = [("Ann", 30), ("bob", 25), ("Cid", 30)]
print(sorted(people, key=lambda p: p[1]), sorted(people, key=lambda p: (-p[1], p[0])), sorted(people, key=lambda p: p[0].lower(), reverse=True))
#: stability
rows = [("b", 2), ("a", 1), ("b", 1), ("a", 2)]
rows.sort(key=lambda r: r[1])
rows.sort(key=lambda r: r[0])
print(rows)
#: itemgetter-attrgetter
#: needs: operator
from operator import itemgetter, attrgetter, methodcaller

class P:
    def __init__(self, n, a): self.n, self.a = n, a
    def __repr__(self): return f"{self.n}{self.a}"

ps = [P("x", 3), P("y", 1)]
print(sorted(ps, key=attrgetter("a")), sorted([{"k": 2}, {"k": 1}], key=itemgetter("k")), itemgetter(1, 0)("ab"), methodcaller("upper")("q"), attrgetter("n", "a")(ps[0]))
#: cmp-to-key
#: needs: functools
from functools import cmp_to_key
print(sorted(["10", "9", "2"], key=cmp_to_key(lambda a, b: int(a) - int(b))), "".join(sorted(["3", "30", "34"], key=cmp_to_key(lambda a, b: -1 if a + b > b + a else 1))))
#: own-less-than
class V:
    def __init__(self, v): self.v = v
    def __lt__(self, o): return self.v < o.v
    def __repr__(self): return f"V{self.v}"

print(sorted([V(3), V(1), V(2)]), min(V(5), V(4)), max([V(1), V(9)]))
#: incomparable
#: raises: TypeError
sorted([1, "a", None])
#: key-raises
#: raises: KeyError
sorted([{"a": 1}, {}], key=lambda d: d["a"])
#: none-last
xs = [3, None, 1, None, 2]
print(sorted(xs, key=lambda x: (x is None, x or 0)))
#: quick-merge-bubble
def quick(xs):
    if len(xs) < 2:
        return xs
    p, *rest = xs
    return quick([x for x in rest if x < p]) + [p] + quick([x for x in rest if x >= p])

def merge_sort(xs):
    if len(xs) < 2:
        return xs
    m = len(xs) // 2
    a, b, out = merge_sort(xs[:m]), merge_sort(xs[m:]), []
    while a and b:
        out.append((a if a[0] <= b[0] else b).pop(0))
    return out + a + b

def bubble(xs):
    xs = xs[:]
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return xs

data = [5, 2, 9, 1, 5, 6]
print(quick(data), merge_sort(data), bubble(data), data)
#: heap-sort
def heapify(a, n, i):
    big = i
    for c in (2 * i + 1, 2 * i + 2):
        if c < n and a[c] > a[big]:
            big = c
    if big != i:
        a[i], a[big] = a[big], a[i]
        heapify(a, n, big)

a = [4, 10, 3, 5, 1]
for i in range(len(a) // 2 - 1, -1, -1):
    heapify(a, len(a), i)
for end in range(len(a) - 1, 0, -1):
    a[0], a[end] = a[end], a[0]
    heapify(a, end, 0)
print(a)
#: heapq-and-bisect
#: needs: heapq, bisect
import heapq, bisect
h = [5, 1, 4]
heapq.heapify(h)
heapq.heappush(h, 2)
print(heapq.heappop(h), heapq.heappushpop(h, 0), heapq.nlargest(2, [1, 9, 5]), heapq.nsmallest(2, "hello"), list(heapq.merge([1, 4], [2, 3])))
xs = [1, 3, 3, 7]
bisect.insort(xs, 5)
print(xs, bisect.bisect_left(xs, 3), bisect.bisect(xs, 3), bisect.bisect_right([{"v": 1}], 1, key=lambda d: d["v"]))
#: group-and-rank
#: needs: itertools
from itertools import groupby
words = sorted(["bee", "ant", "cat", "alpha", "beta"], key=lambda w: (w[0], w))
print({k: list(g) for k, g in groupby(words, key=lambda w: w[0])})
scores = {"a": 10, "b": 30, "c": 20}
print({n: r for r, n in enumerate(sorted(scores, key=scores.get, reverse=True), 1)})
#: topological
def topo(g):
    seen, out = set(), []
    def visit(n):
        if n in seen:
            return
        seen.add(n)
        for m in sorted(g.get(n, ())):
            visit(m)
        out.append(n)
    for n in sorted(g):
        visit(n)
    return out

print(topo({"app": ["db", "log"], "db": ["log"], "log": []}))
#: sort-in-place-returns-none
x = [2, 1]
print(x.sort(), x, sorted(x, reverse=True), sorted("hello", key=str), sorted({3, 1}), sorted({"b": 0, "a": 0}))
