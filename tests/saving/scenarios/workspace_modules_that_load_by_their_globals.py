# %%
import pathlib
pathlib.Path('metas.py').write_text('''
import types
EMPTY = types.MappingProxyType({})
def checked(state): return len(EMPTY) == 0 and state
class Meta:
    def __init__(self, n): self.n, self.held = n, EMPTY
    def __getstate__(self): return self.n, self.held is EMPTY
    def __setstate__(self, state):
        self.n, known = checked(state)
        self.held = EMPTY if known else None
    def __hash__(self): return hash((self.n, salt()))
    def __eq__(self, other): return self.n == other.n
SALT = [3]
def salt(): return SALT[0]
''')
import metas
class Model:
    all = (metas.Meta(1), metas.Meta(2))
    by_key = {metas.Meta(4): 'four'}
    empty = metas.EMPTY
model = Model(); model.salt = metas.SALT
# %% check
[one.n for one in Model.all] == [1, 2] and Model.all[0].held is metas.EMPTY is Model.empty
Model.by_key[metas.Meta(4)] == 'four' and model.salt is metas.SALT
