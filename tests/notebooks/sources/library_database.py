# %%
import sqlite3

db = sqlite3.connect(":memory:")
db.executescript("create table books(id integer primary key, title text, year int); create table loans(book int, who text)")

# %%
books = [("Dubliners", 1914), ("The Waves", 1931), ("Solaris", 1961), ("Kindred", 1979)]
with db:
    db.executemany("insert into books(title, year) values (?, ?)", books)
    db.executemany("insert into loans values (?, ?)", [(1, "ana"), (3, "ben"), (3, "ana")])

# %%
db.execute("select count(*) from books where year > 1930").fetchone()

# %%
import pandas as pd

often = pd.read_sql("select title, count(*) as loans from loans join books on books.id = book group by book order by title", db)
often

# %%
def borrow(title, who):
    with db:
        db.execute("insert into loans select id, ? from books where title = ?", (who, title))

borrow("Kindred", "cleo")

# %%
total = db.execute("select count(*) from loans").fetchone()[0]
assert total == 4 and list(often["loans"]) == [1, 2]
total
