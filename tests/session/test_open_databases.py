"""Connections of sqlite3's to files, where a branch or a step back has another file at the path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from cellblock import ExecutionLimits, Lost, Session, Versioned

LIMITS = ExecutionLimits(timeout_seconds=10)
GAPS = """
import os, sqlite3
for number in range(20):
    open(f'{number}', 'w').close()
for number in range(0, 20, 2):
    os.remove(f'{number}')
"""
OPEN = "con = sqlite3.connect('x.db'); con.execute('create table t(a)'); con.execute('insert into t values (1)')"
WRITE = "con.execute('insert into t values (2)'); con.commit()"
COUNT = "con.execute('select count(*) from t').fetchone()[0]"
COUNTS = COUNT + ", " + COUNT.replace("con", "sqlite3.connect('x.db')", 1)
REPLACE = "import shutil; shutil.copy('x.db', 'y.db'); os.replace('y.db', 'x.db')"


@contextmanager
def branched(session: Session) -> Iterator[tuple[Session, tuple[Lost, ...]]]:
    with session.branch() as branch:
        yield branch, branch.run("1").lost


@contextmanager
def undone(session: Session) -> Iterator[tuple[Session, tuple[Lost, ...]]]:
    assert session.run(REPLACE).ok
    session.undo()
    yield session, session.run("1").lost


@contextmanager
def crashed(session: Session) -> Iterator[tuple[Session, tuple[Lost, ...]]]:
    cell = session.run("os.remove('x.db')\nos._exit(1)")
    assert cell.rolled_back
    yield session, cell.lost


Way = Callable[[Session], AbstractContextManager[tuple[Session, tuple[Lost, ...]]]]
WAYS = pytest.mark.parametrize("way", [branched, undone, crashed])


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(limits=LIMITS) as session:
        assert session.run(GAPS).ok
        yield session


@pytest.mark.sampled(2)
@WAYS
def test_connection_writes_to_the_file_at_its_path(session: Session, way: Way) -> None:
    session.run(f"{OPEN}; con.commit(); holder = type('Holder', (), {{}})(); holder.con = con; del con")
    with way(session) as (later, lost):
        cell = later.run(f"con = holder.con; cursor = con.cursor(); {WRITE}; {COUNTS}")
        assert (cell.value, lost) == ((2, 2), ()), cell.text


@pytest.mark.sampled(0)
def test_connection_that_a_checkout_cannot_have_is_lost_by_name(tmp_path: Path) -> None:
    with Session("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), limits=LIMITS) as session:
        session.run(GAPS)
        session.run(f"{OPEN}; con.commit()")
        commit = session.log()[0].id
        assert session.run(f"{REPLACE}; os.remove('x.db')").ok
        session.checkout(commit)
        cell = session.run(f"{WRITE}; {COUNTS}")
        assert [(one.name, one.remedy) for one in cell.lost] == [("con", "keep its path, and connect where it is used")]
        assert session.run(f"con = sqlite3.connect('x.db'); {WRITE}; {COUNTS}").value == (2, 2)


@pytest.mark.sampled(2)
@WAYS
def test_connection_keeps_its_settings(session: Session, way: Way) -> None:
    session.run("class Own(sqlite3.Connection):\n    tag = 'class'")
    session.run(
        "sqlite3.connect('side.db').executescript('create table s(n); insert into s values (6)')\n"
        "con = sqlite3.connect('x.db', timeout=7, isolation_level=None, factory=Own,\n"
        "    detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)\n"
        "con.tag = 'mine'; con.row_factory = sqlite3.Row; con.text_factory = bytes\n"
        "con.execute('create table t(a, d date)'); con.execute(\"insert into t values ('1', '2020-01-02')\")\n"
        "con.execute('pragma foreign_keys = on'); con.execute('pragma case_sensitive_like = 1')\n"
        "con.execute(\"attach 'side.db' as 'the side'\"); con.execute(\"attach ':memory:' as m\")\n"
        "con.execute('create table m.t2(n)'); con.execute('insert into m.t2 values (8)')\n"
        "cursor = con.execute('select a from t'); cursor.fetchall()"
    )
    look = (
        "con.tag, type(con) is Own, con.isolation_level, con.row_factory is sqlite3.Row, con.text_factory is bytes,"
        "[con.execute(f'pragma {one}').fetchone()[0] for one in ('busy_timeout', 'foreign_keys')],"
        "[tuple(row) for row in con.execute(\"select *, 'a' like 'A' from t\")],"
        "con.execute('select * from \"the side\".s').fetchone()['n'], con.execute('select n from m.t2').fetchone()[0]"
    )
    before = session.run(f"repr(({look}))").value
    with way(session) as (later, lost):
        cell = later.run(f"repr(({look}))")
        assert (cell.value, lost) == (before, ()), cell.text
        assert (
            later.run("cursor.execute('update t set a = 3'); con.execute('select a from t').fetchone()[0]").value == 3
        )


@pytest.mark.sampled(2)
@WAYS
@pytest.mark.parametrize(
    "bound",
    [
        "con.execute('insert into t values (2)')",
        "con.create_function('twice', 1, lambda x: 2 * x)",
        "con.create_collation('mine', lambda a, b: 0)",
        "con.set_authorizer(lambda *a: 0)",
        "con.execute('create temp table own(a)')",
        "con.executescript('insert into t select a from t'); rows = con.execute('select a from t')",
    ],
)
def test_connection_that_holds_more_than_its_settings_is_lost_by_name(session: Session, way: Way, bound: str) -> None:
    session.run(f"{OPEN}; con.commit(); other = sqlite3.connect('other.db')")
    assert session.run(bound).ok
    with way(session) as (later, lost):
        cell = later.run("other.execute('create table t(a)'); other.commit()")
        assert cell.ok, cell.text
        assert [(one.name, one.type, one.remedy) for one in lost] == [("con", "Connection", "connect again")]
        assert later.run(f"con = sqlite3.connect('x.db'); {WRITE}").ok


@pytest.mark.sampled(2)
@WAYS
@pytest.mark.parametrize("many", [1, 2])
def test_log_of_a_database_is_kept(session: Session, way: Way, many: int) -> None:
    session.run(f"{OPEN}; con.commit(); con.execute('pragma journal_mode = wal').fetchall()")
    session.run(f"{WRITE}; others = [sqlite3.connect('x.db') for _ in range({many - 1})]")
    every = f"{COUNTS}, *(one.execute('select count(*) from t').fetchone()[0] for one in others)"
    assert session.run(every).value == (2, 2) + (2,) * (many - 1)
    with way(session) as (later, lost):
        cell = later.run(
            f"before = {every}; {WRITE}; before, ({every}), con.execute('pragma integrity_check').fetchone()"
        )
        assert (cell.value, lost) == (((2,) * (many + 1), (3,) * (many + 1), ("ok",)), ()), cell.text


def test_log_that_was_written_back_and_removed_comes_back_with_undo(session: Session) -> None:
    session.run(f"{OPEN}; con.commit(); con.execute('pragma journal_mode = wal').fetchall()")
    session.run(WRITE)
    assert session.run("con.close(); os.path.exists('x.db-wal')").value is False
    session.undo()
    cell = session.run(f"{COUNTS}, os.path.exists('x.db-wal')")
    assert cell.value == (2, 2, True), cell.text
    assert session.run(f"{WRITE}; {COUNTS}").value == (3, 3)


@WAYS
def test_connection_that_only_reads_goes_on_to_only_read(session: Session, way: Way) -> None:
    session.run(f"{OPEN}; con.commit(); con.close(); con = sqlite3.connect('file:x.db?mode=ro', uri=True)")
    with way(session) as (later, _):
        assert later.run("con.execute('select count(*) from t').fetchone()[0]").value == 1
        assert "readonly" in later.run(WRITE).text
