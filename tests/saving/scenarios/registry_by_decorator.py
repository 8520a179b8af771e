# %%
handlers = {}
def register(name):
    def wrap(f):
        handlers[name] = f
        return f
    return wrap
@register('a')
def on_a(x): return 'a' + x
# %%
@register('b')
def on_b(x): return 'b' + x + on_a(x)
# %% check
handlers == {'a': on_a, 'b': on_b}
handlers['b']('!') == 'b!a!'
handlers['a'] is on_a
# %% then
@register('c')
def on_c(x): return x
# %% check
list(handlers) == ['a', 'b', 'c']
