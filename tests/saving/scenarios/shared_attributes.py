# %%
import argparse
class Settings:
    common = {}
    def __init__(self): self.__dict__ = Settings.common
one, two = Settings(), Settings()
one.level = 1
class Row(dict):
    def __init__(self, **items): super().__init__(items); self.__dict__ = self
row = Row(a=1); row.inner = Row(b=row)
options = argparse.Namespace(x=1)
table = vars(options)
class Plain:
    def __init__(self): self.n = 1; self.own = self.__dict__
plain = Plain()
class Slotted:
    __slots__ = ('s', '__dict__')
slotted = Slotted(); slotted.s = 5; slotted.t = 6; seen = slotted.__dict__
alone = Plain(); alone.own = None
import types
cfg = types.SimpleNamespace(lr=1); opts = vars(cfg)
class Sub(types.SimpleNamespace): pass
sub = Sub(a=1); its = vars(sub)
def fn(): pass
fn.x = 1; fd = fn.__dict__
gd = {'k': fn.__dict__}
import functools
part = functools.partial(max, 1); part.note = 1; pd_ = vars(part)
e = ValueError(1); e.a = 1; ed = e.__dict__
@functools.lru_cache
def memo(n): return n
memo.mark = 1; md = vars(memo)
h = types.SimpleNamespace(); hv = vars(h); hv['self'] = h; hv['own'] = hv
# %% then
opts['lr'] = 2; its['b'] = 2; fd['z'] = 3; pd_['m'] = 2; ed['c'] = 3; md['q'] = 4; h.n = 1
one.level = 2; row.b = 5; options.y = 7; plain.m = 3; seen['u'] = 8
# %% check
two.level == 2 and Settings().level == 2 and Settings.common is one.__dict__
row['b'] == 5 and row.inner.b is row and type(row.inner) is Row and row.a == 1
table == {'x': 1, 'y': 7}
plain.own['m'] == 3 and plain.own['own'] is plain.own
slotted.u == 8 and slotted.s == 5 and slotted.__dict__ is seen
alone.own is None and alone.n == 1
cfg.lr == 2 and sub.b == 2 and fn.z == 3 and part.m == 2 and e.c == 3 and memo.q == 4 and hv['n'] == 1 and hv['own'] is hv and h.self is h
