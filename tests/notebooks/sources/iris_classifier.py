# %% [markdown]
# # Which iris is it?

# %%
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

data = load_iris(as_frame=True)
features, target = data.data, data.target
features.shape, list(data.target_names)

# %%
train_x, test_x, train_y, test_y = train_test_split(features, target, test_size=0.3, random_state=0, stratify=target)

# %%
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

model = make_pipeline(StandardScaler(), SVC(C=2.0, gamma="scale"))
model.fit(train_x, train_y)

# %%
accuracy = model.score(test_x, test_y)
print(f"accuracy {accuracy:.3f}")

# %%
from sklearn.metrics import confusion_matrix

table = confusion_matrix(test_y, model.predict(test_x))
table

# %%
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(3, 3))
ax.imshow(table, cmap="Blues")
for (row, column), count in __import__("numpy").ndenumerate(table):
    ax.text(column, row, count, ha="center")

# %%
assert accuracy > 0.9
