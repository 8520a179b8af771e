# needs: numpy
# %%
import numpy as np
np.random.seed(5); np.random.rand()
ref = np.random.RandomState(5); ref.rand()
rng = np.random.default_rng(3); rng.random()
same = np.random.default_rng(3); same.random()
shared = {'r': rng}
legacy = np.random.mtrand._rand
# %% check
np.random.rand() == ref.rand()
rng.random() == same.random()
shared['r'] is rng
legacy is np.random.mtrand._rand
