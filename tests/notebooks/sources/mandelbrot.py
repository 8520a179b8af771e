# %%
import numpy as np

x = np.linspace(-2.2, 0.8, 160)
y = np.linspace(-1.2, 1.2, 120)
c = x + 1j * y[:, None]
c.shape, c.dtype

# %%
def escape_times(c, limit=40):
    z = np.zeros_like(c)
    times = np.full(c.shape, limit)
    for n in range(limit):
        z = np.where(times == limit, z * z + c, z)
        times[(np.abs(z) > 2) & (times == limit)] = n
    return times

times = escape_times(c)

# %%
import matplotlib.pyplot as plt

plt.imshow(times, extent=(x[0], x[-1], y[0], y[-1]), cmap="magma")
plt.axis("off")

# %%
inside = float((times == 40).mean() * (x[-1] - x[0]) * (y[-1] - y[0]))
assert 1.3 < inside < 1.8
round(inside, 2)
