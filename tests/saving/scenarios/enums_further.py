# %%
import enum
from enum import Enum, IntFlag, Flag, auto, unique
class Op(Enum):
    ADD = enum.member(lambda a, b: a + b) if hasattr(enum, 'member') else (lambda a, b: a + b,)
    def __call__(self, *a): return self.value(*a)
class Perm(IntFlag):
    R = 4; W = 2; X = 1
class Level(Enum):
    LOW = auto(); HIGH = auto()
    @classmethod
    def _missing_(cls, v): return cls.LOW if v == 'low' else None
    @classmethod
    def default(cls): return cls.HIGH
    def __str__(self): return 'L-' + self.name
class Holder:
    class State(Enum):
        ON = 'on'; OFF = 'off'
    state = State.ON
    def __init__(self, mode=Level.LOW): self.mode = mode
h = Holder()
counts = {m: 0 for m in Level}
rw = Perm.R | Perm.W
def takes(level=Level.HIGH): return level
members = list(Perm)
# %% check
Op.ADD(1, 2) == 3
rw == 6 and Perm.R in rw and repr(Perm(4)) == '<Perm.R: 4>' and (rw & Perm.W) is Perm.W and Perm.R | 1 == 5
Level('low') is Level.LOW and Level.default() is Level.HIGH and str(Level.LOW) == 'L-LOW'
h.state is Holder.State.ON and h.mode is Level.LOW and Holder().mode is Level.LOW and takes() is Level.HIGH
counts[Level.LOW] == 0 and members == [Perm.R, Perm.W, Perm.X] or members == list(Perm)
Holder.State('off') is Holder.State.OFF
# %% then
counts[Level.HIGH] += 1
# %% check
counts[Level.HIGH] == 1
