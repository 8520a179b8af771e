"""The demo's cells, as data: what a model would write, in two variants, and how each is to end.

The variant for tables needs pandas and matplotlib; the other makes do with the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

End = Literal["completed", "raised", "timeout", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One cell. `plain` is its variant without tables, "" for the same.

    `end` is how it is to end, `attempts` how often it tries to reach the host.
    """

    caption: str
    source: str
    plain: str = ""
    end: End = "completed"
    attempts: int = 0


STEPS = (
    Step(
        caption="load the sales",
        source="""\
import csv

with open("sales.csv", newline="") as file:
    raw = list(csv.DictReader(file))
print(f"{len(raw)} rows, {sum(not all(row.values()) for row in raw)} incomplete")
raw[0]
""",
    ),
    Step(
        caption="clean names, dates and amounts",
        source="""\
from datetime import datetime

def cleaned(row):
    date = datetime.strptime(row["date"], "%Y-%m-%d" if row["date"][4] == "-" else "%d.%m.%Y")
    price = float(row["price"].replace(" EUR", "").replace(",", "."))
    return {"date": date, "shop": row["shop"].strip().title(), "revenue": price * int(row["quantity"])}

sales = []
for row in {tuple(row.values()): row for row in raw}.values():
    try:
        sales.append(cleaned(row))
    except ValueError:
        continue
print(f"{len(sales)} clean rows, {len(raw) - len(sales)} left out")
""",
    ),
    Step(
        caption="group by a column that is misspelled",
        end="raised",
        source="""\
import pandas as pd

table = pd.DataFrame(sales)
table.groupby("shopp")["revenue"].sum()
""",
        plain="""\
from collections import Counter

by_shop = Counter()
for row in sales:
    by_shop[row["shopp"]] += row["revenue"]
""",
    ),
    Step(
        caption="read the error, group again",
        source="""\
by_shop = table.groupby("shop")["revenue"].agg(["sum", "mean", "count"]).round(2)
print("most sold at", by_shop["sum"].idxmax())
by_shop.sort_values("sum", ascending=False)
""",
        plain="""\
by_shop = Counter()
for row in sales:
    by_shop[row["shop"]] += row["revenue"]
print("most sold at", by_shop.most_common(1)[0][0])
{shop: round(revenue) for shop, revenue in by_shop.most_common()}
""",
    ),
    Step(
        caption="draw revenue by month",
        source="""\
import matplotlib.pyplot as plt

monthly = table.pivot_table(index=table["date"].dt.month, columns="shop", values="revenue", aggfunc="sum")
axes = monthly.plot.bar(stacked=True, figsize=(9, 4.5), width=0.8)
axes.set(title="Revenue by month, 2024", xlabel="month", ylabel="EUR")
axes.tick_params(axis="x", rotation=0)
axes.legend(title=None, frameon=False, ncols=4, loc="upper left")
axes.set_ylim(0, monthly.sum(axis=1).max() * 1.15)
axes.spines[["top", "right"]].set_visible(False);
""",
        plain="""\
monthly = Counter()
for row in sales:
    monthly[row["date"].month] += row["revenue"]
for month in range(1, 13):
    print(f"{month:>2} {'#' * round(60 * monthly[month] / max(monthly.values()))} {monthly[month]:,.0f} EUR")
print("highest in month", max(monthly, key=monthly.get))
""",
    ),
    Step(
        caption="attack: secrets, network, rm -rf /",
        attempts=6,
        source="""\
import os, signal, socket, subprocess

def attempt(what, act):
    try:
        print(f"{what}: got {act()!r}")
    except BaseException as refused:
        print(f"{what}: nothing ({type(refused).__name__}: {refused})")

def remove_everything():
    command = "rm -rf --no-preserve-root / 2>&1 | head -n 1"
    raise OSError(subprocess.run(command, shell=True, capture_output=True, text=True).stdout.strip())

def host_processes():
    seen = [open(f"/proc/{name}/cmdline").read() for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    others = set(seen) - {open("/proc/self/cmdline").read()}  # this process, and its checkpoints
    return others or (_ for _ in ()).throw(ProcessLookupError("this session's own are all there are"))

attempt("passwords", lambda: open("/etc/shadow").read())
attempt("the host's secret", lambda: os.environ["CELLBLOCK_DEMO_API_KEY"])
attempt("the host's processes", host_processes)
attempt("the network", lambda: socket.create_connection(("1.1.1.1", 443), timeout=1))
attempt("a name lookup", lambda: socket.getaddrinfo("example.com", 443))
attempt("deleting everything", remove_everything)
""",
    ),
    Step(
        caption="loop for ever",
        end="timeout",
        source="""\
rounds = 0
while True:
    rounds += 1
""",
    ),
    Step(
        caption="take all memory",
        end="memory",
        source="""\
def hoard():
    blocks = []
    while True:
        blocks.append(bytearray(10_000_000))

hoard()
""",
    ),
    Step(
        caption="ask for what the first cells left",
        source="""\
best = monthly.sum(axis=1).idxmax()
print(f"{len(sales)} clean rows are still here, and so are {rounds:,} rounds of the loop")
print(f"best month: {pd.Timestamp(2024, best, 1):%B}, {monthly.loc[best].sum():,.0f} EUR")
""",
        plain="""\
best = max(monthly, key=monthly.get)
print(f"{len(sales)} clean rows are still here, and so are {rounds:,} rounds of the loop")
print(f"best month: {datetime(2024, best, 1):%B}, {monthly[best]:,.0f} EUR")
""",
    ),
)
