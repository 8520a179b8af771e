# lost: ptr | ctypes | 
# %%
import ctypes, struct
class Pt(ctypes.Structure):
    _fields_ = [('x', ctypes.c_int), ('y', ctypes.c_double)]
    def s(self): return self.x + self.y
p = Pt(1, 2.5); n = ctypes.c_long(7); arr = (ctypes.c_int * 3)(1, 2, 3)
packed = struct.Struct('<if'); 
ptr = ctypes.pointer(n)
# %% check
p.s() == 3.5 and n.value == 7 and list(arr) == [1, 2, 3]
packed.size == 8
