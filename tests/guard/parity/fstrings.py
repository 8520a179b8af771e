#: specs
x, n, s = 3.14159, 1234567, "text"
print(f"{x:.2f} {x:8.3f}| {n:,} {n:_} {n:e} {n:x} {n:#b} {s:>8}| {s:<8}| {s:^8}| {s:*^10} {x:+} {-x: } {0.256:.1%} {n:012d}")
#: conversions
s = "it's é"
print(f"{s!r} {s!s} {s!a} {s!r:>12}|")
#: self-documenting
a, b = 3, [1, 2]
print(f"{a=} {b = } {a + 1=} {a=:>5} {b=!r} {len(b)=}")
#: nested-specs
w, p, v = 10, 3, 2.71828
print(f"{v:{w}.{p}f}|{v:>{w}}|{'x':{'-'}^{w}}|{v:{'<'}{w}}")
#: nested-fstrings
names = ["a", "b"]
print(f"{', '.join(f'{n}!' for n in names)} {f'{1 + 1}'}", f"""{f'{f"{1 + 1}"}'}""")
#: expressions
d = {"k": [10, 20]}
print(f"{d['k'][1]} {(lambda x: x * 2)(4)} {'yes' if d else 'no'} {[i for i in range(3)]} { {'a': 1}['a'] } {3 > 2 and 'ok'}")
#: braces-and-escapes
v = 5
print(f"{{{v}}} {{}} \t|\\ \x41 \N{BULLET} {v!r}" rf"\d{v}")
#: multiline
name, total = "Ann", 12.5
print(f"""Dear {name},
you owe {total:.2f}
{'=' * 10}""")
#: implicit-concatenation
x = 1
print("a" f"{x}" 'b' f"{x + 1}" "{x}")
#: with-attributes-and-calls
class P:
    def __init__(self): self._v = 2
    def go(self, k=1): return self._v * k

p = P()
print(f"{p._v} {p.go(k=3)} {p.go()!r:>4}")
#: evaluation-order
def t(x):
    print("t", x)
    return x

print(f"{t(1)} {t('a'):>{t(5)}} {t(2)}")
#: dates
#: needs: datetime
from datetime import date, datetime
print(f"{date(2024, 3, 9):%d/%m/%Y} {datetime(2024, 1, 2, 3, 4, 5):%H:%M} {date(2024, 1, 1)!r}")
#: bad-spec
#: raises: ValueError
print(f"{'text':d}")
#: int-float-formats
for spec in ("d", "5d", "<5d", "05d", "+d", "x", "X", "o", "b", "c", "n", "e", ".1f", "g", "%", ",", "_d", "#x", "=+6d"):
    print(f"{65:{spec}}", end="|")
print()
#: float-corner-cases
print(f"{float('inf')} {float('nan')} {-0.0} {1e100} {1e-7} {0.1 + 0.2} {1/3:.3g} {1e16:.0f} {123456789.0:g} {float('inf'):>6}|{1e5:g}")
#: complex-and-bool
print(f"{1+2j} {1+2j:.1f} {True:d} {True} {True:>6} {None} {...}")
#: table
rows = [("apple", 3, 1.5), ("fig", 12, 0.25)]
for n, q, p in rows:
    print(f"{n:<8}{q:>4}{p:>8.2f}{q * p:>9,.2f}")
#: format-of-containers
print(f"{[1, 'a']} {(1,)} {{'a': 1}} {({'a': 1})} {set()} {frozenset([1])} {range(3)} {b'x'}")
#: lambda-and-walrus-in-parentheses
print(f"{(lambda: 5)()} {(y := 6)} {y}")
#: debug-with-format-and-nesting
width = 4
value = 2.5
print(f"{value=:{width}.1f} {value = :>8} {'a' 'b'=}")
