# needs: pandas
# %%
import pandas as pd, numpy as np
df = pd.DataFrame({'a': np.arange(5), 'b': list('vwxyz'), 'c': pd.date_range('2020', periods=5), 'd': pd.Categorical(list('xxyyx'))})
s = df['a']; view = df[:]; copy = df.copy(); idx = df.index
sub = df[['a', 'b']]; same = df
g = df.groupby('d', observed=True); multi = df.set_index(['b', 'a']); roll = df['a'].rolling(2)
td = pd.Timedelta('1h'); ts = pd.Timestamp('2020', tz='UTC'); na = pd.NA; nat = pd.NaT; iv = pd.Interval(0, 1); per = pd.Period('2020-01')
nullable = pd.array([1, None], dtype='Int64'); strs = pd.Series(['a', None], dtype='string')
tz = pd.Series(pd.date_range('2020', periods=2, tz='Europe/Berlin')); sparse = pd.arrays.SparseArray([0, 0, 1])
frames = {'x': df, 'y': [view]}
ix = pd.Index(df["a"])
lookup = df.loc
# %% check
frames['x'] is df and same is df and frames['y'][0] is view
df.equals(copy) and view.equals(df)
g['a'].sum().to_dict() == {'x': 5, 'y': 5} and multi.index.names == ['b', 'a'] and roll.sum().iloc[1] == 1.0
td.total_seconds() == 3600 and ts.tz is not None and na is pd.NA and nat is pd.NaT and iv.right == 1 and str(per) == '2020-01'
nullable.sum() == 1 and strs.isna().tolist() == [False, True] and str(tz.dtype) == 'datetime64[us, Europe/Berlin]' or str(tz.dt.tz) == 'Europe/Berlin'
sparse.sum() == 1 and str(df['d'].dtype) == 'category'
lookup[0, 'a'] == 0 and lookup.obj is df
# %% then
view.loc[0, 'a'] = 100
s.iloc[1] = 200
df.loc[2, 'a'] = 300
# %% check
df['a'].tolist() == [0, 1, 300, 3, 4] and view['a'].tolist() == [100, 1, 2, 3, 4] and s.tolist() == [0, 200, 2, 3, 4]
copy['a'].tolist() == [0, 1, 2, 3, 4] and sub['a'].tolist() == [0, 1, 2, 3, 4]
ix.tolist() == [0, 1, 2, 3, 4]
list(idx) == [0, 1, 2, 3, 4]
