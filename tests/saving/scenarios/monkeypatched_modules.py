# %%
import math, json, collections
original = math.sqrt
plain_dumps = json.dumps
math.sqrt = lambda x: ('patched', original(x))
def loud(value, **kw): return plain_dumps(value, **kw).upper()
json.dumps = loud
math.answer = 42
collections.Counter.total2 = lambda self: sum(self.values()) * 2
setattr(json, 'marker', [1, 2])
shared = json.marker
# %% check
math.sqrt(4) == ('patched', 2.0)
json.dumps({'a': 1}) == '{"A": 1}'
json.dumps is loud
math.answer == 42
collections.Counter('aab').total2() == 6
json.marker is shared
original(9) == 3.0
