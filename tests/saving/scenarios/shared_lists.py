# %%
a = [1]; b = a
c = {'inner': a, 'again': [a, a]}
t = (a, 2)
u = t
# %% check
a is b and c['inner'] is a and c['again'][1] is b
t[0] is a and u is t
# %% then
b.append(2)
# %% check
a == [1, 2] and c['inner'] == [1, 2]
