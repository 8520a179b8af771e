# needs: numpy
# %%
import numpy as np
a = np.arange(100000.); v = a[::2]; w = a[10:20].reshape(2, 5); t = w.T
m = np.arange(12).reshape(3, 4); f = np.asfortranarray(m); ro = np.arange(3); ro.flags.writeable = False
st = np.zeros(3, dtype=[('x', 'i4'), ('y', 'f8')]); sx = st['x']
ob = np.array([[1], a, None], dtype=object); obv = ob[1:]
bc = np.broadcast_to(np.arange(3), (1000000, 3))
buf = bytearray(16); fb = np.frombuffer(buf, dtype='i4')
masked = np.ma.array([1, 2, 3], mask=[0, 1, 0]); mat = np.matrix([[1, 2]]); rec = np.rec.array([(1, 'a')], names='n,s')
d = np.array(['2020-01-01'], dtype='M8[D]'); s = np.array(['ab', 'c']); z = np.array(5); e = np.empty((0, 3)); b = np.array([True])
pair = (a, [v]); scalar = np.float32(1.5); dtype = np.dtype('f4'); uf = np.add
it = m.flat
class Units(np.ndarray):
    def __new__(cls, x, unit=None): o = np.asarray(x).view(cls); o.unit = unit; return o
    def __array_finalize__(self, obj): self.unit = getattr(obj, 'unit', None)
    def __reduce__(self):
        base = super().__reduce__(); return (base[0], base[1], (base[2], self.unit))
    def __setstate__(self, s): super().__setstate__(s[0]); self.unit = s[1]
un = Units([1., 2.], 'm')
# lost: it | flatiter | 
# %% then
a[10] = -1; st['x'][1] = 9; buf[0] = 7; ob[1][11] = -2; obv[1] = 'set'
# %% check
v[5] == -1 and w[0, 0] == -1 and t[0, 0] == -1 and t[1, 0] == -2 and np.shares_memory(v, a) and ob[1] is a
sx[1] == 9 and fb[0] == 7 and ob[2] == 'set' and bc.shape == (1000000, 3) and bc.strides[0] == 0
m.flags.owndata or m.base is not None
f.flags.f_contiguous and not ro.flags.writeable and (m == f).all()
masked.sum() == 4 and mat.shape == (1, 2) and rec.s[0] == 'a' and str(d[0]) == '2020-01-01' and list(s) == ['ab', 'c']
z.shape == () and z == 5 and e.shape == (0, 3) and b[0] == True
pair[0] is a and pair[1][0] is v and scalar == 1.5 and type(scalar) is np.float32 and dtype == np.float32 and uf is np.add
un.unit == 'm' and type(un) is Units and un[0] == 1.0
# %% then
a.resize(200000, refcheck=False) if a.flags.owndata else None
