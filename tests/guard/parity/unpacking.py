#: star-everywhere
a, *b = [1, 2, 3]
*c, d = "xyz"
e, *f, g = range(5)
(h, (i, *j)), *k = [(1, "abc"), 2, 3]
print(a, b, c, d, e, f, g, h, i, j, k)
#: swap-and-rotate
a, b, c = 1, 2, 3
a, b, c = c, a, b
print(a, b, c)
x = [1, 2, 3]
x[0], x[-1] = x[-1], x[0]
print(x)
#: attribute-and-item-targets
class O: pass
o, d, l = O(), {}, [0, 0, 0]
o.a, d["k"], l[1] = 1, 2, 3
o.b = d["m"] = l[0] = 9
o.c, *l[1:] = "xyz"
print(vars(o), d, l)
#: mismatch-with-attributes
#: raises: ValueError
class O: pass
o = O()
o.x, o.y = 1, 2, 3
#: for-targets
class O: pass
o, d = O(), {}
for o.x, d["y"] in [(1, 2), (3, 4)]:
    print(o.x, d["y"])
for [a, *b] in ([1, 2, 3], "xy"):
    print(a, b)
for i, d[i] in enumerate("ab"):
    pass
print(d)
#: slice-assignment
x = list(range(6))
x[1:3] = "abc"
print(x)
x[::2] = [0] * len(x[::2])
print(x)
del x[1:3]
x[len(x):] = [7, 8]
x[:0] = [-1]
print(x)
#: slice-assignment-wrong-size
#: raises: ValueError
x = [1, 2, 3, 4]
x[::2] = [1]
#: augmented-targets
class O: v = 1
o, d, l = O(), {"a": 1}, [[1], [2]]
o.v += 1
d["a"] *= 5
l[0] += [9]
l[1][0] -= 3
print(o.v, O.v, d, l)
#: augmented-evaluated-once
def idx():
    print("idx")
    return 0

l = [1]
l[idx()] += 1
print(l)
#: augmented-on-tuple-item
t = ([1],)
try:
    t[0] += [2]
except TypeError as e:
    print(e, t)
#: from-iterators-and-dicts
a, b = {"x": 1, "y": 2}
c, d = (i * i for i in (2, 3))
[(e, f)] = {"k": "v"}.items()
print(a, b, c, d, e, f)
#: own-iterable
class Pair:
    def __iter__(self):
        yield "l"
        yield "r"

x, y = Pair()
print(x, y, [*Pair()], (lambda *a: a)(*Pair()))
#: mapping-double-star
class M:
    def keys(self): return ["a", "b"]
    def __getitem__(self, k): return k * 2

print({**M()}, dict(**M()), (lambda **k: k)(**M()))
#: return-and-yield-star
def f(): return 1, *[2, 3]
def g(): yield 0, *"ab"
print(f(), list(g()))
#: subscript-star
class G:
    def __getitem__(self, k): return k
t = (1, 2)
print(G()[*t, 3], G()[0, *t])
#: empty-targets
[] = ()
() = []
print("ok")
#: nested-deep
((a, b), [c, (d, *e)], f) = ((1, 2), [3, (4, 5, 6)], 7)
print(a, b, c, d, e, f)
#: print-with-star-and-separators
rows = [["a", 1], ["b", 22]]
for r in rows:
    print(*r, sep="\t", end=";\n")
print(*[], "x", *"yz", sep="")
#: head-tail-recursion
def total(xs):
    if not xs:
        return 0
    head, *tail = xs
    return head + total(tail)

print(total([1, 2, 3, 4]))
#: walrus-tuple
print((x := (1, 2)), x, [y := 3, y ** 2])
