# needs: sympy
# %%
import sympy as sp
x, y = sp.symbols('x y'); expr = sp.sin(x) ** 2 + y
f = sp.Function('f'); fn = sp.lambdify(x, x ** 2 + 1, 'math')
pos = sp.Symbol('p', positive=True); M = sp.Matrix([[x, 1], [0, y]])
d = sp.Dummy('d')
# %% check
expr.subs(x, 0) == y and sp.diff(expr, y) == 1 and fn(3) == 10 and pos.is_positive and M.det() == x * y
expr.free_symbols == {x, y} and f(x).func == f and d != sp.Dummy('d')
