# lost: lazily | a generator | list
# %%
import operator, re, random, itertools, functools, collections, string
get = operator.itemgetter(1); attr = operator.attrgetter('real'); call = operator.methodcaller('upper')
match = re.compile('a+').match; draw = random.Random(3).random; fill = '{}-{}'.format; join = ','.join
gb = itertools.groupby('aabbc'); k, grp = next(gb); del grp
di = iter(collections.deque([1, 2, 3])); next(di)
rd = reversed({'a': 1, 'b': 2}); next(rd)
bm = functools.partial('abc'.replace, 'b'); pm = functools.partial(print, end='')
lazily = map(str, (i for i in range(3)))
class Callable:
    def __call__(self, x): return x + 1
cb = Callable(); bound_call = cb.__call__
st = staticmethod(len); cm = classmethod(lambda c: c); prop = property(lambda s: 1, doc='d')
chain = functools.reduce(lambda f, g: lambda x: g(f(x)), [lambda x: x + 1, lambda x: x * 2])
def deco(n):
    def outer(f):
        @functools.wraps(f)
        def inner(*a): return [f(*a)] * n
        return inner
    return outer
class M:
    @deco(2)
    def twice(self): return 't'
    @staticmethod
    @deco(1)
    def stat(): return 's'
    alias = twice
fmt = string.Formatter()
# %% check
get('ab') == 'b' and attr(3) == 3 and call('x') == 'X' and match('aab').end() == 2 and fill(1, 2) == '1-2' and join('ab') == 'a,b'
draw() == random.Random(3).random()
list(di) == [2, 3] and list(rd) == ['a'] and bm('z') == 'azc' and cb(1) == 2 and bound_call(2) == 3
st(['a']) == 1 and prop.__doc__ == 'd' and chain(3) == 8
M().twice() == ['t', 't'] and M.stat() == ['s'] and M.alias is M.twice and M.twice.__wrapped__.__name__ == 'twice'
[k2 for k2, _ in gb] == ['b', 'c']
fmt.format('{0}', 1) == '1'
