# %%
import io, array
b = io.BytesIO(b'hello'); b.read(2)
s = io.StringIO('one\ntwo\n'); s.readline()
w = io.StringIO(); print('x', file=w)
alias = [b]
a = array.array('d', [1.5, 2.5]); a2 = a
# %% check
b.read() == b'llo' and b.getvalue() == b'hello' and alias[0] is b
s.readline() == 'two\n' and w.getvalue() == 'x\n'
a2 is a and a.tolist() == [1.5, 2.5]
# %% then
w.write('y')
# %% check
w.getvalue() == 'x\ny'
