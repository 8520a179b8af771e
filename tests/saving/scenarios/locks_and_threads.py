# lost: held | a lock that is held | release
# lost: running | a thread | where it is used
# lost: guarded | guarded.lock: a lock that is held | release
# %%
import threading, queue
lock = threading.Lock(); rlock = threading.RLock()
held = threading.Lock(); held.acquire()
class Guarded:
    def __init__(self): self.lock = threading.Lock(); self.n = 3
free = Guarded()
guarded = Guarded(); guarded.lock = held
event = threading.Event(); event.set()
cond = threading.Condition()
sem = threading.Semaphore(2); sem.acquire()
q = queue.Queue(); q.put('x'); pq = queue.PriorityQueue(); pq.put((2, 'b')); pq.put((1, 'a'))
running = threading.Thread(target=print)
loc = threading.local(); loc.v = 4
bar = threading.Barrier(2)
# %% check
lock.acquire(blocking=False) and rlock.acquire(blocking=False)
free.n == 3 and free.lock.acquire(blocking=False)
event.is_set()
sem._value == 1
q.get_nowait() == 'x' and q.empty()
pq.get() == (1, 'a')
loc.v == 4
bar.parties == 2
# %% then
with cond: cond.notify_all()
