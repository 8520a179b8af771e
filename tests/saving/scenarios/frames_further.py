# needs: pandas, pyarrow
# %%
import pandas as pd, numpy as np, pyarrow as pa
mi = pd.DataFrame({'v': range(4)}, index=pd.MultiIndex.from_product([['a', 'b'], [1, 2]], names=['k', 'n']))
class Frame(pd.DataFrame):
    _metadata = ['source']
    @property
    def _constructor(self): return Frame
    def total(self): return self['v'].sum()
own = Frame({'v': [1, 2]}); own.source = 'file'
cells = [1]; ob = pd.DataFrame({'o': [cells, None]}); ob.attrs['note'] = {'by': 'me'}
arrow = pd.DataFrame({'s': pd.Series(['x', None], dtype='string[pyarrow]'), 'i': pd.Series([1, 2], dtype='int64[pyarrow]')})
table = pa.table({'a': [1, 2]}); arr = pa.array(['q'])
ts = pd.Series(range(3), index=pd.date_range('2020', periods=3, freq='D')); res = ts.resample('2D')
per = pd.Series(pd.period_range('2020', periods=2, freq='M')); td = pd.Series(pd.to_timedelta([1, 2], 'h'))
cat = pd.Categorical(['a', 'b'], categories=['b', 'a'], ordered=True); frames = {'mi': mi, 'sub': mi.loc['a']}
grouped = mi.groupby('k'); applied = grouped['v'].apply(lambda s: s.sum()); big = pd.DataFrame(np.random.rand(20000, 8)); col = big[3]
# %% check
mi.loc[('a', 2), 'v'] == 1 and frames['mi'] is mi and frames['sub']['v'].tolist() == [0, 1]
own.total() == 3 and type(own) is Frame and own.source == 'file' and type(own[own.v > 1]) is Frame
ob['o'][0] is cells and ob.attrs['note'] == {'by': 'me'}
arrow['s'].isna().sum() == 1 and str(arrow['i'].dtype) == 'int64[pyarrow]' and table['a'].to_pylist() == [1, 2] and arr[0].as_py() == 'q'
res.sum().tolist() == [1, 2] and ts.index.freqstr == 'D' and str(per[0]) == '2020-01' and td.sum().total_seconds() == 10800
cat.codes.tolist() == [1, 0] and cat.ordered and grouped['v'].sum().to_dict() == {'a': 1, 'b': 5} and applied['b'] == 5
# %% then
cells.append(2); old = col.iloc[0]; big.iloc[0, 3] = -1
# %% check
ob['o'][0] == [1, 2] and col.iloc[0] == old and big.iloc[0, 3] == -1
