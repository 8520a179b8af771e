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
#: ended: timeout, memory
import itertools
x = [0] * 1000000
sum(itertools.chain.from_iterable([x] * 100000))
#: chain-star-large
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: ended: timeout, memory
import itertools
x = [0] * 1000000
sum(itertools.chain(*[x] * 100000))
#: map-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
x = [0] * 200000
list(map(x.count, x))
#: filter-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
x = [1] * 200000
list(filter(x.count, x))
#: starmap-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: completed, timeout
import itertools
x = list(range(200000))
list(itertools.starmap(x.index, ((199999,) for _ in [0] * 10**9))) if 0 else list(itertools.starmap(max, [(x, [0])] * 100000))
#: sort-key-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
x = list(range(200000))
sorted(x, key=x.index)
#: sort-method-key
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
x = list(range(200000))
x2 = list(x)
x2.sort(key=x.index)
#: max-key-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
x = [0] * 200000
max(x, key=x.count)
#: reduce-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
import functools, operator
x = [0] * 100000
functools.reduce(lambda a, b: a, x)
functools.reduce(operator.add, [[0]] * 200000)
#: accumulate-of-lists
#: threat: L10
#: from: sums of lists
#: proves: memory
#: ended: timeout, memory
import itertools
list(itertools.accumulate([[0] * 100] * 20000))
#: groupby-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
import itertools
x = [0] * 200000
list(itertools.groupby(x, x.count))
#: takewhile-of-method
#: threat: L10
#: from: C loops over C functions
#: proves: hangs
#: ended: timeout
import itertools
x = [1] * 200000
list(itertools.takewhile(x.count, x))
#: set-intersections
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: ended: timeout
x = set(range(100000))
x.intersection(*[x] * 100000)
#: set-unions
#: threat: L10
#: from: C loops over C loops
#: proves: hangs
#: ended: timeout
x = set(range(100000))
set().union(*[x] * 100000)
#: zip-star
#: threat: L10
#: from: C loops over C loops
#: proves: memory
#: ended: memory
x = list(range(10**6))
list(zip(*[x] * 1000))
#: add-unrolled
#: threat: L10
#: from: growth in straight lines
#: proves: memory
#: ended: memory
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
#: ended: memory
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
#: ended: timeout, memory
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
#: ended: timeout, memory
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
#: ended: memory
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
x < y
#: in-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
x in [y]
#: index-shared
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory
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
#: ended: raised
import hashlib
for _ in range(100): hashlib.pbkdf2_hmac('sha512', b'a', b'b', 2000000)
#: less-shared-in-a-function
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: open: `<` is looked at where it is run once, and mostly compares numbers
def compared():
    x = y = 1
    for _ in range(60):
        x, y = [x, x], [y, y]
    return x < y
compared()
#: in-shared-in-a-function
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory
def found():
    x = y = 1
    for _ in range(60):
        x, y = [x, x], [y, y]
    return x in [y]
found()
#: remove-shared-in-a-function
#: threat: L10
#: from: structures that share their parts
#: proves: hangs
#: ended: memory
def removed():
    x = y = 1
    for _ in range(60):
        x, y = [x, x], [y, y]
    [y].remove(x)
removed()
