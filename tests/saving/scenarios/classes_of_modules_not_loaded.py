# needs: numpy
# %%
import numpy as np, sys
early = 'numpy.rec' in sys.modules  # which tells that it is its classes' module
records = np.zeros(3, dtype=[('x', 'i4')]).view(np.recarray)
# %% check
early or type(records) is np.recarray
repr(records).startswith('rec.array([(0,)') and records[0].x == 0 and records.x.tolist() == [0, 0, 0]
