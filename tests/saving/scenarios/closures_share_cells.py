# %%
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    def now(): return n
    return up, now
up, now = counter()
up()
cells = now.__closure__
# %% check
up() == 2
now() == 2
cells[0].cell_contents == 2
cells[0] is up.__closure__[0]
