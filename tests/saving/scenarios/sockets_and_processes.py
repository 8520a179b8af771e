# lost: sock | connection | connect
# lost: proc | a process | keep what it gives
# lost: pool | a pool of threads | keep what it gives
# lost: fut | awaited | result()
# lost: pipe_end | connection | keep what it gives
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
