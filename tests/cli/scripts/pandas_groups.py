import pandas as pd

frame = pd.DataFrame({"shop": ["a", "b", "a"], "sold": [1, 2, 3]})
frame.to_csv("sold.csv", index=False)
print(pd.read_csv("sold.csv").groupby("shop")["sold"].sum().to_dict())
