# %%
import types
d = {'a': 1}
keys, values, items = d.keys(), d.values(), d.items()
proxy = types.MappingProxyType(d)
class K: attr = 1
kd = K.__dict__
# %% then
d['b'] = 2
# %% check
list(keys) == ['a', 'b'] and list(values) == [1, 2] and list(items) == [('a', 1), ('b', 2)] and proxy['b'] == 2 and kd['attr'] == 1 and kd == K.__dict__
