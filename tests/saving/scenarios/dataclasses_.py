# %%
import dataclasses
from dataclasses import dataclass, field, fields, asdict, replace
@dataclass
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list)
@dataclass(frozen=True, order=True, slots=True)
class Key:
    a: int
    b: str = 'b'
@dataclass(kw_only=True)
class Sub(Point):
    z: 'float' = 1.5
p = Point(1); k = Key(2); s = Sub(x=1, z=2.0); store = {k: p}
# %% check
p == Point(1) and Point(3).tags == []
store[Key(2)] is p
fields(Point)[0].default is dataclasses.MISSING
[f.name for f in fields(Sub)] == ['x', 'y', 'tags', 'z']
asdict(s) == {'x': 1, 'y': 0, 'tags': [], 'z': 2.0}
replace(p, y=4) == Point(1, 4)
Key(1) < Key(2) and repr(k) == "Key(a=2, b='b')"
dataclasses.is_dataclass(s)
not hasattr(k, '__dict__')
# %% then
try:
    k.a = 3
    frozen = False
except dataclasses.FrozenInstanceError:
    frozen = True
@dataclass
class More(Sub):
    w: int = 3
# %% check
frozen
More(x=1).w == 3
