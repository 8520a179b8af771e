# %%
todo = ['a', 'b', 'c']
walk = iter(todo)
next(walk)
pairs = zip(walk, walk)
# %% then
todo.append('d'); todo.append('e')
# %% check
list(pairs) == [('b', 'c'), ('d', 'e')]
