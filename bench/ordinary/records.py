"""Dataclasses, enums and named tuples."""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple


class Status(Enum):
    OPEN = "open"
    PAID = "paid"
    LATE = "late"


class Price(NamedTuple):
    amount: float
    currency: str


@dataclass(frozen=True)
class Item:
    name: str
    price: Price
    count: int = 1

    @property
    def total(self):
        return self.price.amount * self.count


@dataclass(order=True)
class Invoice:
    number: int
    items: list = field(default_factory=list, compare=False)
    status: Status = field(default=Status.OPEN, compare=False)

    def add(self, item):
        self.items.append(item)

    def total(self):
        return sum(item.total for item in self.items)


invoices = []
for n in range(1200):
    invoice = Invoice(n * 7919 % 1200)
    for k in range(4):
        invoice.add(Item(f"item {k}", Price(1.5 * k + n % 10, "EUR"), k + 1))
    invoice.status = Status.PAID if n % 3 else Status.LATE
    invoices.append(invoice)
invoices.sort()
late = [replace(invoice, status=Status.OPEN) for invoice in invoices if invoice.status is Status.LATE]
totals = {}
for invoice in invoices:
    totals[invoice.status.value] = totals.get(invoice.status.value, 0.0) + invoice.total()
result = [i.number for i in invoices[:3]], len(late), sorted(totals.items()), invoices[5] == replace(invoices[5])
