# %%
_private = 1; __dunder__ = 2; naïve = 3
class __Odd: pass
odd = __Odd()
__all__ = ['naïve']
x: int = 5
def f(): return __dunder__
__doc__ = 'of the session'; __file__ = 'here.py'
first_promo = second_promo = another_promo = 1
zeta, alpha = 1, 2
last = 7
last
# %% check
_private == 1 and __dunder__ == 2 and naïve == 3 and type(odd) is __Odd and f() == 2 and __all__ == ['naïve']
__annotations__ == {'x': int}
__doc__ == 'of the session' and __file__ == 'here.py' and __name__ == '__main__'
[name for name in globals() if not name.startswith('__')][:3] == ['_private', 'naïve', 'odd']
[name for name in globals() if name in ('zeta', 'alpha', 'first_promo', 'another_promo', 'last', 'f')] == ['f', 'first_promo', 'another_promo', 'zeta', 'alpha', 'last']
