"""Stores of one process over one database: they share its connections, and each closes only its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cellblock import Session, Versioned
from cellblock.errors import StoreError, UnknownSession
from cellblock.store import Store, database, open_store


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_stores_of_one_url_share_a_database_until_the_last_is_closed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/cells.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    before = len(database._open)
    first, second = open_store(url), open_store(url)
    assert len(database._open) == before + 1
    with first.hold("ana", "q3") as held:
        held.append({"n": 1})
        assert len(second.read("ana", "q3").journal()) == 1
    first.close()
    first.close()
    with pytest.raises(StoreError, match="was closed"):
        first.sessions()
    assert second.sessions()[0].name == "q3"
    with open_store(url) as third:
        assert third.sessions()[0].name == "q3"
    second.close()
    assert len(database._open) == before
    with open_store(url) as again:
        assert again.sessions()[0].name == "q3"


def test_file_that_took_the_place_of_an_open_one_is_another_database(tmp_path: Path) -> None:
    url, path = f"sqlite:///{tmp_path}/cells.db", tmp_path / "cells.db"
    with open_store(url) as first:
        first.hold("ana", "old").release()
        for name in ("cells.db", "cells.db-wal", "cells.db-shm"):
            os.rename(tmp_path / name, tmp_path / f"away-{name}")
        with open_store(url) as second:
            assert second.sessions() == []
            assert path.exists()
    with open_store("memory:") as one, open_store("memory:") as other:
        one.hold("ana", "q3").release()
        assert other.sessions() == []


def test_a_store_in_memory_is_the_same_for_another_user_of_it() -> None:
    with open_store("memory:") as one:
        other = one.another()
        one.hold("ana", "q3").release()
        assert [session.name for session in other.sessions()] == ["q3"]
    assert [session.name for session in other.sessions()] == ["q3"]
    other.close()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells of locks")
def test_locks_of_sqlite_stay_its_own(tmp_path: Path) -> None:
    """POSIX takes all locks of a process off a file when one of its descriptors is closed: the index of the log of
    another process would be cut short while this one reads it, which ends this one by a signal.
    """
    with open_store(f"sqlite:///{tmp_path}/cells.db") as store:
        store.sessions()
        file = (tmp_path / "cells.db-shm").stat().st_ino
        assert [line for line in Path("/proc/locks").read_text().splitlines() if f":{file} 128 128" in line]


_TURNS = """
import sys, time
from cellblock import CellblockError, Session, Versioned
for _ in range(8):
    while True:
        try:
            with Session("shared", state=Versioned(sys.argv[1])) as session:
                session.run("n = globals().get('n', 0) + 1")
            break
        except CellblockError:
            time.sleep(0.02)
"""


def test_programs_take_turns_with_a_session(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    programs = [subprocess.Popen([sys.executable, "-c", _TURNS, url]) for _ in range(3)]
    assert [program.wait(100) for program in programs] == [0, 0, 0]
    with Session("shared", state=Versioned(url)) as session:
        assert (session["n"], session.resumed and session.resumed.lost) == (24, ())


def test_a_link_and_the_file_that_it_leads_to_are_one_database(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "cells.db")
    with open_store(f"sqlite:///{tmp_path}/link.db") as store:
        store.hold("ana", "q3").release()
        before = len(database._open)
        with open_store(f"sqlite:///{tmp_path}/cells.db") as other:
            assert len(database._open) == before
            assert [session.name for session in other.sessions()] == ["q3"]
    assert not [*tmp_path.glob("link.db-*")]


def test_spellings_of_a_path_are_one_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///cells.db") as store:
        before = len(database._open)
        with open_store(f"sqlite:////{tmp_path}/./cells.db"), open_store(f"sqlite:///{tmp_path}/cells.db"):
            assert len(database._open) == before
        store.hold("ana", "q3").release()


def test_many_threads_open_and_close_at_once(tmp_path: Path) -> None:
    url, errors = f"sqlite:///{tmp_path}/cells.db", []

    def work(number: int) -> None:
        try:
            for turn in range(15):
                with open_store(url) as store, store.hold("ana", f"s{number}") as held:
                    held.append({"turn": turn})
        except Exception as error:
            errors.append(error)

    before = len(database._open)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(database._open) == before
    with open_store(url) as store:
        assert [row.pending for row in store.sessions("ana")] == [15] * 6


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_store_is_closed_while_threads_read_it(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    urls = {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path}/cells.db"}
    url = urls.get(kind) or request.getfixturevalue("postgres_url")
    errors: list[BaseException] = []

    def read(store: Store, has_read: threading.Event) -> None:
        try:
            while True:
                store.sessions()
                has_read.set()
        except BaseException as error:
            errors.append(error)

    before = _descriptors()
    for _ in range(20):
        with open_store(url) as store:
            reads = [threading.Event() for _ in range(4)]
            threads = [threading.Thread(target=read, args=(store, has_read)) for has_read in reads]
            for thread in threads:
                thread.start()
            assert all(has_read.wait(60) for has_read in reads)
        for thread in threads:
            thread.join(60)
    assert len(errors) == 20 * 4
    assert [error for error in errors if not (isinstance(error, StoreError) and "was closed" in str(error))] == []
    assert _descriptors() == before


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("user", ["ana", "it's a user"])
def test_remedy_for_an_unknown_session_lists_those_of_its_user_in_its_store(tmp_path: Path, user: str) -> None:
    with open_store(f"sqlite:///{tmp_path}/two%20words.db") as store:
        store.hold(user, "hers").release()
        with pytest.raises(UnknownSession) as unknown:
            store.read(user, "hersz")
    program, *words = shlex.split(unknown.value.hint.removeprefix("see which there are: "))
    assert program == "cellblock"
    listed = subprocess.run([sys.executable, "-m", program, *words], capture_output=True, text=True, check=True).stdout
    assert "hers" in listed
    with open_store("memory:") as store, pytest.raises(UnknownSession) as unknown:
        store.read(user, "hersz")
    assert unknown.value.hint == f"see which there are: store.sessions({user!r})"
