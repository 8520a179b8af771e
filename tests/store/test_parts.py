"""The store's parts by themselves: URLs, names, links, packing, places, durability."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellblock.errors import StoreDamaged, StoreError
from cellblock.store import JSON, Store, Tree, address_of, blobs, linked, links, open_store, records
from cellblock.store.address import Link, canonical, parsed
from cellblock.store.naming import checked_name
from cellblock.store.objects import RAW, ZSTD, Packed, pack, unpack
from cellblock.store.places import DirectoryPlace, open_place
from cellblock.store.sqlite import SqliteDatabase
from cellblock.store.trie import update
from cellblock.store.upkeep import Collection
from cellblock.store.urls import default_url, parse_url

A, B, C = (address_of(text) for text in (b"a", b"b", b"c"))

# --- URLs ---


@pytest.mark.parametrize(
    ("url", "kind", "location", "schema", "objects"),
    [
        ("sqlite:///cells.db", "sqlite", "cells.db", "", ""),
        ("sqlite:////srv/a b/cells.db", "sqlite", "/srv/a b/cells.db", "", ""),
        ("sqlite:////srv/%23%3F.db?objects=/srv/o%3F", "sqlite", "/srv/#?.db", "", "/srv/o?"),
        ("sqlite:///~/cells.db", "sqlite", os.path.expanduser("~/cells.db"), "", ""),
        ("memory:", "memory", "", "", ""),
        ("memory:?objects=s3://bucket/cells", "memory", "", "", "s3://bucket/cells"),
        ("postgresql://ana@db:5433/cells", "postgresql", "postgresql://ana@db:5433/cells?connect_timeout=10",
         "cellblock", ""),
        ("postgres://ana:x@db/cells?schema=team_1&sslmode=require&objects=gs://b", "postgresql",
         "postgresql://ana:x@db/cells?connect_timeout=10&sslmode=require", "team_1", "gs://b"),
    ],
)  # fmt: skip
def test_url_is_taken_apart(url: str, kind: str, location: str, schema: str, objects: str) -> None:
    found = parse_url(url)
    assert (found.kind, found.location, found.schema, found.objects) == (kind, location, schema, objects)


@pytest.mark.threat("D2")
@pytest.mark.parametrize(
    "url",
    [
        "", "cells.db", "/srv/cells.db", "sqlite:", "sqlite://", "sqlite:///", "sqlite://cells.db", "sqlite://host/cells.db",
        "sqlite:cells.db", "sqlite:/srv/cells.db", "sqlite:///:memory:", "sqlite:///%FF.db",
        "sqlite:///cells.db?mode=memory", "sqlite:///cells.db#x", "memory:name", "memory://x", "http://x/y", "mysql://x/y",
        "sqlite:///a\0b", "sqlite:///a\nb", "postgresql://h/d?schema=a;drop", 'postgresql://h/d?schema="x"',
        "postgresql://h/d?schema=", "postgresql://[::1/d", "sqlite:///x.db?objects",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_store_is_refused(url: str) -> None:
    with pytest.raises(StoreError):
        parse_url(url)


def test_passwords_are_not_repeated() -> None:
    for url in (
        "postgresql://ana:secret@127.0.0.1:1/cells",
        "postgresql://ana@127.0.0.1:1/cells?password=secret&connect_timeout=2",
    ):
        assert "secret" not in parse_url(url).shown
        with pytest.raises(StoreError) as raised:
            open_store(url)
        assert "secret" not in str(raised.value)
        assert "see whether its server runs" in raised.value.hint
    with pytest.raises(StoreError) as raised:
        parse_url("mysql://ana:secret@db/cells")
    assert "secret" not in str(raised.value)


def test_default_is_the_environments_or_under_the_users_data(tmp_path: Path) -> None:
    assert default_url({"CELLBLOCK_STORE": "memory:"}) == "memory:"
    url = default_url({"XDG_DATA_HOME": str(tmp_path / "with space")})
    with open_store(url) as store:
        store.hold("ana", "q3").release()
    made = tmp_path / "with space" / "cellblock"
    assert made.stat().st_mode & 0o777 == 0o700
    assert (made / "sessions.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="no directory for stored sessions"):
        default_url({"XDG_DATA_HOME": str(tmp_path / "file")})
    with pytest.raises(StoreError, match="no home directory"):
        default_url({"XDG_DATA_HOME": "~/.local/share"})  # as it is where no user is known
    with pytest.raises(StoreError, match="is no UTF-8"):
        default_url({"XDG_DATA_HOME": str(tmp_path / "\udcff")})


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, driver, url, extra in (
        ("cellblock.store.postgres", "psycopg", "postgresql://h/d", "cellblock[postgres]"),
        ("cellblock.store.bucket", "obstore", "memory:?objects=s3://b", "cellblock[bucket]"),
    ):
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setitem(sys.modules, driver, None)
        with pytest.raises(StoreError) as raised:
            open_store(url)
        assert extra in raised.value.hint


# --- names ---


@pytest.mark.threat("D2")
def test_one_name_has_one_spelling() -> None:
    assert checked_name("cafe\u0301", "user") == checked_name("caf\u00e9", "user") == "caf\u00e9"
    for name in ("ana@example.org", "q3/report", "..", "日本 語", "Ελλάδα", "москва", "x" * 200):
        assert checked_name(name, "user") == name
    with pytest.raises(StoreError) as raised:
        checked_name("\uff41na", "user")
    assert raised.value.hint == "say 'ana'"
    with pytest.raises(TypeError):
        checked_name(b"ana", "user")  # type: ignore[arg-type]


# --- links ---


def test_links_are_found_wherever_they_are() -> None:
    value: JSON = {"x": [blobs(A, B), {"y": records(C)}], "z": blobs(A), "none": blobs(), "/": 1}
    assert sorted(links(value)) == sorted([Link(A, False), Link(B, False), Link(C, True), Link(A, False)])
    assert linked(blobs(A, B)) == (A, B)
    assert linked(records()) == ()
    for no_link in ({"/": A, "x": 1}, {"/": "path"}, {"/": [A, "x"]}, {"/": 1}, A, [A], None):
        with pytest.raises(StoreError):
            linked(no_link)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@pytest.mark.sampled(0)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12))
def test_canonical_json_comes_back_and_is_one(value: JSON) -> None:
    data = canonical(value)
    assert parsed(data) == value
    assert canonical(parsed(data)) == data


def test_depth_without_end_is_refused() -> None:
    deep: JSON = None
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(StoreError):
        canonical(deep)
    with pytest.raises(StoreError):
        parsed("[" * 100_000 + "]" * 100_000)


# --- packing ---


@given(st.binary(max_size=2000), st.integers(1, 400))
def test_packed_bytes_come_back(data: bytes, times: int) -> None:
    data *= times
    assert unpack(pack(address_of(data), data), len(data)) == data


def test_what_does_not_compress_is_stored_as_it_is() -> None:
    noise = random.Random(1).randbytes(200_000)
    assert pack(address_of(noise), noise).codec == RAW
    mixed = bytes(200_000)
    packed = pack(address_of(mixed), mixed)
    assert packed.codec == ZSTD
    assert len(packed.body) < 1000


@pytest.mark.threat("D1")
def test_body_that_would_unpack_to_more_than_was_noted_is_damage() -> None:
    bomb = pack(address_of(bytes(1 << 24)), bytes(1 << 24))
    for packed in (
        Packed(bomb.address, ZSTD, 100, bomb.body),
        Packed(bomb.address, ZSTD, bomb.length + 1, bomb.body),
        Packed(A, ZSTD, bomb.length, bomb.body),
        Packed(A, RAW, 1, b"b"),
        Packed(A, ZSTD, 1, b"no frame"),
        Packed(A, 7, 1, b"a"),
    ):
        with pytest.raises(StoreDamaged, match="is damaged"):
            unpack(packed, 1 << 25)


def test_no_more_is_unpacked_than_was_noted_or_may_be_read() -> None:
    bomb = pack(address_of(bytes(1 << 26)), bytes(1 << 26))
    tracemalloc.start()
    try:
        with pytest.raises(StoreDamaged, match="is damaged"):
            unpack(Packed(bomb.address, ZSTD, 100, bomb.body), 1 << 27)
        with pytest.raises(StoreDamaged, match="takes 64 MB, where 1 are read at most"):
            unpack(bomb, 1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


# --- trees ---


VALUES = st.none() | st.integers(0, 2) | st.just("x" * 1100)


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=150), max_size=4))
@settings(deadline=None, max_examples=60)
def test_tree_is_a_dict(changes: list[dict[str, JSON]]) -> None:
    stored: dict[str, JSON] = {}

    def put(value: JSON) -> str:
        address = address_of(canonical(value))
        stored[address] = parsed(canonical(value))
        return address

    tree, model = Tree(stored.__getitem__, None), dict[str, JSON]()
    trees = [(tree, model)]
    for change in changes:
        tree = Tree(stored.__getitem__, update(stored.__getitem__, put, tree.root, change))
        model = {key: value for key, value in {**model, **change}.items() if value is not None}
        trees.append((tree, model))
        assert dict(tree.pairs()) == dict(tree) == model
        assert len(tree) == len(model)
        assert tree.root == update(stored.__getitem__, put, None, dict(sorted(model.items(), reverse=True)))
        for key in [*change, "missing"]:
            assert tree.get(key) == model.get(key)
    for old, before in trees:
        for new, after in trees:
            told = {one.key: (one.old, one.new) for one in old.diff(new)}
            keys = before.keys() | after.keys()
            assert told == {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


@pytest.mark.parametrize(
    "node",
    [
        None,
        1,
        [],
        {},
        {"here": 1},
        {"digits": "01", "counts": [1], "kids": {"@": [A, B]}},
        {"here": [["x"]]},
        {"here": {"x": 1}},
    ],
)
def test_record_that_is_no_node_is_an_error(node: JSON) -> None:
    with pytest.raises(StoreError):
        Tree(lambda address: node, A)["x"]


# --- places ---


def test_unfinished_and_unneeded_bodies_are_swept_when_they_are_old(tmp_path: Path) -> None:
    place = DirectoryPlace(str(tmp_path / "objects"))
    with Store(SqliteDatabase(None), place) as store:
        held = store.hold("ana", "q3")
        noise = random.Random(1).randbytes(100_000)
        with held.batch() as batch:
            kept = batch.put(noise)
            batch.commit(kind="cell", trees={}, detail={"it": blobs(kept)})
        files = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
        (file,) = (path for path in files if "databases" not in path.parts)
        for suffix, age in ((".0123456789abcdef", 4000), (".00.part", 4000), (".young", 10)):
            stray = file.with_name(file.name + suffix)
            shutil.copy(file, stray)
            os.utime(stray, (time.time() - age,) * 2)
        os.utime(file, (0, 0))
        assert store.gc().strays == 2
        assert sorted(path.name for path in file.parent.iterdir()) == [file.name, file.name + ".young"]
        assert held.get(kept) == noise
        file.unlink()
        with pytest.raises(StoreDamaged, match="is missing from"):
            held.get(kept)
        (damage,) = store.verify().damage
        assert (damage.address, damage.problem) == (kept, "its body is missing")
        held.release()


def test_store_opened_without_its_place_says_what_is_missing(tmp_path: Path) -> None:
    url, place = f"sqlite:///{tmp_path}/cells.db", f"?objects={tmp_path}/objects"
    noise = random.Random(1).randbytes(500_000)
    with open_store(url + place) as store, store.hold("ana", "q3") as held, held.batch() as batch:
        data = batch.put(noise)
        batch.commit(kind="cell", trees={}, detail={"it": blobs(data)})
    assert (tmp_path / "cells.db").stat().st_size < 300_000
    with open_store(url) as store, pytest.raises(StoreError, match="lies outside of the database") as raised:
        store.read("ana", "q3").get(data)
    assert "?objects=" in raised.value.hint
    with open_store(f"{url}?objects=file://{tmp_path}/objects") as store:
        assert store.read("ana", "q3").get(data) == noise


def test_nothing_is_put_into_another_directory_than_the_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db?objects={tmp_path}/objects"
    noise = [random.Random(seed).randbytes(500_000) for seed in range(3)]
    with open_store(url) as store, store.hold("ana", "q3") as held:
        with held.batch() as batch:
            first = batch.put(noise[0])
            batch.commit(kind="cell", trees={}, detail={"it": blobs(first)})
        (tmp_path / "objects").rename(tmp_path / "elsewhere")  # as when its disk is not mounted
        with held.batch() as batch:
            batch.put(noise[1])
            with pytest.raises(StoreError, match="has nothing of this store") as caught:
                batch.flush()
        assert caught.value.hint.startswith("see that its volume is mounted")
        with pytest.raises(StoreDamaged, match="is missing from") as missing:
            held.get(first)
        assert missing.value.hint == caught.value.hint
        (tmp_path / "elsewhere").rename(tmp_path / "objects")
        with held.batch() as batch:
            second = batch.put(noise[2])
            batch.commit(kind="cell", trees={}, detail={"it": blobs(second)})
        assert [held.get(first), held.get(second)] == [noise[0], noise[2]]


def test_collection_in_a_copy_of_a_store_deletes_nothing_that_the_original_needs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, noise = f"?objects={tmp_path}/objects", [random.Random(seed).randbytes(500_000) for seed in range(3)]

    def put(name: str, body: bytes) -> str:
        with open_store(f"sqlite:///{tmp_path}/{name}.db{place}") as store, store.hold("ana", "q3") as held:
            with held.batch() as batch:
                address = batch.put(body)
                batch.commit(kind="cell", trees={}, detail={"it": blobs(address)})
            return address

    first = put("cells", noise[0])
    shutil.copy(tmp_path / "cells.db", tmp_path / "copy.db")
    second = put("cells", noise[1])
    for file in (tmp_path / "objects").rglob("*"):
        os.utime(file, (0, 0))
    with open_store(f"sqlite:///{tmp_path}/copy.db{place}") as copy:
        copy.delete("ana", "q3")
        swept = copy.gc(grace_seconds=0)
        assert (swept.deleted, swept.strays) == (0, 0) or swept.strays == 0
        assert f"is also of {tmp_path}/cells.db" in caplog.text
        copy.gc(grace_seconds=0)
    with open_store(f"sqlite:///{tmp_path}/cells.db{place}") as store:
        assert [store.read("ana", "q3").get(one) for one in (first, second)] == noise[:2]
        assert store.verify().ok


def test_a_second_user_has_objects_in_the_place_too(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db?objects={tmp_path}/objects") as store:
        for user in ("ana", "bob"):
            with store.hold(user, "q3") as held, held.batch() as batch:
                body = random.Random(user).randbytes(100_000)
                address = batch.put(body)
                batch.commit(kind="cell", trees={}, detail={"it": blobs(address)})
            assert store.read(user, "q3").get(address) == body


@pytest.mark.threat("D2")
@pytest.mark.parametrize("key", ["../../etc/passwd", "/etc/passwd", "a/../../b", "a//b", ".", ""])
def test_key_that_leads_out_of_the_directory_is_refused(tmp_path: Path, key: str) -> None:
    place = DirectoryPlace(str(tmp_path))
    for call in (place.get, place.delete):
        with pytest.raises(StoreError, match="is not the key"):
            call(key)


def test_places_are_named_by_url(tmp_path: Path) -> None:
    assert open_place("") is None
    assert str(open_place(str(tmp_path / "o"))) == str(tmp_path / "o")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="objects cannot be kept in"):
        open_place(str(tmp_path / "file" / "o"))
    with pytest.raises(StoreError, match="objects cannot be kept in"):
        open_place("nonsense://bucket")


@pytest.mark.threat("D1")
@pytest.mark.parametrize("what", ["a pipe", "a link", "a link to itself", "a directory", "more than it had"])
def test_what_lies_in_the_place_of_an_object_and_is_none_is_missing(what: str, tmp_path: Path) -> None:
    place = open_place(str(tmp_path))
    assert place is not None
    key = place.put("store/1/" + A, b"body")
    path = tmp_path / key
    path.unlink()
    match what:
        case "a pipe":
            os.mkfifo(path)
        case "a link":
            path.symlink_to("/dev/zero")
        case "a link to itself":
            path.symlink_to(path)
        case "a directory":
            path.mkdir()
        case _:
            path.write_bytes(b"bodybody")
    assert place.get(key, 4) is None
    (path.parent / os.fsdecode(b"\xff")).touch()  # no object's, and no key
    assert [one.key for one in place.listed("store")] == [key] * (what != "a directory")


def test_bucket_keeps_bodies_by_url(tmp_path: Path) -> None:
    from cellblock.store.bucket import BucketPlace

    (tmp_path / "bucket").mkdir()
    place = BucketPlace.at(f"file://{tmp_path}/bucket")
    key = place.put("store/1/" + A, b"body")
    assert place.put("store/1/" + A, b"body") != key
    assert place.get(key) == b"body"
    assert {one.key for one in place.listed("store/1")} >= {key}
    assert all(0 <= one.age < 600 for one in place.listed("store/1"))
    place.delete(key)
    place.delete(key)
    assert place.get(key) is None
    shutil.rmtree(tmp_path / "bucket")
    (tmp_path / "bucket").write_text("")
    for call in (lambda: place.put("store/1/" + A, b"x"), lambda: list(place.listed("store/1"))):
        with pytest.raises(StoreError, match="bucket"):
            call()


# --- durability ---


def test_what_is_acknowledged_is_on_the_disk_and_an_entry_waits_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power is played by what the files held at the last fsync of each."""
    disk = tmp_path / "disk"
    disk.mkdir()
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.append(path.name)
        if path.is_file():
            shutil.copy(path, disk / path.name)

    monkeypatch.setattr(os, "fsync", fsync)
    with open_store(f"sqlite:///{tmp_path}/cells.db") as store:
        store._database.compact()
        shutil.copy(tmp_path / "cells.db", disk / "cells.db")  # by SQLite's own fsync
        held = store.hold("ana", "q3")
        with held.batch() as batch:
            root = batch.tree(None, {"x": 1})
            made = batch.commit(kind="cell", trees={"names": root})
        assert "cells.db-wal" in synced
        synced.clear()
        held.append({"n": 1})
        assert synced == []
        assert _after_power_loss(disk, tmp_path / "1") == (made.id, [])
        held.flush()
        assert _after_power_loss(disk, tmp_path / "2") == (made.id, [{"n": 1}])
        held.release()


def test_commit_during_which_another_thread_moved_the_session_is_refused(tmp_path: Path) -> None:
    """The move comes as the commit's large record is put into its place, after its parents were looked up."""
    moves: list[str] = []

    class Moving(DirectoryPlace):
        def put(self, prefix: str, body: bytes) -> str:
            while moves:
                held.move(moves.pop())
            return super().put(prefix, body)

    place = Moving(str(tmp_path / "objects"))
    with Store(SqliteDatabase(str(tmp_path / "cells.db")), place) as store, store.hold("ana", "q3") as held:
        first = held.batch().commit(kind="cell", trees={})
        held.branch("side")
        moves.append("side")
        with pytest.raises(StoreError, match="was moved while a commit was made"):
            held.batch().commit(kind="cell", message=random.Random(1).randbytes(100_000).hex(), trees={})
        assert (held.head().branch, held.head().commit, set(held.branches().values())) == ("side", first.id, {first.id})


def _after_power_loss(disk: Path, place: Path) -> tuple[str | None, list[object]]:
    shutil.copytree(disk, place)
    with open_store(f"sqlite:///{place}/cells.db") as store:
        session = store.read("ana", "q3")
        assert store.verify().ok
        return session.head().commit, [entry.value for entry in session.journal()]


@pytest.mark.sampled(0)
def test_log_beside_the_file_is_kept_short(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db") as store, store.hold("ana", "q3") as held:
        for number in range(40):
            with held.batch() as batch:
                batch.put(random.Random(number).randbytes(1_000_000))
                batch.commit(kind="cell", trees={})
        assert (tmp_path / "cells.db-wal").stat().st_size < 20 << 20
        assert (tmp_path / "cells.db").stat().st_size > 20 << 20


def test_an_entry_that_is_appended_at_once_does_not_cut_off_the_log(tmp_path: Path) -> None:
    """That takes the disk some time, and an event loop waits: here after a thread has brought it into the file."""
    log = tmp_path / "cells.db-wal"
    with open_store(f"sqlite:///{tmp_path}/cells.db") as store, store.hold("ana", "q3") as held:
        with held.batch() as batch:
            batch.put(random.Random(1).randbytes(4_000_000))  # for which a flush does not shorten it
            batch.commit(kind="cell", trees={})
        size = log.stat().st_size
        with closing(sqlite3.connect(tmp_path / "cells.db")) as beside:
            assert beside.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
        assert held.append_at_once({"n": 1}) is not None
        assert log.stat().st_size >= size > 4_000_000
        assert [entry.value for entry in held.journal()] == [{"n": 1}]


# --- collections ---


def test_commits_go_on_beside_a_collection_that_did_not_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit is made at each step of a collection, of new bytes, and of bytes that nothing had led to."""
    with open_store("memory:") as store, store.hold("ana", "q3") as held:
        with held.batch() as batch:
            left = [batch.put(b"left%d" % number * 2000) for number in range(20)]
            batch.flush()
        root: str | None = None
        steps = 0

        def beside(step: Callable[..., object]) -> Callable[..., object]:
            def stepped(*arguments: object) -> object:
                nonlocal root, steps
                result = step(*arguments)
                with held.batch() as batch:
                    data = batch.put(b"new%d" % steps * 2000)
                    root = batch.tree(root, {f"n{steps}": blobs(data), f"l{steps}": blobs(left[steps])})
                    batch.commit(kind="cell", trees={"names": root})
                steps += 1
                return result

            return stepped

        for name in ("_marked", "_acquit", "_condemn", "_delete"):
            step = getattr(Collection, name)
            monkeypatch.setattr(Collection, name, beside(step))
        store.gc()
        monkeypatch.undo()
        assert steps >= 4
        with held.batch() as batch:
            assert len(batch.known(left[:steps])) == steps
            batch.commit(kind="cell", trees={"names": batch.tree(root, {"last": 1})})
        assert store.gc().condemned == 0
        assert store.verify().ok
