# lost: worker | a thread | where it is used
# %%
import threading, datetime as dt, collections, pathlib, logging, json
class D(dict):
    def __init__(self, *a, **k): super().__init__(*a, **k); self.note = 'n'
    def __setitem__(self, k, v): super().__setitem__(k, ('set', v))
class T(tuple):
    def __new__(cls, *a): return super().__new__(cls, a)
    def first(self): return self[0]
class S(str):
    def shout(self): return self.upper() + self.mark
class I(int): pass
class F(float):
    unit = 'm'
class B(bytes): pass
class BA(bytearray): pass
class DT(dt.datetime):
    def nice(self): return 'nice'
class DD(collections.defaultdict): pass
class P(pathlib.PurePosixPath): pass
class E(KeyError):
    def __init__(self, key, extra): super().__init__(key); self.extra = extra
class W(threading.Thread): pass
class Enc(json.JSONEncoder):
    def default(self, o): return repr(o)
class C(complex): pass
d = D(a=1); d['b'] = 2; t = T(1, 2); s = S('x'); s.mark = '!'; i = I(5); i.tag = [1]; f = F(1.5); b = B(b'q'); ba = BA(b'zz')
when = DT(2020, 1, 2); dd = DD(list); dd['k'].append(1); p = P('/a/b'); e = E('k', 'x'); worker = W(); enc = Enc(); c = C(1, 2)
fs = type('FS', (frozenset,), {'n': 3})([1]); dq = type('DQ', (collections.deque,), {})([1, 2], 2)
# %% check
d == {'a': 1, 'b': ('set', 2)} and d.note == 'n' and type(d) is D
t == (1, 2) and t.first() == 1 and type(t) is T
s.shout() == 'X!' and i == 5 and i.tag == [1] and f.unit == 'm' and f == 1.5 and b == b'q' and ba == b'zz' and type(ba) is BA
when.nice() == 'nice' and when.year == 2020 and dd == {'k': [1]} and type(dd) is DD and p.name == 'b' and type(p) is P
e.extra == 'x' and e.args == ('k',) and enc.encode({'a': {1}}) == '{"a": "{1}"}' and c.imag == 2
fs.n == 3 and fs == {1} and list(dq) == [1, 2] and dq.maxlen == 2
# %% then
d['c'] = 3
# %% check
d['c'] == ('set', 3)
