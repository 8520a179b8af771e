import sqlite3

with sqlite3.connect("numbers.db") as connection:
    print(connection.execute("pragma journal_mode=wal").fetchone()[0])
    connection.execute("create table numbers (n integer)")
    connection.executemany("insert into numbers values (?)", [(n,) for n in range(10)])
print(sqlite3.connect("numbers.db").execute("select sum(n) from numbers").fetchone()[0])
