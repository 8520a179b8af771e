# %%
import math
keep = math.floor
math.floor = lambda x: 0
# %%
math.floor = keep
# %% check
math.floor is keep
math.floor(2.5) == 2
