#: list-methods
x = [3, 1, 2]
x.append(5); x.extend([7, 6]); x.insert(1, 9); x.remove(2)
print(x, x.pop(), x.pop(0), x.index(5), x.count(1), x.copy() == x)
x.sort(); print(x); x.reverse(); print(x); x.clear(); print(x)
#: list-operators
print([1] + [2], [0] * 3, [1, 2] < [1, 3], [1] == [1.0], 2 in [1, 2], [[]] * 2, sorted([[2], [1, 5]]), max([1, 2], [1]))
#: aliasing-and-copying
a = [[1], [2]]
b = a[:]
b[0].append(9)
b.append(3)
print(a, b, a[0] is b[0])
grid = [[0] * 3 for _ in range(2)]
grid[0][1] = 5
print(grid)
#: dict-methods
d = {"a": 1}
d.update(b=2, **{"c": 3}); d.update([("d", 4)])
print(d, d.get("z"), d.get("z", 0), d.pop("a"), d.pop("zz", None), d.setdefault("q", []), d.popitem(), list(d), d.keys() & {"b"}, d.items() >= {("b", 2)})
print({**d} == d, d | {"x": 1}, dict(zip("ab", (1, 2))), dict.fromkeys([1, 2], "v"), list(reversed(d)))
d |= {"b": 20}
print(d["b"], "b" in d, len(d), sorted(d.values()))
#: dict-view-liveness
d = {"a": 1}
k, v, i = d.keys(), d.values(), d.items()
d["b"] = 2
print(list(k), list(v), list(i), k, v, i)
#: dict-changed-during-iteration
#: raises: RuntimeError
d = {1: 1, 2: 2}
for k in d:
    d[k + 10] = 0
#: dict-order-and-deletion
d = {k: i for i, k in enumerate("dcba")}
del d["c"]
d["c"] = 9
d["d"] = 0
print(list(d.items()))
#: set-operations
a, b = {1, 2, 3}, {3, 4}
print(a | b, a & b, a - b, a ^ b, a <= {1, 2, 3, 4}, a.isdisjoint({9}), {1} < a, sorted(a.union([7], {8})), a.intersection([1]), a.issuperset({1}))
a.add(5); a.discard(99); a.update([6]); a.remove(1)
a |= {10}; a &= {2, 3, 5, 10}; a -= {5}; a ^= {2, 11}
print(a, len(a), frozenset([1, 2]) | {3}, hash(frozenset([1])) == hash(frozenset([1])))
#: set-pop-empty
#: raises: KeyError
set().pop()
#: tuples
t = (1, 2, 2, 3)
print(t.count(2), t.index(3), t + (4,), t * 2, t[1:], (1,), (), (1, 2) < (1, 3), hash((1, 2)) == hash((1, 2)), sorted([(2, "a"), (1, "b")]))
#: mixed-keys
d = {1: "int", "1": "str", (1, 2): "tuple", None: "none", True: "bool", 1.5: "float", frozenset([1]): "fs"}
print(d[1], d[1.0], d[(1, 2)], d[None], len(d))
#: unhashable
#: raises: TypeError
{[1]: 2}
#: nested-access-and-defaults
cfg = {"db": {"hosts": ["a", "b"], "port": 1}}
print(cfg["db"]["hosts"][-1], cfg.get("x", {}).get("y", "none"), [h.upper() for h in cfg["db"]["hosts"]])
cfg["db"]["hosts"].append("c")
cfg.setdefault("log", {}).setdefault("level", "info")
print(cfg)
#: merging-and-inverting
a = {"x": 1, "y": 2}
print({v: k for k, v in a.items()}, {**a, "z": 3}, {k: a.get(k, 0) + {"y": 5}.get(k, 0) for k in a | {"y": 5}})
#: list-as-stack-and-queue
s = []
for c in "([]{})":
    if c in "([{":
        s.append(c)
    else:
        o = s.pop()
        print(o + c, end=" ")
print(s)
#: remove-duplicates-keeping-order
xs = [3, 1, 3, 2, 1]
print(list(dict.fromkeys(xs)), sorted(set(xs)), [x for i, x in enumerate(xs) if x not in xs[:i]])
#: chunk-and-window
xs = list(range(7))
print([xs[i:i + 3] for i in range(0, len(xs), 3)], [tuple(xs[i:i + 2]) for i in range(len(xs) - 1)], list(zip(xs, xs[1:])))
#: slices-with-steps
x = list(range(10))
print(x[8:2:-2], x[::-1], x[-3:], x[:-7], x[20:], x[::4])
x[::3] = ["z"] * 4
print(x)
#: del-slices-and-multiply
x = [1, 2, 3, 4, 5, 6]
del x[::2]
x *= 2
print(x)
x += "ab"
print(x)
#: comparing-nested-and-self-containing
a = [1]
a.append(a)
print(a, [[1, [2]], (3,)] == [[1, [2]], (3,)], {"a": [1]} == {"a": [1]})
#: sum-of-lists-min-max-default
print(sum([[1], [2]], []), min([], default=None), max("b", "a"), min({"b": 1, "a": 2}), max([3, 1], key=lambda v: -v), sum(x for x in [0.1] * 10))
#: enumerate-zip-reversed-range
print(list(enumerate("ab", 5)), list(zip("abc", range(2))), list(reversed([1, 2])), list(range(5, 0, -2)), range(10)[3], 4 in range(0, 10, 2), len(range(0, 10, 3)), range(3) == range(0, 3), range(10)[2:5])
try:
    list(zip("ab", [1], strict=True))
except ValueError as e:
    print(e)
#: matrix-operations
def mul(a, b):
    return [[sum(x * y for x, y in zip(r, c)) for c in zip(*b)] for r in a]

def det(m):
    if len(m) == 1:
        return m[0][0]
    return sum((-1) ** j * m[0][j] * det([r[:j] + r[j + 1:] for r in m[1:]]) for j in range(len(m)))

print(mul([[1, 2], [3, 4]], [[5, 6], [7, 8]]), det([[2, 0, 1], [1, 3, 2], [1, 1, 1]]))
