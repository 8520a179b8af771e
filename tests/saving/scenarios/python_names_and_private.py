# %%
_private = 1; __dunder__ = 2; naïve = 3
class __Odd: pass
odd = __Odd()
__all__ = ['naïve']
x: int = 5
def f(): return __dunder__
last = 7
last
# %% check
_private == 1 and __dunder__ == 2 and naïve == 3 and type(odd) is __Odd and f() == 2 and __all__ == ['naïve']
__annotations__ == {'x': int}
