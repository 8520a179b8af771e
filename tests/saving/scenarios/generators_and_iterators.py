# lost: gen | a generator | list
# lost: holder | holder['g'][0]: a generator | list
# lost: fresh | a generator | make it again
# lost: agen | asynchronous generator | async for
# %%
import itertools
data = [1, 2, 3, 4]
it = iter(data); next(it)
ti = iter((1, 2, 3)); next(ti)
di = iter({'a': 1, 'b': 2}); next(di)
vi = iter({'a': 1, 'b': 2}.items()); next(vi)
si = iter('abc'); next(si)
ri = iter(range(5)); next(ri)
rev = reversed([1, 2, 3]); next(rev)
en = enumerate('abcd'); next(en)
z = zip([1, 2, 3], 'xyz'); next(z)
m = map(str, [1, 2, 3]); next(m)
f = filter(None, [0, 1, 0, 2, 3]); next(f)
lm = map(lambda v: v * 2, [1, 2, 3]); next(lm)
ci = iter({1, 2, 3}); next(ci)
done = iter([1]); list(done)
count = itertools.count(5, 2); next(count)
cyc = itertools.cycle('ab'); next(cyc)
rep = itertools.repeat('x', 3); next(rep)
ch = itertools.chain([1, 2], [3]); next(ch)
isl = itertools.islice(range(100), 2, 10, 3); next(isl)
acc = itertools.accumulate([1, 2, 3]); next(acc)
prod = itertools.product('ab', [1, 2]); next(prod)
perm = itertools.permutations([1, 2, 3], 2); next(perm)
t1, t2 = itertools.tee([1, 2, 3]); next(t1)
sentinel = iter(lambda: 3, 3)
gen = (i for i in data)
holder = {'g': [gen]}
async def agen_():
    yield 1
agen = agen_()
def generate():
    yield 1
over = generate(); list(over)
async def wait(): pass
waited = wait(); waited.close(); aover = agen_()
try: aover.aclose().send(None)
except StopIteration: pass
shut = generate(); next(shut); shut.close(); fresh = generate()
# %% check
list(it) == [2, 3, 4]
list(ti) == [2, 3] and list(si) == ['b', 'c'] and list(ri) == [1, 2, 3, 4]
list(di) == ['b'] and list(vi) == [('b', 2)]
list(rev) == [2, 1]
list(en) == [(1, 'b'), (2, 'c'), (3, 'd')]
list(z) == [(2, 'y'), (3, 'z')]
list(m) == ['2', '3'] and list(f) == [2, 3] and list(lm) == [4, 6]
list(ci) == [2, 3]
list(done) == []
next(count) == 7 and next(cyc) == 'b' and list(rep) == ['x', 'x'] and list(ch) == [2, 3]
list(isl) == [5, 8] and list(acc) == [3, 6]
list(prod) == [('a', 2), ('b', 1), ('b', 2)]
list(perm) == [(1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
list(t1) == [2, 3] and list(t2) == [1, 2, 3]
list(sentinel) == []
list(generate()) == [1]
list(over) == [] and over.__name__ == 'generate' and over.gi_frame is None and list(shut) == [] and type(over) is type(generate())
waited.cr_frame is None and waited.__qualname__ == 'wait' and aover.ag_frame is None
# %% warm
assert list(gen) == [1, 2, 3, 4]
