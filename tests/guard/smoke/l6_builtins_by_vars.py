# L6 harmless
for found in (vars(), locals(), globals(), dict(globals())):
    assert "__builtins__" not in found
    assert not any("." in name for name in found)
def inside(x, y):
    x.real * y
    return locals()
assert set(inside(2, 3)) == {"x", "y"}
assert "__builtins__" not in dir()
