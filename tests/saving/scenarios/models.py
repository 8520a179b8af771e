# needs: sklearn
# %%
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, FunctionTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.base import BaseEstimator, TransformerMixin
X = np.arange(20.).reshape(10, 2); y = X @ [1, 2]
class Plus(BaseEstimator, TransformerMixin):
    def __init__(self, k=1): self.k = k
    def fit(self, X, y=None): return self
    def transform(self, X): return X + self.k
model = make_pipeline(StandardScaler(), Plus(2), FunctionTransformer(lambda a: a * 2), LinearRegression()).fit(X, y)
forest = RandomForestClassifier(5, random_state=0).fit(X, y > 10)
expected = model.predict(X); trees = forest.predict(X)
# %% check
bool((model.predict(X) == expected).all()) and bool((forest.predict(X) == trees).all())
model.named_steps['plus'].k == 2 and type(model.steps[1][1]) is Plus
