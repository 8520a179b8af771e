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
#: open: growth by steps passes the limit before it is seen
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
#: ended: timeout, memory, raised, completed
x = iter([1])
for _ in range(10**6):
    x = filter(None, x)
x = None
#: deep-filter-kept
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised, completed
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
