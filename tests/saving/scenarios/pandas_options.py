# needs: pandas
# %%
import pandas as pd, numpy as np
pd.set_option('display.max_rows', 7)
pd.options.display.precision = 3
np.set_printoptions(precision=2, suppress=True)
old = np.seterr(divide='ignore')
pd.DataFrame.twice = lambda self: self * 2
@pd.api.extensions.register_dataframe_accessor('mine')
class Mine:
    def __init__(self, o): self.o = o
    def size(self): return len(self.o)
df = pd.DataFrame({'a': [1.0]})
# %% check
pd.get_option('display.max_rows') == 7 and pd.get_option('display.precision') == 3
repr(np.array([1.23456])) == 'array([1.23])' and np.geterr()['divide'] == 'ignore'
df.twice()['a'][0] == 2.0
# %% check warm
df.mine.size() == 1
