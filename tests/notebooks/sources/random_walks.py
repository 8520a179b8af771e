# %%
import numpy as np

np.random.seed(11)
walks = np.random.choice([-1, 1], size=(200, 500)).cumsum(axis=1)
walks.shape

# %%
spread = walks.std(axis=0)
exponent = np.polyfit(np.log(np.arange(1, 501)), np.log(spread), 1)[0]
round(float(exponent), 2)

# %%
state = np.random.get_state()
first = np.random.rand(3)
np.random.set_state(state)
second = np.random.rand(3)
(first == second).all()

# %%
import matplotlib.pyplot as plt

plt.plot(walks[:20].T, lw=0.5, color="steelblue")
plt.plot(2 * np.sqrt(np.arange(500)), "k--")
plt.title("random walks")

# %%
returned = (walks == 0).any(axis=1).mean()
assert 0.4 < exponent < 0.6 and returned > 0.9
