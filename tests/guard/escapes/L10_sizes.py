#: power-of-powers
#: threat: L10
#: from: agex, asteval, simpleeval: huge powers
#: proves: hangs
#: refused: size
10**10**8
#: power-by-pow
#: threat: L10
#: from: pow
#: proves: hangs
#: refused: size
pow(10, 10**8)
#: power-by-operator
#: threat: L10
#: from: operator.pow
#: proves: hangs
#: refused: size
import operator
operator.pow(7, 10**8)
#: power-by-dunder
#: threat: L10
#: from: methods behind operators
#: proves: hangs
#: refused: attribute
(10).__pow__(10**8)
#: power-by-reduce
#: threat: L10
#: from: C loops over operators
#: proves: hangs
#: refused: size
import functools, operator
functools.reduce(operator.pow, [10, 10, 1000, 1000, 1000])
#: power-augmented
#: threat: L10
#: from: augmented assignment
#: proves: hangs
#: refused: size
x = 10
x **= 10**8
#: repeated-squaring
#: threat: L10
#: from: growth step by step
#: proves: hangs
#: ended: raised, timeout, memory
x = 3
for _ in range(60):
    x = x * x
#: factorial
#: threat: L10
#: from: math.factorial
#: proves: hangs
#: refused: size
import math
math.factorial(10**8)
#: comb-and-perm
#: threat: L10
#: from: math.comb
#: proves: hangs
#: refused: size
import math
math.comb(10**9, 10**7)
#: lcm-and-prod
#: threat: L10
#: from: C loops in math
#: proves: hangs
#: refused: size
import math
math.prod(range(1, 10**7))
#: shift-left
#: threat: L10
#: from: shifts
#: proves: memory
#: refused: size
1 << 10**11
#: shift-by-dunder
#: threat: L10
#: from: methods behind operators
#: proves: memory
#: refused: attribute
(1).__lshift__(10**10)
#: shift-by-operator
#: threat: L10
#: from: operator.lshift
#: proves: memory
#: refused: size
import operator
operator.lshift(1, 8 * 10**9)
#: repeat-text
#: threat: L10
#: from: repeats
#: proves: memory
#: ended: timeout, memory
'a' * 10**10
#: repeat-list
#: threat: L10
#: from: repeats
#: proves: memory
#: ended: timeout, memory
[0] * 10**9
#: repeat-reflected
#: threat: L10
#: from: the number on the left
#: proves: memory
#: ended: timeout, memory
10**9 * [0]
#: repeat-by-dunder
#: threat: L10
#: from: methods behind operators
#: proves: memory
#: refused: attribute
[0].__mul__(10**9)
#: repeat-by-operator
#: threat: L10
#: from: operator.mul
#: proves: memory
#: ended: timeout, memory
import operator
operator.mul('a', 10**10)
#: repeat-augmented
#: threat: L10
#: from: augmented assignment
#: proves: memory
#: ended: timeout, memory
x = [1, 2]
x *= 10**9
#: repeat-attribute-target
#: threat: L10
#: from: augmented assignment to an attribute
#: proves: memory
#: ended: timeout, memory
class A: pass
a = A()
a.x = b'1'
a.x *= 10**10
#: repeat-by-int-subclass
#: threat: L10
#: from: numbers that lie
#: proves: memory
#: ended: timeout, memory
class I(int): pass
'a' * I(10**10)
#: repeat-by-index
#: threat: L10
#: from: __index__
#: proves: memory
#: ended: timeout, memory
class I:
    def __index__(self): return 10**10
'a' * I()
#: repeat-by-nested
#: threat: L10
#: from: repeats of repeats
#: proves: memory
#: open: growth by steps passes the limit before it is seen
x = 'a'
for _ in range(50):
    x = x * 10
#: doubling-list
#: threat: L10
#: from: growth step by step
#: proves: memory
#: open: growth by steps passes the limit before it is seen
x = [0]
while True:
    x = x + x
#: doubling-extend
#: threat: L10
#: from: growth in place
#: proves: memory
#: open: growth by steps passes the limit before it is seen
x = [0]
while True:
    x.extend(x)
#: doubling-text
#: threat: L10
#: from: growth step by step
#: proves: memory
#: open: growth by steps passes the limit before it is seen
x = 'ab'
while True:
    x += x
#: join-blow-up
#: threat: L10
#: from: str.join
#: proves: memory
#: ended: timeout, memory
s = 'a' * 100000
(s).join([s] * 100000)
#: replace-blow-up
#: threat: L10
#: from: str.replace
#: proves: memory
#: ended: timeout, memory
('a' * 100000).replace('a', 'b' * 100000)
#: ljust
#: threat: L10
#: from: padding
#: proves: memory
#: ended: timeout, memory
'a'.ljust(10**10)
#: zfill-and-center
#: threat: L10
#: from: padding
#: proves: memory
#: ended: timeout, memory
'1'.zfill(10**10)
#: expandtabs
#: threat: L10
#: from: padding
#: proves: memory
#: ended: timeout, memory
'\t'.expandtabs(10**10)
#: format-width
#: threat: L10
#: from: widths in format
#: proves: memory
#: ended: timeout, memory
'{:>10000000000}'.format(1)
#: format-width-f-string
#: threat: L10
#: from: widths in f-strings
#: proves: memory
#: ended: timeout, memory
f'{1:>10000000000}'
#: format-width-nested
#: threat: L10
#: from: widths given by values
#: proves: memory
#: ended: timeout, memory
w = 10**10
f'{1:{w}}'
#: format-width-percent
#: threat: L10
#: from: widths in %
#: proves: memory
#: ended: timeout, memory
'%10000000000d' % 1
#: format-width-percent-star
#: threat: L10
#: from: widths in %
#: proves: memory
#: refused: size
'%*d' % (10**10 // 5, 1)
#: format-precision
#: threat: L10
#: from: precisions
#: proves: memory
#: ended: timeout, memory
'%.2000000000f' % 1.5
#: format-builtin
#: threat: L10
#: from: format()
#: proves: memory
#: ended: timeout, memory
format(1, '10000000000')
#: bytes-of-size
#: threat: L10
#: from: bytes(n)
#: proves: memory
#: ended: timeout, memory
bytes(10**11)
#: bytearray-of-size
#: threat: L10
#: from: bytearray(n)
#: proves: memory
#: ended: timeout, memory
bytearray(10**10)
#: int-to-bytes
#: threat: L10
#: from: int.to_bytes
#: proves: memory
#: ended: timeout, memory
(1).to_bytes(10**10, 'big')
#: list-of-range
#: threat: L10
#: from: ranges consumed
#: proves: memory
#: ended: timeout, memory
list(range(10**10))
#: set-of-range
#: threat: L10
#: from: ranges consumed
#: proves: memory
#: ended: timeout, memory
set(range(10**10))
#: dict-from-range
#: threat: L10
#: from: ranges consumed
#: proves: memory
#: ended: timeout, memory
dict.fromkeys(range(10**10))
#: tuple-of-generator
#: threat: L10
#: from: generators consumed
#: proves: memory
#: ended: timeout, memory
tuple(x for x in iter(int, 1))
#: star-of-range
#: threat: L10
#: from: ranges unpacked
#: proves: memory
#: ended: timeout, memory
[*range(10**10)]
#: star-call-of-range
#: threat: L10
#: from: ranges unpacked
#: proves: memory
#: ended: timeout, memory
print(*range(10**10))
#: unpack-star-target
#: threat: L10
#: from: ranges unpacked
#: proves: memory
#: ended: timeout, memory
a, *b = range(10**10)
#: slice-assignment-of-range
#: threat: L10
#: from: ranges consumed
#: proves: memory
#: ended: timeout, memory
x = []
x[:] = range(10**10)
