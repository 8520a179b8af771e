"""Disks that are full, read-only or damaged: a clear error, and nothing else lost."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import cellblock
from cellblock import Session, Versioned
from cellblock.errors import SessionHeld, StoreError, UnknownCommit
from cellblock.store import Damage, Store, blobs, open_store

PROGRAM = Path(__file__).parent / "small_disk.py"
NAMESPACE = ["unshare", "--map-root-user", "--mount"]

pytestmark = pytest.mark.threat("D1")


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """The words that start a program where it may mount."""
    tried = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no namespace to mount in: {tried.stderr.strip()}")
    return NAMESPACE


DISKS = ["full", "full-objects", "large", "many", "many-objects", "read-only", "crashed-read-only"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", DISKS)
def test_disk_that_takes_no_more_costs_nothing_that_was_committed(
    namespace: list[str], tmp_path: Path, what: str
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
    done = subprocess.run(
        [*namespace, sys.executable, str(PROGRAM), what, str(tmp_path)],
        capture_output=True, text=True, env=environment, timeout=100,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stderr


_LIMITED = """
import os, resource, sys
from cellblock import CellblockError
from cellblock.store import open_store
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with open_store(sys.argv[1]) as store, store.hold("ana", "q3") as held:
        for _ in range(100):
            with held.batch() as batch:
                batch.put(os.urandom(40_000))
                batch.commit(kind="cell", trees={})
except CellblockError as error:
    print(type(error).__name__, error)
"""


_OUT_OF_MEMORY = """
import os, sqlite3, sys
from cellblock import CellblockError
from cellblock.store import open_store
data = [os.urandom(2_000_000) for _ in range(3)]
with open_store(sys.argv[1]) as store, store.hold("ana", "q3") as held:
    with held.batch() as batch:
        batch.put(b"before")
        batch.commit(kind="cell", trees={})
    sqlite3.connect(":memory:").execute("PRAGMA hard_heap_limit=1000000")  # of the whole process
    try:
        with held.batch() as batch:
            for one in data:
                batch.put(one)
            batch.commit(kind="cell", trees={})
    except CellblockError as error:
        print(type(error).__name__, error)
    print(len(list(held.log())))
"""


@pytest.mark.parametrize("url", ["sqlite:///{}/cells.db", "memory:"])
def test_database_without_memory_is_told_as_the_store_s(tmp_path: Path, url: str) -> None:
    command = [sys.executable, "-c", _OUT_OF_MEMORY, url.format(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    where = f"{tmp_path}/cells.db" if "sqlite" in url else "in memory"
    assert done.stdout.splitlines() == [
        f"StoreError the store {where}: this program has no memory left for it (have the program hold less, or give it"
        " more; what was committed before is whole, and is tried again)",
        "1",
    ], done.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize("most", [4096, 20_000, 65_536, 1_000_000])
def test_limit_of_a_file_s_size_is_told_by_its_name(tmp_path: Path, most: int) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    done = subprocess.run([sys.executable, "-c", _LIMITED, url, str(most)], capture_output=True, text=True, timeout=100)
    said = f"this program may write no file of more than {most} bytes (RLIMIT_FSIZE)"
    told = (
        f"StoreError the store {tmp_path}/cells.db cannot be written: {said} (raise the limit: ulimit -f unlimited)\n"
    )
    assert (done.stdout, done.stderr) == (told, "")


_CUT = """
import os, resource, sys
from cellblock import StoreError
from cellblock.store import open_store
log = sys.argv[1] + "-wal"
with open_store("sqlite:///" + sys.argv[1]) as store, store.hold("ana", "q3") as held:
    with held.batch() as batch:
        batch.put(b"x" * 10_000)
        batch.commit(kind="cell", trees={})
    before = os.stat(log).st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (before + 3_000_000, -1))
    try:
        with held.batch() as batch:
            batch.put(os.urandom(9_000_000))
    except StoreError:
        print(os.stat(log).st_size - before)
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    with held.batch() as batch:
        batch.put(os.urandom(9_000_000))
        batch.commit(kind="cell", trees={})
    print(store.verify().ok, len(list(held.log())))
"""


@pytest.mark.sampled(0)
def test_write_that_fails_gives_back_its_room(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _CUT, f"{tmp_path}/cells.db"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\nTrue 2\n", "")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A store that was closed, with a file of half a megabyte."""
    path = tmp_path / "cells.db"
    with open_store(f"sqlite:///{path}") as store, store.hold("ana", "q3") as held:
        root = None
        for number in range(10):
            with held.batch() as batch:
                data = batch.put(random.Random(number).randbytes(40_000))
                root = batch.tree(root, {f"n{n}": {"at": number, "data": blobs(data)} for n in range(number, 10)})
                batch.commit(kind="cell", number=number, trees={"names": root})
            held.append({"number": number})
    return path


def everything(store: Store) -> list[object]:
    """All of a session that hashes protect, in order; the rest is read too."""
    session = store.read("ana", "q3")
    session.journal()
    out: list[object] = []
    for commit in session.log():
        out.append(commit)
        for key, value in session.tree(commit.trees["names"]).pairs():
            assert isinstance(value, dict)
            data = value["data"]
            assert isinstance(data, dict)
            out.append((key, value, session.get(str(data["/"]))))
    return out


def test_damaged_file_gives_what_was_stored_or_an_error(written: Path, tmp_path: Path) -> None:
    """A page overwritten, a bit turned, the end cut off, at places that another seed would choose differently."""
    with open_store(f"sqlite:///{written}") as store:
        truth = everything(store)
    order = random.Random(3)
    outcomes = set()
    for number in range(30):
        path = tmp_path / f"damaged{number}.db"
        shutil.copy(written, path)
        _harm(path, order)
        try:
            with open_store(f"sqlite:///{path}") as store:
                assert everything(store) == truth
                outcomes.add("whole")
        except (StoreError, UnknownCommit):
            outcomes.add("told")
        try:
            with open_store(f"sqlite:///{path}") as store:
                store.verify()
        except StoreError:
            outcomes.add("cannot be verified")
    assert {"whole", "told"} <= outcomes


def _harm(path: Path, order: random.Random) -> None:
    size = path.stat().st_size
    kind = order.choice(["page", "bit", "bit", "bit", "cut"])
    with open(path, "r+b") as file:
        if kind == "cut":
            file.truncate(order.randrange(size))
        elif kind == "page":
            file.seek(order.randrange(size // 8192) * 8192)
            file.write(order.randbytes(8192))
        else:
            place = order.randrange(size)
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ (1 << order.randrange(8))]))


def _damage_and_read(source: Path, tmp_path: Path, order: random.Random, count: int) -> Counter[str]:
    """Turn bytes of copies of a store, its bodies outside included: what reading, verifying, collecting and going on
    with each came to. Anything but the truth or a StoreError fails.
    """
    (tmp_path / "work").mkdir()

    def url_of(directory: Path) -> str:
        return f"sqlite:///{directory}/cells.db?objects={directory}/objects"

    def read(store: Store) -> list[object]:
        """All that the store holds for good, but for plain numbers: SQLite hashes none, and a row may be out of sight
        for one that is wrong. So an entry of the journal may be missing, and none may be another one.
        """
        rows = [replace(one, holder=None, created=0, used=0, depth=0, pending=0) for one in store.sessions()]
        if damaged := [one.damaged for one in rows if one.damaged]:
            raise StoreError(damaged[0])  # told in the row
        assert all(one.value == {"number": 1} for one in store.read("ana", "q3").journal())
        return [rows, *everything(store)]

    def hold(store: Store) -> None:
        with store.hold("ana", "q3") as held, held.batch() as batch:
            held.append({"n": 1})
            batch.commit(kind="cell", trees={})

    with open_store(url_of(source)) as store:
        truth = read(store)
    database = source / "cells.db"
    places = [at for at, byte in enumerate(database.read_bytes()) if byte]  # empty pages tell nothing
    bodies = sorted(path for path in (source / "objects").rglob("*") if path.is_file())
    outcomes: Counter[str] = Counter()
    for number in range(count):
        copied = tmp_path / "work" / str(number)
        shutil.copytree(source, copied)
        victim = database if order.random() < 0.8 else order.choice(bodies)
        path = copied / victim.relative_to(source)
        content = bytearray(path.read_bytes())
        for _ in range(order.choice((1, 1, 5, 20))):
            at = order.choice(places) if victim is database else order.randrange(len(content))
            content[at] = order.choice((content[at] ^ (1 << order.randrange(8)), 0, 0xFF, order.randrange(256)))
        path.write_bytes(content)
        for call in (read, Store.verify, Store.gc, hold):
            try:
                with open_store(url_of(copied)) as store:
                    found = call(store)
                assert call is not read or found == truth, (number, victim)
                outcomes["whole"] += 1
            except (StoreError, UnknownCommit):
                outcomes["told"] += 1
        shutil.rmtree(copied)
    return outcomes


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """The directory of a store with bodies inside and outside of its database."""
    directory = tmp_path / "large"
    url = f"sqlite:///{directory}/cells.db?objects={directory}/objects"
    directory.mkdir()
    with open_store(url) as store, store.hold("ana", "q3") as held:
        root = None
        for number in range(4):
            with held.batch() as batch:
                data = [batch.put(random.Random(number).randbytes(size)) for size in (300, 70_000)]
                root = batch.tree(root, {f"n{number}": {"at": number, "data": blobs(data[number % 2])}})
                batch.commit(kind="cell", number=number, trees={"names": root})
        held.append({"number": 1})
    return directory


@pytest.mark.sampled(0)
def test_store_with_damaged_bytes_gives_what_was_stored_or_an_error(large: Path, tmp_path: Path) -> None:
    outcomes = _damage_and_read(large, tmp_path, random.Random(5), 120)
    assert outcomes["whole"]
    assert outcomes["told"]


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_store_damaged_at_a_thousand_places_gives_what_was_stored_or_an_error(
    large: Path, tmp_path: Path, thorough_seed: int
) -> None:
    _damage_and_read(large, tmp_path, random.Random(thorough_seed), 1000)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE journal SET entry = replace(entry, '\"number\":1', '\"number\":3')", "entry 1 of the journal"),
        ("UPDATE journal SET number = number + 1", "entry 2 of the journal"),
        ("UPDATE journal SET entry = substr(entry, 2)", "entry 1 of the journal"),
        ("UPDATE sessions SET settings = '{' WHERE name = 'q3'", "settings"),
    ],
)
def test_a_row_that_is_not_as_it_was_written_is_told_and_stops_no_other(large: Path, damage: str, what: str) -> None:
    url = f"sqlite:///{large}/cells.db?objects={large}/objects"
    with open_store(url) as store:
        store.hold("ana", "q4", settings={"seed": "1"}).release()
    with contextlib.closing(sqlite3.connect(large / "cells.db")) as database, database:
        database.execute(damage)
    with open_store(url) as store:
        is_entry = what != "settings"
        rows = [(row.name, row.damaged) for row in store.sessions()]
        assert rows == [("q3", "" if is_entry else "its settings cannot be read"), ("q4", "")]
        found = Damage(
            user="ana", session="q3", commit="", path=what, address="", problem="it is not what was written there"
        )
        assert store.verify().damage == (found,)
        with store.hold("ana", "q3") as held:
            if is_entry:
                words = f"{what} of session 'q3' of 'ana' is not what was written there"
                with pytest.raises(StoreError, match=words):
                    held.journal()
                assert held.readable() == ([], [int(what.split()[1])])
            else:
                with pytest.raises(StoreError, match="the row of session 'q3' of 'ana' is damaged: its settings"):
                    _ = held.settings
                assert [one.value for one in held.journal()] == [{"number": 1}]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "column", ["substr(holder, 1, 20)", "'[]'", "x'ff'", "replace(holder, '\"pid\":', '\"pid\":-')"]
)
def test_session_whose_holder_cannot_be_read_is_held_until_its_lease_runs_out(large: Path, column: str) -> None:
    url = f"sqlite:///{large}/cells.db?objects={large}/objects"
    with open_store(url) as store, contextlib.closing(sqlite3.connect(large / "cells.db")) as database:
        for name in ("q4", "q5"):
            store.hold("ana", name)
        with database:
            database.execute(f"UPDATE sessions SET holder = {column} WHERE name = 'q4'")
        rows = [(row.name, row.damaged, row.holder is None) for row in store.sessions()]
        assert rows == [("q3", "", True), ("q4", "its holder cannot be read", True), ("q5", "", False)]
        problem = "it is not what was written there"
        found = Damage(user="ana", session="q4", commit="", path="holder", address="", problem=problem)
        assert store.verify().damage == (found,)
        words = "session 'q4' of 'ana' may be open elsewhere: its row is damaged, and does not tell where"
        with pytest.raises(SessionHeld, match=words) as refused:
            store.hold("ana", "q4")
        assert refused.value.hint.startswith("it is free when it has not been heard of for ")
        with pytest.raises(StoreError, match=r"the holder of a session cannot be read|stands where text should"):
            store.gc(grace_seconds=0)
        with database:
            database.execute("UPDATE sessions SET until = 0 WHERE name = 'q4'")
        store.hold("ana", "q4").append({"n": 1})
        assert store.verify().ok


def test_list_of_sessions_goes_on_past_one_whose_newest_commit_is_missing(large: Path) -> None:
    url = f"sqlite:///{large}/cells.db?objects={large}/objects"
    with contextlib.closing(sqlite3.connect(large / "cells.db")) as database, database:
        database.execute("DELETE FROM commits")
    with open_store(url) as store:
        store.hold("ana", "q4").release()
        rows = [(row.name, row.damaged.partition(",")[0]) for row in store.sessions()]
        assert rows == [("q3", "its newest commit"), ("q4", "")]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("call", [Store.verify, Store.gc])
def test_keys_in_no_order_are_told_and_not_read_for_ever(
    large: Path, tmp_path: Path, call: Callable[[Store], object]
) -> None:
    """Each address in the tables is made the least there is: a reader that goes by the last one would begin anew."""
    content, told = (large / "cells.db").read_bytes(), 0
    with sqlite3.connect(large / "cells.db") as database:
        addresses = [row[0] for row in database.execute("SELECT address FROM objects")]
    for number, address in enumerate(addresses):
        copied = tmp_path / str(number)
        shutil.copytree(large, copied)
        (copied / "cells.db").write_bytes(content.replace(address, bytes(31) + b"\1"))
        try:
            with open_store(f"sqlite:///{copied}/cells.db?objects={copied}/objects") as store:
                call(store)
        except StoreError as error:
            told += "rows are in no order" in str(error)
    assert told


def test_text_of_the_tables_that_is_damaged_is_told(written: Path) -> None:
    """SQLite repeats it in an error that is no text then."""
    content, told = written.read_bytes(), 0
    for at in range(content.index(b"CREATE TABLE objects"), content.index(b"CREATE TABLE objects") + 40):
        written.write_bytes(content[:at] + b"\xf1" + content[at + 1 :])
        try:
            with open_store(f"sqlite:///{written}") as store:
                everything(store)
        except StoreError as error:
            told += "is damaged" in str(error)
    assert told > 10


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", [None, "x", b"\xff\0", -1, 2**62, 1.5, "\0"], ids=repr)
def test_column_of_another_type_is_told(large: Path, tmp_path: Path, value: object) -> None:
    database = sqlite3.connect(large / "cells.db")
    tables = ("meta", "users", "objects", "sessions", "commits", "refs", "journal")
    columns = [(table, row[1]) for table in tables for row in database.execute(f"PRAGMA table_info({table})")]
    database.close()
    told = 0
    for number, (table, column) in enumerate(columns):
        copied = tmp_path / str(number)
        shutil.copytree(large, copied)
        database = sqlite3.connect(copied / "cells.db")
        try:
            with database:
                database.execute(f"UPDATE {table} SET {column} = ?", (value,))
        except sqlite3.Error:  # a rule of the table's refuses it
            continue
        finally:
            database.close()
        try:
            with open_store(f"sqlite:///{copied}/cells.db?objects={copied}/objects") as store:
                store.sessions()
                everything(store)
                store.verify()
                store.gc()
        except (StoreError, UnknownCommit):
            told += 1
    assert told


def test_damage_is_found_by_verification(written: Path) -> None:
    """A bit of a stored body: SQLite cannot know, the hash does."""
    body = random.Random(7).randbytes(40_000)[1000:1064]
    content = bytearray(written.read_bytes())
    place = content.find(body)
    content[place] ^= 1
    written.write_bytes(content)
    with open_store(f"sqlite:///{written}") as store:
        report = store.verify()
        assert not report.ok
        assert report.tables == ()
        assert {damage.problem for damage in report.damage} == {"its bytes are others"}
        assert {damage.path for damage in report.damage} == {"names 'n7'", "names 'n8'", "names 'n9'"}
        assert len({damage.address for damage in report.damage}) == 1
        with store.hold("ana", "q3") as held, held.batch() as batch:  # a session goes on beside what it has lost
            batch.commit(kind="cell", trees={})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a database at all, but text that somebody wrote", "is no SQLite file"),
        (b"SQLite format 3\0" + bytes(200), "is no SQLite file"),
        (os.urandom(20_000), "is no SQLite file"),
    ],
    ids=["text", "a header alone", "noise"],
)
def test_file_that_is_no_store_is_left_alone(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "cells.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=words):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == content


@pytest.mark.parametrize(("path", "words"), [("", "cannot be opened"), ("no/cells.db", "No such file")])
def test_path_where_no_file_can_be_is_told_with_what_it_needs(tmp_path: Path, path: str, words: str) -> None:
    with pytest.raises(StoreError, match=words) as told:
        open_store(f"sqlite:///{tmp_path / path}")
    assert told.value.hint == (
        "its directory must exist, and that, the file and those beside it be writable for this user"
    )


def test_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with open_store(f"sqlite:///{tmp_path}/cells.db?objects={tmp_path}/objects") as store:
            held = store.hold("ana", "q3")
            with held.batch() as batch:
                batch.put(os.urandom(100_000))
                batch.flush()
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("cells.db*")}
            held.release()
    finally:
        os.umask(old)
    files = {path: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == dict.fromkeys(("cells.db", "cells.db-wal", "cells.db-shm"), 0o600)
    assert {mode for path, mode in files.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in files.items() if path.is_file()} == {0o600}


def _moved(path: Path) -> None:
    path.rename(path.with_suffix(".away"))


def _replaced(path: Path) -> None:
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").rename(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("happens", [_moved, _replaced, Path.unlink], ids=["moved", "replaced", "deleted"])
def test_file_that_is_no_longer_at_its_path_takes_nothing_more(tmp_path: Path, happens: Callable[[Path], None]) -> None:
    path = tmp_path / "cells.db"
    words = f"the store {path} was moved, replaced or deleted while it is open"
    session = Session("one", state=Versioned(f"sqlite:///{path}"))
    session.run("x = [1]")
    session.flush()
    happens(path)
    with pytest.raises(StoreError, match=re.escape(words)):
        session.run("x.append(2)")
    with pytest.raises(StoreError, match=re.escape(words)):
        session.flush()
    if happens is _moved:
        path.with_suffix(".away").rename(path)
        assert session.run("x").value == [1]
        session.flush()
        session.close()
        with Session("one", state=Versioned(f"sqlite:///{path}")) as again:
            assert again.run("x").value == [1]
    else:
        with pytest.raises(StoreError, match=re.escape(words)):
            session.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("gone", [("-wal",), ("-wal", "-shm")], ids=["log", "log and index"])
@pytest.mark.parametrize("looks", [False, True], ids=["alone", "another looks"])
def test_log_that_is_deleted_while_its_store_is_open_loses_nothing(
    tmp_path: Path, gone: tuple[str, ...], looks: bool
) -> None:
    path = tmp_path / "cells.db"
    state = f"sqlite:///{path}"
    program = (
        "import os, sys\n"
        "from cellblock import Session, Versioned\n"
        f"session = Session('one', state=Versioned({state!r}))\n"
        "session.run('x = [1]')\n"
        f"for end in {gone!r}: os.unlink({str(path)!r} + end)\n"
        f"if {looks}: open({str(path)!r} + '-wal', 'x').close()\n"  # as one that reads it with sqlite3 leaves it
        "session.run('x.append(2)')\n"
        "session.flush()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    with Session("one", state=Versioned(state)) as again:
        assert (again.run("x").value, again.resumed and again.resumed.lost) == ([1, 2], ())


def test_log_may_be_deleted_at_any_time_by_anybody_while_one_program_has_its_store_open(tmp_path: Path) -> None:
    path, log = tmp_path / "cells.db", tmp_path / "cells.db-wal"
    with open_store(f"sqlite:///{path}") as store:
        log.unlink()  # before its first call
        with store.hold("ana", "q3") as held:
            for number in range(4):  # one call between
                log.unlink()
                held.append({"n": number})
            log.unlink()
            held.flush()
    with open_store(f"sqlite:///{path}") as store:
        assert [entry.value for entry in store.read("ana", "q3").journal()] == [{"n": number} for number in range(4)]


@pytest.mark.sampled(0)
def test_store_whose_deleted_log_another_program_has_open_takes_nothing_and_keeps_what_it_took(tmp_path: Path) -> None:
    path = tmp_path / "cells.db"
    words = f"the store {path} is open elsewhere, too, and its log, the file that ends in -wal, was deleted"
    session = Session("one", state=Versioned(f"sqlite:///{path}"))
    session.run("x = [1]")
    session.flush()
    with _another_that_has_it_open(path):
        path.with_name("cells.db-wal").unlink()
        with pytest.raises(StoreError, match=re.escape(words)):
            session.run("x.append(2)")
    assert session.run("x.append(3); x").value == [1, 3]
    session.close()
    with Session("one", state=Versioned(f"sqlite:///{path}")) as again:
        assert again.run("x").value == [1, 3]


@pytest.mark.sampled(0)
def test_store_whose_log_was_deleted_is_opened_by_nobody_else_until_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.db"
    words = f"the store {path} is open elsewhere, too, and its log, the file that ends in -wal, was deleted"
    monkeypatch.setattr("cellblock.store.sqlite._PATIENCE", 0.1)
    with _another_that_has_it_open(path):
        path.with_name("cells.db-wal").unlink()
        with pytest.raises(StoreError, match=re.escape(words)):
            open_store(f"sqlite:///{path}")
    with open_store(f"sqlite:///{path}") as store:
        assert [row.name for row in store.sessions()] == ["other"]


@contextlib.contextmanager
def _another_that_has_it_open(path: Path) -> Iterator[None]:
    """Meanwhile another program holds a session of the store."""
    program = (
        "import sys\n"
        "from cellblock.store import open_store\n"
        f"held = open_store('sqlite:///{path}').hold('ana', 'other')\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        yield
