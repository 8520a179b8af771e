# %%
import contextlib
@contextlib.contextmanager
def tag(name):
    out.append('<' + name)
    try: yield name
    finally: out.append(name + '>')
out = []
stack = contextlib.ExitStack()
class CM:
    def __enter__(self): out.append('in'); return self
    def __exit__(self, *a): out.append('out'); return True
cm = CM()
null = contextlib.nullcontext(3)
sup = contextlib.suppress(KeyError)
# %% then
with tag('a') as got: pass
with cm: raise ValueError
with null as three: pass
with sup: {}['k']
# %% check
out == ['<a', 'a>', 'in', 'out'] and got == 'a' and three == 3
