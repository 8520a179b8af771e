# %%
def factory(base):
    class Local(base):
        class Inner:
            depth = 2
        def make(self): return Local.Inner()
    return Local
L = factory(dict)
x = L(a=1)
inner = x.make()
class Outer:
    class In:
        class Deep: pass
deep = Outer.In.Deep()
anonymous = type('Anon', (), {'v': 5})()
# %% check
x == {'a': 1} and type(x) is L
type(inner) is L.Inner
type(x.make()) is type(inner)
type(deep) is Outer.In.Deep
Outer.In.Deep.__qualname__ == 'Outer.In.Deep'
anonymous.v == 5 and type(anonymous).__name__ == 'Anon'
