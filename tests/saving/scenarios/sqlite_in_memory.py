# lost: cur | a cursor | fetchall()
# lost: ondisk | an open database | connect again
# %%
import sqlite3
db = sqlite3.connect(':memory:')
db.execute('create table t(a, b)'); db.executemany('insert into t values(?, ?)', [(1, 'x'), (2, 'y')]); db.commit()
db.row_factory = sqlite3.Row
app = {'db': db}
ondisk = sqlite3.connect('f.db')
cur = db.execute('select 1')
row = db.execute('select * from t').fetchone()
# lost: row | Row | 
# %% check
[tuple(r) for r in db.execute('select * from t order by a')] == [(1, 'x'), (2, 'y')]
db.execute('select a from t').fetchone()['a'] == 1
app['db'] is db
# %% then
db.execute('insert into t values(3, "z")')
# %% check
app['db'].execute('select count(*) from t').fetchone()[0] == 3
