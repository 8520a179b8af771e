# %%
import abc, collections.abc
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
    @property
    @abc.abstractmethod
    def name(self): ...
class Square(Shape):
    def __init__(self, s): self.s = s
    def area(self): return self.s ** 2
    @property
    def name(self): return 'sq'
class Other: pass
Shape.register(Other)
class Bag(collections.abc.MutableMapping):
    def __init__(self): self.d = {}
    def __getitem__(self, k): return self.d[k]
    def __setitem__(self, k, v): self.d[k] = v
    def __delitem__(self, k): del self.d[k]
    def __iter__(self): return iter(self.d)
    def __len__(self): return len(self.d)
sq = Square(3); bag = Bag(); bag['a'] = 1
# %% check
sq.area() == 9 and sq.name == 'sq' and isinstance(sq, Shape)
isinstance(Other(), Shape) and issubclass(Other, Shape)
bag.get('a') == 1 and bag == {'a': 1} and isinstance(bag, collections.abc.Mapping)
Shape.__abstractmethods__ == frozenset({'area', 'name'})
not issubclass(int, Shape)
# %% then
try:
    Shape()
    made = True
except TypeError:
    made = False
class Circle(Shape):
    def area(self): return 1
    name = 'c'
# %% check
not made
Circle().area() == 1
