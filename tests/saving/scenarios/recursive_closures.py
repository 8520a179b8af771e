# %%
def outer():
    def even(n): return True if n == 0 else odd(n - 1)
    def odd(n): return False if n == 0 else even(n - 1)
    def unset(): return later
    if False: later = 1
    return even, odd, unset
even, odd, unset = outer()
fact = (lambda f: lambda n: 1 if n < 2 else n * f(f)(n - 1))(lambda f: lambda n: 1 if n < 2 else n * f(f)(n - 1))
def y():
    def me(): return me
    return me
me = y()
# %% check
even(10) is True
odd(7) is True
even.__closure__[0].cell_contents is odd
me() is me
fact(5) == 120
# %% then
try:
    unset()
except NameError as error:
    told = str(error)
# %% check
'later' in told
