# needs: numpy
# %%
import numpy as np, pickle
st = np.zeros(3, dtype=[('x', 'i4'), ('y', 'f8')]); sx = st['x']
ob = np.array([[1], 'a', None], dtype=object); obv = ob[1:]
buf = bytearray(16); fb = np.frombuffer(buf, dtype='i4')
p = pickle.loads(pickle.dumps({'w': np.arange(9000.), 's': np.arange(4)}, 4)); pv = p['w'][::3]; pf = pickle.loads(pickle.dumps(np.asfortranarray(np.ones((300, 40))), 2))
own = np.arange(5); still = own[1:]; own.flags.writeable = False
ro = np.frombuffer(bytes(80000)); 
# %% then
st['x'][1] = 9; buf[0] = 7; obv[1] = 'set'; p['w'][3] = -1; still[0] = 8; pf[1, 1] = 5
# %% check
sx[1] == 9 
fb[0] == 7 
ob[2] == 'set' 
pv[1] == -1 and p['s'].tolist() == [0, 1, 2, 3] and p['w'].flags.writeable
own[1] == 8 and not own.flags.writeable and still.flags.writeable
pf[1,1] == 5 and pf.flags.f_contiguous and pf.sum() == 12004
not ro.flags.writeable
# %%
base = np.arange(6.); win = np.lib.stride_tricks.sliding_window_view(base, 3); ob2=np.array([1,None],dtype=object); obt=np.lib.stride_tricks.as_strided(ob2,(3,2),(0,8))
loose = np.lib.stride_tricks.sliding_window_view(np.arange(4.), 2)
# %% then
base[3] = 77; ob2[1] = 'q'
# %% check
win.shape == (4, 3) and win[1, 2] == 77 and win[3, 0] == 77 and obt[2, 1] == 'q' 
loose.tolist() == [[0, 1], [1, 2], [2, 3]]
