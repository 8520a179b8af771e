# %% [markdown]
# # Heat in a rod
# Explicit finite differences, compared with the exact solution.

# %%
import numpy as np

length, cells, alpha = 1.0, 50, 0.01
x = np.linspace(0, length, cells + 1)
dx = x[1] - x[0]
dt = 0.4 * dx**2 / alpha
u = np.sin(np.pi * x)

# %%
def step(u):
    new = u.copy()
    new[1:-1] += alpha * dt / dx**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return new

history = [u.copy()]
for _ in range(400):
    u = step(u)
    history.append(u.copy())
len(history)

# %%
interior = u[1:-1]
interior.base is u

# %%
time = 400 * dt
exact = np.exp(-alpha * np.pi**2 * time) * np.sin(np.pi * x)
error = np.abs(u - exact).max()
print(f"largest error {error:.2e}")

# %%
import matplotlib.pyplot as plt

for n in (0, 100, 200, 400):
    plt.plot(x, history[n], label=f"t = {n * dt:.2f}")
plt.legend()
plt.title("cooling")

# %%
u[:] = 0
assert interior.max() == 0 and error < 1e-3
