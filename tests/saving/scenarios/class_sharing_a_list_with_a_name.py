# %%
log = []
class A:
    shared = log
    defaults = {'k': []}
    def add(self, x): self.shared.append(x)
class B:
    other = A.defaults
a = A(); inner = A.defaults['k']
# %% then
a.add(1); inner.append(2)
# %% check
log == [1] and A.shared is log and B.other is A.defaults and A.defaults['k'] == [2]
