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
#: open: four times as much in one step, before it is seen
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
#: open: growth by steps passes the limit before it is seen
x = b'ab'
while True:
    x = x + x
#: add-tuples
#: threat: L10
#: from: growth step by step
#: proves: memory
#: open: growth by steps passes the limit before it is seen
x = (0,)
while True:
    x = x + x
#: operator-concat
#: threat: L10
#: from: growth step by step
#: proves: memory
#: open: growth by steps passes the limit before it is seen
import operator
x = 'ab'
while True:
    x = operator.concat(x, x)
