# needs: numpy
# lost: sharing of memory with another array of apart | cannot be saved | make the one of the other again
# lost: sharing of memory with another array of bare | cannot be saved | make the one of the other again
# changes: apart, apart_too, owner, bare | they share nothing any more
# %%
import numpy as np
class Arr(np.ndarray):
    unit = None
    def __new__(cls, data, unit): made = np.asarray(data).view(cls); made.unit = unit; return made
    def __array_finalize__(self, parent): self.unit = getattr(parent, 'unit', None)
class Strict(np.ndarray):
    def __array_finalize__(self, parent):
        if parent is not None: self.owner = parent.owner
strict = np.ndarray.__new__(Strict, (4,), 'i8'); strict.owner = 'me'; strict[:] = 1; tail = strict[2:]
m = np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0], fill_value=7); part = m[1:]; inside = m.data; hidden = m.mask; open_ = np.ma.array([1, 2])[:1]
rec = np.rec.array([(1, 2.), (3, 4.)], dtype=[('a', int), ('b', float)]); col = rec.a; row = rec[1:]
mat = np.matrix([[1, 2], [3, 4]]); first = mat[0]; turned = mat.T
arr = Arr(np.arange(6), 'm'); half = arr[::2]; plain = np.asarray(arr); note = [half]
own = np.ndarray.__new__(Arr, (2, 3), 'f8'); own[:] = 0; own.unit = 's'; across = own.T; under = own[1]
buf = bytearray(16); over = np.frombuffer(buf, 'i4').view(Arr)
big = np.zeros(100_000).view(Arr); window = big[10:20]; large = np.ma.array(np.zeros(100_000)); slot = large[5:7]
few = np.arange(1000).view(Arr)[::300]
things = np.ma.array([[1], None, 'x'], mask=[0, 0, 1], dtype=object); some = things[:2]
texts = np.char.array(['ab', 'cd']); text = texts[1:]
ro = np.matrix([[1, 2]]); ro.flags.writeable = False; seen = ro[0]
day = np.array(['2020', '2021'], 'M8[Y]').view(Arr); last = day[1:]
ring = np.empty((2, 2), object, 'F'); ring[0] = [ring[1:], 'a']; ring[1] = [[2], 'b']; knot = np.empty(2, object).view(Arr); knot[0] = knot; knot[1] = 'k'
pairs = np.zeros(2, [('n', int), ('o', object)]); pairs['o'] = [[1], pairs[:1]]; fixed = np.array([[1], 'f'], dtype=object); fixed.flags.writeable = False
class Own(np.ndarray):
    def __reduce__(self): return (_make, (self.tolist(),))
def _make(data): return np.array(data).view(Own)
apart = np.arange(3).view(Own); apart_too = apart.base
owner = np.ndarray.__new__(Own, (3,), 'i8'); owner[:] = 1; bare = np.asarray(owner); alone = np.arange(3).view(Own)
# %% then
part[1] = 9; m[3] = 8; part.mask[0] = False; inside[0] = 5
col[0] = 9; row.b[0] = 9.; first[0, 0] = 9; turned[0, 1] = 8; half[1] = 50; plain[0] = 60; note[0][2] = 70
across[0, 1] = 9; under[2] = 7; over[0] = 1; window[0] = 3; slot[0] = 4; some[0].append(2); some[1] = 5; text[0] = 'zz'; tail[0] = 6; last[0] = '2030'
# %% check
m.tolist() == [5, 2, 9, 8] and np.shares_memory(part.mask, m.mask) and m.fill_value == 7 and hidden[0] == False and type(part) is np.ma.MaskedArray
rec.tolist() == [(9, 2.), (3, 9.)] and type(rec) is np.recarray and type(row) is np.recarray and row.a[0] == 3
mat.tolist() == [[9, 2], [8, 4]] and type(first) is np.matrix and turned.tolist() == [[9, 8], [2, 4]]
arr.tolist() == [60, 1, 50, 3, 70, 5] and type(half) is Arr and half.unit == 'm' and note[0] is half and type(plain) is np.ndarray
own.tolist() == [[0, 0, 0], [9, 0, 7]] and own.unit == 's' and across.unit == 's' and type(under) is Arr
buf[0] == 1 and over.tolist() == [1, 0, 0, 0] and big[10] == 3 and large[5] == 4 and few.tolist() == [0, 300, 600, 900] and type(few) is Arr
things.data[0] == [1, 2] and things.data[1] == 5 and things.mask.tolist() == [False, False, True] and some.data[0] is things.data[0]
texts.tolist() == ['ab', 'zz'] and type(text) is type(texts) and seen.tolist() == [[1, 2]] and not seen.flags.writeable and not ro.flags.writeable
strict.tolist() == [1, 1, 6, 1] and tail.owner == 'me' and type(tail) is Strict and str(day[1]) == '2030' and open_.tolist() == [1]
apart.tolist() == [0, 1, 2] and type(apart) is Own and bare.tolist() == [1, 1, 1] and type(owner) is Own and alone.tolist() == [0, 1, 2]
np.shares_memory(ring[0, 0], ring) and ring[0, 0].tolist() == [[[2], 'b']] and ring[:, 1].tolist() == ['a', 'b'] and knot[0] is knot and knot[1] == 'k'
pairs['o'][0] == [1] and np.shares_memory(pairs['o'][1], pairs) and fixed.tolist() == [[1], 'f'] and not fixed.flags.writeable
