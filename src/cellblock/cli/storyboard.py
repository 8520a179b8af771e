"""The demo's cells, as a model would write them, with the end that each is to have; and the file that they read.

Where a cell has a plain variant, the other one needs pandas and matplotlib.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

End = Literal["completed", "raised", "timeout", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One cell.

    `plain` is its variant with the standard library alone, "" for the same; `attempts`, how often it tries to reach
    the host.
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
        caption="clean names and amounts",
        source="""\
from datetime import datetime

def cleaned(row):
    price = float(row["price"].removesuffix(" EUR"))
    date = datetime.fromisoformat(row["date"])
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
from collections import Counter

by_shop = Counter()
for row in sales:
    by_shop[row["shopp"]] += row["revenue"]
""",
    ),
    Step(
        caption="read the error, group again",
        source="""\
import pandas as pd

by_shop = pd.DataFrame(sales).groupby("shop")["revenue"].agg(["sum", "mean", "count"]).round(2)
print("most sold at", by_shop["sum"].idxmax())
by_shop.sort_values("sum", ascending=False)
""",
        plain="""\
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

monthly = Counter()
for row in sales:
    monthly[row["date"].month] += row["revenue"]
figure, axes = plt.subplots(figsize=(9, 4.5))
axes.bar(list(monthly), list(monthly.values()), width=0.8)
axes.set(title="Revenue by month, 2024", xlabel="month", ylabel="EUR", xticks=sorted(monthly));
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
best = max(monthly, key=monthly.get)
print(f"{len(sales)} clean rows are still here, and so are {rounds:,} rounds of the loop")
print(f"best month: {datetime(2024, best, 1):%B}, {monthly[best]:,.0f} EUR")
""",
    ),
)

_PRICES = {"espresso": 2.6, "filter coffee": 3.1, "tea": 2.4, "croissant": 2.2, "sandwich": 6.5}
_SHOPS = ("Harbour", "Harbour", "Old Town", "Station", "Station", "Station", "University")
_MONTHS = (1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10, 11, 12, 12)
"""Each as often as it is to be drawn."""
_SEED = 20240131


def sales_csv(rows: int = 4000) -> bytes:
    """A CSV of `rows` sales of 2024: some twice, amounts missing or with units, names in any case and with spaces."""
    generator = random.Random(_SEED)  # noqa: S311  (made-up data, not a secret)
    lines = ["date,shop,product,quantity,price"]
    for _ in range(rows):
        date = f"2024-{generator.choice(_MONTHS):02}-{generator.randint(1, 28):02}"
        shop, product = generator.choice(_SHOPS), generator.choice(list(_PRICES))
        shop = generator.choice((shop, shop, shop, shop.upper(), f" {shop.lower()} "))
        quantity = "" if generator.random() < 0.01 else str(generator.randint(1, 6))
        price = f"{_PRICES[product] * generator.uniform(0.95, 1.1):.2f}{generator.choice(('', '', ' EUR'))}"
        lines += [f"{date},{shop},{product},{quantity},{price}"] * (2 if generator.random() < 0.01 else 1)
    return ("\n".join(lines) + "\n").encode()
