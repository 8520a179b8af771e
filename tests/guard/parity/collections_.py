#: deque
#: needs: collections
from collections import deque
d = deque([1, 2, 3], maxlen=4)
d.append(4); d.append(5); d.appendleft(0)
print(d, d.pop(), d.popleft(), d[0], len(d), d.maxlen)
d.rotate(1); d.extend("ab"); print(list(d), d.count("a"), d.index("b"), deque("xyz") == deque("xyz"))
#: counter
#: needs: collections
from collections import Counter
c = Counter("abracadabra")
print(c.most_common(2), c["z"], c["a"], sum(c.values()), sorted(c.elements())[:3], c.total())
d = Counter(a=1, b=5)
print(c - d, c & d, sorted((c + d).items()), Counter([1, 1, 2]) == Counter({1: 2, 2: 1}), +Counter(x=-1))
c.update("aaa"); c.subtract("b"); del c["r"]
print(c["a"], c["b"], "r" in c)
#: defaultdict
#: needs: collections
from collections import defaultdict
d = defaultdict(list)
for k, v in [("a", 1), ("b", 2), ("a", 3)]:
    d[k].append(v)
print(d, dict(d), d.get("z"), "z" in d, d["z"], sorted(d))
tree = lambda: defaultdict(tree)
t = tree()
t["x"]["y"]["z"] = 1
print(dict(t["x"]["y"]), defaultdict(int, a=1)["b"], d.default_factory)
#: ordered-dict
#: needs: collections
from collections import OrderedDict
o = OrderedDict(a=1, b=2, c=3)
o.move_to_end("a"); o.move_to_end("c", last=False)
print(o, o.popitem(last=False), list(o), OrderedDict(a=1) == {"a": 1}, OrderedDict([("x", 1), ("y", 2)]) == OrderedDict([("y", 2), ("x", 1)]))
#: chain-map
#: needs: collections
from collections import ChainMap
base, user = {"a": 1, "b": 2}, {"b": 3}
c = ChainMap(user, base)
c["n"] = 9
print(c["b"], c["a"], dict(c), user, c.new_child({"a": 0})["a"], c.parents["b"], len(c))
#: namedtuple
#: needs: collections
from collections import namedtuple
P = namedtuple("P", "x y", defaults=[0])
p = P(1)
print(p, p.x, p._replace(y=5), p._asdict(), P._fields, P(*[7, 8]), p + (3,), P._make("ab"), hash(p) == hash((1, 0)), p == (1, 0))
x, y = p
class Q(namedtuple("Q", ["a", "b"])):
    __slots__ = ()
    @property
    def total(self): return self.a + self.b
print(Q(1, 2).total, Q(1, 2), sorted([Q(2, 1), Q(1, 2)])[0], namedtuple("R", "a class a", rename=True)._fields)
#: namedtuple-immutable
#: needs: collections
#: raises: AttributeError
from collections import namedtuple
P = namedtuple("P", "x")
P(1).x = 2
#: user-containers
#: needs: collections
from collections import UserDict, UserList, UserString
class Lower(UserDict):
    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)
l = Lower(A=1); l["B"] = 2
class L(UserList):
    def second(self): return self[1]
print(l, dict(l), L([1, 2, 3]).second(), UserString("ab").upper())
#: itertools-tour
#: needs: itertools
from itertools import *
print(list(chain([1], "a")), list(islice(count(5, 2), 3)), list(islice(cycle("ab"), 5)), list(repeat(0, 2)), list(compress("abcd", [1, 0, 1, 0])), list(dropwhile(lambda x: x < 3, [1, 3, 2])), list(takewhile(lambda x: x < 3, [1, 3, 2])), list(filterfalse(None, [0, 1, ""])), list(starmap(pow, [(2, 3), (3, 2)])), list(zip_longest("ab", [1], fillvalue="-")), list(accumulate([1, 2, 3], initial=10)), list(pairwise("abc")))
print(list(product("ab", repeat=2)), list(permutations([1, 2, 3], 2)), list(combinations("abc", 2)), list(combinations_with_replacement("ab", 2)), [(k, len(list(g))) for k, g in groupby("aaabbc")])
#: copying
#: needs: copy
import copy
a = {"x": [1, [2]], "y": (3, [4])}
b, c = copy.copy(a), copy.deepcopy(a)
a["x"][1].append(9); a["y"][1].append(5)
print(b, c)
class N:
    def __init__(self, v): self.v, self.kids = v, []
    def __copy__(self): print("copy"); return N(self.v)
    def __deepcopy__(self, memo): print("deep"); n = N(self.v); n.kids = copy.deepcopy(self.kids, memo); return n
n = N(1); n.kids.append(N(2))
print(copy.copy(n).kids, copy.deepcopy(n).kids[0].v)
r = [1]; r.append(r)
d = copy.deepcopy(r)
print(d[1] is d)
#: deepcopy-of-own-objects
#: needs: copy
import copy
class P:
    def __init__(self): self._items = [1]; self.me = self
p = P(); q = copy.deepcopy(p); q._items.append(2)
print(p._items, q._items, q.me is q, copy.copy(p)._items is p._items)
#: weak-references
#: needs: weakref
import weakref
class A: pass
a = A()
r = weakref.ref(a)
print(r() is a, len(weakref.WeakValueDictionary(x=a)))
del a
print(r())
#: simple-namespace-and-mapping-proxy
#: needs: types
import types
n = types.SimpleNamespace(a=1, b="x")
n.c = [1]
print(n, n.a, types.MappingProxyType({"k": 1})["k"], n == types.SimpleNamespace(a=1, b="x", c=[1]))
#: array
#: needs: array
from array import array
a = array("i", [1, 2, 3])
a.append(4)
print(a, a[1:], a.typecode, sum(a), a.tolist())
#: graphlib
#: needs: graphlib
from graphlib import TopologicalSorter, CycleError
print(list(TopologicalSorter({"d": {"b", "c"}, "b": {"a"}, "c": {"a"}}).static_order())[0])
try:
    list(TopologicalSorter({1: [2], 2: [1]}).static_order())
except CycleError as e:
    print("cycle")
#: queues-show-what-they-hold
import queue

for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
    q = kind()
    for n in (3, 1, 2):
        q.put(n)
    print(kind.__name__, q.queue[0], list(q.queue), len(q.queue), q.unfinished_tasks)
