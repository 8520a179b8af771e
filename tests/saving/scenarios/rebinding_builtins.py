# %%
import builtins
printed = []
builtins.shout = lambda x: x.upper()
def print(*a): printed.append(a)
builtins.len2 = 2
# %% then
print('hi')
# %% check
shout('a') == 'A' and len2 == 2 and printed == [('hi',)]
