# %%
class Vec:
    __slots__ = ('c',)
    def __init__(self, *c): self.c = c
    def __add__(self, o): return Vec(*(a + b for a, b in zip(self.c, o.c)))
    def __eq__(self, o): return isinstance(o, Vec) and self.c == o.c
    def __hash__(self): return hash(self.c)
    def __repr__(self): return f'Vec{self.c}'
    def __getattr__(self, n):
        if n == 'x': return self.c[0]
        raise AttributeError(n)
v = Vec(1, 2); seen = {v, Vec(3, 4)}; by = {v: 'v'}
class Lazy:
    def __init__(self, f): self.f = f
    def __getattr__(self, name): return self.f(name)
lz = Lazy(lambda n: n.upper())
class Cb:
    def __init__(self): self.handlers = []
    def on(self, f): self.handlers.append(f); return f
    def fire(self, *a): return [h(*a) for h in self.handlers]
bus = Cb()
@bus.on
def first(x): return x + 1
@bus.on
def second(x): return first(x) * 2
class Meth:
    def __init__(self): self.cb = self.go
    def go(self): return 'went'
me = Meth()
# %% check
v + Vec(1, 1) == Vec(2, 3) and v in seen and by[Vec(1, 2)] == 'v' and v.x == 1
lz.abc == 'ABC' and bus.fire(1) == [2, 4] and me.cb() == 'went' and me.cb.__self__ is me
