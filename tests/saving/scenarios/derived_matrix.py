# %%
import array, collections, copy, datetime, decimal, fractions, functools, ipaddress, pathlib, random, types, uuid
from itertools import product
BASES = {
    'list': (list, ([3, 1],), lambda one: list(list.__iter__(one))),
    'dict': (dict, ({'k': 1},), lambda one: list(dict.items(one))),
    'set': (set, ([3, 1],), lambda one: sorted(set.__iter__(one))),
    'frozenset': (frozenset, ([3, 1],), lambda one: sorted(frozenset.__iter__(one))),
    'str': (str, ('text',), str.__str__),
    'bytes': (bytes, (b'raw',), lambda one: bytes.__getitem__(one, slice(None))),
    'bytearray': (bytearray, (b'raw',), lambda one: bytes(one)),
    'int': (int, (7,), int.__int__),
    'float': (float, (1.5,), float.__float__),
    'complex': (complex, (1.5,), complex.__complex__),
    'tuple': (tuple, ([3, 1],), lambda one: tuple.__getitem__(one, slice(None))),
    'deque': (collections.deque, ([3, 1], 5), lambda one: (list(collections.deque.__iter__(one)), one.maxlen)),
    'defaultdict': (collections.defaultdict, (list, {'k': [1]}), lambda one: (one.default_factory, list(dict.items(one)))),
    'Counter': (collections.Counter, ('aab',), lambda one: list(dict.items(one))),
    'OrderedDict': (collections.OrderedDict, ([('b', 1), ('a', 2)],), lambda one: list(collections.OrderedDict.items(one))),
    'UserDict': (collections.UserDict, ({'k': 1},), lambda one: one.data),
    'UserList': (collections.UserList, ([3, 1],), lambda one: one.data),
    'UserString': (collections.UserString, ('text',), lambda one: one.data),
    'ChainMap': (collections.ChainMap, ({'k': 1}, {'b': 2}), lambda one: one.maps),
    'array': (array.array, ('d', [1.5, 2.5]), lambda one: list(array.array.__iter__(one))),
    'Exception': (Exception, ('why', 3), lambda one: one.args),
    'OSError': (OSError, (2, 'no such', 'here'), lambda one: (one.args, one.errno, one.filename)),
    'KeyError': (KeyError, ('key',), lambda one: one.args),
    'SyntaxError': (SyntaxError, ('bad', ('file', 1, 2, 'text')), lambda one: (one.msg, one.lineno)),
    'ExceptionGroup': (ExceptionGroup, ('some', [ValueError(1)]), lambda one: (one.message, repr(one.exceptions))),
    'date': (datetime.date, (2020, 1, 2), lambda one: (one.year, one.month, one.day)),
    'datetime': (datetime.datetime, (2020, 1, 2, 3), lambda one: (one.year, one.hour)),
    'timedelta': (datetime.timedelta, (1, 2), lambda one: one.total_seconds()),
    'Decimal': (decimal.Decimal, ('1.50',), decimal.Decimal.__str__),
    'Fraction': (fractions.Fraction, (1, 3), lambda one: (one.numerator, one.denominator)),
    'PurePosixPath': (pathlib.PurePosixPath, ('/a/b',), lambda one: one.parts),
    'PosixPath': (pathlib.PosixPath, ('/a/b',), lambda one: one.parts),
    'IPv4Address': (ipaddress.IPv4Address, ('10.0.0.1',), lambda one: one.packed),
    'IPv4Network': (ipaddress.IPv4Network, ('10.0.0.0/8',), lambda one: one.num_addresses),
    'Random': (random.Random, (5,), random.Random.getstate),
    'partial': (functools.partial, (max, 3), lambda one: (one.func, one.args)),
    'SimpleNamespace': (types.SimpleNamespace, (), lambda one: type(one).__mro__[1].__name__),
}
SHAPES = {
    'plain': '',
    'own __init__': '    def __init__(self, label, given): BASE.__init__(self, *given) if BASE.__init__ is not object.__init__ else None',
    'own __new__': '    def __new__(cls, label, given): return BASE.__new__(cls, *given) if BASE.__new__ is not object.__new__ else BASE.__new__(cls)\n'
                   '    def __init__(self, label, given): BASE.__init__(self, *given) if BASE.__init__ is not object.__init__ else None',
    'other content': '    def __iter__(self): return iter(())\n    def items(self): return []\n    def keys(self): return []\n'
                     '    def append(self, one): raise TypeError\n    def extend(self, some): raise TypeError\n'
                     '    def add(self, one): raise TypeError\n    def update(self, *some): raise TypeError\n'
                     '    def __setitem__(self, key, one): raise TypeError\n    def __contains__(self, one): return False\n'
                     '    def __eq__(self, other): raise TypeError\n    __hash__ = object.__hash__',
    'no attributes set': '    def __setattr__(self, name, one): raise AttributeError(name)',
    'answers all': '    def __getattr__(self, name):\n        if name.startswith(chr(95)): raise AttributeError(name)\n        return name',
}
SLOTS = ('', "    __slots__ = ('note', 'extra')", "    __slots__ = ('note', '__dict__')")
expected = {}
for (kind, (BASE, given, content)), (shape, text), slots in product(BASES.items(), SHAPES.items(), SLOTS):
    given = copy.deepcopy(given)
    space = {'BASE': BASE}
    try:
        exec(f"class Kind(BASE):\n{slots}\n{text}\n    pass", space)
        made = space['Kind']('label', given) if shape.startswith('own') else space['Kind'](*given)
        for name in ('note', 'extra'):
            object.__setattr__(made, name, [name])
        told_of = repr((content(made), made.note, made.extra))
    except Exception:  # Python itself has no such objects
        continue
    name = f"{kind}_{shape}_{SLOTS.index(slots)}".replace(' ', '_')
    globals()[name], expected[name] = made, (kind, told_of)
del made, told_of, given, space
def told():
    found = []
    for name, (kind, before) in expected.items():
        one = globals().get(name)
        now = repr((BASES[kind][2](one), one.note, one.extra)) if one is not None else None
        if now != before:
            found.append((name, now, before))
    return found
exact = collections.Counter('aab'); exact.note = 1; dice = random.Random(3); dice.note = 2
# %% check
told() == []
len(expected) > 350
exact == {'a': 2, 'b': 1} and exact.note == 1 and dice.note == 2
