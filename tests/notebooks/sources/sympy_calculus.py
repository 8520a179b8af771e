# %%
import sympy as sp

x, y, a = sp.symbols("x y a", real=True)
f = sp.sin(x) * sp.exp(-a * x)
f

# %%
df = sp.diff(f, x)
sp.simplify(df)

# %%
area = sp.integrate(f.subs(a, 1), (x, 0, sp.oo))
area

# %%
roots = sp.solve(x**3 - 6 * x**2 + 11 * x - 6, x)
roots

# %%
series = sp.series(sp.log(1 + x), x, 0, 6).removeO()
series

# %%
matrix = sp.Matrix([[2, 1], [1, 2]])
values = matrix.eigenvals()
values

# %%
numeric = sp.lambdify((x, a), f, "math")
print(round(numeric(1.0, 0.5), 6))

# %%
assert area == sp.Rational(1, 2) and sorted(roots) == [1, 2, 3] and f.has(a) and x == sp.Symbol("x", real=True)
