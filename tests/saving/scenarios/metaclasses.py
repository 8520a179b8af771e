# %%
made = []
class Meta(type):
    def __new__(mcls, name, bases, ns, **kw):
        made.append(name)
        ns = dict(ns); ns['added'] = name.lower()
        return super().__new__(mcls, name, bases, ns)
    def __call__(cls, *a): 
        one = super().__call__(*a)
        one.called = True
        return one
    def __getattr__(cls, name): return f'{cls.__name__}.{name}'
    @property
    def label(cls): return 'label ' + cls.__name__
    def __len__(cls): return 7
class A(metaclass=Meta):
    def __init__(self, v): self.v = v
class B(A): pass
a = A(1); b = B(2)
class Singleton(type):
    _instances = {}
    def __call__(cls, *a, **k):
        if cls not in cls._instances: cls._instances[cls] = super().__call__(*a, **k)
        return cls._instances[cls]
class Config(metaclass=Singleton):
    def __init__(self): self.values = {}
config = Config(); config.values['k'] = 1
# %% check
made == ['A', 'B'] and A.added == 'a' and B.added == 'b'
a.called and a.v == 1 and A.label == 'label A' and A.nothing == 'A.nothing' and len(B) == 7
type(A) is Meta and isinstance(b, A)
Config() is config and config.values == {'k': 1}
# %% then
class C(B): pass
# %% check
made == ['A', 'B', 'C']
C.added == 'c'
