#: bank
class InsufficientFunds(Exception):
    def __init__(self, need, have):
        super().__init__(f"need {need}, have {have}")
        self.need, self.have = need, have
class Account:
    _next = 1
    def __init__(self, owner, balance=0):
        self.owner, self._balance, self._log = owner, balance, []
        self.number = Account._next
        Account._next += 1
    @property
    def balance(self): return self._balance
    def withdraw(self, n):
        if n > self._balance: raise InsufficientFunds(n, self._balance)
        self._balance -= n
        self._log.append(("w", n))
    def transfer(self, other, n):
        self.withdraw(n)
        other._balance += n
a, b = Account("ann", 100), Account("bob")
a.transfer(b, 30)
try:
    a.withdraw(500)
except InsufficientFunds as e:
    print(e, e.need - e.have)
print(a.balance, b.balance, a._log, b.number)
#: inventory
#: needs: dataclasses
from dataclasses import dataclass, field
@dataclass
class Item:
    sku: str
    qty: int = 0
    price: float = 0.0
@dataclass
class Inventory:
    _items: dict = field(default_factory=dict)
    def add(self, sku, qty, price):
        item = self._items.setdefault(sku, Item(sku, price=price))
        item.qty += qty
        item.price = price
        return self
    def __getitem__(self, sku): return self._items[sku]
    def __iter__(self): return iter(self._items.values())
    @property
    def value(self): return sum(i.qty * i.price for i in self)
inv = Inventory().add("a", 2, 1.5).add("b", 1, 10).add("a", 3, 2)
print(inv.value, inv["a"], [i.sku for i in inv if i.qty > 1])
#: event-system
class Emitter:
    def __init__(self): self.__handlers = {}
    def on(self, name, f=None):
        if f is None: return lambda g: self.on(name, g)
        self.__handlers.setdefault(name, []).append(f)
        return f
    def emit(self, name, *a, **k): return [h(*a, **k) for h in self.__handlers.get(name, ())]
e = Emitter()
@e.on("greet")
def hello(n, loud=False): return f"hello {n}{'!' if loud else ''}"
e.on("greet", lambda n, **k: n[::-1])
print(e.emit("greet", "ann", loud=True), e.emit("none"))
#: state-machine
class Door:
    _table = {("closed", "open"): "opened", ("opened", "close"): "closed", ("closed", "lock"): "locked", ("locked", "unlock"): "closed"}
    def __init__(self): self._state, self.history = "closed", []
    def __getattr__(self, name):
        if name in {a for _, a in self._table}:
            return lambda: self._go(name)
        raise AttributeError(name)
    def _go(self, action):
        try:
            self._state = self._table[self._state, action]
        except KeyError:
            raise ValueError(f"cannot {action} when {self._state}") from None
        self.history.append(self._state)
        return self
d = Door()
d.open().close().lock()
try:
    d.open()
except ValueError as e:
    print(e)
print(d.history)
#: observer-and-command-undo
class Doc:
    def __init__(self): self._text, self._undo = "", []
    def do(self, cmd, *a):
        self._undo.append(self._text)
        self._text = getattr(self, "_" + cmd)(*a)
        return self
    def _insert(self, s): return self._text + s
    def _upper(self): return self._text.upper()
    def undo(self): self._text = self._undo.pop(); return self
    def __str__(self): return self._text
d = Doc().do("insert", "ab").do("upper").do("insert", "c")
print(d, d.undo(), d.undo())
#: money-value-type
#: needs: functools, decimal
from functools import total_ordering
from decimal import Decimal
@total_ordering
class Money:
    __slots__ = ("_amount", "_cur")
    def __init__(self, amount, cur="EUR"):
        object.__setattr__(self, "_amount", Decimal(str(amount)))
        object.__setattr__(self, "_cur", cur)
    def __setattr__(self, *a): raise AttributeError("immutable")
    def __add__(self, o):
        if not isinstance(o, Money): return NotImplemented
        if o._cur != self._cur: raise ValueError("currencies differ")
        return Money(self._amount + o._amount, self._cur)
    def __radd__(self, o): return self if o == 0 else NotImplemented
    def __eq__(self, o): return (self._amount, self._cur) == (o._amount, o._cur)
    def __lt__(self, o): return self._amount < o._amount
    def __hash__(self): return hash((self._amount, self._cur))
    def __repr__(self): return f"{self._amount} {self._cur}"
print(sum([Money(1.1), Money(2.2)]), max(Money(1), Money(3)), Money(1) in {Money(1)})
try:
    Money(1)._amount = 5
except AttributeError as e:
    print(e)
#: polynomial
class Poly:
    def __init__(self, *c): self.c = list(c)
    def __call__(self, x):
        r = 0
        for k in reversed(self.c): r = r * x + k
        return r
    def __add__(self, o): return Poly(*[a + b for a, b in zip(self.c + [0] * len(o.c), o.c + [0] * len(self.c))][:max(len(self.c), len(o.c))])
    def __mul__(self, o):
        out = [0] * (len(self.c) + len(o.c) - 1)
        for i, a in enumerate(self.c):
            for j, b in enumerate(o.c): out[i + j] += a * b
        return Poly(*out)
    def derivative(self): return Poly(*[i * k for i, k in enumerate(self.c)][1:])
    def __str__(self): return " + ".join(f"{k}x^{i}" if i else str(k) for i, k in enumerate(self.c) if k)
p = Poly(1, 2, 3)
print(p(2), p + Poly(1), p * Poly(0, 1), p.derivative())
#: matrix-class
class Matrix:
    def __init__(self, rows): self._r = [list(r) for r in rows]
    @classmethod
    def identity(cls, n): return cls([[int(i == j) for j in range(n)] for i in range(n)])
    @property
    def T(self): return Matrix(zip(*self._r))
    def __matmul__(self, o): return Matrix([[sum(a * b for a, b in zip(r, c)) for c in zip(*o._r)] for r in self._r])
    def __pow__(self, n):
        out, b = Matrix.identity(len(self._r)), self
        while n:
            if n & 1: out = out @ b
            b, n = b @ b, n >> 1
        return out
    def __getitem__(self, ij): return self._r[ij[0]][ij[1]]
    def __setitem__(self, ij, v): self._r[ij[0]][ij[1]] = v
    def __eq__(self, o): return self._r == o._r
    def __repr__(self): return f"Matrix({self._r})"
m = Matrix([[1, 1], [1, 0]])
print(m ** 30, m.T == m, m[0, 1])
m[1, 1] = 5
print(m)
#: dependency-injection-and-registry
class Container:
    def __init__(self): self._f, self._made = {}, {}
    def register(self, name):
        def deco(cls):
            self._f[name] = cls
            return cls
        return deco
    def get(self, name):
        if name not in self._made:
            cls = self._f[name]
            self._made[name] = cls(**{k: self.get(k) for k in getattr(cls, "needs", ())})
        return self._made[name]
c = Container()
@c.register("db")
class Db:
    def query(self): return [1, 2]
@c.register("svc")
class Svc:
    needs = ("db",)
    def __init__(self, db): self._db = db
    def total(self): return sum(self._db.query())
print(c.get("svc").total(), c.get("db") is c.get("db"))
#: fluent-query
class Query:
    def __init__(self, rows, steps=()): self._rows, self._steps = rows, steps
    def where(self, **kw): return Query(self._rows, (*self._steps, lambda rs: (r for r in rs if all(r.get(k) == v for k, v in kw.items()))))
    def select(self, *ks): return Query(self._rows, (*self._steps, lambda rs: ({k: r[k] for k in ks} for r in rs)))
    def order(self, k, desc=False): return Query(self._rows, (*self._steps, lambda rs: sorted(rs, key=lambda r: r[k], reverse=desc)))
    def __iter__(self):
        rs = iter(self._rows)
        for s in self._steps: rs = s(rs)
        return iter(rs)
rows = [{"n": "a", "d": 1, "p": 3}, {"n": "b", "d": 2, "p": 1}, {"n": "c", "d": 1, "p": 9}]
print(list(Query(rows).where(d=1).order("p", desc=True).select("n", "p")))
#: library-with-protocols-and-abc
#: needs: abc
from abc import ABC, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...
    def __lt__(self, o): return self.area() < o.area()
    def __str__(self): return f"{type(self).__name__}({self.area():.2f})"
class Sq(Shape):
    def __init__(self, s): self._s = s
    def area(self): return self._s ** 2
class Ci(Shape):
    def __init__(self, r): self._r = r
    def area(self): return 3.14159 * self._r ** 2
print(*sorted([Sq(2), Ci(1), Sq(1.5)]))
#: simulation-queue
#: needs: random, heapq
import random, heapq
class Sim:
    def __init__(self, seed): self._rng, self._q, self.now, self.served = random.Random(seed), [], 0.0, 0
    def at(self, dt, f): heapq.heappush(self._q, (self.now + dt, len(self._q), f))
    def run(self, until):
        while self._q and self._q[0][0] <= until:
            self.now, _, f = heapq.heappop(self._q)
            f()
    def arrive(self):
        self.at(self._rng.expovariate(1.0), self.arrive)
        self.at(self._rng.uniform(0.1, 0.5), self.leave)
    def leave(self): self.served += 1
s = Sim(3); s.at(0, s.arrive); s.run(20)
print(s.served, round(s.now, 4))
#: borg-shares-its-state
class Borg:
    _shared = {}

    def __init__(self, state=None):
        self.__dict__ = self._shared
        if state:
            self.state = state

    def __str__(self):
        return self.state

one, two = Borg("on"), Borg()
print(one, two)
two.state = "off"
print(one, one is two, one.__dict__ == two.__dict__, Borg._shared)
one.more = [1]
print(two.more, sorted(vars(two)))
#: dict-of-another-object
class A:
    def __init__(self, **named):
        self.__dict__.update(named)

a, b = A(x=1), A(y=2)
b.__dict__ = a.__dict__
b.z = 3
print(a.z, b.x, hasattr(b, "y"))
a.__dict__ = dict(b.__dict__, w=4)
print(a.w, hasattr(b, "w"))
try:
    a.__dict__ = [1]
except TypeError as error:
    print(error)
