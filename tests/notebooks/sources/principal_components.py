# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

digits = load_digits()
digits.data.shape

# %%
pca = PCA(n_components=20, random_state=0).fit(digits.data)
explained = pca.explained_variance_ratio_.cumsum()
int((explained < 0.8).sum()) + 1

# %%
flat = pca.transform(digits.data)
back = pca.inverse_transform(flat)
error = np.mean((back - digits.data) ** 2)
round(float(error), 2)

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(2, 5, figsize=(6, 2.5))
for column in range(5):
    axes[0, column].imshow(digits.images[column], cmap="gray_r")
    axes[1, column].imshow(back[column].reshape(8, 8), cmap="gray_r")
for ax in axes.flat:
    ax.axis("off")

# %%
from sklearn.neighbors import KNeighborsClassifier

nearest = KNeighborsClassifier(3).fit(flat[:1500], digits.target[:1500])
score = nearest.score(flat[1500:], digits.target[1500:])
assert score > 0.93 and explained[-1] > 0.85
score
