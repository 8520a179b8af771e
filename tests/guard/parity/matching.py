#: literals
def f(x):
    match x:
        case 0: return "zero"
        case 1 | 2 | 3: return "small"
        case -1: return "minus one"
        case 2.5: return "float"
        case "hi": return "greeting"
        case b"x": return "bytes"
        case None: return "none"
        case True: return "true"
        case 1 + 2j: return "complex"
        case _: return "other"

print([f(x) for x in (0, 2, -1, 2.5, "hi", b"x", None, True, 1 + 2j, [], False)])
#: sequences
def f(x):
    match x:
        case []: return "empty"
        case [a]: return f"one {a}"
        case [a, b]: return f"two {a} {b}"
        case [a, *rest, z]: return f"{a}..{z} with {len(rest)}"
        case _: return "not a sequence"

print([f(x) for x in ([], [1], (1, 2), [1, 2, 3, 4], range(5), "ab", {1, 2}, iter([]))])
#: mappings
def f(x):
    match x:
        case {}if not x: return "empty"
        case {"type": "circle", "r": r}: return 3 * r * r
        case {"type": "rect", "w": w, "h": h, **rest}: return (w * h, rest)
        case {"type": t}: return f"unknown {t}"
        case _: return None

print(f({}), f({"type": "circle", "r": 2}), f({"type": "rect", "w": 1, "h": 2, "c": "red"}), f({"type": "x"}), f([1]))
#: class-with-match-args
class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

def f(p):
    match p:
        case Point(0, 0): return "origin"
        case Point(x, y) if x == y: return f"diagonal {x}"
        case Point(x=0): return "on y"
        case Point(): return "point"

print([f(Point(*c)) for c in ((0, 0), (2, 2), (0, 3), (1, 2))], f(3))
#: class-with-keyword-attributes
class User:
    def __init__(self, name, role=None):
        self.name, self.role = name, role

def f(u):
    match u:
        case User(name=str(n), role="admin"): return n.upper()
        case User(name=n, role=None): return n
        case User(role=r): return r

print(f(User("ann", "admin")), f(User("bob")), f(User("eve", "x")))
#: builtin-classes
def f(x):
    match x:
        case bool(): return "bool"
        case int(n): return f"int {n}"
        case float() | complex(): return "number"
        case str() as s: return f"str {s!r}"
        case bytes(b): return b.decode()
        case list([a, b]): return f"pair {a} {b}"
        case tuple(): return "tuple"
        case dict({"k": v}): return f"k={v}"
        case set() | frozenset(): return "set"
        case _: return "?"

print([f(x) for x in (True, 3, 2.5, 1j, "s", b"by", [1, 2], (), {"k": 9}, {1}, None, [1])])
#: guards
def sign(n):
    match n:
        case x if x < 0: return -1
        case 0: return 0
        case x if x > 0: return 1

print([sign(n) for n in (-5, 0, 7)])
#: captures-and-as
match [1, [2, 3]]:
    case [a, [b, c] as inner] as whole:
        print(a, b, c, inner, whole)
#: or-with-captures
def f(x):
    match x:
        case ("go", d) | ("move", d, _): return d
        case ["stop" | "halt" as w]: return w

print(f(("go", "n")), f(("move", "s", 3)), f(["halt"]), f("no"))
#: dotted-values
class Op:
    ADD = "+"
    SUB = "-"

def f(op, a, b):
    match op:
        case Op.ADD: return a + b
        case Op.SUB: return a - b

print(f("+", 1, 2), f("-", 5, 3), f("*", 1, 1))
#: nested-everything
data = {"users": [{"name": "a", "tags": ["x", "y"]}, {"name": "b", "tags": []}], "meta": {"page": 1}}
match data:
    case {"users": [{"name": first, "tags": [t, *_]}, {"name": second, "tags": []}], "meta": {"page": int(p)}}:
        print(first, t, second, p)
#: star-captures
match "a b c d".split():
    case [cmd, *args]:
        print(cmd, args)
match (1, 2, 3):
    case [*_, last]:
        print(last)
match [1, 2, 3, 4, 5]:
    case [first, *middle, _]:
        print(first, middle)
#: no-match-falls-through
x = "unset"
match 5:
    case 6: x = "six"
    case [y]: x = y
print(x)
#: bindings-survive
match (1, 2):
    case (a, 3): pass
    case (a, b): pass
print(a, b)
#: expression-tree-evaluator
def ev(e):
    match e:
        case int() | float(): return e
        case ("+", a, b): return ev(a) + ev(b)
        case ("*", a, b): return ev(a) * ev(b)
        case ("neg", a): return -ev(a)
        case ("let", str(n), v, body): return ev(subst(body, n, ev(v)))
        case _: raise ValueError(f"bad expression {e!r}")

def subst(e, n, v):
    match e:
        case str() if e == n: return v
        case (op, *args): return (op, *(subst(a, n, v) for a in args))
        case _: return e

print(ev(("+", 1, ("*", 2, ("neg", 3)))), ev(("let", "x", 5, ("*", "x", "x"))))
try:
    ev(("?", 1))
except ValueError as e:
    print(e)
#: dataclass-patterns
#: needs: dataclasses
from dataclasses import dataclass

@dataclass
class Num: v: float
@dataclass
class Add: l: object; r: object
@dataclass
class Mul: l: object; r: object

def show(e):
    match e:
        case Num(v): return str(v)
        case Add(Num(0), x) | Add(x, Num(0)): return show(x)
        case Add(l, r): return f"({show(l)} + {show(r)})"
        case Mul(l=Num(1), r=x): return show(x)
        case Mul(l, r): return f"{show(l)} * {show(r)}"

print(show(Mul(Add(Num(1), Num(2)), Num(3))), show(Add(Num(0), Mul(Num(1), Num(7)))))
#: too-many-positional
#: raises: TypeError
class P:
    __match_args__ = ("x",)
    x = 1

match P():
    case P(1, 2):
        pass
#: class-without-match-args
#: raises: TypeError
class P:
    pass

match P():
    case P(1):
        pass
#: attribute-missing-in-pattern
class P:
    x = 1

match P():
    case P(y=1): print("has y")
    case P(x=x): print("x", x)
#: property-in-pattern
class Temp:
    def __init__(self, c): self.c = c
    @property
    def hot(self): return self.c > 30

for t in (10, 40):
    match Temp(t):
        case Temp(hot=True): print(t, "hot")
        case Temp(hot=False, c=c): print(c, "mild")
#: match-as-name
match = 3
case = {"match": match}
print(match, case["match"])
#: none-bool-identity
def f(x):
    match x:
        case True: return "T"
        case False: return "F"
        case None: return "N"
        case 1: return "one"
        case 0: return "zero"

print([f(x) for x in (True, False, None, 1, 0, 1.0)])
#: command-parser
def run(line, state):
    match line.split():
        case ["set", name, value]: state[name] = int(value)
        case ["add", name, *values] if values: state[name] = state.get(name, 0) + sum(map(int, values))
        case ["del", name] if name in state: del state[name]
        case ["show"]: print(sorted(state.items()))
        case []: pass
        case [other, *_]: print("unknown", other)

s = {}
for l in ("set a 1", "add a 2 3", "add b 4", "show", "del a", "del zz", "", "show"):
    run(l, s)
#: match-in-loop-with-break
for tok in [1, "skip", 2, None, 3]:
    match tok:
        case None: break
        case str(): continue
        case n: print(n)
#: custom-sequence-and-mapping
#: needs: collections.abc
from collections.abc import Sequence, Mapping

class S(Sequence):
    def __len__(self): return 2
    def __getitem__(self, i): return (10, 20)[i]

class M(Mapping):
    def __len__(self): return 1
    def __iter__(self): return iter(["k"])
    def __getitem__(self, k): return {"k": "v"}[k]

match S():
    case [a, b]: print(a, b)
match M():
    case {"k": v}: print(v)
#: metaclass-instancecheck-in-pattern
class Even(type):
    def __instancecheck__(cls, x): return isinstance(x, int) and x % 2 == 0

class E(metaclass=Even): pass

for x in (1, 2):
    match x:
        case E(): print(x, "even")
        case _: print(x, "not even")
