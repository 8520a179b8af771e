# lost: sock | connection | connect
# lost: proc | a process | start
# lost: pool | a pool of threads | make it again
# lost: fut | awaited | again
# lost: pipe_end | connection | again
# %%
import socket, subprocess, sys, concurrent.futures, multiprocessing
sock = socket.socket()
proc = subprocess.Popen([sys.executable, '-c', 'pass']); proc.wait()
pool = concurrent.futures.ThreadPoolExecutor(1)
fut = pool.submit(len, 'abc'); fut.result()
pipe_end = multiprocessing.Pipe()[0]
result = subprocess.run(['true'])
# %% check
result.returncode == 0
