# %%
class Base:
    registry = {}
    def __init_subclass__(cls, tag=None, **kw):
        super().__init_subclass__(**kw)
        Base.registry[cls.__name__] = cls
        cls.tag = tag
    def hello(self): return 'base ' + self.name
# %%
class Child(Base, tag='c'):
    def __init__(self, name): self.name = name
    def hello(self): return 'child/' + super().hello()
# %%
class Grand(Child, tag='g'):
    kind = property(lambda self: type(self).__name__)
    @classmethod
    def make(cls, n): return cls(n)
    @staticmethod
    def twice(x): return x * 2
g = Grand.make('x')
bound = g.hello
unbound = Child.hello
# %% check
g.hello() == 'child/base x'
isinstance(g, Base)
Base.registry == {'Child': Child, 'Grand': Grand}
Grand.tag == 'g' and Child.tag == 'c'
g.kind == 'Grand'
Grand.twice(3) == 6
bound() == 'child/base x' and bound.__self__ is g
unbound is Child.__dict__['hello']
Grand.__mro__ == (Grand, Child, Base, object)
Base.__subclasses__() == [Child]
Grand.make.__func__ is Grand.__dict__['make'].__func__
# %% then
class Great(Grand, tag='gg'): pass
# %% check
Base.registry['Great'] is Great and Great.tag == 'gg'
