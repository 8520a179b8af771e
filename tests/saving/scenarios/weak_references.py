# lost: orphan | a weak reference | keep the object
# lost: fin | a finalizer | register
# %%
import weakref
class Obj:
    def __init__(self, n): self.n = n
    def hi(self): return self.n
o = Obj(1); r = weakref.ref(o); pr = weakref.proxy(o)
gone = weakref.ref(Obj(2))
wvd = weakref.WeakValueDictionary(); wvd['o'] = o
wkd = weakref.WeakKeyDictionary(); wkd[o] = 'meta'
ws = weakref.WeakSet([o])
wm = weakref.WeakMethod(o.hi)
class Node:
    def __init__(self, parent=None):
        self.parent = weakref.ref(parent) if parent else None
        self.kids = []
root = Node(); kid = Node(root); root.kids.append(kid)
def hide():
    secret = Obj(9)
    import gc
    hide_in.append([secret])
    return weakref.ref(secret)
hide_in = []
orphan = hide()
import threading
vars(threading)['keep'] = hide_in.pop()
fin = weakref.finalize(o, print)
fin.atexit = False
# %% check
r() is o and pr.n == 1 and gone() is None
wvd['o'] is o and wkd[o] == 'meta' and o in ws and wm()() == 1
kid.parent() is root
# %% then
del o
import gc; gc.collect()
# %% check
r() is None and len(wvd) == 0 and len(wkd) == 0 and len(ws) == 0
