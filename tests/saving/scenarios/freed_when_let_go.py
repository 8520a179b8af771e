# %%
import weakref, gc
class H:
    def __del__(self): log.append(self.n)
log=[]
h=H(); h.n=1; big=list(range(100000)); 
class L(list): pass
l=L([1,2,3]); rl=weakref.ref(l, lambda r: log.append('l'))
import array; a=array.array('d',[1]*100000); ra=weakref.ref(a)
def f(x=h): return x
def g(): return l
import sys
# %% check
gc.disable() is None
rl() is l
# %% then
del f
# %% then
h=None
# %% check
log==[1]
# %% then
del l
# %% check
log==[1,'l'] and rl() is None
# %% then
del a
# %% check
ra() is None
[type(x) for x in gc.get_referrers(big)]==[dict]
