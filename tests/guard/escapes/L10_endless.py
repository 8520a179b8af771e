#: sum-of-range
#: threat: L10
#: from: sandtrap, smolagents: sum over a range
#: proves: hangs
#: ended: timeout, memory
sum(range(10**12))
#: max-of-range
#: threat: L10
#: from: built-ins that consume
#: proves: hangs
#: ended: timeout, memory
max(range(10**12))
#: any-of-repeat
#: threat: L10
#: from: built-ins that consume
#: proves: hangs
#: ended: timeout, memory
import itertools
any(itertools.repeat(0))
#: all-of-cycle
#: threat: L10
#: from: built-ins that consume
#: proves: hangs
#: ended: timeout, memory
import itertools
all(itertools.cycle([1]))
#: deque-of-count
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory
import collections, itertools
collections.deque(itertools.count(), maxlen=0)
#: in-range-of-floats
#: threat: L10
#: from: membership by steps
#: proves: hangs
#: ended: timeout, memory
0.5 in range(10**12)
#: in-of-count
#: threat: L10
#: from: membership by steps
#: proves: hangs
#: ended: timeout, memory
import itertools
-1 in itertools.count()
#: index-of-range
#: threat: L10
#: from: methods that search
#: proves: hangs
#: ended: timeout
range(10**12).index(0.5)
#: count-of-range
#: threat: L10
#: from: methods that search
#: proves: hangs
#: ended: timeout
range(10**12).count(0.5)
#: zip-of-repeats
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory
import itertools
for _ in zip(itertools.repeat(1), filter(None, itertools.repeat(0))): pass
#: min-of-map
#: threat: L10
#: from: C loops without end
#: proves: hangs
#: ended: timeout, memory
import itertools
min(map(abs, itertools.count()))
#: islice-far
#: threat: L10
#: from: itertools.islice
#: proves: hangs
#: ended: timeout, memory
import itertools
next(itertools.islice(itertools.count(), 10**12, None))
#: product-of-many
#: threat: L10
#: from: itertools.product
#: proves: hangs
#: ended: timeout, memory
import itertools
sum(1 for _ in itertools.product(*[range(100)] * 20))
#: product-large-pool
#: threat: L10
#: from: itertools.product keeps its pools
#: proves: memory
#: ended: timeout, memory
import itertools
itertools.product(range(10**10))
#: permutations-memory
#: threat: L10
#: from: itertools.permutations keeps its pool
#: proves: memory
#: ended: timeout, memory
import itertools
itertools.permutations(range(10**9))
#: tee-memory
#: threat: L10
#: from: itertools.tee keeps what one side has not read
#: proves: memory
#: ended: timeout, memory
import itertools
a, b = itertools.tee(itertools.count())
for _ in a: pass
#: combinations-consumed
#: threat: L10
#: from: itertools consumed in C
#: proves: hangs
#: ended: timeout, memory
import itertools, collections
collections.deque(itertools.combinations(range(1000), 10), maxlen=0)
#: groupby-endless
#: threat: L10
#: from: itertools.groupby
#: proves: hangs
#: ended: timeout, memory
import itertools
next(itertools.islice(itertools.groupby(itertools.repeat(1)), 1, None))
#: reduce-endless
#: threat: L10
#: from: functools.reduce
#: proves: hangs
#: ended: timeout, memory
import functools, itertools
functools.reduce(lambda a, b: a, itertools.repeat(1))
#: counter-endless
#: threat: L10
#: from: collections.Counter
#: proves: hangs
#: ended: timeout, memory
import collections, itertools
collections.Counter(itertools.repeat(1))
#: heapq-merge-and-nsmallest
#: threat: L10
#: from: heapq consumes
#: proves: hangs
#: ended: timeout, memory
import heapq, itertools
heapq.nsmallest(3, itertools.count())
#: statistics-endless
#: threat: L10
#: from: statistics consumes
#: proves: hangs
#: ended: timeout, memory
import statistics, itertools
statistics.mean(itertools.repeat(1))
#: join-endless
#: threat: L10
#: from: str.join consumes
#: proves: hangs
#: ended: timeout, memory
import itertools
''.join(itertools.repeat(''))
#: sorted-endless
#: threat: L10
#: from: sorted consumes
#: proves: memory
#: ended: timeout, memory
import itertools
sorted(itertools.repeat(1))
#: enumerate-endless
#: threat: L10
#: from: enumerate in C
#: proves: memory
#: ended: timeout, memory
import itertools
list(enumerate(itertools.repeat(None)))
