# needs: numpy
# %%
import numpy as np
mm = np.memmap('data.bin', dtype='i4', mode='w+', shape=(4,)); mm[:] = [1, 2, 3, 4]; mm.flush()
ro = np.memmap('data.bin', dtype='i4', mode='r')
part = mm[1:3]; plain = np.asarray(mm)[2:]
# %% check
mm.tolist() == [1, 2, 3, 4] and ro[3] == 4 and type(mm) is np.memmap
# %% then
mm[1] = 20; mm.flush()
# %% check
part[0] == 20 and np.fromfile('data.bin', dtype='i4')[1] == 20
type(part) is np.memmap and part.filename == mm.filename and np.shares_memory(part, mm) and type(plain) is np.ndarray and np.shares_memory(plain, mm)
