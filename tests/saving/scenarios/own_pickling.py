# lost: bad | ValueError: not me | 
# lost: sly | no way to be saved | 
# lost: leaves | SystemExit | 
# lost: deepbad | deepbad['k'][1]: ValueError: not me | 
# changes: e | each save of it counts on
# %%
class State:
    def __init__(self): self.a = 1; self.cache = 'big'
    def __getstate__(self): return {'a': self.a}
    def __setstate__(self, s): self.__dict__.update(s); self.cache = 'rebuilt'
class Red:
    def __init__(self, *parts): self.parts = parts
    def __reduce__(self): return Red, self.parts
class NewArgs:
    def __new__(cls, x): s = super().__new__(cls); s.x = x; return s
    def __getnewargs__(self): return (self.x,)
class Bad:
    def __reduce__(self): raise ValueError('not me')
class Sly:
    def __reduce__(self): raise TypeError("cannot pickle 'Sly'")
class Leaves:
    def __getstate__(self): raise SystemExit(3)
s = State(); r = Red(1, [2]); n = NewArgs(4); bad = Bad(); sly = Sly(); leaves = Leaves()
deepbad = {'k': [1, bad]}
import copyreg
class Ext: 
    def __init__(self, v): self.v = v
copyreg.pickle(Ext, lambda e: (Ext, (e.v + 1,)))
e = Ext(1)
# %% check
s.a == 1 and r.parts == (1, [2]) and n.x == 4
# %% check warm
s.cache == 'big' and e.v == 1
# %% check loaded
s.cache == 'rebuilt' and e.v in (2, 3)
