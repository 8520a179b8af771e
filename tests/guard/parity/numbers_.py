#: big-integers
print(2 ** 200, 10 ** 30 // 7, (-3) ** 77 % 1000, len(str(3 ** 1000)), 1 << 100, int("9" * 40) + 1, pow(3, 1000, 10 ** 9 + 7), (2 ** 64).bit_length(), (255).bit_count())
#: factorials-and-fibonacci
def fact(n):
    r = 1
    for i in range(2, n + 1):
        r *= i
    return r

a, b = 0, 1
for _ in range(300):
    a, b = b, a + b
print(fact(50), a)
#: bases
print(int("ff", 16), int("0b101", 0), int("-0x1F", 16), bin(10), oct(64), hex(-255), int("z", 36), 0b11, 0o17, 0xAB, 1_000_000)
#: float-behaviour
print(0.1 + 0.2, 1e308 * 10, -1e308 * 10, 5 / 2, 7 // 2.0, 2 ** 0.5, round(2.5), round(3.5), round(-2.5), round(2.675, 2), round(1234, -2), 1.0.is_integer(), (0.5).as_integer_ratio(), float("nan") == float("nan"), (3.0).hex(), float.fromhex("0x1p-2"))
#: conversions
print(int(3.99), int(-3.99), int("  42 "), float("1e3"), float(" -inf "), bool("False"), bool(0.0), complex("1+2j"), str(1e22), int(True), int(1e20))
#: complex-numbers
z = 3 + 4j
print(abs(z), z.real, z.imag, z.conjugate(), z * 1j, z ** 2, (1 + 2j) / (3 - 1j), complex(2, -3), z == 3 + 4j)
#: math-module
#: needs: math
import math
print(math.gcd(12, 18, 30), math.lcm(4, 6), math.comb(5, 2), math.perm(5, 2), math.isqrt(99), math.factorial(10), math.prod([1, 2, 3]), math.hypot(3, 4), math.dist((0, 0), (3, 4)), math.log2(8), math.log10(1000), math.isclose(0.1 + 0.2, 0.3), math.fsum([0.1] * 10), math.floor(-1.5), math.ceil(-1.5), math.trunc(-1.5), math.copysign(1, -0.0), math.modf(2.5), math.frexp(8.0), math.degrees(math.pi), math.inf > 1, math.isnan(math.nan), math.tau == 2 * math.pi)
#: math-domain-error
#: needs: math
#: raises: ValueError
import math
math.sqrt(-1)
#: cmath
#: needs: cmath
import cmath
print(cmath.sqrt(-4), cmath.polar(1j)[0], round(cmath.phase(-1), 4), abs(cmath.exp(1j * cmath.pi) + 1) < 1e-9)
#: decimal
#: needs: decimal
from decimal import Decimal, ROUND_HALF_UP, ROUND_DOWN, getcontext, localcontext, InvalidOperation
print(Decimal("0.1") + Decimal("0.2"), Decimal(10) / 3, Decimal("2.675").quantize(Decimal("0.01"), rounding=ROUND_HALF_UP), Decimal("1.99").quantize(Decimal("1"), ROUND_DOWN), Decimal("1E+3"), Decimal(0.5), Decimal("-0"), Decimal("3.0") == 3, -Decimal(5) % 3, Decimal("2").sqrt())
with localcontext() as ctx:
    ctx.prec = 5
    print(Decimal(1) / 7)
print(Decimal(1) / 7, Decimal("1.20").normalize(), Decimal("123.456").as_tuple(), f"{Decimal('1234.5'):,.2f}")
try:
    Decimal("abc")
except InvalidOperation:
    print("invalid")
#: fractions
#: needs: fractions
from fractions import Fraction
print(Fraction(1, 3) + Fraction(1, 6), Fraction("0.75"), Fraction(6, -4), Fraction(0.5), Fraction(22, 7).limit_denominator(3), float(Fraction(1, 8)), Fraction(3, 2) ** 2, sum([Fraction(1, n) for n in range(1, 6)]), Fraction(7, 3) // 1, repr(Fraction(2, 4)), Fraction(1, 2).numerator)
#: statistics
#: needs: statistics
import statistics as st
xs = [2, 4, 4, 4, 5, 5, 7, 9]
print(st.mean(xs), st.median(xs), st.mode(xs), st.pstdev(xs), round(st.stdev(xs), 4), st.variance(xs), st.quantiles(xs, n=4), st.median_low([1, 2, 3, 4]), st.multimode("aabb"), st.harmonic_mean([40, 60]), st.geometric_mean([2, 8]), round(st.correlation([1, 2, 3], [2, 4, 7]), 4), st.linear_regression([1, 2, 3], [2, 4, 6]))
try:
    st.mean([])
except st.StatisticsError as e:
    print(e)
#: random-with-a-seed
#: needs: random
import random
r = random.Random(42)
print(r.random(), r.randint(1, 100), r.choice("abcdef"), r.sample(range(50), 4), r.uniform(1, 2), r.choices([1, 2, 3], weights=[1, 1, 8], k=5), r.gauss(0, 1))
xs = list(range(6))
r.shuffle(xs)
print(xs, r.randrange(0, 100, 10), r.getrandbits(16))
random.seed(7)
first = [random.random() for _ in range(3)]
random.seed(7)
print(first == [random.random() for _ in range(3)], round(first[0], 6))
#: monte-carlo-pi
#: needs: random
import random
rng = random.Random(1)
inside = sum(rng.random() ** 2 + rng.random() ** 2 <= 1 for _ in range(5000))
print(4 * inside / 5000)
#: primes-sieve
def sieve(n):
    flags = bytearray([1]) * (n + 1)
    flags[:2] = b"\0\0"
    for i in range(2, int(n ** 0.5) + 1):
        if flags[i]:
            flags[i * i::i] = bytes(len(range(i * i, n + 1, i)))
    return [i for i, f in enumerate(flags) if f]

print(sieve(60), len(sieve(10_000)))
#: gcd-and-egcd
def egcd(a, b):
    if b == 0:
        return a, 1, 0
    g, x, y = egcd(b, a % b)
    return g, y, x - a // b * y

print(egcd(240, 46), pow(17, -1, 3120))
#: newton-and-bisection
def newton(f, df, x, n=20):
    for _ in range(n):
        x -= f(x) / df(x)
    return x

def bisect(f, lo, hi):
    while hi - lo > 1e-9:
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if f(lo) * f(mid) > 0 else (lo, mid)
    return round(lo, 6)

print(round(newton(lambda x: x * x - 2, lambda x: 2 * x, 1), 10), bisect(lambda x: x ** 3 - x - 2, 1, 2))
#: integration-and-ode
def simpson(f, a, b, n=100):
    h = (b - a) / n
    return h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * f(a + i * h) for i in range(n + 1))

y, t, dt = 1.0, 0.0, 0.01
while t < 1 - 1e-9:
    y += dt * y
    t += dt
print(round(simpson(lambda x: x * x, 0, 3), 6), round(y, 4))
#: bit-tricks
def gray(n): return n ^ n >> 1
print([gray(i) for i in range(6)], [bin(n).count("1") for n in range(5)], 6 & -6, ~0, -5 >> 1, 0xFF ^ 0x0F, 5 & ~1, (1 << 5) - 1)
#: operator-module
#: needs: operator
import operator as op
print(op.add(1, 2), op.mul(3, 4), op.neg(5), op.contains([1], 1), op.getitem("abc", 1), op.truth([]), op.not_(0), op.xor(5, 1), op.floordiv(7, 2), op.concat("a", "b"), op.countOf([1, 1], 1), op.index(3), op.lt(1, 2))
#: int-methods
print((5).bit_length(), (-5).__abs__(), (6).as_integer_ratio(), (5).conjugate(), (7).numerator, (7).denominator, int.from_bytes(b"\x00\xff"), (10).__add__(5), (3).__eq__(3))
#: rounding-and-money
def split(total, n):
    cents = round(total * 100)
    base, extra = divmod(cents, n)
    return [(base + (i < extra)) / 100 for i in range(n)]

print(split(10, 3), sum(split(100, 7)), round(0.5), round(1.5), f"{0.125:.2f}", f"{2.5:.0f}")
#: zero-division
#: raises: ZeroDivisionError
rates = [1, 0.0]
print([1 / r for r in rates])
#: overflow
#: raises: OverflowError
2.0 ** 10000
