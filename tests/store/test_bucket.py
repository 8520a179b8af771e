"""Bodies in a bucket behind S3's protocol, with the client that is used: also where its server fails half-way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from bucket_server import BucketServer

from cellblock.errors import StoreError
from cellblock.store import Store, blobs, open_store
from cellblock.store.bucket import BucketPlace
from cellblock.store.database import Database
from cellblock.store.places import Place
from cellblock.store.sqlite import SqliteDatabase
from cellblock.testing.stores import StoreConformance

pytestmark = pytest.mark.threat("D1")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    monkeypatch.setattr("cellblock.store.bucket._PATIENCE", timedelta(seconds=0.5))
    with BucketServer() as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


class TestBucketOfAServer(StoreConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Iterator[Callable[[], Database]]:
        opened: list[SqliteDatabase] = []

        def connect() -> Database:
            opened.append(SqliteDatabase(str(tmp_path / "cells.db")))
            return opened[-1]

        yield connect
        for database in opened:
            database.close()

    @pytest.fixture
    def place(self, bucket: BucketServer) -> Place:
        return BucketPlace.at(bucket.url)


def _commit(store: Store, number: int) -> tuple[str, bytes]:
    body = os.urandom(70_000)
    with store.hold("ana", "q3") as held, held.batch() as batch:
        address = batch.put(body)
        batch.commit(kind="cell", number=number, trees={}, detail={"data": blobs(address)})
    return address, body


@pytest.mark.parametrize("failing", ["refused", "500", "503", "cut", "garbage", "denied", "404", "409"])
def test_bucket_that_fails_half_way_loses_nothing_that_was_committed(
    bucket: BucketServer, tmp_path: Path, failing: str
) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db?objects={bucket.url}") as store:
        known = dict(_commit(store, number) for number in range(3))
        assert len(bucket.objects) == 3
        bucket.failing = failing
        for address in known:
            with pytest.raises(StoreError):
                store.read("ana", "q3").get(address)
        said: list[str] = []
        try:
            known |= dict([_commit(store, 3)])  # a server that says 200 to a body which it drops has it not
        except StoreError as error:
            said.append(str(error))
        for call in (store.verify, store.gc):
            try:
                call()
            except StoreError as error:
                said.append(str(error))
        assert [one for one in said if bucket.url not in one] == []
        bucket.failing = ""
        session = store.read("ana", "q3")
        assert len(list(session.log())) == len(known)
        lost = []
        for address, body in known.items():
            try:
                assert session.get(address) == body
            except StoreError:
                lost.append(address)
        assert lost == list(known)[3:]
        assert dict([_commit(store, 4)]).keys() <= {one for one, _ in store._objects(1).listed()}
        assert store.verify().ok is not bool(lost)
