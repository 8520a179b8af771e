# %%
factor = 2
def scale(x): return x * factor
triple = lambda x: x * 3
def make(n):
    def add(x): return x + n + factor
    return add
add5 = make(5)
# %%
factor = 10
# %% check
scale(3) == 30
triple(2) == 6
add5(1) == 16
scale.__globals__ is globals()
add5.__qualname__ == 'make.<locals>.add'
# %% then
factor = 1
# %% check
scale(3) == 3
add5(1) == 7
