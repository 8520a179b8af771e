#: int-divided
#: threat: L10
#: from: division of large integers
#: proves: hangs
#: ended: raised, timeout, memory
x = 1 << 9999999
y = 10**3000000 // 7**1000
for _ in range(50):
    x // (y + _)
#: int-squared
#: threat: L10
#: from: products near the largest
#: proves: hangs
#: ended: raised, timeout, memory
x = (1 << 4900000) + 12345
for _ in range(100):
    x * x
#: int-of-long-text
#: threat: L10
#: from: digits of large integers
#: proves: hangs
#: ended: raised, timeout, memory
import sys
int('7' * 4000) ** 300
#: pow-mod-large
#: threat: L10
#: from: pow with a modulus
#: proves: hangs
#: ended: raised, timeout, memory
b = 3 ** 60000
pow(b, b, b + 2)
#: pow-negative-mod
#: threat: L10
#: from: inverses
#: proves: hangs
#: ended: completed, timeout, memory, raised
b = 3 ** 60000 + 2
pow(7, -1, b)
#: gcd-large
#: threat: L10
#: from: C loops in math
#: proves: hangs
#: ended: raised, timeout, memory
import math
a, b = 3**600000, 7**350000
math.gcd(a * 5, b * 5)
#: lcm-many
#: threat: L10
#: from: C loops in math
#: proves: hangs
#: ended: timeout, memory, raised
import math
math.lcm(*range(1, 200000))
#: isqrt-large
#: threat: L10
#: from: C loops in math
#: proves: hangs
#: ended: raised, timeout, memory
import math
math.isqrt(10**2999999)
#: prod-of-large
#: threat: L10
#: from: C loops in math
#: proves: hangs
#: ended: raised, timeout, memory
import math
math.prod([10**1000000] * 100)
#: comb-large
#: threat: L10
#: from: C loops in math
#: proves: hangs
#: ended: timeout, memory, raised
import math
math.comb(20000, 10000)
math.perm(20000, 20000)
for _ in range(1000): math.factorial(20000)
#: sum-of-large
#: threat: L10
#: from: sums of large integers
#: proves: hangs
#: ended: raised, timeout, memory
sum([1 << 9000000] * 100000)
#: fraction-add
#: threat: L10
#: from: fractions that grow
#: proves: hangs
#: ended: timeout, memory, raised
from fractions import Fraction
x = Fraction(1, 3)
for n in range(10**6):
    x = x + Fraction(1, 7 ** n)
#: fraction-of-float-power
#: threat: L10
#: from: powers of fractions
#: proves: hangs
#: ended: raised, timeout, memory
from fractions import Fraction
Fraction(10) ** 10**7
#: fraction-limit
#: threat: L10
#: from: exponents in Fraction
#: proves: hangs
#: ended: raised, timeout, memory
from fractions import Fraction
Fraction('1e4000000').limit_denominator(10)
#: fraction-hash
#: threat: L10
#: from: exponents in Fraction
#: proves: hangs
#: ended: raised, timeout, memory
from fractions import Fraction
hash(Fraction('1e-99999999'))
#: decimal-to-fraction
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
from fractions import Fraction
Fraction(Decimal('1e99999999'))
#: decimal-format
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
f"{Decimal('1e99999999'):f}"
#: decimal-ratio
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
Decimal('1e-99999999').as_integer_ratio()
#: decimal-round
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
round(Decimal('1e99999999'))
#: decimal-floor
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
import math
from decimal import Decimal
math.floor(Decimal('1e99999999'))
#: decimal-mod
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
Decimal('1e999999') % 7
int(Decimal('1e999999'))
#: decimal-hash
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
hash(Decimal('1e99999999999'))
#: decimal-equal-int
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
Decimal('1e99999999') == 5
Decimal(10**3000) == Decimal('1e99999999')
Decimal('1e99999999') == 2.5
#: decimal-of-large-int
#: threat: L10
#: from: int to Decimal
#: proves: hangs
#: ended: raised, timeout, memory
from decimal import Decimal
str(Decimal(1 << 9999999))
#: float-format
#: threat: L10
#: from: digits of floats
#: proves: hangs
#: ended: completed, timeout, memory, raised
f'{1e308:.9999999f}'
#: round-negative
#: threat: L10
#: from: rounding
#: proves: hangs
#: ended: raised, timeout, memory
round(10**2000000, -1999990)
round(5, -10**9)
#: int-format-comma
#: threat: L10
#: from: digits of large integers
#: proves: hangs
#: ended: raised, timeout, memory
f'{1 << 9999999:,}'
#: int-bin-loop
#: threat: L10
#: from: loops that end
#: proves: hangs
#: ended: raised, timeout, memory
x = 1 << 9999999
while True:
    len(bin(x))
#: int-hex-bytes
#: threat: L10
#: from: large integers of text
#: proves: hangs
#: ended: timeout, memory, raised
int.from_bytes(b'7' * 50_000_000, 'big')
int('f' * 50_000_000, 16)
#: divmod-large
#: threat: L10
#: from: division of large integers
#: proves: hangs
#: ended: raised, timeout, memory
x = 1 << 9999999
divmod(x * 1, 10**1500000 + 1)
#: float-of-int
#: threat: L10
#: from: division of large integers
#: proves: hangs
#: ended: completed, timeout, memory, raised
x = 10**308 * 10**100000
x / (10**100001)
#: random-large
#: threat: L10
#: from: random.choices
#: proves: memory
#: ended: raised, timeout, memory
import random
random.randrange(1 << 9999999)
random.choices([1], k=10**9)
#: random-sample
#: threat: L10
#: from: random.sample
#: proves: memory
#: ended: memory, timeout, raised
import random
random.sample(range(10**12), 10**8)
#: random-shuffle-range
#: threat: L10
#: from: random
#: proves: hangs
#: ended: completed, timeout, memory, raised
import random
random.binomialvariate(10**12, 0.5) if hasattr(random, 'binomialvariate') else 0
#: statistics-large
#: threat: L10
#: from: statistics
#: proves: hangs
#: ended: timeout, memory, raised
import statistics
statistics.mean(range(10**10))
#: reversed-range
#: threat: L10
#: from: ranges consumed
#: proves: memory
#: ended: timeout, memory, raised
list(reversed(range(10**12)))
#: bytearray-of-a-number
#: threat: L10
#: from: room for a buffer
#: proves: memory
#: ended: raised, memory
bytearray(10**10)
#: bytearray-of-an-index
#: threat: L10
#: from: room for a buffer
#: proves: memory
#: ended: raised, memory
class N:
    def __index__(self):
        return 10**10
bytearray(N())
