# %%
import typing
from typing import Generic, TypeVar, Protocol, runtime_checkable, NewType, TypedDict, Literal, Optional, Callable, ParamSpec
T = TypeVar('T'); B = TypeVar('B', bound='Stack'); N = TypeVar('N', int, float); PS = ParamSpec('PS')
UserId = NewType('UserId', int)
class Stack(Generic[T]):
    def __init__(self): self.items: list[T] = []
    def push(self, x: T) -> 'Stack[T]': self.items.append(x); return self
class IntStack(Stack[int]): pass
@runtime_checkable
class Sized(Protocol):
    def size(self) -> int: ...
class Has:
    def size(self): return 1
class Movie(TypedDict, total=False):
    name: str
    year: int
alias = Stack[int]; opt = Optional[Stack[str]]; lit = Literal['a', 1]; cb = Callable[[int], T]
ints = list[int]; either = int | str
s = IntStack().push(1)
m: Movie = {'name': 'x'}
# %% check
s.items == [1] and isinstance(s, Stack)
alias.__origin__ is Stack and alias().push(2).items == [2]
isinstance(Has(), Sized) and not isinstance(3, Sized)
UserId(3) == 3 and UserId.__supertype__ is int
Stack.__parameters__ == (T,)
typing.get_args(cb)[1] is T
opt == Optional[Stack[str]] and lit == Literal['a', 1] and ints == list[int] and either == (int | str)
Movie.__annotations__['year'] is int and Movie(name='y') == {'name': 'y'} and Movie.__total__ is False
N.__constraints__ == (int, float) and PS.__name__ == 'PS'
__annotations__['m'] is Movie
typing.get_type_hints(Stack.push)['return'] == Stack[T]
# %% then
class More(Stack[T]): pass
# %% check
More[int]().push(3).items == [3]
