"""Formats: each that was ever released is read, newer ones and other programs' are refused, migrations run once."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import threading
from pathlib import Path

import pytest
from postgres_server import Server

from cellblock.errors import StoreError
from cellblock.store import Store, address_of, open_store
from cellblock.store.database import Database
from cellblock.store.postgres import PostgresDatabase
from cellblock.store.schema import MIGRATIONS
from cellblock.store.sqlite import SqliteDatabase
from cellblock.store.urls import parse_url

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
sys.path.append(str(HERE))

from golden_store import tell  # noqa: E402 - a program beside this file

FORMATS = range(1, len(MIGRATIONS) + 1)

pytestmark = pytest.mark.threat("D1")


def opened_postgres(url: str) -> PostgresDatabase:
    parts = parse_url(url)
    return PostgresDatabase(parts)


@pytest.mark.parametrize("number", FORMATS)
def test_sqlite_file_of_every_format_is_read(tmp_path: Path, number: int) -> None:
    path = tmp_path / "old.db"
    shutil.copy(GOLDEN / f"format-{number}.sqlite", path)
    with open_store(f"sqlite:///{path}") as store:
        assert tell(store) == json.loads((GOLDEN / f"format-{number}.sqlite.json").read_text())
        with store.hold("ana", "q3") as held, held.batch() as batch:
            assert batch.commit(kind="cell", trees={}).depth == 4


@pytest.mark.parametrize("number", FORMATS)
def test_postgres_tables_of_every_format_are_read(postgres: Server, postgres_url: str, number: int) -> None:
    import psycopg

    schema = parse_url(postgres_url).schema
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path = {schema}")
        connection.execute((GOLDEN / f"format-{number}.postgres.sql").read_text())
    with open_store(postgres_url) as store:
        assert tell(store) == json.loads((GOLDEN / f"format-{number}.postgres.json").read_text())


def test_trees_and_records_have_the_addresses_they_always_had(tmp_path: Path) -> None:
    """What is written today is what was written then: a commit of equal content has an equal id."""
    with open_store("memory:") as store, store.hold("ana", "q3") as held, held.batch() as batch:
        assert batch.put(b"cell") == address_of(b"cell")
        addresses = [
            batch.put(b""),
            batch.record({"b": [1, 2.5, None, True, "é\0\ud800"], "a": {"/": []}}),
            batch.tree(None, {"x": 1}),
            batch.tree(None, {f"n{n}": {"n": n} for n in range(65)}),
            batch.tree(None, {f"n{n}": "x" * 1100 for n in range(3000)}),
        ]
    assert addresses == json.loads((GOLDEN / "addresses.json").read_text())


def newer(database: Database) -> None:
    database.once("UPDATE meta SET value = ? WHERE name = 'format'", str(len(MIGRATIONS) + 1))


def test_sqlite_file_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    open_store(f"sqlite:///{path}").close()
    database = SqliteDatabase(str(path))
    newer(database)
    database.compact()
    database.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"is of format {len(MIGRATIONS) + 1}, and this version .* up to") as raised:
        open_store(f"sqlite:///{path}")
    assert raised.value.hint == "upgrade cellblock"
    assert path.read_bytes() == before


def test_postgres_tables_of_a_newer_format_are_refused(postgres_url: str) -> None:
    database = opened_postgres(postgres_url)
    newer(database)
    database.close()
    with pytest.raises(StoreError, match="is of format"):
        open_store(postgres_url)


def test_other_programs_sqlite_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    for mark in (0, 1234):
        path = tmp_path / f"other{mark}.db"
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA application_id = {mark}")
        connection.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        connection.commit()
        connection.close()
        before = path.read_bytes()
        with pytest.raises(StoreError, match="of another program"):
            open_store(f"sqlite:///{path}")
        assert path.read_bytes() == before


def test_other_programs_postgres_schema_is_refused(postgres: Server, postgres_url: str) -> None:
    import psycopg

    schema = parse_url(postgres_url).schema
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.meta (name TEXT, value TEXT)")
    with pytest.raises(StoreError, match="another program") as raised:
        open_store(postgres_url)
    assert "?schema=" in raised.value.hint


ADDED = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour {text}", "UPDATE sessions SET colour = 'blue'"))
FAILING = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour {text}", "this is no statement"))


def _migrates(connect: type[SqliteDatabase], *arguments: str) -> None:
    with Store(connect(*arguments)) as store:
        store.hold("ana", "q3").release()
    with pytest.raises(StoreError):
        connect(*arguments, migrations=FAILING)
    with Store(connect(*arguments)) as store:  # of which nothing was left
        store.hold("ana", "q3").release()
    for _ in range(2):
        database = connect(*arguments, migrations=ADDED)
        assert database.select("SELECT name, colour FROM sessions") == [("q3", "blue")]
        database.close()
    with pytest.raises(StoreError, match="upgrade cellblock"):
        connect(*arguments)


def test_migration_runs_once_and_whole_in_sqlite(tmp_path: Path) -> None:
    _migrates(SqliteDatabase, str(tmp_path / "cells.db"))


def test_migration_runs_once_and_whole_in_postgres(postgres_url: str) -> None:
    parts = parse_url(postgres_url)
    _migrates(PostgresDatabase, parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_store_that_many_hosts_make_at_once_is_made_once(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/cells.db" if where == "sqlite" else request.getfixturevalue("postgres_url")
    start = threading.Barrier(8)
    opened: list[Store] = []
    errors: list[Exception] = []

    def run() -> None:
        start.wait(60)
        try:
            opened.append(open_store(url))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == [], [str(error.__cause__) for error in errors]
    assert len({store.identity for store in opened}) == 1
    for store in opened:
        store.close()
