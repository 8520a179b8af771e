# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(5)
n = 400
houses = pd.DataFrame({"area": rng.uniform(40, 200, n), "rooms": rng.integers(1, 7, n), "district": rng.choice(list("ABC"), n)})
houses["price"] = 2.1 * houses["area"] + 12 * houses["rooms"] + houses["district"].map({"A": 0, "B": 30, "C": 60}) + rng.normal(0, 15, n)

# %%
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

prepare = make_column_transformer((StandardScaler(), ["area", "rooms"]), (OneHotEncoder(), ["district"]))
model = make_pipeline(prepare, Ridge(1.0))
scores = cross_val_score(model, houses.drop(columns="price"), houses["price"], cv=5)
scores.round(3)

# %%
model.fit(houses.drop(columns="price"), houses["price"])

# %%
from sklearn.inspection import permutation_importance

importance = permutation_importance(model, houses.drop(columns="price"), houses["price"], n_repeats=3, random_state=0)
dict(zip(houses.columns, importance.importances_mean.round(2)))

# %%
one = pd.DataFrame({"area": [100.0], "rooms": [3], "district": ["B"]})
predicted = float(model.predict(one)[0])
assert abs(predicted - 276) < 15 and scores.min() > 0.9
predicted
