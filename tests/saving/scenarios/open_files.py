# lost: h | an open file | open it in a with statement where it is used
# lost: raw | an open file | with statement
# lost: box | box.log: an open file | with statement
# lost: lines | _csv.reader | again
# %%
import csv, sys
h = open('x.txt', 'w')
h.write('hi')
h.flush()
raw = open('x.txt', 'rb')
class Box: pass
box = Box(); box.log = h; box.n = 1
err = sys.stderr
lines = csv.reader(open('x.txt'))
with open('x.txt', encoding='utf-8') as ended: pass
with open('y.bin', 'xb') as ended_raw: pass
# %% check
err is sys.stderr
(ended.closed, ended.name, ended.mode, ended.encoding) == (True, 'x.txt', 'r', 'utf-8')
(ended_raw.closed, ended_raw.name) == (True, 'y.bin')
open('x.txt').read() == 'hi'
