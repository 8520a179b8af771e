# %%
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

points, truth = make_blobs(n_samples=300, centers=4, cluster_std=0.7, random_state=3)
points.shape

# %%
inertia = {k: KMeans(k, n_init=5, random_state=0).fit(points).inertia_ for k in range(2, 8)}
{k: round(v) for k, v in inertia.items()}

# %%
chosen = KMeans(4, n_init=5, random_state=0).fit(points)
sizes = np.bincount(chosen.labels_)
sizes

# %%
import matplotlib.pyplot as plt

plt.scatter(*points.T, c=chosen.labels_, s=8)
plt.scatter(*chosen.cluster_centers_.T, marker="x", color="black")
plt.show()

# %%
from sklearn.metrics import adjusted_rand_score

score = adjusted_rand_score(truth, chosen.labels_)
assert score > 0.9 and sizes.sum() == 300
round(score, 3)
