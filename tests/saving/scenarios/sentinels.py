# %%
MISSING = object()
defaults = {'a': MISSING, 'b': 1}
def get(k, default=MISSING): return defaults[k] if default is MISSING else default
class _Unset:
    def __repr__(self): return 'UNSET'
UNSET = _Unset(); table = [UNSET, None, UNSET]
class Sing:
    _one = None
    def __new__(cls):
        if cls._one is None: cls._one = super().__new__(cls)
        return cls._one
one = Sing(); also = [Sing()]
import dataclasses, inspect
dm = dataclasses.MISSING; ie = inspect.Parameter.empty
# %% check
defaults['a'] is MISSING and get('b') == 1 and get('a') is MISSING
table[0] is UNSET and table[2] is UNSET
Sing() is one and also[0] is one
dm is dataclasses.MISSING and ie is inspect.Parameter.empty
