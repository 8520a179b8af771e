"""Method calls on classes of the program's own."""


class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self._balance = balance
        self.history = []

    @property
    def balance(self):
        return self._balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount")
        self._balance += amount
        self.history.append(amount)

    def withdraw(self, amount):
        if amount > self._balance:
            return False
        self._balance -= amount
        self.history.append(-amount)
        return True


class Savings(Account):
    rate = 0.02

    def __init__(self, owner, balance=0):
        super().__init__(owner, balance)
        self.interest = 0

    def accrue(self):
        self.interest += self.balance * self.rate


class Bank:
    def __init__(self):
        self.accounts = {}

    def open(self, owner, kind=Account):
        self.accounts[owner] = kind(owner, 100)
        return self.accounts[owner]

    def transfer(self, giver, taker, amount):
        if self.accounts[giver].withdraw(amount):
            self.accounts[taker].deposit(amount)


bank = Bank()
owners = [f"owner {n}" for n in range(20)]
for n, owner in enumerate(owners):
    bank.open(owner, Savings if n % 2 else Account)
for n in range(12_000):
    bank.transfer(owners[n % 20], owners[n * 7 % 20], n % 13 + 1)
for account in bank.accounts.values():
    if isinstance(account, Savings):
        for _ in range(300):
            account.accrue()
result = [(account.owner, account.balance, len(account.history)) for account in bank.accounts.values()]
