#: generators-many
#: threat: L10
#: from: very many objects
#: proves: memory
#: ended: timeout, memory
x = []
while True:
    x.append((i for i in ()))
#: strings-many
#: threat: L10
#: from: very many objects
#: proves: memory
#: ended: timeout, memory
x = []
n = 0
while True:
    n += 1
    x.append(str(n) * 100)
#: dict-growing
#: threat: L10
#: from: very many keys
#: proves: memory
#: ended: timeout, memory
d = {}
n = 0
while True:
    d[n] = n
    n += 1
#: class-factory
#: threat: L10
#: from: very many classes
#: proves: memory
#: ended: timeout, memory
x = []
while True:
    x.append(type('A', (), {}))
#: deque-and-bytearray-growing
#: threat: L10
#: from: growth in place
#: proves: memory
#: ended: raised
b = bytearray(1)
while True:
    b += b
#: stringio-growing
#: threat: L10
#: from: files in memory
#: proves: memory
#: ended: timeout, memory
import io
b = io.StringIO()
while True:
    b.write('x' * 10**6)
#: bytesio-seek
#: threat: L10
#: from: files in memory
#: proves: memory
#: ended: timeout, memory
import io
b = io.BytesIO()
b.seek(10**10)
b.write(b'x')
#: lru-cache-growing
#: threat: L10
#: from: caches without bound
#: proves: memory
#: ended: timeout, memory
import functools
@functools.cache
def f(n): return 'x' * 10**5
n = 0
while True:
    n += 1
    f(n)
#: print-flood
#: threat: L10
#: from: agex: output that the host keeps
#: proves: hangs
#: ended: timeout, memory
while True:
    print('x' * 10**6)
#: print-one-large
#: threat: L10
#: from: output that the host keeps
#: proves: memory
#: open: one call takes more than the limit
print('x' * 10**8 * 10)
#: exception-message-large
#: threat: L10
#: from: messages that the host keeps
#: proves: memory
#: ended: timeout, memory
raise ValueError('x' * 10**9)
#: result-large
#: threat: L10
#: from: values that the host reads
#: proves: memory
#: ended: memory
'x' * (3 * 10**8)
#: comprehension-endless
#: threat: L10
#: from: loops in C
#: proves: memory
#: ended: timeout, memory
import itertools
[x for x in itertools.repeat('x' * 100)]
#: array-of-size
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: timeout, memory
import array
array.array('b', [0]) * 10**10
#: struct-of-size
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: timeout, memory
import struct
struct.pack('10000000000x')
#: base64-and-zlib-bomb
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: timeout, memory
import zlib
d = zlib.compress(b'0' * 10**7)
zlib.decompress(d) * 1000
#: hashlib-pbkdf2
#: threat: L10
#: from: C functions that take long
#: proves: hangs
#: refused: size
import hashlib
hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9)
#: hashlib-scrypt
#: threat: L10
#: from: C functions that take memory
#: proves: memory
#: refused: import
import hashlib
hashlib.scrypt(b'x', salt=b'y', n=2**20, r=8, p=1, maxmem=2**31 - 1)
#: time-sleep-long
#: threat: L10
#: from: sleep
#: proves: hangs
#: ended: timeout, memory
import time
time.sleep(10**8)
#: date-arithmetic-loop
#: threat: L10
#: from: C functions without end
#: proves: hangs
#: ended: timeout, memory
import datetime
sum((datetime.timedelta(1) for _ in iter(int, 1)), datetime.timedelta())
#: random-sample-large
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: timeout, memory
import random
random.Random(1).choices([1, 2], k=10**9)
#: random-bits-large
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: raised
import random
random.Random(1).getrandbits(10**10)
#: random-bytes-large
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: raised
import random
random.Random(1).randbytes(10**9)
#: difflib-slow
#: threat: L10
#: from: modules that are quadratic
#: proves: hangs
#: ended: timeout, completed
import difflib
difflib.SequenceMatcher(None, 'ab' * 50000, 'ba' * 50000).ratio()
#: str-translate-blow-up
#: threat: L10
#: from: str.translate
#: proves: memory
#: ended: memory
('a' * 10**6).translate({97: 'b' * 10**5})
#: splitlines-blow-up
#: threat: L10
#: from: many small strings
#: proves: memory
#: ended: memory
('\n' * (5 * 10**7)).splitlines()
#: textwrap-and-string-multiplied
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: timeout, memory
import textwrap
textwrap.indent('\n'.join('a' * 10**5), 'x' * 10**6)
#: csv-and-json-large
#: threat: L10
#: from: modules that allocate
#: proves: memory
#: ended: timeout, memory
import json
json.dumps([0] * 10**6, indent=10**6)
#: copy-blow-up
#: threat: L10
#: from: copies that are not shared
#: proves: hangs
#: ended: memory
import copy
x = 'a'
for _ in range(60):
    x = [x, x]
repr(x)
#: nested-list-equality
#: threat: L10
#: from: comparisons that double
#: proves: hangs
#: ended: memory
x = y = 1
for _ in range(60):
    x, y = [x, x], [y, y]
x == y
#: hash-of-nested-tuple
#: threat: L10
#: from: hashes that double
#: proves: hangs
#: ended: memory
x = 1
for _ in range(60):
    x = (x, x)
hash(x)
#: pool-of-combinations
#: threat: L10
#: from: itertools
#: proves: memory
#: ended: memory
import itertools
itertools.combinations(range(10), 10**9)
#: repeated-product
#: threat: L10
#: from: itertools
#: proves: memory
#: ended: memory
import itertools
itertools.product([1], repeat=10**9)
#: text-stream-past-its-end
#: threat: L10
#: from: io
#: proves: memory
#: ended: memory
import io
stream = io.StringIO()
stream.seek(10**10)
stream.write("x")
#: bytes-past-the-end-in-an-heir
#: threat: L10
#: from: io
#: proves: memory
#: ended: memory
import io
class Mine(io.BytesIO):
    def seek(self, *where): return super().seek(*where)
stream = Mine()
stream.seek(3 * 10**9)
stream.write(b"x")
#: array-in-place
#: threat: L10
#: from: array
#: proves: memory
#: ended: memory
import array
numbers = array.array("b", [0])
numbers *= 10**10
