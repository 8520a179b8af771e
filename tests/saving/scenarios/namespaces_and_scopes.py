# %%
def __getattr__(name): raise AttributeError(name)
x = 1
class Scope:
    x = 2
    ys = [x for _ in range(2)]
    def get(self): return x
    class Inner:
        def up(self): return Scope.x
def setter():
    global x, made
    x = 10; made = 'here'
def late(): return defined_later()
def defined_later(): return 'later'
def defaults(a, acc=[], d={}): acc.append(a); d[a] = acc; return acc, d
shared_default = defaults.__defaults__[0]
class Sup:
    def a(self): return 'sup'
class Sub(Sup):
    def a(self):
        def inner(): return super(Sub, self).a()
        return inner() + super().a()
    def cls(self): return __class__
sub = Sub()
del Sup
counter = iter(int, 1)
def outer():
    y = 0
    class Loc:
        def bump(self):
            nonlocal y
            y += 1
            return y
    return Loc, lambda: y
Loc, peek = outer(); loc = Loc(); loc.bump()
# %% then
setter(); defaults('k')
# %% check
x == 10 and made == 'here' and Scope().get() == 10 and Scope.ys == [2, 2] or Scope.ys == [1, 1]
Scope.Inner().up() == 2 and late() == 'later' and shared_default == ['k'] and defaults.__defaults__[1] == {'k': ['k']}
sub.a() == 'supsup' and sub.cls() is Sub and Sub.__mro__[1].__name__ == 'Sup'
loc.bump() == 2 and peek() == 2 and Loc().bump() == 3 and peek() == 3
