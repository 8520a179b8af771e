# %%
l = [1]; l.append(l)
d = {}; d['self'] = d; d['l'] = l
class Node:
    def __init__(self): self.parent = None; self.children = []
root = Node(); kid = Node(); kid.parent = root; root.children.append(kid)
tup = ([],); tup[0].append(tup)
s = Node(); s.all = {s}
class Hashed:
    def __init__(self, k): self.k = k
    def __hash__(self): return hash(self.k)
    def __eq__(self, o): return self.k == o.k
h = Hashed('k'); keyed = {h: 1}; h2 = Hashed('k')
from collections import deque, OrderedDict
dq = deque([1]); dq.append(dq)
od = OrderedDict(); od['me'] = od
# %% check
l[1] is l and d['self'] is d and d['l'] is l
kid.parent is root and root.children[0] is kid
tup[0][0] is tup
s in s.all
keyed[h2] == 1 and h in keyed
dq[1] is dq and od['me'] is od
