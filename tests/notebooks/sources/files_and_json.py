# %%
import json
from pathlib import Path

folder = Path("stations")
folder.mkdir(exist_ok=True)
for number in range(4):
    record = {"station": f"S{number}", "readings": [number * 1.5 + hour for hour in range(6)]}
    (folder / f"{number}.json").write_text(json.dumps(record))
sorted(path.name for path in folder.iterdir())

# %%
records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
{record["station"]: max(record["readings"]) for record in records}

# %%
import csv

with open("summary.csv", "w", newline="") as out:
    writer = csv.DictWriter(out, ["station", "mean"])
    writer.writeheader()
    for record in records:
        writer.writerow({"station": record["station"], "mean": sum(record["readings"]) / 6})

# %%
print(Path("summary.csv").read_text())

# %%
(folder / "0.json").unlink()
with open("summary.csv", "a") as out:
    out.write("S9,1.0\n")

# %%
rows = list(csv.DictReader(open("summary.csv")))
assert len(rows) == 5 and not (folder / "0.json").exists() and len(records) == 4
