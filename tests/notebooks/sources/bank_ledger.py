# %% [markdown]
# # A ledger, with classes that refer to each other

# %%
from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

class Kind(Enum):
    DEPOSIT = "deposit"
    WITHDRAWAL = "withdrawal"

@dataclass
class Entry:
    account: Account
    kind: Kind
    amount: Decimal

@dataclass
class Account:
    owner: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def balance(self) -> Decimal:
        signs = {Kind.DEPOSIT: 1, Kind.WITHDRAWAL: -1}
        return sum((signs[entry.kind] * entry.amount for entry in self.entries), Decimal(0))

# %%
class Overdrawn(Exception):
    pass

ledger: list[Entry] = []

def post(account, kind, amount):
    amount = Decimal(amount)
    if kind is Kind.WITHDRAWAL and amount > account.balance:
        raise Overdrawn(f"{account.owner} has {account.balance}")
    entry = Entry(account, kind, amount)
    account.entries.append(entry)
    ledger.append(entry)
    return entry

# %%
ana, ben = Account("Ana"), Account("Ben")
post(ana, Kind.DEPOSIT, "100.00")
post(ben, Kind.DEPOSIT, "20")
post(ana, Kind.WITHDRAWAL, "35.50")
ana.balance, ben.balance

# %%
try:
    post(ben, Kind.WITHDRAWAL, 21)
except Overdrawn as error:
    print("refused:", error)

# %%
ledger[0].account is ana, ledger[0].kind is Kind.DEPOSIT

# %%
post(ledger[0].account, Kind.DEPOSIT, 1)
assert ana.balance == Decimal("65.50") and len(ledger) == 4
ana.balance
