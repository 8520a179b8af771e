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
# %% then
one.level = 2; row.b = 5; options.y = 7; plain.m = 3; seen['u'] = 8
# %% check
two.level == 2 and Settings().level == 2 and Settings.common is one.__dict__
row['b'] == 5 and row.inner.b is row and type(row.inner) is Row and row.a == 1
table == {'x': 1, 'y': 7}
plain.own['m'] == 3 and plain.own['own'] is plain.own
slotted.u == 8 and slotted.s == 5 and slotted.__dict__ is seen
alone.own is None and alone.n == 1
