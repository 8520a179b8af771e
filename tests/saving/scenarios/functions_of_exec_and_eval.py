# %%
ns = {}
exec('k = 2\ndef f(n): return n if n < 1 else f(n - 1) + k\nclass C:\n    def m(self): return k', ns)
f = ns['f']; c = ns['C']()
g = eval('lambda x: x + off', {'off': 100})
code = compile('a + 1', '<s>', 'eval')
import types
def orig(): return value
value = 'main'
moved = types.FunctionType(orig.__code__, {'value': 'moved'})
# %% check
f(3) == 6 and c.m() == 2 and g(1) == 101 and eval(code, {'a': 1}) == 2 and moved() == 'moved' and orig() == 'main'
# %% then
ns['k'] = 5
# %% check
f(3) == 15 and c.m() == 5 and f.__globals__ is ns
