# %%
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

n = 400
laplace = sparse.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n), format="csc")
laplace.nnz

# %%
load = np.zeros(n)
load[n // 2] = 1
shape = spsolve(laplace, load)
int(shape.argmax())

# %%
residual = np.abs(laplace @ shape - load).max()
print(f"{residual:.1e}")

# %%
dense = laplace.toarray()
values = np.linalg.eigvalsh(dense)[:3]
values

# %%
laplace[0, 0] = 3
assert residual < 1e-8 and laplace.toarray()[0, 0] == 3 and dense[0, 0] == 2
