# %%
from collections import namedtuple
from typing import NamedTuple
P = namedtuple('P', 'x y', defaults=[5])
class Q(NamedTuple):
    a: int
    b: str = 'z'
    def both(self): return (self.a, self.b)
p = P(1); q = Q(2); many = [P(i, i) for i in range(3)]
# %% check
p == (1, 5) and p.y == 5 and type(p) is P
q.both() == (2, 'z') and Q._field_defaults == {'b': 'z'}
P._make([7, 8]) == P(7, 8) and many[2]._replace(x=0) == P(0, 2)
repr(p) == 'P(x=1, y=5)' and P._fields == ('x', 'y')
Q.__annotations__['a'] is int
P(x=1, y=2)._asdict() == {'x': 1, 'y': 2}
