# %%
import pathlib, importlib, sys
pathlib.Path('bank.py').write_text('''
"""A bank."""
import abc, collections, dataclasses, enum, functools, itertools, threading
class Account:
    count = 0
    registry = {}
    _ids = itertools.count(1) if __import__('sys').version_info < (3, 14) else iter(range(1, 99))
    _lock = threading.Lock()
    def __init__(self, who):
        Account.count += 1
        self.id = next(Account._ids)
        self.who = who
        Account.registry[who] = self
    @classmethod
    def get(cls, who): return cls.registry[who]
class Singleton:
    _inst = None
    def __new__(cls):
        if cls._inst is None: cls._inst = super().__new__(cls); cls._inst.log = []
        return cls._inst
def make():
    n = 0
    def inc():
        nonlocal n; n += 1; return n
    return inc
inc = make()
def memo(x, cache={}):
    cache[x] = cache.get(x, 0) + 1
    return cache[x]
def stat(): stat.n = getattr(stat, "n", 0) + 1; return stat.n
def counted(f):
    calls = []
    @functools.wraps(f)
    def wrapper(*a):
        calls.append(a)
        return len(calls), f(*a)
    return wrapper
class Plug:
    subs = []
    def __init_subclass__(cls): Plug.subs.append(cls)
class Local(Plug):
    @counted
    def run(self): return 'ran'
    @property
    def rate(self): return RATE
RATE = 1
class Kind(enum.Enum):
    A = 1
    B = 2
    @classmethod
    def note(cls, n): cls.noted = n
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
@dataclasses.dataclass(frozen=True)
class Key:
    n: int
    def __hash__(self): return hash(salted(self.n))
def salted(n): return n + RATE
table = {Key(1): 'one'}
@functools.singledispatch
def show(x): return 'any'
@show.register
def _(x: int): return 'int'
Pair = collections.namedtuple('Pair', 'a b')
def plain(): return 'plain'
def wrap():
    global plain
    old = plain
    def plain(): return 'wrapped ' + old()
hook = None
def set_hook(f):
    global hook
    hook = f
def model(name, **held):
    globals()[name] = type(name, (), held)
    return globals()[name]
class Dev: name = 'dev'
class Prod: name = 'prod'
active = Dev
def use(one):
    global active
    active = one
__private = {}
token = 'set'
def put(k, v): __private[k] = v
def logout():
    global token
    del token
def logged_out(): return 'token' not in globals()
''')
pathlib.Path('shapes.py').write_text('import bank\nfrom bank import Shape, Plug\nclass Square(Shape, Plug):\n    def area(self): return 4 * bank.RATE\n@bank.show.register(Square)\ndef _(x): return "square"\n')
import bank, shapes
from bank import Account, Key, Kind, memo, table
ana = Account('ana'); bank.Singleton().log.append('x'); bank.inc(); memo(1); bank.stat()
class P1(bank.Plug): pass
class Round(bank.Shape):
    def area(self): return 3
bank.Shape.register(list)
square = shapes.Square(); local = bank.Local(); local.run()
bank.RATE = 2
kind = Kind.B; Kind.note(5)
@bank.show.register
def _(x: str): return 'str'
bank.wrap(); bank.set_hook(lambda: 'mine'); User = bank.model('User', x=3); user = User(); bank.use(bank.Prod)
bank.put('a', 1); bank.logout()
bank.memo.__kwdefaults__ = None; bank.use.__defaults__ = (bank.Dev,)
pair = bank.Pair(1, [2]); keyed = {bank.Key(4): ana}
def hello(self): return 'hi ' + self.who
Account.hello = hello
# %% check
Account is bank.Account and type(ana) is Account and Account.count == 1 and Account.registry == {'ana': ana} and Account.get('ana') is ana
bank.Singleton().log == ['x'] and bank.Singleton() is bank.Singleton._inst
bank.inc.__closure__[0].cell_contents == 1 and memo is bank.memo and memo.__defaults__ == ({1: 1},) and bank.stat.n == 1
bank.Plug.subs == [bank.Local, shapes.Square, P1] and len(bank.Local.run.__wrapped__.__qualname__) > 3
kind is Kind.B is bank.Kind.B and Kind.noted == 5 and bank.Kind(1) is Kind.A
isinstance(square, bank.Shape) and isinstance([], bank.Shape) and isinstance(Round(), bank.Shape) and square.area() == 8
bank.show(1) == 'int' and bank.show('') == 'str' and bank.show(square) == 'square' and bank.show(1.0) == 'any'
bank.plain() == 'wrapped plain' and bank.hook() == 'mine' and bank.User is User and type(user) is User and user.x == 3
bank.active is bank.Prod and bank.use.__defaults__[0] is bank.Dev
bank.__dict__['__private'] == {'a': 1} and bank.logged_out()
keyed[Key(4)] is ana and Key is bank.Key and local.rate == 2
type(pair) is bank.Pair and ana.hello() == 'hi ana' and Account.hello is hello
bank.__doc__ == 'A bank.' and bank.__spec__.origin == bank.__file__ and '__getattr__' not in vars(bank)
list(vars(bank)).index('Account') < list(vars(bank)).index('make') < list(vars(bank)).index('use')
sorted(one.__name__ for one in bank.Plug.__subclasses__()) == ['Local', 'P1', 'Square']
__import__('pickle').loads(__import__('pickle').dumps(pair)) == pair
# %% then
first = local.run(); Account('bob'); bank.inc()
# %% check
first == (2, 'ran') and Account.count == 2 and sorted(Account.registry) == ['ana', 'bob'] and Account.registry['bob'].id == 2 and bank.inc() == 3
__import__('importlib').reload(bank).Account.count == 0 and bank.plain() == 'plain'
