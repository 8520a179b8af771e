# changes: halfway, seen | an iterator under way comes back as one of a list
# %%
import random
words = {f'w{n}' for n in range(40)}; more = set()
for n in range(300): more.add(random.Random(n).randrange(500)); more.discard(n)
pairs = {(n % 7, f'p{n}') for n in range(60)}; mixed = {1, 'a', None, 2.5, (3, 'b'), b'c', True, 'name', 'mixed'}
halfway = {f'h{n}' for n in range(30)}; seen = iter(halfway); first = next(seen)
class Box: pass
box = Box(); box.tags = {f't{n}' for n in range(30)}; nested = {'k': [{n * 1001 for n in range(50)}]}
# %% check
len(words) == 40 and len(pairs) == 60 and (3, 'b') in mixed and len(nested['k'][0]) == 50
halfway - {first} == set(seen) and len(box.tags) == 30
