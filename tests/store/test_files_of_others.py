"""SQLite files that somebody else has made or changed: what they hold runs nothing and fills nobody."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from cellblock import CellblockError, LeaseLost, Session, StoreDamaged, StoreError, Versioned
from cellblock.session.commits import get_cell
from cellblock.session.timeline import difference
from cellblock.store import blobs, open_store, records
from cellblock.store.address import linked
from cellblock.store.objects import ObjectTable

_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
_CHANGES = {
    "a view for the settings": (
        "ALTER TABLE sessions RENAME TO others",
        f"CREATE VIEW sessions AS SELECT * FROM others WHERE ({_ENDLESS}) > 0",
    ),
    "a view for the format": (
        "ALTER TABLE meta RENAME TO others",
        f"CREATE VIEW meta AS SELECT name, value FROM others WHERE ({_ENDLESS}) > 0",
    ),
    "a trigger": (
        f"CREATE TRIGGER t AFTER INSERT ON journal BEGIN UPDATE meta SET value = value WHERE ({_ENDLESS}) > 0; END",
    ),
    "an index of an expression": ("CREATE INDEX i ON journal (hex(zeroblob(100000000)))",),
    "a column that is computed": (
        "ALTER TABLE journal ADD COLUMN more TEXT AS (hex(zeroblob(100000000))) VIRTUAL",
    ),
}  # fmt: skip


def _made(tmp_path: Path) -> tuple[str, Path]:
    path = tmp_path / "cells.db"
    url = f"sqlite:///{path}"
    with Session("one", state=Versioned(url), trust_level="local") as session:
        session.run("x = 1")
    return url, path


@pytest.mark.threat("D1")
@pytest.mark.parametrize("what", _CHANGES)
def test_file_with_sql_of_its_own_is_refused(what: str, tmp_path: Path) -> None:
    url, path = _made(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA legacy_alter_table = ON")
        for statement in _CHANGES[what]:
            connection.execute(statement)
        connection.commit()
    with pytest.raises(StoreError, match="which cellblock did not make"):
        open_store(url)


def test_tables_of_others_beside_ours_are_left_alone(tmp_path: Path) -> None:
    url, path = _made(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE lost_and_found (id INTEGER)")
        connection.commit()
    with Session("one", state=Versioned(url), trust_level="local") as session:
        assert session.run("x").value == 1


@pytest.mark.threat("D1")
def test_object_that_would_fill_the_host_is_damage(tmp_path: Path) -> None:
    url, path = _made(tmp_path)
    size = 600 << 20
    compressor = zstd.ZstdCompressor()
    body = b"".join([*(compressor.compress(bytes(1 << 20)) for _ in range(size >> 20)), compressor.flush()])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE objects SET codec = 1, length = ?, stored = ?, body = ?", (size, len(body), body))
        connection.commit()
    with pytest.raises(StoreDamaged, match="600 MB, where 64 are read"):
        Session("one", state=Versioned(url))


_MOST = 24
_WRONG = (5, "text", None, [1], {"a": 1}, 10**30)


@pytest.mark.sampled(1)
@pytest.mark.threat("D1")
@pytest.mark.parametrize("kind", ["groups", "names", "files", "detail"])
def test_part_of_a_state_that_is_of_no_such_form_is_damage(kind: str, tmp_path: Path) -> None:
    """Each field of some records is made another."""
    url = f"sqlite:///{tmp_path / 'cells.db'}"
    with Session("one", state=Versioned(url)) as session:
        session.run("x = [1]; open('f', 'w').write('1')")
        session.flush()
    rows = _rows(url, kind)
    wrongs = itertools.cycle(_WRONG)
    fields = [(key, field) for key, value in rows.items() for field in value][:_MOST]
    assert fields
    for key, field in fields:
        wrong = next(one for one in wrongs if type(one) is not type(rows[key][field]) or field == "note")
        _open_with(url, kind, key, {**rows[key], field: wrong})


def _rows(url: str, kind: str) -> Any:
    with open_store(url) as store:
        session = store.read("default", "one")
        commit = session.resolve("HEAD")
        if kind == "detail":
            return {"": dict(commit.detail)}
        rows: Any = dict(session.tree(commit.trees[kind]).pairs())
        if kind == "groups":
            return {key: session.record(link["@"]) for key, link in rows.items()}
        return rows


def _open_with(url: str, kind: str, key: str, row: Any) -> None:
    """Open and compare a session whose newest commit has this row, or is told as damaged."""
    with open_store(url) as store, store.hold("default", "one") as held:
        before = held.resolve("HEAD")
        detail, trees = dict(before.detail), dict(before.trees)
        with suppress(StoreError), held.batch() as batch:  # where no store takes it
            if kind == "detail":
                detail = row
            else:
                value = {"@": batch.record(row)} if kind == "groups" else row
                trees[kind] = batch.tree(trees[kind], {key: value})
            batch.commit(kind="run", trees=trees, detail=detail)
        with suppress(StoreError):
            difference(held, before, held.resolve("HEAD"))
    with suppress(CellblockError), Session("one", state=Versioned(url)) as session:
        session.run("x")
    with open_store(url) as store, store.hold("default", "one") as held:
        held.move(before.id)


def test_what_is_stored_while_all_is_verified_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, _ = _made(tmp_path)
    listed = ObjectTable.listed
    monkeypatch.setattr(ObjectTable, "listed", lambda self: list(listed(self))[::2])  # the others come meanwhile
    with open_store(url) as store:
        assert store.verify().ok


@pytest.mark.threat("D1")
@pytest.mark.parametrize("beside", ["-wal", "-shm"])
def test_a_pipe_beside_the_file_is_refused(beside: str, tmp_path: Path) -> None:
    url, path = _made(tmp_path)
    os.mkfifo(f"{path}{beside}")
    with pytest.raises(StoreError, match="is no file"):
        open_store(url)


_KILLED = """
import os, sys
from cellblock import Session, Versioned
session = Session("one", state=Versioned(sys.argv[1]), trust_level="local")
for number in range(4):
    session.run(f"x = {number}")
    session.flush()
os._exit(0)
"""


@pytest.mark.threat("D1")
@pytest.mark.parametrize("at", [None, 0.3, 0.6, 0.9])
def test_what_a_damaged_log_loses_is_told(at: float | None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"sqlite:///{tmp_path / 'cells.db'}"
    subprocess.run([sys.executable, "-c", _KILLED, url], check=True, timeout=60)
    (tmp_path / "cells.db-shm").unlink()  # as after a loss of power
    if at is not None:
        log = bytearray((tmp_path / "cells.db-wal").read_bytes())
        log[int(at * len(log))] ^= 1
        (tmp_path / "cells.db-wal").write_bytes(log)
    with open_store(url) as store:
        told = store.verify().tables
    assert [one for one in told if "transactions of its log are damaged" in one] == list(told)
    assert bool(told) is (at is not None)
    assert ("damaged and left out" in caplog.text) is (at is not None)


def test_file_with_two_names_is_refused(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db"):
        pass
    os.link(tmp_path / "cells.db", tmp_path / "other.db")
    for name in ("cells.db", "other.db"):
        with pytest.raises(StoreError, match="has two names, and a log beside each"):
            open_store(f"sqlite:///{tmp_path}/{name}")
    (tmp_path / "other.db").unlink()
    with open_store(f"sqlite:///{tmp_path}/cells.db"):
        pass


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs util-linux's unshare")
def test_file_that_is_mounted_alone_is_refused(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/cells.db"):
        pass
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "cells.db").touch()
    program = (
        "import subprocess\nfrom cellblock.store import open_store\n"
        "subprocess.run(['mount', '--bind', 'cells.db', 'there/cells.db'], check=True)\n"
        "open_store('sqlite:///there/cells.db')"
    )
    mounting = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", program]
    found = subprocess.run(mounting, cwd=tmp_path, capture_output=True, text=True)
    assert "is a file that is mounted alone" in found.stderr


def test_store_that_is_set_back_to_a_backup_mixes_nobodys_sessions(tmp_path: Path) -> None:
    path, url = tmp_path / "cells.db", f"sqlite:///{tmp_path}/cells.db"
    with open_store(url) as store:
        store.hold("ana", "old").release()

    def copied(source: Path, to: Path) -> None:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(to)) as other:
            one.backup(other)

    copied(path, tmp_path / "backup.db")
    with open_store(url) as store:
        newer, again = store.hold("ana", "new"), store.hold("ana", "old")
        copied(tmp_path / "backup.db", path)
        bobs, anas = store.hold("bob", "his"), store.hold("ana", "old")
        for held in (newer, again):
            with pytest.raises(LeaseLost):
                held.append({"secret": "of ana"})
        assert [held.readable() for held in (bobs, anas)] == 2 * [([], [])]
        for held in (bobs, anas):
            held.append({"own": 1})
            held.release()


@pytest.mark.threat("D1")
@pytest.mark.parametrize("kind", ["names", "notebook", "files"])
def test_tree_whose_children_are_all_the_same_is_damage(kind: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    with Session("one", state=Versioned(url)) as session:
        session.run("x = 1")
    with open_store(url) as store, store.hold("default", "one") as held:
        head = held.resolve("HEAD")
        with held.batch() as batch:
            rows = list(held.tree(head.trees[kind]).pairs()) if kind in head.trees else []
            node = batch.record({"here": [[key, value] for key, value in rows]})
            for _ in range(12):
                digits = "0123456789abcdef"
                node = batch.record({"digits": digits, "counts": [1] * 16, "kids": {"@": [node] * 16}})
            batch.commit(kind="run", trees={**head.trees, kind: node}, detail=dict(head.detail))
        began = time.monotonic()
        with pytest.raises(StoreError, match="is not a node of a tree"):
            list(held.tree(node).pairs())
    with suppress(CellblockError), Session("one", state=Versioned(url)) as session:
        session.run("x")
    assert time.monotonic() - began < 20


@pytest.mark.threat("D1")
def test_object_that_is_named_often_is_read_as_often_as_there_is_room(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    with Session("one", state=Versioned(url)) as session:
        session.run("x = 1")
    with open_store(url) as store, store.hold("default", "one") as held:
        head = held.resolve("HEAD")
        rows: Any = dict(held.tree(head.trees["notebook"]).pairs())
        (address,) = linked(next(iter(rows.values()))[1])
        with held.batch() as batch:
            large = batch.put(bytes(4 * 2**20))
            record: Any = held.record(address)
            cell = batch.record({**record, "cell": blobs(*[large] * 100)})
            batch.commit(kind="run", trees=head.trees, detail={**head.detail, "cell": records(cell)})
        held.read_at_most(64 * 2**20)
        with pytest.raises(StoreError, match="takes 400 MB, where 64 are read at most"):
            get_cell(held, cell)
