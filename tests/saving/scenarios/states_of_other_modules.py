# %%
import os, string, textwrap, sys, gc, threading
class Tracker: pass
string.digits2 = '01'
os.my = Tracker()
os.my.v = [1]
keep = os.my
textwrap.TextWrapper.extra = property(lambda self: 'e')
# %% check
string.digits2 == '01' and os.my is keep and os.my.v == [1] and textwrap.TextWrapper().extra == 'e'
