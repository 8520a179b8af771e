import numpy as np

grid = np.arange(1_000_000, dtype=np.float64).reshape(1000, 1000)
print(int(grid.sum()), np.linalg.matrix_rank(np.eye(40)))
