# lost: tf | an open file | with statement
# lost: zf | an open archive | with statement
# lost: td | a directory that is removed | mkdtemp
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
