#: bfs-shortest-path
#: needs: collections
from collections import deque
def path(g, a, b):
    prev, q = {a: None}, deque([a])
    while q:
        n = q.popleft()
        if n == b:
            out = []
            while n is not None:
                out.append(n)
                n = prev[n]
            return out[::-1]
        for m in g.get(n, ()):
            if m not in prev:
                prev[m] = n
                q.append(m)
print(path({"a": "bc", "b": "d", "c": "e", "d": "f", "e": "f"}, "a", "f"), path({"a": "b"}, "b", "a"))
#: dijkstra
#: needs: heapq
import heapq
def dijkstra(g, s):
    dist, h = {s: 0}, [(0, s)]
    while h:
        d, n = heapq.heappop(h)
        if d > dist[n]: continue
        for m, w in g[n].items():
            if (nd := d + w) < dist.get(m, float("inf")):
                dist[m] = nd
                heapq.heappush(h, (nd, m))
    return dist
print(dijkstra({"a": {"b": 7, "c": 3}, "b": {"d": 2}, "c": {"b": 1, "d": 8}, "d": {}}, "a"))
#: floyd-warshall
INF = float("inf")
d = [[0, 3, INF], [INF, 0, -1], [2, INF, 0]]
for k in range(3):
    for i in range(3):
        for j in range(3):
            d[i][j] = min(d[i][j], d[i][k] + d[k][j])
print(d)
#: union-find-kruskal
class DSU:
    def __init__(self, n): self._p = list(range(n))
    def find(self, x):
        while self._p[x] != x:
            self._p[x] = self._p[self._p[x]]
            x = self._p[x]
        return x
    def join(self, a, b):
        a, b = self.find(a), self.find(b)
        self._p[a] = b
        return a != b
dsu = DSU(4)
print(sum(w for w, a, b in sorted([(4, 0, 1), (1, 1, 2), (3, 0, 2), (2, 2, 3)]) if dsu.join(a, b)))
#: knapsack
def knap(items, cap):
    best = [0] * (cap + 1)
    for w, v in items:
        for c in range(cap, w - 1, -1):
            best[c] = max(best[c], best[c - w] + v)
    return best[cap]
print(knap([(1, 1), (3, 4), (4, 5), (5, 7)], 7))
#: n-queens
def queens(n, row=0, cols=0, d1=0, d2=0):
    if row == n: return 1
    total, free = 0, ~(cols | d1 | d2) & ((1 << n) - 1)
    while free:
        bit = free & -free
        free ^= bit
        total += queens(n, row + 1, cols | bit, (d1 | bit) << 1, (d2 | bit) >> 1)
    return total
print([queens(n) for n in range(1, 8)])
#: sudoku
grid = [list(map(int, r)) for r in ("530070000", "600195000", "098000060", "800060003", "400803001", "700020006", "060000280", "000419005", "000080079")]
def ok(r, c, v):
    return all(grid[r][i] != v and grid[i][c] != v and grid[r // 3 * 3 + i // 3][c // 3 * 3 + i % 3] != v for i in range(9))
def solve():
    for r in range(9):
        for c in range(9):
            if not grid[r][c]:
                for v in range(1, 10):
                    if ok(r, c, v):
                        grid[r][c] = v
                        if solve(): return True
                        grid[r][c] = 0
                return False
    return True
print(solve(), *("".join(map(str, r)) for r in grid), sep="\n")
#: lcs-and-edit
def lcs(a, b):
    t = [[""] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            t[i + 1][j + 1] = t[i][j] + x if x == y else max(t[i + 1][j], t[i][j + 1], key=len)
    return t[-1][-1]
print(lcs("AGGTAB", "GXTXAYB"))
#: longest-increasing-subsequence
#: needs: bisect
from bisect import bisect_left
def lis(xs):
    tails = []
    for x in xs:
        i = bisect_left(tails, x)
        tails[i:i + 1] = [x]
    return len(tails)
print(lis([10, 9, 2, 5, 3, 7, 101, 18]))
#: coin-change-memo
#: needs: functools
from functools import cache
@cache
def ways(n, coins=(50, 20, 10, 5, 2, 1)):
    if n == 0: return 1
    if n < 0 or not coins: return 0
    return ways(n - coins[0], coins) + ways(n, coins[1:])
print(ways(100))
#: matrix-determinant-gauss
#: needs: fractions
from fractions import Fraction as F
def solve(a, b):
    n = len(a)
    m = [[F(v) for v in r] + [F(x)] for r, x in zip(a, b)]
    for i in range(n):
        p = next(r for r in range(i, n) if m[r][i])
        m[i], m[p] = m[p], m[i]
        m[i] = [v / m[i][i] for v in m[i]]
        for r in range(n):
            if r != i:
                m[r] = [x - m[r][i] * y for x, y in zip(m[r], m[i])]
    return [str(r[-1]) for r in m]
print(solve([[2, 1, -1], [-3, -1, 2], [-2, 1, 2]], [8, -11, -3]))
#: trie
class Trie:
    def __init__(self): self._root = {}
    def add(self, w):
        n = self._root
        for c in w: n = n.setdefault(c, {})
        n["$"] = True
    def prefix(self, p):
        n = self._root
        for c in p:
            if c not in n: return []
            n = n[c]
        return sorted(self._walk(n, p))
    def _walk(self, n, p):
        for c, k in n.items():
            if c == "$": yield p
            else: yield from self._walk(k, p + c)
t = Trie()
for w in "car card care dog".split(): t.add(w)
print(t.prefix("car"), t.prefix("x"))
#: lru-cache-by-hand
#: needs: collections
from collections import OrderedDict
class LRU:
    def __init__(self, n): self._d, self._n = OrderedDict(), n
    def __getitem__(self, k):
        self._d.move_to_end(k)
        return self._d[k]
    def __setitem__(self, k, v):
        self._d[k] = v
        self._d.move_to_end(k)
        if len(self._d) > self._n: self._d.popitem(last=False)
    def __repr__(self): return f"LRU({list(self._d.items())})"
c = LRU(2); c["a"] = 1; c["b"] = 2; c["a"]; c["c"] = 3
print(c)
#: linked-list
class Node:
    __slots__ = ("v", "next")
    def __init__(self, v, next=None): self.v, self.next = v, next
class LinkedList:
    def __init__(self, xs=()):
        self._head = None
        for x in reversed(list(xs)): self._head = Node(x, self._head)
    def __iter__(self):
        n = self._head
        while n: yield n.v; n = n.next
    def reverse(self):
        prev, n = None, self._head
        while n: n.next, prev, n = prev, n, n.next
        self._head = prev
        return self
print(list(LinkedList("abc").reverse()))
#: binary-search-and-peaks
def search(xs, t):
    lo, hi = 0, len(xs) - 1
    while lo <= hi:
        m = (lo + hi) // 2
        if xs[m] == t: return m
        if xs[m] < t: lo = m + 1
        else: hi = m - 1
    return -1
x = [1, 3, 2, 5, 4]
print(search([1, 3, 5, 7], 5), search([1], 2), [i for i, (a, b, c) in enumerate(zip(x, x[1:], x[2:]), 1) if b > a and b > c])
#: maze-dfs-and-flood-fill
maze = ["S.#", "..#", "#.E"]
def walk(r, c, seen=frozenset()):
    if not (0 <= r < 3 and 0 <= c < 3) or maze[r][c] == "#" or (r, c) in seen: return None
    if maze[r][c] == "E": return [(r, c)]
    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        if p := walk(r + dr, c + dc, seen | {(r, c)}): return [(r, c), *p]
print(walk(0, 0))
#: huffman
#: needs: heapq, collections
import heapq
from collections import Counter
def codes(s):
    h = [(n, i, c) for i, (c, n) in enumerate(sorted(Counter(s).items()))]
    heapq.heapify(h)
    i = len(h)
    while len(h) > 1:
        a, b = heapq.heappop(h), heapq.heappop(h)
        heapq.heappush(h, (a[0] + b[0], i, (a[2], b[2]))); i += 1
    def walk(t, p=""):
        return {t: p or "0"} if isinstance(t, str) else walk(t[0], p + "0") | walk(t[1], p + "1")
    return walk(h[0][2])
c = codes("abracadabra")
print(sorted(c.items()), len("".join(c[x] for x in "abracadabra")))
#: k-means
pts = [(1, 1), (1, 2), (8, 8), (9, 8)]
cs = [pts[0], pts[2]]
for _ in range(5):
    groups = [[p for p in pts if min(range(2), key=lambda i: (p[0] - cs[i][0]) ** 2 + (p[1] - cs[i][1]) ** 2) == k] for k in range(2)]
    cs = [tuple(sum(v) / len(g) for v in zip(*g)) for g in groups]
print(cs, groups)
#: mandelbrot-ascii
for y in range(-4, 5):
    row = ""
    for x in range(-14, 6):
        z, n = 0j, 0
        while abs(z) < 2 and n < 9:
            z = z * z + complex(x / 7, y / 4)
            n += 1
        row += " .:-=+*#@"[n - 1]
    print(row.rstrip())
#: game-of-life-and-conway
def life(rows, n):
    for _ in range(n):
        h, w = len(rows), len(rows[0])
        rows = ["".join("#" if (k := sum(rows[(r + a) % h][(c + b) % w] == "#" for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)) == 3 or k == 2 and rows[r][c] == "#" else "." for c in range(w)) for r in range(h)]
    return rows
print(*life([".#...", "..#..", "###..", ".....", "....."], 4), sep="\n")
