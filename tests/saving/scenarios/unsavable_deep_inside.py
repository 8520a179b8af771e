# lost: x | x[3].lock | release
# lost: conf | conf['a']['b'].handle | with statement
# lost: shares | shares[1][3].lock | release
# %%
import threading
class Job:
    def __init__(self): self.lock = threading.Lock(); self.lock.acquire()
class H: pass
x = [1, 2, 3, Job()]
h = H(); h.handle = open('f', 'w')
conf = {'a': {'b': h}}
# lost: h | h.handle | with statement
good = [1, 2]
shares = [good, x]
also = {'good': good}
# %% check
also['good'] is good
