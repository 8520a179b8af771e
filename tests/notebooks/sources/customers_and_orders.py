# %%
import pandas as pd

customers = pd.DataFrame({"id": [1, 2, 3, 4], "name": ["Ana", "Ben", "Cleo", "Dan"], "city": ["Rome", "Oslo", "Rome", None]})
orders = pd.DataFrame({"customer": [1, 1, 2, 5, 3], "total": [10.0, 12.5, 7.0, 3.0, 20.0]})

# %%
merged = orders.merge(customers, left_on="customer", right_on="id", how="left", indicator=True)
merged

# %%
unmatched = merged[merged["_merge"] == "left_only"]
list(unmatched["customer"])

# %%
per_city = merged.dropna(subset=["city"]).groupby("city")["total"].sum()
per_city

# %%
customers["city"] = customers["city"].fillna("unknown").astype("category")
customers.dtypes

# %%
pivot = merged.pivot_table(index="city", values="total", aggfunc=["sum", "count"])
pivot.columns = ["_".join(column) for column in pivot.columns]
pivot

# %%
assert per_city["Rome"] == 42.5 and list(customers["city"].cat.categories) == ["Oslo", "Rome", "unknown"]
