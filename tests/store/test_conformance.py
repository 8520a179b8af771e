"""The contract of a store, over every database and every place for large objects that ships."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from cellblock.store.bucket import BucketPlace
from cellblock.store.database import Database
from cellblock.store.places import DirectoryPlace, Place
from cellblock.store.postgres import PostgresDatabase
from cellblock.store.sqlite import SqliteDatabase
from cellblock.store.urls import parse_url
from cellblock.testing import StoreConformance


@pytest.fixture
def opened() -> Iterator[list[Database]]:
    """Databases that are closed after the test."""
    databases: list[Database] = []
    yield databases
    for database in databases:
        database.close()


class TestSqlite(StoreConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path, opened: list[Database]) -> Callable[[], Database]:
        def connect() -> Database:
            opened.append(SqliteDatabase(str(tmp_path / "cells.db")))
            return opened[-1]

        return connect


class TestMemory(StoreConformance):
    @pytest.fixture
    def connect(self, opened: list[Database]) -> Callable[[], Database]:
        opened.append(SqliteDatabase(None))
        return lambda: opened[0]


class TestPostgres(StoreConformance):
    @pytest.fixture
    def connect(self, postgres_url: str, opened: list[Database]) -> Callable[[], Database]:
        def connect() -> Database:
            parts = parse_url(postgres_url)
            opened.append(PostgresDatabase(parts))
            return opened[-1]

        return connect


class TestSqliteAndDirectory(TestSqlite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place | None:
        return DirectoryPlace(str(tmp_path / "objects"))


class TestMemoryAndBucket(TestMemory):
    @pytest.fixture
    def place(self) -> Place | None:
        return BucketPlace(MemoryStore(), "memory")
