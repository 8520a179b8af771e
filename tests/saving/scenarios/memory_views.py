# lost: gaps | gaps | slice
# lost: mapped | mapped | bytes(...)
# %%
import array, mmap
ba = bytearray(b'0123456789'); mv = memoryview(ba); part = mv[2:5]; ro = memoryview(b'abc'); sub = mv.toreadonly()
ar = array.array('i', range(6)); ints = memoryview(ar); mat = memoryview(bytearray(range(6))).cast('B', (2, 3))
gaps = mv[::2]
mapped = mmap.mmap(-1, 100)
both = (ba, part)
# %% then
ba[3] = ord('X'); ar[0] = 9
# %% check
bytes(part) == b'2X4' and part.obj is ba and both[1].obj is ba and bytes(ro) == b'abc' and sub.readonly and bytes(sub[:1]) == b'0'
ints[0] == 9 and ints.format == 'i' and mat.tolist() == [[0, 1, 2], [3, 4, 5]]
# %% then
part[0] = ord('Z')
# %% check
ba[2] == ord('Z')
