#: str-of-int
#: threat: L10
#: from: int to str
#: proves: hangs
#: refused: size
import sys
x = 1 << 30000000
str(x)
#: int-of-str
#: threat: L10
#: from: str to int
#: proves: hangs
#: ended: raised
int('9' * 20000000)
#: int-of-str-base
#: threat: L10
#: from: str to int in a base that has no limit
#: proves: hangs
#: ended: raised
int('z' * 3000000, 36)
#: repr-of-int
#: threat: L10
#: from: repr in f-strings
#: proves: hangs
#: refused: size
x = 1 << 30000000
f'{x}'
#: format-int-decimal
#: threat: L10
#: from: format of big ints
#: proves: hangs
#: refused: size
'{:d}'.format(1 << 30000000)
#: fraction-of-decimal
#: threat: L10
#: from: exponents in Fraction
#: proves: hangs
#: ended: raised
from fractions import Fraction
Fraction('1e100000000')
#: decimal-exponent
#: threat: L10
#: from: exponents in Decimal
#: proves: hangs
#: ended: raised
from decimal import Decimal
int(Decimal('1e100000000'))
#: decimal-precision
#: threat: L10
#: from: precision of the decimal context
#: proves: hangs
#: refused: size
import decimal
decimal.getcontext().prec = 10**8
decimal.Decimal(2).sqrt()
#: decimal-power
#: threat: L10
#: from: powers of decimals
#: proves: hangs
#: refused: size
import decimal
with decimal.localcontext() as c:
    c.prec = 10**7
    decimal.Decimal(3) ** decimal.Decimal('0.123456789')
#: fraction-power
#: threat: L10
#: from: powers of fractions
#: proves: hangs
#: refused: size
from fractions import Fraction
Fraction(3, 2) ** 10**8
#: catastrophic-regex
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: timeout, memory
import re
re.match('(a+)+$', 'a' * 40 + 'b')
#: catastrophic-regex-compiled
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: timeout, memory
import re
p = re.compile('(a|aa)+$')
p.search('a' * 60 + 'b')
#: catastrophic-regex-sub
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: timeout, memory
import re
re.sub('(x+x+)+y', '', 'x' * 40)
#: catastrophic-regex-split
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: timeout, memory
import re
re.split('(?:a*)*b', 'a' * 40)
#: catastrophic-regex-in-helpers
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: timeout, memory
import textwrap
textwrap.wrap('-' * 10**6 + ' ' * 10**6, 3)
#: regex-compile-large
#: threat: L10
#: from: patterns that compile for long
#: proves: hangs
#: ended: raised, timeout, memory
import re
re.compile('(?:' * 5000 + 'a' + ')' * 5000)
#: regex-repeat-large
#: threat: L10
#: from: repeats in patterns
#: proves: hangs
#: ended: timeout, memory
import re
re.match('(?:(?:(?:a{1,5000}){1,5000}){1,5000})*b', 'a' * 5000)
#: sort-with-slow-key
#: threat: L10
#: from: keys that are slow
#: proves: hangs
#: ended: timeout, memory
sorted(range(10**7), key=lambda x: sum(range(1000)))
#: sort-hostile-lt
#: threat: L10
#: from: comparisons that are slow
#: proves: hangs
#: ended: timeout, memory
class A:
    def __lt__(self, o):
        sum(range(10**6))
        return True
sorted([A() for _ in range(10**5)])
#: hash-collisions
#: threat: L10
#: from: keys that collide
#: proves: hangs
#: ended: timeout, memory
class K:
    def __hash__(self): return 1
    def __eq__(self, o): return False
{K(): 1 for _ in range(10**6)}
#: int-hash-collisions
#: threat: L10
#: from: integers that collide
#: proves: hangs
#: ended: timeout, memory
m = 2**61 - 1
{i * m for i in range(1, 200000)}
