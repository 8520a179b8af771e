# %%
class A:
    __slots__ = ('x', 'y')
class B(A):
    __slots__ = ('z', '__dict__')
class C(A):
    pass
class W:
    __slots__ = ('__weakref__', '__private')
    def __init__(self): self.__private = 4
    def get(self): return self.__private
a = A(); a.x = 1
b = B(); b.x, b.z, b.free = 1, 2, 3
c = C(); c.y = 5; c.more = 6
w = W()
# %% check
a.x == 1 and not hasattr(a, 'y') and not hasattr(a, '__dict__')
(b.x, b.z, b.free) == (1, 2, 3)
(c.y, c.more) == (5, 6)
w.get() == 4
A.__slots__ == ('x', 'y')
# %% then
try:
    a.q = 1
    free = True
except AttributeError:
    free = False
# %% check
not free
