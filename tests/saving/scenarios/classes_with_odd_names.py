# %%
class Double:
    def __init__(self, of): self.of = of
    @property
    def __class__(self): return self.of
double = Double(int)
class Meta(type):
    @property
    def __name__(cls): return 'alias'
    @property
    def label(cls): return 'of the metaclass'
class Shape(metaclass=Meta):
    label = 'of the class'
shape = Shape()
class Colours(type):
    known = {'red': 1}
    def __getattr__(cls, name): return Colours.known[name]
class Palette(metaclass=Colours): pass
palette = Palette(); palette.made = 2
class Strict(type):
    def __setattr__(cls, name, value): raise TypeError('fixed')
class Fixed(metaclass=Strict):
    limit = 3
fixed = Fixed()
Spaced = type('two words', (), {'a b': 1}); Spaced.__qualname__ = 'x.<locals>.y z'
spaced = Spaced()
def make(n):
    class Local:
        number = n
        class Inner: pass
    return Local
first, second = make(1)(), make(2)()
inner = type(second).Inner()
class Same: which = 1
old = Same()
class Same: which = 2
new = Same()
Keyword = type('class', (), {}); keyword = Keyword()
class Named:
    __module__ = None
named = Named()
class Dunder:
    __doc__ = 5
    __bases__ = 'b'; __mro__ = 'm'; __dict__ = property(lambda self: {'own': 1}); __qualname__ = 'Q.R'
dunder = Dunder()
# %% check
isinstance(double, int) and type(double) is Double and double.of is int
type(shape).__name__ == 'alias' and Shape.label == 'of the metaclass' and shape.label == 'of the class'
Palette.red == 1 and type(palette) is Palette and palette.made == 2
fixed.limit == 3 and type(fixed) is Fixed
type(spaced).__name__ == 'two words' and type(spaced).__qualname__ == 'x.<locals>.y z' and getattr(spaced, 'a b') == 1
(first.number, second.number) == (1, 2) and type(inner) is type(second).Inner and type(first).__qualname__ == 'make.<locals>.Local'
(old.which, new.which) == (1, 2) and type(new) is Same and type(keyword).__name__ == 'class'
Named.__module__ is None and type(named) is Named
Dunder.__doc__ == 5 and dunder.__bases__ == 'b' and dunder.__mro__ == 'm' and dunder.__dict__ == {'own': 1} and Dunder.__qualname__ == 'Q.R'
