# %%
from collections import Counter, defaultdict, OrderedDict, deque, ChainMap, UserDict, UserList
c = Counter('aab'); dd = defaultdict(lambda: [0]); dd['a'].append(1); ddl = defaultdict(list); ddl['k']
tree = lambda: defaultdict(tree)
t = tree(); t['a']['b']['c'] = 1
od = OrderedDict([('b', 1), ('a', 2)]); od.move_to_end('b')
dq = deque([1, 2, 3], maxlen=3); dq.append(4)
cm = ChainMap({'a': 1}, {'b': 2}); ud = UserDict(a=1)
class Attr(dict):
    def __getattr__(self, k): return self[k]
    def __setattr__(self, k, v): self[k] = v
at = Attr(x=1); at.y = 2
class Two(list):
    def __init__(self, *a): super().__init__(*a); self.extra = 'e'
tw = Two([1, 2])
class Ms(set): pass
ms = Ms([1]); fs = frozenset({1, (2, 3)})
nested = {('a', 1): [{1: {2: (3,)}}]}
# %% check
c['a'] == 2 and type(c) is Counter and c.most_common(1) == [('a', 2)]
dd['a'] == [0, 1] and dd['new'] == [0] and ddl['k'] == [] and ddl.default_factory is list
t['a']['b']['c'] == 1 and t['x']['y'] == {}
list(od) == ['a', 'b'] and list(dq) == [2, 3, 4] and dq.maxlen == 3
cm['b'] == 2 and ud['a'] == 1 and at.y == 2 and at.x == 1 and type(at) is Attr
tw == [1, 2] and tw.extra == 'e' and ms == {1} and type(ms) is Ms and fs == {1, (2, 3)}
nested[('a', 1)][0][1][2] == (3,)
