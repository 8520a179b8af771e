# %%
import pathlib
pathlib.Path('kinds_a.py').write_text('''
import abc, datetime, functools, math, re, os.path as places
from math import sqrt
import kinds_b
LIMIT, NAMES, SEEN = 3, ["x"], {None, "y", 4}
TABLE = {("a", 1): NAMES, None: {"deep": [NAMES]}}
WORD, WHEN, NOTHING = re.compile("a+"), datetime.datetime(2020, 1, 2), None
class Meta(type):
    def __call__(cls, *of): raise TypeError("none of it is made")
class Fixed(metaclass=Meta): rows = NAMES
class Field:
    def __init__(self, name): self.name = name
    def __get__(self, one, kind=None): return self.name if one is None else (self.name, one.n)
class Base(abc.ABC):
    field = Field("n")
    @property
    def n(self): return self.known()
    @abc.abstractmethod
    def known(self): ...
class Derived(Base):
    __slots__ = ("of",)
    def __init__(self): super().__init__(); self.of = 7
    def known(self): return self.of
    @staticmethod
    def other(): return kinds_b.Other
    @classmethod
    def made(cls): return cls()
def pair():
    n = [0]
    def up(): n[0] += 1; return down
    def down(): n[0] -= 1; return n[0], up
    return up, down
up, down = pair()
cached = functools.lru_cache(sqrt)
class Loud:
    def __setstate__(self, state): self.__dict__.update(state, seen=LIMIT + len(TABLE))
loud = Loud(); loud.n = 1
class OfLoud: held = loud
def of_loud(one=OfLoud): return one.held
''')
pathlib.Path('kinds_b.py').write_text('''
import kinds_a
class Other: pass
def late(): return kinds_a.Derived
class Sub(Other): names = [Other]
''')
import kinds_a, kinds_b
from kinds_a import NAMES as names
kinds_b.held = kinds_a.TABLE; kinds_b.Sub.uses = kinds_a.Derived; kinds_a.Fixed.sub = kinds_b.Sub
kinds_a.up(); kinds_a.up(); kinds_a.LIMIT = 4; kinds_a.mine = [names]
one = kinds_a.Derived(); names.append('z')
# %% then
kinds_a.up(); names.append('later')
# %% check
kinds_a.NAMES is names is kinds_a.TABLE[('a', 1)] is kinds_b.held[None]['deep'][0] is kinds_a.mine[0] is kinds_a.Fixed.rows
names[:2] == ['x', 'z'] and kinds_b.held is kinds_a.TABLE and kinds_a.SEEN == {None, 'y', 4} and kinds_a.LIMIT == 4
kinds_a.down()[1] is kinds_a.up and kinds_a.up() is kinds_a.down and kinds_a.sqrt(4) == 2 == kinds_a.cached(4)
type(kinds_a.Fixed) is kinds_a.Meta and kinds_a.Fixed.sub is kinds_b.Sub and kinds_b.Sub.names[0] is kinds_b.Other
kinds_b.late() is kinds_a.Derived is type(one) and one.field == ('n', 7) and kinds_a.Derived.made().n == 7
kinds_a.Derived.other() is kinds_b.Other and kinds_a.Base.__abstractmethods__ == {'known'} and not hasattr(one, 'absent')
kinds_a.loud.n == 1 and kinds_a.OfLoud.held is kinds_a.loud is kinds_a.of_loud() and kinds_a.WORD.match('aa')
kinds_a.places.join('a', 'b') == 'a/b' and kinds_a.WHEN.year == 2020 and kinds_a.math.pi > 3 and kinds_a.NOTHING is None
