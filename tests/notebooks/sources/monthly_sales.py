# %% [markdown]
# # Sales by month
# Made-up orders, summed by month and region.

# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
days = pd.date_range("2024-01-01", "2024-12-31", freq="D")
orders = pd.DataFrame(
    {
        "day": rng.choice(days, 2000),
        "region": rng.choice(["north", "south", "east"], 2000),
        "amount": rng.gamma(3.0, 40.0, 2000).round(2),
    }
).sort_values("day", ignore_index=True)
orders.head()

# %%
orders.describe()

# %%
by_month = orders.groupby([orders["day"].dt.to_period("M"), "region"])["amount"].sum().unstack()
by_month.round(0)

# %%
def share(frame):
    return frame.div(frame.sum(axis=1), axis=0)

share(by_month).round(3).tail(3)

# %%
import matplotlib.pyplot as plt

ax = by_month.plot(kind="bar", stacked=True, figsize=(8, 3), title="Sales by month")
ax.set_ylabel("amount")

# %%
best = by_month.sum(axis=1).idxmax()
print("best month:", best, round(by_month.loc[best].sum(), 2))
assert len(by_month) == 12
