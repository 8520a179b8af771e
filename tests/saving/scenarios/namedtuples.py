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
# %%
class Spot(NamedTuple):
    x: int
    y: int = 0
    def moved(self): return Spot(self.x + 1, self.y)
Spot.ORIGIN = Spot(0)
start = Spot(3); mover = start.moved; steps = [(start, Spot.moved)]; shown = (start, Spot._field_defaults)
Pair = namedtuple('Pair', 'a b'); pair = Pair([], 2); told = pair._asdict
class Both(tuple):
    def __new__(cls, one, other): return super().__new__(cls, (one, other))
    def ends(self): return self[0], self[1]
Both.FIRST = Both(1, 2); ends = Both.FIRST.ends
# %% check
mover() == Spot(4) == Spot(4, 0) and mover.__self__ is start and steps[0][0] is start and shown[0] is start
Spot.ORIGIN == (0, 0) and type(Spot.ORIGIN) is Spot and Spot.ORIGIN.moved().x == 1
told() == {'a': [], 'b': 2} and told()['a'] is pair.a and type(pair) is Pair
ends() == (1, 2) and type(Both.FIRST) is Both and Both(3, 4).ends() == (3, 4)
