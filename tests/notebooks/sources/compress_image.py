# %%
import numpy as np

size = 96
y, x = np.mgrid[0:size, 0:size] / size
picture = np.sin(8 * x) * np.cos(5 * y) + (np.hypot(x - 0.5, y - 0.5) < 0.25)

# %%
u, s, vt = np.linalg.svd(picture)
kept = {rank: (u[:, :rank] * s[:rank]) @ vt[:rank] for rank in (1, 5, 20)}
{rank: round(float(np.linalg.norm(picture - image) / np.linalg.norm(picture)), 3) for rank, image in kept.items()}

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 4, figsize=(10, 3))
for ax, (title, image) in zip(axes, [("all", picture), *kept.items()]):
    ax.imshow(image, cmap="gray")
    ax.set_title(title)
    ax.axis("off")

# %%
def rank_for(error):
    tail = np.sqrt(np.cumsum(s[::-1] ** 2))[::-1] / np.linalg.norm(s)
    return int(np.argmax(tail < error))

rank_for(0.05)

# %%
assert rank_for(0.01) > rank_for(0.2) and np.allclose(u @ u.T, np.eye(size))
