# %%
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier, export_text

wine = load_wine()
train_x, test_x, train_y, test_y = train_test_split(wine.data, wine.target, random_state=1)

# %%
search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 3, 4]}, cv=3).fit(train_x, train_y)
search.best_params_

# %%
print(export_text(search.best_estimator_, feature_names=list(wine.feature_names), max_depth=2))

# %%
forest = RandomForestClassifier(30, random_state=0).fit(train_x, train_y)
ranked = sorted(zip(forest.feature_importances_.round(3), wine.feature_names), reverse=True)
ranked[:3]

# %%
scores = {type(model).__name__: model.score(test_x, test_y) for model in (search.best_estimator_, forest)}
assert scores["RandomForestClassifier"] > 0.9
scores
