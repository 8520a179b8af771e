#: nested-loops
print([(x, y) for x in range(3) for y in range(x)], [[i * j for j in range(3)] for i in range(2)])
#: conditions
print([x for x in range(20) if x % 2 if x % 3], ["even" if x % 2 == 0 else "odd" for x in range(3)])
#: dict-and-set
print({w: len(w) for w in ("a", "bb")}, {x % 3 for x in range(9)}, {v: k for k, v in {"a": 1, "b": 2}.items()})
#: unpacking-targets
print([a + b for a, b in [(1, 2), (3, 4)]], [(h, t) for h, *t in ("abc", "de")], {k: v for k, (v, _) in {"x": (1, 2)}.items()})
#: closures-inside
print([f() for f in [(lambda x=x: x * 2) for x in range(3)]], [(lambda y: y + x)(1) for x in range(3)])
#: shadowing
x = [1, 2]
print([x for x in x], x, [[x for x in range(x)] for x in range(3)])
#: over-strings-and-dicts
d = {"b": 1, "a": 2}
print([c.upper() for c in "abc" if c != "b"], [k for k in d], sorted(d), [f"{k}={v}" for k, v in d.items()])
#: flatten-matrix-transpose
m = [[1, 2, 3], [4, 5, 6]]
print([v for row in m for v in row], [[row[i] for row in m] for i in range(3)], [*map(list, zip(*m))])
#: any-all-sum-generators
words = ["apple", "fig", "kiwi"]
print(any(len(w) == 3 for w in words), all(w.islower() for w in words), sum(len(w) for w in words), max(words, key=lambda w: w[-1]))
#: attribute-targets
class O: pass
o = O()
r = [o.v for o.v in range(3)]
print(r, o.v)
#: subscript-targets
d = {}
print([d["k"] for d["k"] in "abc"], d)
#: nested-with-enumerate-zip
print([(i, a, b) for i, (a, b) in enumerate(zip("ab", [1, 2]), 1)])
#: primes-and-pythagoras
print([n for n in range(2, 40) if all(n % d for d in range(2, int(n ** 0.5) + 1))])
print([(a, b, c) for a in range(1, 20) for b in range(a, 20) for c in range(b, 20) if a * a + b * b == c * c])
#: exception-inside
#: raises: KeyError
prices = {"a": 1}
print([prices[k] for k in "ab"])
#: side-effects-and-order
log = []
def t(x):
    log.append(x)
    return x

{t("k1"): t("v1") for _ in range(1)}
[t(a) + t(b) for a in (1, 2) if t("if") for b in (3,)]
print(log)
#: in-class-body-with-method
class A:
    names = ["x", "y"]
    lookup = {n: i for i, n in enumerate(names)}

    def all(self):
        return [self.lookup[n] for n in self.names]

print(A().all())
#: lambda-in-comprehension-with-self
class A:
    def __init__(self): self.k = 3
    def fs(self): return [lambda x: x * self.k for _ in range(2)]

print([f(2) for f in A().fs()])
#: super-in-comprehension
class A:
    def v(self, i): return i

class B(A):
    def all(self):
        return [super(B, self).v(i) for i in range(3)]

print(B().all())
#: group-by-dict
rows = [("fruit", "apple"), ("veg", "leek"), ("fruit", "fig")]
print({k: [n for kk, n in rows if kk == k] for k in dict.fromkeys(k for k, _ in rows)})
#: conditional-unpack-star-in-literals
a, b = [1, 2], {"x": 1}
print([*a, *range(2)], (*a, 3), {*a, 9}, {**b, "y": 2, **{"x": 5}}, [*"ab", *{}])
#: long-generator-memory
print(sum(x * x for x in range(10_000)), len([None for _ in range(5000)]), next(x for x in range(10**6) if x * x > 5000))
#: game-of-life-cells
cells = {(1, 0), (1, 1), (1, 2)}
def step(cells):
    near = {}
    for x, y in cells:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy:
                    near[x + dx, y + dy] = near.get((x + dx, y + dy), 0) + 1
    return {c for c, n in near.items() if n == 3 or n == 2 and c in cells}
print(sorted(step(cells)), sorted(step(step(cells))))
