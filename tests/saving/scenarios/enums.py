# %%
import enum
class Color(enum.Enum):
    RED = 1
    GREEN = 'g'
    CRIMSON = 1
    def nice(self): return self.name.title()
    @property
    def low(self): return self.name.lower()
class Num(enum.IntEnum):
    ONE = 1
    TWO = 2
class Flags(enum.Flag):
    A = enum.auto(); B = enum.auto(); AB = A | B
class S(str, enum.Enum):
    X = 'x'
class SE(enum.StrEnum):
    LEFT = enum.auto()
class Planet(enum.Enum):
    EARTH = (5.9, 6.3)
    def __init__(self, mass, radius): self.mass = mass; self.radius = radius
Dyn = enum.Enum('Dyn', 'P Q')
c = Color.RED; by = {Color.RED: 'r', Num.TWO: 2}
combo = Flags.A | Flags.B
# %% check
c is Color.RED and Color(1) is c and Color['CRIMSON'] is c and Color('g') is Color.GREEN
by[Color.RED] == 'r' and by[Num.TWO] == 2
c.nice() == 'Red' and c.low == 'red'
list(Color) == [Color.RED, Color.GREEN] and len(Color) == 2
Num.TWO + 1 == 3 and Num(2) is Num.TWO and isinstance(Num.ONE, int)
combo is Flags.AB and Flags.A in combo and Flags(1) is Flags.A and (combo & Flags.B) is Flags.B
S.X == 'x' and S('x') is S.X and SE.LEFT == 'left' and f'{SE.LEFT}' == 'left'
Planet.EARTH.mass == 5.9 and Planet((5.9, 6.3)) is Planet.EARTH
Dyn.P.value == 1 and Dyn['Q'] is Dyn.Q
repr(c) == '<Color.RED: 1>'
Color.RED.value == 1 and Color.__members__['CRIMSON'] is c
'RED' in dir(Color)
# %% then
try:
    Color(99)
except ValueError as e:
    told = str(e)
try:
    Color.RED = 3
    changed = True
except AttributeError:
    changed = False
# %% check
'99 is not a valid Color' in told
changed is False
