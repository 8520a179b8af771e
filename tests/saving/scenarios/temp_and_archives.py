# lost: tf | an open file | reopen
# lost: zf | zf.fp: an open file | reopen
# lost: td | a finalizer | 
# %%
import tempfile, zipfile, shelve, os
tf = tempfile.NamedTemporaryFile()
with zipfile.ZipFile('a.zip', 'w') as z: z.writestr('x', 'y')
zf = zipfile.ZipFile('a.zip')
td = tempfile.TemporaryDirectory()
info = zf.getinfo('x')
del z
# %% check
info.filename == 'x'
