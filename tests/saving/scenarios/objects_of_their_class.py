# %%
class Sing:
    _o = None
    def __new__(cls):
        if cls._o is None: cls._o = super().__new__(cls); cls._o.n = 0
        return cls._o
    def __reduce__(self): return (Sing, ())
sg = Sing(); sg.n += 2
class Color:
    def __init__(self, name): self.name = name
    def __reduce__(self): return Color, (self.name,)
Color.RED = Color('red'); Color.ALL = [Color.RED, Color('blue')]
red = Color.RED; own = Color('own')
class Pool:
    made = {}
    def __new__(cls, key): return cls.made.setdefault(key, object.__new__(cls))
    @classmethod
    def get(cls, key): return cls(key)
    def __reduce__(self): return Pool.get, ('a',)
pool = Pool('a'); pool.x = 1
class Reg(dict):
    def __reduce__(self): return Reg, (dict(self),)
Reg.first = Reg(a=1)
def make(name): return Named(name)
class Named:
    def __init__(self, name): self.name = name
    def __reduce__(self): return make, (self.name,)
Named.one = Named('n')
class Sub(Color): pass
Color.SUB = Sub('sub')
# %% then
sg.n += 1; red.extra = 5
# %% check
Sing() is sg and Sing._o is sg and sg.n == 3
Color.RED is red and Color.RED.name == 'red' and Color.ALL[0] is red and Color.ALL[1].name == 'blue' and own.name == 'own' and red.extra == 5
Pool('a') is pool and pool.x == 1 and Reg.first == {'a': 1} and type(Reg.first) is Reg
Named.one.name == 'n' and type(Named.one) is Named
Color.SUB.name == 'sub' and type(Color.SUB) is Sub
