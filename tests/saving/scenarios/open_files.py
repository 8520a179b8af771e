# lost: h | an open file | reopen the file in the next cell
# lost: raw | an open file | reopen
# lost: box | box.log: an open file | reopen
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
# %% check
err is sys.stderr
open('x.txt').read() == 'hi'
