# %%
import random
random.seed(4); random.random()
mine = random.Random(7); mine.random()
expected = random.Random(4); expected.random()
e2 = random.Random(7); e2.random()
# %% check
random.random() == expected.random()
mine.random() == e2.random()
