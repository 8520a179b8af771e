# needs: numpy
# %%
import numpy as np
a = np.arange(24).reshape(2, 3, 4); back = a[:, ::-1, 1:3]; diag = a[0].diagonal(); sw = np.lib.stride_tricks.sliding_window_view(np.arange(10), 3)
be = np.arange(5, dtype='>i4'); neg = np.arange(10)[::-1]; rs = a.reshape(6, 4); flat = a.ravel(); tr = a.transpose(2, 0, 1)
funcs = np.array([len, str.upper, lambda x: x], dtype=object); rec = np.array([(1, [2])], dtype=[('n', 'i4'), ('o', 'O')])
vec = np.vectorize(lambda x: x + 1); poly = np.poly1d([1, 2]); legacy = np.random.RandomState(2); seq = np.random.SeedSequence(5)
big = np.zeros((500, 500)); block = big[100:200, 100:200]; rows = [big[i] for i in range(3)]
objs = np.empty(3, dtype=object); inner = [1]; objs[:] = [inner, inner, None]; ov = objs[::-1]
mk = np.ma.masked_array(np.arange(5), mask=[1, 0, 0, 0, 0]); b8 = a.view('u1'); cplx = np.zeros(3, complex); re_ = cplx.real
fin = np.finfo(float); dts = np.array(['2020', 'NaT'], dtype='M8[D]'); u = np.array(['é', 'x']); half = np.float16(1)
chained = a[0][1][2:]
# %% then
a[0, 2, 1] = 99; big[100, 100] = 5; block[1, 1] = 6; inner.append(2); cplx.real[1] = 7; big[2, 2] = 8; a[0, 1, 3] = -3
# %% check
back[0, 0, 0] == 99 and rs[2, 1] == 99 and flat[9] == 99 and tr[1, 0, 2] == 99 and np.shares_memory(back, a)
diag.tolist() == [0, 5, 10] and sw.shape == (8, 3) and sw[1].tolist() == [1, 2, 3]
be.dtype.str == '>i4' and be[1] == 1 and neg.tolist() == list(range(9, -1, -1))
funcs[1]('a') == 'A' and funcs[2](3) == 3 and rec['o'][0] == [2] and vec([1])[0] == 2 and poly(2) == 4
block[0, 0] == 5 and big[101, 101] == 6 and rows[2][2] == 8
objs[0] == [1, 2] and objs[1] is objs[0] and ov[2] is inner
mk.sum() == 10 and b8.nbytes == a.nbytes and np.shares_memory(b8, a) and re_[1] == 7
str(dts[1]) == 'NaT' and u[0] == 'é' and type(half) is np.float16 and chained.tolist() == [6, -3]
legacy.rand() == np.random.RandomState(2).rand() and seq.entropy == 5
