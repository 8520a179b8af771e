# lost: frozen | a frozenset of objects that lead back to it | keep a set there in its place
# changes: eager | its own code adds to it
# %%
import collections, weakref
from dataclasses import dataclass, field
class Node:
    known = {}
    def __init__(self, name): self.name = name; self.near = set(); self.fixed = frozenset(); Node.known[self] = name
    def __hash__(self): return hash(self.name)
    def __eq__(self, other): return isinstance(other, Node) and self.name == other.name
a, b, c = Node('a'), Node('b'), Node('c')
for one, other in ((a, b), (b, c), (c, a)): one.near.add(other); other.near.add(one)
a.fixed = frozenset([b, c]); b.fixed = frozenset([a]); c.fixed = frozenset([(a, 1)])
graph = {'a': a}
@dataclass(unsafe_hash=True)
class Vertex:
    name: str
    out: dict = field(default_factory=dict, compare=False)
@dataclass(frozen=True)
class Edge:
    start: Vertex
    end: Vertex
u, v = Vertex('u'), Vertex('v'); u.out[v] = 1; v.out[u] = 2; edge = Edge(u, v); u.out['edges'] = edges = {edge, Edge(v, u)}; v.out[edge, 'pair'] = edges
class Tree:
    __slots__ = ('n', 'index', '__weakref__')
    def __init__(self, n): self.n = n; self.index = {}
    def __hash__(self): return hash(self.n)
    def __eq__(self, other): return self.n == other.n
t = Tree('t'); t.index[t] = 0; t.index['z'] = [t]
class Leaf:
    def __init__(self, n): self.n = n; self.index = {}
    def __hash__(self): return hash(self.n)
    def __eq__(self, other): return self.n == other.n
leaf = Leaf('l'); leaf.index[leaf] = 0
class Bag(set):
    def __init__(self, *some): super().__init__(some); self.label = 'bag'
class Table(dict): pass
class Hub(Node):
    def fill(self): 
        self.bag = Bag(self); self.table = Table({self: 1}); self.ordered = collections.OrderedDict([(self, 1), ('last', 2)])
        self.default = collections.defaultdict(list, {self: [1]}); self.count = collections.Counter([self, self])
        self.weak = weakref.WeakSet([self]); self.keys = weakref.WeakKeyDictionary({self: 3}); self.values = weakref.WeakValueDictionary({self: self})
hub = Hub('hub'); hub.fill()
class Held:
    def __init__(self, owner): self.owner = owner
    def __hash__(self): return hash(self.owner.name)
    def __eq__(self, other): return self is other
class Owner:
    def __init__(self, name): self.name = name; self.all = None
good = Owner('good'); good.all = {Held(good), Held(good)}
frozen = Owner('frozen'); frozen.all = frozenset([Held(frozen)])
class Eager:
    def __init__(self, items): self.items = items
    def __setstate__(self, state): self.__dict__.update(state); self.size = len(self.items)
eager = Eager({Edge(1, 2), Edge(3, 4)})
# %% check
sorted(one.name for one in a.near) == ['b', 'c'] and b in a.near and Node('c') in a.near and graph['a'] is a and a in b.near
Node.known[Node('b')] == 'b' and a in Node.known and len(Node.known) == 4 and list(Node.known.values()) == ['a', 'b', 'c', 'hub']
b in a.fixed and Node('c') in a.fixed and a in b.fixed and (Node('a'), 1) in c.fixed
u.out[v] == 1 and v.out[u] == 2 and Edge(u, v) in edges and u.out['edges'] is edges and v.out[edge, 'pair'] is edges and edge.start is u and list(u.out) == [v, 'edges']
t.index[t] == 0 and t.index['z'][0] is t and t.index[Tree('t')] == 0
leaf.index[leaf] == 0 and leaf.index[Leaf('l')] == 0
hub in hub.bag and hub.bag.label == 'bag' and hub.table[Node('hub')] == 1 and list(hub.ordered.items()) == [(hub, 1), ('last', 2)] and hub.default[hub] == [1]
hub.default['new'] == [] and hub.count[hub] == 2 and hub in hub.weak and hub.keys[hub] == 3 and hub.values[hub] is hub
len(good.all) == 2 and all(one.owner is good and one in good.all for one in good.all)
hub.default.pop('new') == []
# %% check loaded
eager.size == 2 and Edge(3, 4) in eager.items
