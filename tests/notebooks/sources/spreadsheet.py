# %%
from openpyxl import Workbook

book = Workbook()
sheet = book.active
sheet.title = "costs"
sheet.append(["item", "cost"])
for item, cost in {"rent": 900, "food": 310.5, "train": 64}.items():
    sheet.append([item, cost])
sheet.dimensions

# %%
sheet["A5"], sheet["B5"] = "total", "=SUM(B2:B4)"
book.create_sheet("notes")["A1"] = "made by hand"
book.sheetnames

# %%
book.save("costs.xlsx")

# %%
import pandas as pd

table = pd.read_excel("costs.xlsx", sheet_name="costs", nrows=3)
table

# %%
from openpyxl import load_workbook

again = load_workbook("costs.xlsx")
assert again["costs"]["B5"].value == "=SUM(B2:B4)" and table["cost"].sum() == 1274.5
again["notes"]["A1"].value
