# %%
import sys
new = sys.version_info >= (3, 12)
if new:
    exec('''
class Box[T]:
    def __init__(self, v: T): self.v = v
    def get(self) -> T: return self.v
def first[T](xs: list[T]) -> T: return xs[0]
type Pair[A] = tuple[A, A]
''')
    b = Box(3); alias = Box[int]
# %% check
not new or (b.get() == 3 and first([7]) == 7 and alias.__origin__ is Box)
not new or Box.__type_params__[0].__name__ == 'T' and Pair.__value__ == tuple[Pair.__type_params__[0], Pair.__type_params__[0]]
