# lost: open transaction of busy | open transaction | commit or roll back
# lost: temporary tables of busy | temporary tables | create them again
# lost: registered functions and collations of busy | functions and collations | register them
# lost: cur | a cursor | fetchall()
# lost: ondisk | an open database | keep its path
# lost: odd | an open database | keep its path
# lost: other | an open database | keep its path
# %%
import sqlite3
db = sqlite3.connect(':memory:')
db.execute('create table t(a, b)'); db.executemany('insert into t values(?, ?)', [(1, 'x'), (2, 'y')]); db.commit()
db.row_factory = sqlite3.Row
app = {'db': db}
ondisk = sqlite3.connect('f.db')
odd = sqlite3.connect('h.db'); odd.text_factory = bytes
other = sqlite3.connect('i.db'); other.text_factory = lambda text: None
shut = sqlite3.connect('g.db'); shut.row_factory = sqlite3.Row; shut.close()
def is_closed(one):
    try: one.execute('select 1')
    except sqlite3.ProgrammingError as error: return 'closed' in str(error)
cur = db.execute('select 1')
row = db.execute('select * from t').fetchone()
# lost: row | Row | 
# %% check
[tuple(r) for r in db.execute('select * from t order by a')] == [(1, 'x'), (2, 'y')]
db.execute('select a from t').fetchone()['a'] == 1
app['db'] is db
is_closed(shut) and shut.row_factory is sqlite3.Row
# %% then
db.execute('insert into t values(3, "z")')
# %% check
app['db'].execute('select count(*) from t').fetchone()[0] == 3
# %%
import datetime
shop = sqlite3.connect(':memory:', isolation_level=None, detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
shop.execute('pragma foreign_keys = on'); shop.execute('pragma recursive_triggers = 1'); shop.execute('pragma case_sensitive_like = 1')
shop.execute("attach ':memory:' as 'ol''d'"); shop.execute("create table 'ol''d'.t(n)"); shop.execute("insert into 'ol''d'.t values (4)")
sqlite3.connect('side.db').executescript('create table s(n); insert into s values (6);')
shop.execute("attach 'side.db' as side")
shop.execute('create table days(day date primary key, of references days(day))'); shop.execute('insert into days(day) values (?)', (datetime.date(2020, 1, 2),))
raw = sqlite3.connect(':memory:'); raw.text_factory = bytes; raw.execute("create table t(x)"); raw.execute("insert into t values ('b')"); raw.commit()
empty = sqlite3.connect(':memory:')
busy = sqlite3.connect(':memory:'); busy.execute('create table stock(n int)'); busy.commit()
busy.execute('insert into stock values (1)'); busy.execute('create temp table cart(n)'); busy.create_function('twice', 1, lambda n: 2 * n)
# %% check
shop.execute('pragma foreign_keys').fetchone() == (1,) and shop.execute('pragma recursive_triggers').fetchone() == (1,) and shop.isolation_level is None
shop.execute("select 'a' like 'A'").fetchone() == (0,) and shop.execute('select day from days').fetchall() == [(datetime.date(2020, 1, 2),)]
shop.execute("select n from 'ol''d'.t").fetchall() == [(4,)] and shop.execute('select n from side.s').fetchall() == [(6,)]
shop.execute("select 1 as 'x [y]'").description[0][0] == 'x' and db.execute("select 1 as 'x [y]'").description[0][0] == 'x [y]'
raw.execute('select x from t').fetchall() == [(b'b',)] and empty.execute('select count(*) from sqlite_master').fetchall() == [(0,)]
busy.execute('select n from stock').fetchall() == [(1,)]
