# needs: polars, networkx, PIL
# %%
import polars as pl, networkx as nx
from PIL import Image
df = pl.DataFrame({'a': [1, 2]}); lazy = df.lazy().select(pl.col('a') * 2)
g = nx.Graph(); g.add_edge('a', 'b', w=[1]); edge = g['a']['b']
im = Image.new('RGB', (2, 2), 'red')
# %% check
df['a'].sum() == 3 and lazy.collect()['a'].to_list() == [2, 4] and g['a']['b'] is edge and im.getpixel((0, 0)) == (255, 0, 0)
