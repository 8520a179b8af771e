#: vector-arithmetic
class V:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, o): return V(self.x + o.x, self.y + o.y)
    def __sub__(self, o): return V(self.x - o.x, self.y - o.y)
    def __mul__(self, k): return V(self.x * k, self.y * k)
    def __rmul__(self, k): return self * k
    def __neg__(self): return V(-self.x, -self.y)
    def __pos__(self): return self
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __bool__(self): return bool(self.x or self.y)
    def __eq__(self, o): return (self.x, self.y) == (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __repr__(self): return f"V({self.x}, {self.y})"

a, b = V(1, 2), V(3, 4)
print(a + b, b - a, a * 3, 3 * a, -a, +a, abs(b), bool(V(0, 0)), a == V(1, 2), len({a, V(1, 2)}))
#: reflected-operators
class R:
    def __radd__(self, o): return f"{o}+R"
    def __rsub__(self, o): return f"{o}-R"
    def __rmul__(self, o): return f"{o}*R"
    def __rtruediv__(self, o): return f"{o}/R"
    def __rfloordiv__(self, o): return f"{o}//R"
    def __rmod__(self, o): return f"{o}%R"
    def __rpow__(self, o): return f"{o}**R"
    def __rand__(self, o): return f"{o}&R"
    def __ror__(self, o): return f"{o}|R"
    def __rxor__(self, o): return f"{o}^R"
    def __rlshift__(self, o): return f"{o}<<R"
    def __rrshift__(self, o): return f"{o}>>R"
    def __rmatmul__(self, o): return f"{o}@R"
    def __rdivmod__(self, o): return f"divmod({o},R)"

r = R()
print(1 + r, 1 - r, 1 * r, 1 / r, 1 // r, 1 % r, 1 ** r, 1 & r, 1 | r, 1 ^ r, 1 << r, 1 >> r, 1 @ r, divmod(1, r))
#: in-place-operators
class Acc:
    def __init__(self): self.log = []
    def __iadd__(self, o): self.log.append(("+", o)); return self
    def __isub__(self, o): self.log.append(("-", o)); return self
    def __imul__(self, o): self.log.append(("*", o)); return self
    def __itruediv__(self, o): self.log.append(("/", o)); return self
    def __ifloordiv__(self, o): self.log.append(("//", o)); return self
    def __imod__(self, o): self.log.append(("%", o)); return self
    def __ipow__(self, o): self.log.append(("**", o)); return self
    def __ilshift__(self, o): self.log.append(("<<", o)); return self
    def __irshift__(self, o): self.log.append((">>", o)); return self
    def __iand__(self, o): self.log.append(("&", o)); return self
    def __ior__(self, o): self.log.append(("|", o)); return self
    def __ixor__(self, o): self.log.append(("^", o)); return self
    def __imatmul__(self, o): self.log.append(("@", o)); return self

a = same = Acc()
a += 1; a -= 2; a *= 3; a /= 4; a //= 5; a %= 6; a **= 7; a <<= 8; a >>= 9; a &= 10; a |= 11; a ^= 12; a @= 13
print(a.log, a is same)
#: not-implemented-falls-back
class A:
    def __add__(self, o):
        return NotImplemented

class B:
    def __radd__(self, o):
        return "B.__radd__"

print(A() + B())
try:
    A() + 1
except TypeError as e:
    print(e)
#: subclass-reflected-priority
class A:
    def __add__(self, o): return "A.__add__"
    def __radd__(self, o): return "A.__radd__"

class B(A):
    def __radd__(self, o): return "B.__radd__"

print(A() + B(), A() + A(), B() + A())
#: comparison-chain
class T:
    def __init__(self, v): self.v = v
    def __lt__(self, o): print("lt", self.v, o.v); return self.v < o.v
    def __le__(self, o): print("le", self.v, o.v); return self.v <= o.v

print(T(1) < T(2) <= T(2))
print(T(3) < T(2) < T(9))
#: total-ordering
#: needs: functools
from functools import total_ordering

@total_ordering
class Version:
    def __init__(self, s): self.parts = tuple(map(int, s.split(".")))
    def __eq__(self, o): return self.parts == o.parts
    def __lt__(self, o): return self.parts < o.parts

a, b = Version("1.2.10"), Version("1.2.9")
print(a > b, a >= b, a <= b, a != b, max([b, a]).parts)
#: eq-without-hash
#: raises: TypeError
class A:
    def __eq__(self, o):
        return True

{A(): 1}
#: container-protocol
class Ring:
    def __init__(self, items): self.items = list(items)
    def __len__(self): return len(self.items)
    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return self.items[i % len(self)]
    def __setitem__(self, i, v): self.items[i % len(self)] = v
    def __delitem__(self, i): del self.items[i % len(self)]
    def __contains__(self, x): return x in self.items
    def __iter__(self): return iter(self.items)
    def __reversed__(self): return reversed(self.items)

r = Ring("abc")
r[4] = "B"
print(r[3], r[-1], r[0:2], len(r), "B" in r, list(r), list(reversed(r)))
del r[3]
print(list(r))
#: sequence-protocol-by-getitem
class Squares:
    def __getitem__(self, i):
        if i >= 4:
            raise IndexError
        return i * i

print(list(Squares()), 9 in Squares(), [x for x in Squares()], max(Squares()))
a, b, c, d = Squares()
print(a, b, c, d)
#: getitem-with-tuple-and-ellipsis
class G:
    def __getitem__(self, key):
        return key

g = G()
print(g[1, 2], g[1:2, ::3], g[...], g[()], g[1:2:3], g["a", ..., None])
#: call-protocol
class Adder:
    def __init__(self, n): self.n = n
    def __call__(self, *args, scale=1, **kw): return (self.n + sum(args)) * scale, kw

print(Adder(1)(2, 3), Adder(1)(2, scale=10, x=5), callable(Adder(1)), callable(1))
#: numeric-conversions
#: needs: math
import math

class N:
    def __int__(self): return 7
    def __float__(self): return 7.5
    def __complex__(self): return 7 + 1j
    def __index__(self): return 2
    def __round__(self, n=None): return ("round", n)
    def __trunc__(self): return "trunc"
    def __floor__(self): return "floor"
    def __ceil__(self): return "ceil"

n = N()
print(int(n), float(n), complex(n), [10, 20, 30][n], round(n), round(n, 2), math.trunc(n), math.floor(n), math.ceil(n), hex(n), bin(n), oct(n), "ab" * n)
#: repr-and-str
class A:
    def __repr__(self): return "repr!"

class B:
    def __str__(self): return "str!"
    def __repr__(self): return "repr!"

print(A(), B(), [A(), B()], str(A()), f"{B()} {B()!r}", "%s %r" % (B(), B()))
#: format-hook
class Money:
    def __init__(self, v): self.v = v
    def __format__(self, spec):
        return f"{self.v:.2f} {spec or 'EUR'}"

print(f"{Money(3)}", f"{Money(4):USD}", format(Money(5), "GBP"), "{:X}".format(Money(6)))
#: bool-through-len
class L:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n

print(bool(L(0)), bool(L(2)), not L(0), [x.n for x in (L(0), L(1)) if x])
#: matmul
class M:
    def __init__(self, rows): self.rows = rows
    def __matmul__(self, o):
        cols = list(zip(*o.rows))
        return M([[sum(a * b for a, b in zip(r, c)) for c in cols] for r in self.rows])

print((M([[1, 2], [3, 4]]) @ M([[0, 1], [1, 0]])).rows)
#: pow-with-modulus
class P:
    def __pow__(self, e, m=None): return ("pow", e, m)

print(P() ** 2, pow(P(), 3), pow(P(), 3, 5), pow(3, -1, 7), pow(2, 10, 1000))
#: contains-returning-truthy
class C:
    def __contains__(self, x): return x and "yes"

print(1 in C(), 0 in C(), 1 not in C())
#: hash-and-dict-keys
class K:
    def __init__(self, v): self.v = v
    def __hash__(self): return 1
    def __eq__(self, o): return isinstance(o, K) and self.v == o.v

d = {K(1): "one", K(2): "two"}
d[K(1)] = "uno"
print(d[K(1)], d[K(2)], len(d), K(3) in d)
#: operator-precedence
print(2 + 3 * 4 ** 2 // 5 % 7, -2 ** 2, (-2) ** 2, not 1 == 2, 1 < 2 == True, 5 & 3 | 4 ^ 1, ~5, 1 << 2 + 1, 2 ** -1, 2 ** 3 ** 2)
#: divmod-and-signs
for a, b in ((7, 3), (-7, 3), (7, -3), (-7, -3)):
    print(a // b, a % b, divmod(a, b), end="; ")
print(7.5 // 2, -7.5 % 2, divmod(7.5, 2))
#: short-circuit
def f(x):
    print("f", x)
    return x

print(f(0) or f(1) or f(2))
print(f(1) and f(0) and f(2))
print(f(0) if f(1) else f(2))
#: identity-and-membership
a = [1]
b = a
print(a is b, a is not [1], 1 in a, 2 not in a, None is None, "ab" in "cabd", "" in "x")
#: lshift-stream
class Out:
    def __init__(self): self.parts = []
    def __lshift__(self, x):
        self.parts.append(str(x))
        return self

print("".join((Out() << "a" << 1 << 2.5).parts))
#: augmented-targets-are-evaluated-once
calls = []

def key(x):
    calls.append(x)
    return x

def negated(numbers):
    for i in range(len(numbers)):
        numbers[abs(numbers[i]) - 1] *= -1
    return numbers

def changed(d):
    d[key(1)] *= 3
    d[key("a")][key(0):key(2)] *= 2
    d[key(1)] <<= key(2)
    d[key("z")] %= 3

print(negated([1, 3, 2, 3]))
d = {1: 2, "a": [1, 2, 3, 4]}
try:
    changed(d)
except KeyError as e:
    print(repr(e))
d[key(1)] **= 2
print(d, calls, sorted(name for name in globals() if not name.startswith("__")))
