"""The demo's data: a few thousand sales as shops really write them down. The same bytes every time."""

from __future__ import annotations

import random

ROWS = 4000
_PRODUCTS = (("espresso", 2.6), ("filter coffee", 3.1), ("tea", 2.4), ("croissant", 2.2), ("sandwich", 6.5))
_SHOPS = ("Harbour", "Old Town", "Station", "University")
_SEED = 20240131


def sales_csv(rows: int = ROWS) -> bytes:
    """A CSV of `rows` sales of 2024, some twice.

    Dates in two notations, amounts with units, commas or nothing, names in any case and with stray spaces.
    """
    generator = random.Random(_SEED)  # noqa: S311  (made-up data, not a secret)
    lines = ["date,shop,product,quantity,price"]
    for _ in range(rows):
        lines.append(_line(generator))
        if generator.random() < 0.01:
            lines.append(lines[-1])
    return ("\n".join(lines) + "\n").encode()


def _line(generator: random.Random) -> str:
    month = generator.choices(range(1, 13), weights=(6, 6, 7, 8, 9, 11, 12, 12, 9, 8, 8, 14))[0]
    day = generator.randint(1, 28)
    date = f"2024-{month:02}-{day:02}" if generator.random() < 0.8 else f"{day:02}.{month:02}.2024"
    shop = generator.choices(_SHOPS, weights=(5, 4, 7, 3))[0]
    product, price = generator.choice(_PRODUCTS)
    return ",".join((date, _scrawled(shop, generator), _scrawled(product, generator), *_amount(price, generator)))


def _amount(price: float, generator: random.Random) -> tuple[str, str]:
    quantity = str(generator.randint(1, 6)) if generator.random() > 0.01 else ""
    shown = f"{price * generator.uniform(0.95, 1.1):.2f}"
    notation = generator.random()
    if notation < 0.03:
        return quantity, generator.choice(("", "n/a", "?"))
    if notation < 0.15:
        return quantity, f'"{shown.replace(".", ",")} EUR"'
    return quantity, f"{shown} EUR" if notation < 0.3 else shown


def _scrawled(name: str, generator: random.Random) -> str:
    chance = generator.random()
    if chance < 0.08:
        return name.upper()
    return f" {name.lower()} " if chance < 0.16 else name
