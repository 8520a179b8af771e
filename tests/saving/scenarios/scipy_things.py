# needs: scipy
# %%
import numpy as np, scipy.sparse as sps
from scipy import interpolate, stats, optimize
from scipy.special import expit
m = sps.csr_matrix(np.eye(4)); f = interpolate.interp1d([0, 1], [0, 2]); dist = stats.norm(1, 2)
res = optimize.minimize(lambda v: (v - 3) ** 2, 0.); e = expit
# %% check
m.nnz == 4 and float(f(0.5)) == 1.0 and dist.mean() == 1 and abs(res.x[0] - 3) < 1e-3 and e is expit
