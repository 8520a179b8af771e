# %%
import numpy as np
from scipy import optimize

rng = np.random.default_rng(0)
t = np.linspace(0, 10, 80)
truth = (2.5, 1.3, 0.5)

# %%
def decay(t, amplitude, rate, offset):
    return amplitude * np.exp(-rate * t) + offset

measured = decay(t, *truth) + rng.normal(0, 0.05, t.size)
measured[:5].round(3)

# %%
best, covariance = optimize.curve_fit(decay, t, measured, p0=(1, 1, 0))
best.round(2)

# %%
errors = np.sqrt(np.diag(covariance))
for name, value, error in zip(("amplitude", "rate", "offset"), best, errors):
    print(f"{name:10} {value:6.3f} ± {error:.3f}")

# %%
def loss(parameters):
    return np.sum((decay(t, *parameters) - measured) ** 2)

found = optimize.minimize(loss, x0=(1, 1, 0), method="Nelder-Mead")
found.success

# %%
import matplotlib.pyplot as plt

fig, (top, bottom) = plt.subplots(2, 1, sharex=True)
top.plot(t, measured, ".", t, decay(t, *best))
bottom.stem(t, measured - decay(t, *best))
fig

# %%
assert np.allclose(found.x, best, atol=0.02)
