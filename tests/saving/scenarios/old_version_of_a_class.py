# %%
class P:
    version = 1
    def __init__(self, v): self.v = v
    def who(self): return ('old', self.v)
old = P(1)
olds = [old, P(2)]
# %%
class P:
    version = 2
    def __init__(self, v): self.v = v
    def who(self): return ('new', self.v)
new = P(3)
# %% check
old.who() == ('old', 1)
new.who() == ('new', 3)
type(new) is P
type(old) is not P
type(olds[1]) is type(old)
olds[0] is old
type(old).__name__ == 'P' and type(old).version == 1
isinstance(new, P) and not isinstance(old, P)
