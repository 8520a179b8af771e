"""Bodies in a bucket of a server of S3's protocol, with the client that is used: also where it fails half-way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from failing_proxy import FailingProxy

from cellblock.errors import StoreError
from cellblock.store import Store, blobs, open_store
from cellblock.store.bucket import BucketPlace
from cellblock.store.database import Database
from cellblock.store.places import Place
from cellblock.store.sqlite import SqliteDatabase
from cellblock.testing.stores import StoreConformance

pytestmark = pytest.mark.threat("D1")


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
    def place(self, bucket: str) -> Place:
        return BucketPlace.at(bucket)


def _commit(store: Store, number: int) -> tuple[str, bytes]:
    body = os.urandom(70_000)
    with store.hold("ana", "q3") as held, held.batch() as batch:
        address = batch.put(body)
        batch.commit(kind="cell", number=number, trees={}, detail={"data": blobs(address)})
    return address, body


FAILURES = ["refused", "reset", "500", "503", "cut", "garbage", "denied", "404", "409"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("failing", FAILURES)
def test_bucket_that_fails_half_way_loses_nothing_that_was_committed(
    bucket: str, proxy: FailingProxy, tmp_path: Path, failing: str
) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db?objects={bucket}") as store:
        known = dict(_commit(store, number) for number in range(3))
        bodies = [one for one in BucketPlace.at(bucket).listed("") if "/databases/" not in one.key]
        assert len(bodies) == 3
        said: list[str] = []
        with proxy.failing(failing):
            for address in known:
                with pytest.raises(StoreError):
                    store.read("ana", "q3").get(address)
            try:
                known |= dict([_commit(store, 3)])  # a server that says 200 to a body which it drops has it not
            except StoreError as error:
                said.append(str(error))
            for call in (store.verify, store.gc):
                try:
                    call()
                except StoreError as error:
                    said.append(str(error))
        assert [one for one in said if bucket not in one] == []
        assert len(known) == (4 if failing == "garbage" else 3)
        session = store.read("ana", "q3")
        assert len(list(session.log())) == len(known)
        lost = []
        for address, body in known.items():
            try:
                assert session.get(address) == body
            except StoreError:
                lost.append(address)
        assert lost == list(known)[3:]
        user = int(str(store._database.select("SELECT id FROM users")[0][0]))
        assert dict([_commit(store, 4)]).keys() <= {one for one, _ in store._objects(user).listed()}
        assert store.verify().ok is not bool(lost)


@pytest.mark.sampled(0)
def test_bucket_that_is_slow_serves(bucket: str, proxy: FailingProxy, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db?objects={bucket}") as store, proxy.failing("slow"):
        address, body = _commit(store, 0)
        assert store.read("ana", "q3").get(address) == body
        assert store.verify().ok


@pytest.mark.sampled(0)
def test_bucket_that_does_not_answer_is_given_up(
    bucket: str, proxy: FailingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.store.bucket._ANSWER_SECONDS", 2.0)
    with open_store(f"sqlite:///{tmp_path}/cells.db?objects={bucket}") as store:
        address, body = _commit(store, 0)
        with proxy.failing("stalled"):
            with pytest.raises(StoreError, match="cannot be reached") as told:
                store.read("ana", "q3").get(address)
            with pytest.raises(StoreError, match="cannot be reached"):
                BucketPlace.at(bucket).put("a/b", os.urandom(2 << 20))
        assert str(told.value.hint).startswith("see to the service and to the network, and try again")
        assert store.read("ana", "q3").get(address) == body


@pytest.mark.parametrize(
    ("failing", "remedy"),
    [("denied", "credentials"), ("409", "region and endpoint"), ("503", "see to the service"), ("cut", "see to the")],
)
def test_bucket_that_fails_is_told_with_what_helps(bucket: str, proxy: FailingProxy, failing: str, remedy: str) -> None:
    place = BucketPlace.at(bucket)
    with proxy.failing(failing), pytest.raises(StoreError) as told:
        place.put("a/b", b"body")
    assert str(told.value.hint).startswith(remedy)


@pytest.mark.sampled(0)
def test_bucket_is_listed_to_its_last_page(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "40")  # the server's pages; the client's own have fifty
    place = BucketPlace.at(bucket)
    keys = {place.put(f"a/{number}", b"body") for number in range(110)}
    assert {one.key for one in place.listed("a")} == keys


def test_body_of_many_megabytes_is_whole_in_a_bucket(bucket: str) -> None:
    place = BucketPlace.at(bucket)
    body = os.urandom(12 << 20)
    assert place.get(place.put("a/b", body)) == body


def test_object_in_a_bucket_is_never_overwritten(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.store.bucket.unique_word", lambda: "0" * 16)
    place = BucketPlace.at(bucket)
    key = place.put("a/b", b"first")
    with pytest.raises(StoreError):
        place.put("a/b", b"second")
    assert place.get(key) == b"first"


@pytest.mark.parametrize("name", ["put", "get"])
def test_driver_without_memory_is_told_as_the_store_s(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from obstore.store import MemoryStore

    place = BucketPlace(MemoryStore(), "s3://bucket")

    def fails(*_given: object, **_more: object) -> None:
        raise MemoryError

    monkeypatch.setattr(f"obstore.{name}", fails)
    with pytest.raises(StoreError, match="s3://bucket: this program has no memory left for it"):
        place.put("a", b"b") if name == "put" else place.get("a")


def test_a_fork_of_a_process_that_has_used_a_bucket_says_that_it_cannot(bucket: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db?objects={bucket}"
    with open_store(url) as store:
        _commit(store, 1)
    child = os.fork()
    if not child:
        status = 1
        with suppress(BaseException):
            try:
                with open_store(url) as store:
                    _commit(store, 2)
            except StoreError as error:
                status = 0 if "was forked from one that has used a bucket" in str(error) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
