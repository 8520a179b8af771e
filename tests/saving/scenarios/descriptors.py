# %%
from functools import cached_property
class Positive:
    def __set_name__(self, owner, name): self.name = '_' + name; self.times = getattr(self, 'times', 0) + 1
    def __get__(self, obj, owner=None): return self if obj is None else getattr(obj, self.name)
    def __set__(self, obj, v):
        if v < 0: raise ValueError(v)
        setattr(obj, self.name, v)
class Account:
    balance = Positive()
    def __init__(self, b): self.balance = b; self.computed = 0
    @property
    def double(self): return self.balance * 2
    @double.setter
    def double(self, v): self.balance = v // 2
    @cached_property
    def slow(self):
        self.computed += 1
        return self.balance + 100
acc = Account(5); acc.slow
other = Account(1)
prop = Account.double; body = dict(vars(Account))
# %% check
acc.balance == 5 and Account.balance.times == 1
acc.slow == 105 and acc.computed == 1
other.slow == 101 and other.computed == 1
prop is Account.__dict__['double']
type(body['__dict__']).__name__ == 'getset_descriptor' and body['__dict__'] is vars(Account)['__dict__']
# %% then
acc.double = 20
try:
    acc.balance = -1
    ok = False
except ValueError: ok = True
# %% check
acc.balance == 10 and ok
