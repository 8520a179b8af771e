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
#: float-in-range
#: threat: L10
#: from: ranges searched
#: proves: hangs
#: ended: timeout, memory, raised
0.5 in range(10**12)
#: range-equality
#: threat: L10
#: from: ranges compared
#: proves: hangs
#: ended: completed, timeout, memory, raised
range(10**15) == range(10**15 + 1)
hash(range(10**20))
#: deque-of-count
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools, collections
collections.deque(itertools.count(), maxlen=1)
#: deque-of-cycle
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools, collections
collections.deque(itertools.cycle([1, 2]), maxlen=0)
#: sum-of-repeat
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
sum(itertools.repeat(1))
#: all-of-repeat
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
all(itertools.repeat(1))
#: max-of-chain
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
max(itertools.chain.from_iterable(itertools.repeat([1, 2])))
#: map-of-sum
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
x = list(range(100000))
sum(map(sum, itertools.repeat(x, 100000)))
#: sum-of-lists
#: threat: L10
#: from: sums of lists
#: proves: hangs
#: ended: timeout, memory, raised
sum([[0] * 10] * 200000, [])
#: product-of-pools
#: threat: L10
#: from: pools made beforehand
#: proves: memory
#: ended: timeout, memory, raised
import itertools
itertools.product(range(10**8), repeat=2)
#: combinations-of-pool
#: threat: L10
#: from: pools made beforehand
#: proves: memory
#: ended: timeout, memory, raised
import itertools
list(itertools.combinations(range(60), 30))
#: permutations-of-range
#: threat: L10
#: from: pools made beforehand
#: proves: memory
#: ended: timeout, memory, raised
import itertools
next(itertools.permutations(range(10**9), 2))
#: islice-of-list
#: threat: L10
#: from: iterators that skip
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
x = [0] * 5000000
sum(map(len, [list(itertools.islice(x, 4999999, None)) for _ in range(10**6)]))
#: tee-far
#: threat: L10
#: from: tee keeps what it has given
#: proves: memory
#: ended: timeout, memory, raised
import itertools
a, b = itertools.tee(itertools.count())
for _ in a: pass
#: counter-elements
#: threat: L10
#: from: Counter.elements
#: proves: memory
#: ended: timeout, memory, raised
from collections import Counter
list(Counter({'a': 10**10}).elements())
#: counter-of-count
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
from collections import Counter
import itertools
Counter(itertools.cycle('ab'))
#: heapq-merge
#: threat: L10
#: from: heapq.merge
#: proves: memory
#: ended: timeout, memory, raised
import heapq, itertools
list(heapq.merge(itertools.count(), itertools.count()))
#: heapq-nlargest
#: threat: L10
#: from: heapq
#: proves: hangs
#: ended: timeout, memory, raised
import heapq, itertools
heapq.nlargest(3, itertools.cycle([1, 2]))
#: dict-fromkeys
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
dict.fromkeys(itertools.cycle('ab'))
#: dict-update
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
{}.update(zip(itertools.repeat(1), itertools.repeat(2)))
#: in-deque
#: threat: L10
#: from: C loops without end
#: proves: memory
#: ended: timeout, memory, raised
import collections, itertools
d = collections.deque()
d.extend(itertools.repeat(0))
#: str-join-endless
#: threat: L10
#: from: C loops without end
#: proves: memory
#: ended: timeout, memory, raised
import itertools
''.join(itertools.repeat('a'))
#: bytes-of-endless
#: threat: L10
#: from: C loops without end
#: proves: memory
#: ended: timeout, memory, raised
import itertools
bytes(itertools.repeat(1))
#: unpack-endless
#: threat: L10
#: from: C loops without end
#: proves: memory
#: ended: raised, timeout, memory
import itertools
a, b = itertools.repeat(1)
*a, b = itertools.count()
#: statistics-endless
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import itertools, statistics
statistics.fmean(itertools.repeat(1.0))
#: math-fsum
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory, raised
import math, itertools
math.fsum(itertools.repeat(1.0))
#: math-dist
#: threat: L10
#: from: C loops in math
#: proves: memory
#: ended: memory, timeout, raised
import math
math.dist([1.0] * 10**8, [2.0] * 10**8)
#: random-choices
#: threat: L10
#: from: random.choices
#: proves: memory
#: ended: memory, timeout, raised
import random
random.choices('ab', k=10**10)
#: percent-many
#: threat: L10
#: from: formats of many parts
#: proves: memory
#: ended: memory, timeout, raised
x = 'a' * 10**6
('%s' * 100000) % ((x,) * 100000)
#: percent-mapping
#: threat: L10
#: from: formats of many parts
#: proves: memory
#: ended: memory, timeout, raised
x = 'a' * 10**6
('%(x)s' * 100000) % {'x': x}
#: format-many
#: threat: L10
#: from: formats of many parts
#: proves: memory
#: ended: memory, timeout, raised
x = 'a' * 10**6
('{0}' * 100000).format(x)
#: template-many
#: threat: L10
#: from: formats of many parts
#: proves: memory
#: ended: memory, timeout, raised
import string
string.Template('$x' * 100000).substitute(x='a' * 10**6)
#: fstring-unrolled
#: threat: L10
#: from: growth in straight lines
#: proves: memory
#: ended: memory, timeout, raised
x = 'ab' * 10**6
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
x = f'{x}{x}{x}{x}'
#: add-bytes
#: threat: L10
#: from: growth step by step
#: proves: memory
#: ended: memory, timeout, raised
x = b'ab'
while True:
    x = x + x
#: add-tuples
#: threat: L10
#: from: growth step by step
#: proves: memory
#: ended: timeout, memory, raised
x = (0,)
while True:
    x = x + x
#: operator-concat
#: threat: L10
#: from: growth step by step
#: proves: memory
#: ended: timeout, memory, raised
import operator
x = 'ab'
while True:
    x = operator.concat(x, x)
#: stringio-growth
#: threat: L10
#: from: growth step by step
#: proves: memory
#: ended: memory, timeout, raised
import io
f = io.StringIO()
while True:
    f.write('a' * 10**6)
#: bytesio-truncate
#: threat: L10
#: from: files in memory
#: proves: memory
#: ended: memory, timeout, raised
import io
f = io.BytesIO()
f.seek(10**10)
f.write(b'1')
#: stringio-seek
#: threat: L10
#: from: files in memory
#: proves: memory
#: ended: memory, timeout, raised
import io
f = io.StringIO()
f.seek(10**10)
f.write('1')
#: bytearray-resize
#: threat: L10
#: from: growth in place
#: proves: memory
#: ended: memory, timeout, raised
b = bytearray()
b[10**9:] = b'1'
b.extend(bytes(10**8))
b *= 1000
#: array-extend
#: threat: L10
#: from: growth in place
#: proves: memory
#: ended: memory, timeout, raised
import array
a = array.array('d', [0])
while True:
    a.extend(a)
#: array-times
#: threat: L10
#: from: repeats
#: proves: memory
#: ended: memory, timeout, raised
import array
a = array.array('d', [0]) * 10**9
#: deque-times
#: threat: L10
#: from: repeats
#: proves: memory
#: ended: memory, timeout, raised
import collections
collections.deque([0]) * 10**9
#: userlist-times
#: threat: L10
#: from: repeats
#: proves: memory
#: ended: memory, timeout, raised
import collections
collections.UserList([0]) * 10**9
#: userstring-times
#: threat: L10
#: from: repeats
#: proves: memory
#: ended: memory, timeout, raised
import collections
collections.UserString('a') * 10**10
#: mul-by-bool-index
#: threat: L10
#: from: numbers that change
#: proves: memory
#: ended: completed, timeout, memory, raised
class N:
    n = 0
    def __index__(self):
        N.n += 1
        return 10**10 if N.n > 1 else 1
'a' * N()
#: textwrap-fill
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: completed, timeout, memory, raised
import textwrap
textwrap.fill('a-' * 200000, 5)
#: textwrap-wide
#: threat: L10
#: from: regexes in granted modules
#: proves: memory
#: ended: timeout, memory, raised
import textwrap
textwrap.TextWrapper(initial_indent='a' * 10**6, width=10**7, subsequent_indent='b' * 10**6).fill('c ' * 10**6)
#: pprint-deep
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: timeout, memory, raised
import pprint
x = 1
for _ in range(60):
    x = [x, x]
pprint.pformat(x)
#: json-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
import json
x = 1
for _ in range(60):
    x = [x, x]
json.dumps(x)
#: json-indent-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
import json
x = 1
for _ in range(40):
    x = {'a': x, 'b': x}
json.dumps(x, indent=1)
#: str-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = 1
for _ in range(60):
    x = [x, x]
str(x)
#: fstring-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = 1
for _ in range(60):
    x = (x, x)
f'{x}'
#: percent-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = 1
for _ in range(60):
    x = {1: x, 2: x}
'%s' % [x]
#: format-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = 1
for _ in range(60):
    x = [x, x]
'{}'.format(x)
#: print-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = 1
for _ in range(60):
    x = [x, x]
print(x)
#: last-value-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: completed, timeout, memory, raised
x = 1
for _ in range(60):
    x = [x, x]
x
#: display-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: completed, timeout, memory, raised
x = 1
for _ in range(60):
    x = [x, x]
display(x)
#: error-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: raised, timeout, memory
x = 1
for _ in range(60):
    x = [x, x]
raise ValueError(x)
#: keyerror-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: raised, timeout, memory
x = 1
for _ in range(30):
    x = (x, x)
raise KeyError(x)
#: ascii-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = 1
for _ in range(60):
    x = [x, x]
ascii(x)
#: equal-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
x != y
#: equal-shared-dicts
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
x = y = 1
for _ in range(60):
    x, y = {0: x, 1: x}, {0: y, 1: y}
x == y
#: equal-wide
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory, timeout, raised
a, b = [0] * 10**5, [0] * 10**5
for _ in range(3):
    a, b = [a] * 10**3, [b] * 10**3
a == b
#: dataclass-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: timeout, memory, raised
import dataclasses
@dataclasses.dataclass
class P:
    a: object
    b: object
x = 1
for _ in range(60):
    x = P(x, x)
repr(x)
#: deepcopy-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: completed, timeout, memory, raised
import copy
x = 1
for _ in range(60):
    x = [x, x]
y = copy.deepcopy(x)
y is x
#: deep-tuple-hash
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = ()
for _ in range(10**6):
    x = (x,)
hash(x)
#: deep-map
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = iter([1])
for _ in range(10**6):
    x = map(abs, x)
list(x)
#: deep-chain
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
import itertools
x = iter([1])
for _ in range(10**6):
    x = itertools.chain(x)
list(x)
#: deep-filter-dropped
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = iter([1])
for _ in range(10**6):
    x = filter(None, x)
x = None
#: deep-filter-kept
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = iter([1])
for _ in range(10**6):
    x = filter(None, x)
#: deep-partial
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
import functools
class P(functools.partial): pass
x = print
for _ in range(10**5):
    x = P(x)
    x.a = 1
x()
#: deep-isinstance
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: raised, timeout, memory
x = int
for _ in range(10**5):
    x = (x,)
isinstance('a', x)
#: deep-json
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: raised, timeout, memory
import json
json.loads('[' * 10**5)
#: deep-repr
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = []
for _ in range(10**5):
    x = [x]
repr(x)
#: deep-last-value
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = []
for _ in range(10**5):
    x = [x]
x
#: deep-equal
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x, y = [], []
for _ in range(10**5):
    x, y = [x], [y]
x == y
#: deep-literal
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: refused: size
import ast
ast.literal_eval('-' * 10**5 + '1')
#: deep-exception
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
e = None
for _ in range(10**5):
    n = ValueError()
    n.__cause__ = e
    e = n
raise e
#: deep-group
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
e = ValueError()
for _ in range(10**4):
    e = ExceptionGroup('a', [e])
raise e
#: exception-many-args
#: threat: L10
#: from: messages that the host makes
#: proves: hangs
#: ended: timeout, memory, raised
raise ValueError(*range(3 * 10**6))
#: exception-long-name
#: threat: L10
#: from: messages that the host makes
#: proves: memory
#: ended: raised, timeout, memory
raise type('A' * 10**7, (Exception,), {})()
#: difflib-quadratic
#: threat: L10
#: from: difflib
#: proves: hangs
#: ended: timeout, memory, raised
import difflib
difflib.get_close_matches('a' * 10**5, ['b' * 10**5 + 'a' * 10**5] * 100)
#: csv-field
#: threat: L10
#: from: csv
#: proves: memory
#: ended: memory, timeout, raised
import csv, io
list(csv.reader(io.StringIO('a' * 5 * 10**7)))
#: csv-sniff
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: completed, timeout, memory, raised
import csv
csv.Sniffer().sniff('"' * 20000 + 'a' * 20000)
#: zlib-bomb
#: threat: L10
#: from: zlib
#: proves: memory
#: ended: timeout, memory, raised
import zlib
x = zlib.compress(bytes(9 * 10**7))
[zlib.decompress(x) for _ in range(50)]
#: struct-pad
#: threat: L10
#: from: struct
#: proves: memory
#: ended: memory, timeout, raised
import struct
struct.pack('9999999x' * 100)
#: uuid-many
#: threat: L10
#: from: loops that end
#: proves: hangs
#: ended: timeout, memory, raised
import uuid
for _ in range(10**8): uuid.uuid4()
#: calendar-years
#: threat: L10
#: from: calendar
#: proves: memory
#: ended: memory, timeout, raised
import calendar
calendar.calendar(2024, 10**7)
#: time-sleep
#: threat: L10
#: from: waiting
#: proves: hangs
#: ended: timeout, memory, raised
import time
time.sleep(100)
#: strptime-percent
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: raised, timeout, memory
from datetime import datetime
datetime.strptime('1' * 60 + 'x', '%d' * 30)
#: strftime-wide
#: threat: L10
#: from: datetime
#: proves: hangs
#: ended: completed, timeout, memory, raised
from datetime import datetime
datetime(2024, 1, 1).strftime('%Y' * 10**6)
#: fnmatch-stars
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: completed, timeout, memory, raised
import fnmatch
fnmatch.fnmatch('a' * 100, '*a' * 25 + 'b')
#: string-template-pattern
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: timeout, memory, raised
import string
string.Template('$' * 10**7).safe_substitute()
#: regex-polynomial
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.search(r'(.*)(.*)(.*)(.*)(.*)x', 'a' * 3000)
#: regex-trailing-space
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.sub(r'\s+$', '', ' ' * 200000 + 'a')
#: regex-counted
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(a?){30}a{30}', 'a' * 30)
re.match(r'(x{1,30}){1,30}y', 'x' * 60)
#: regex-bordering
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(?:a+ba+)*$', 'ab' + 'aaaab' * 30 + 'x')
#: regex-finditer
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
for m in re.finditer(r'(a|a)+b', 'a' * 40): pass
#: regex-callable
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.sub(r'(a|a)+b', lambda m: '', 'a' * 40)
#: regex-unbound
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.Pattern.match(re.compile(r'(a|a)+b'), 'a' * 40)
#: regex-mapped
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
list(map(re.compile(r'(a|a)+b').match, ['a' * 40]))
#: regex-getattr
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
getattr(re.compile(r'(a|a)+b'), 'fullmatch')('a' * 40)
#: regex-letters-beyond-ascii
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(яb?|\wb?)*z', 'я' * 40)
#: regex-ignoring-case
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(?i)(ky?|\u212ay?)*z', 'k' * 40)
#: regex-lookahead
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(?=(a+)+b)', 'a' * 40)
#: regex-backreference
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(a*)*\1b', 'a' * 40)
#: regex-conditional
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(a)?(?(1)(a|a)*|b)c', 'a' * 40)
#: regex-bytes
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(rb'(a|a)*b', bytearray(b'a' * 40))
#: regex-caught
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: timeout, memory, raised
import re
while True:
    try:
        re.match(r'(a|a)*b', 'a' * 40)
    except BaseException:
        pass
#: regex-expand
#: threat: L10
#: from: regexes
#: proves: memory
#: ended: memory, timeout, raised
import re
re.match('(a*)', 'a' * 10**6).expand(r'\1' * 10**5)
#: regex-template-groups
#: threat: L10
#: from: regexes
#: proves: memory
#: ended: memory, timeout, raised
import re
re.sub('(a+)', r'\1' * 10**5, 'a' * 10**5)
#: regex-findall-lookahead
#: threat: L10
#: from: regexes
#: proves: memory
#: ended: memory, timeout, raised
import re
re.findall('(?=(.*))', 'a' * 10**5)
#: regex-case-class
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'([^\n]|.)*\n\n', 'a' * 40 + '\n', re.S)
#: chain-of-large
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: open: C code that calls C code, each of which is quick
import itertools
x = [0] * 1000000
sum(itertools.chain.from_iterable([x] * 100000))
#: chain-star-large
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: open: C code that calls C code, each of which is quick
import itertools
x = [0] * 1000000
sum(itertools.chain(*[x] * 100000))
#: map-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = [0] * 200000
list(map(x.count, x))
#: filter-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = [1] * 200000
list(filter(x.count, x))
#: starmap-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
import itertools
x = list(range(200000))
list(itertools.starmap(x.index, ((199999,) for _ in [0] * 10**9))) if 0 else list(itertools.starmap(max, [(x, [0])] * 100000))
#: sort-key-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = list(range(200000))
sorted(x, key=x.index)
#: sort-method-key
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = list(range(200000))
x2 = list(x)
x2.sort(key=x.index)
#: max-key-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = [0] * 200000
max(x, key=x.count)
#: reduce-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
import functools, operator
x = [0] * 100000
functools.reduce(lambda a, b: a, x)
functools.reduce(operator.add, [[0]] * 200000)
#: accumulate-of-lists
#: threat: L10
#: from: sums of lists
#: proves: memory
#: open: C code that calls C code, each of which is quick
import itertools
list(itertools.accumulate([[0] * 100] * 20000))
#: groupby-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
import itertools
x = [0] * 200000
list(itertools.groupby(x, x.count))
#: takewhile-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: open: C code that calls C code, each of which is quick
import itertools
x = [1] * 200000
list(itertools.takewhile(x.count, x))
#: set-intersections
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = set(range(100000))
x.intersection(*[x] * 100000)
#: set-unions
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: open: C code that calls C code, each of which is quick
x = set(range(100000))
set().union(*[x] * 100000)
#: zip-star
#: threat: L10
#: from: C loops over C loops
#: proves: memory
#: open: C code that calls C code, each of which is quick
x = list(range(10**6))
list(zip(*[x] * 1000))
#: add-unrolled
#: threat: L10
#: from: growth in straight lines
#: proves: memory
#: open: no step of Python stands between them
x = 'ab' * 10**6
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
x = x + x
#: iadd-unrolled
#: threat: L10
#: from: growth in straight lines
#: proves: memory
#: open: no step of Python stands between them
x = [0] * 10**6
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
x += x
#: tuple-unrolled
#: threat: L10
#: from: growth in straight lines
#: proves: memory
#: open: no step of Python stands between them
x = (0,) * 10**6
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
x = (*x, *x)
#: slice-unrolled
#: threat: L10
#: from: growth in straight lines
#: proves: memory
#: open: no step of Python stands between them
x = [0] * 10**6
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
x[:0] = x
#: less-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
x < y
#: in-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
x in [y]
#: index-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
[y].index(x)
#: sort-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
sorted([x, y])
#: key-shared
#: threat: L10
#: from: hashes that double
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = 1
for _ in range(60):
    x = (x, x)
{x: 1}
#: set-shared
#: threat: L10
#: from: hashes that double
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = 1
for _ in range(60):
    x = (x, x)
{x}
#: subscript-shared
#: threat: L10
#: from: hashes that double
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
x = 1
for _ in range(60):
    x = (x, x)
d = {}
d[x]
#: cache-shared
#: threat: L10
#: from: hashes that double
#: proves: hangs
#: open: what compares or hashes without an operator that is seen goes through all of it
import functools
x = 1
for _ in range(60):
    x = (x, x)
@functools.lru_cache
def f(a): return 1
f(x)
#: hashlib-rounds
#: threat: L10
#: from: hashlib
#: proves: hangs
#: open: a call that gives up the lock and does not return
import hashlib
for _ in range(100): hashlib.pbkdf2_hmac('sha512', b'a', b'b', 2000000)
