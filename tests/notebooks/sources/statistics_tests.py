# %%
import numpy as np
from scipy import stats

rng = np.random.default_rng(8)
control = rng.normal(10, 2, 60)
treated = rng.normal(11.5, 2, 60)

# %%
test = stats.ttest_ind(control, treated)
print(f"t = {test.statistic:.2f}, p = {test.pvalue:.4f}")

# %%
normal = stats.norm(*stats.norm.fit(control))
normal.ppf([0.05, 0.5, 0.95]).round(2)

# %%
import pandas as pd

frame = pd.DataFrame({"control": control, "treated": treated})
frame.agg(["mean", "std", "median"]).round(2)

# %%
ax = frame.plot.hist(alpha=0.5, bins=15)
ax.axvline(control.mean(), ls="--")
ax.figure

# %%
ranks = stats.spearmanr(np.sort(control), np.sort(treated)).statistic
assert test.pvalue < 0.05 and ranks > 0.99
