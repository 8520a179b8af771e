"""Errors of the store about a PostgreSQL server that it cannot use: by codes and states, not by what words hold."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from postgres_server import Server

from cellblock import Session, StoreError, Versioned
from cellblock.store import Store, open_store

_AWAY = "see whether its server runs; what was committed before is whole"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_database_of_another_encoding_is_refused_with_what_makes_one(postgres: Server, encoding: str) -> None:
    words = ["--host", str(postgres.directory), "--username", "cellblock"]
    name = f"of_{encoding.lower()}"
    made = ["--template=template0", f"--encoding={encoding}", "--locale=C", name]
    subprocess.run([postgres.programs / "createdb", *words, *made], check=True)
    with pytest.raises(StoreError) as caught:
        Session("q3", state=Versioned(postgres.url.replace("/postgres?", f"/{name}?")))
    assert f"is a database of the encoding {encoding}, and a store needs one of UTF8" in str(caught.value)
    remedy = "createdb --template=template0 --encoding=UTF8 NAME"
    assert caught.value.hint == f"make one, and name it in the URL: {remedy}"
    name = f"{name}_better"
    subprocess.run([postgres.programs / "createdb", *words, *remedy.split()[1:-1], name], check=True)
    with Session("q3", state=Versioned(postgres.url.replace("/postgres?", f"/{name}?"))) as session:
        session.run("x = 'é日本'")
        session.flush()


@pytest.fixture
def hanging_up() -> Iterator[str]:
    """The URL of a server that closes each connection as soon as something has come, like one that is stopped."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"postgresql://u@127.0.0.1:{listener.getsockname()[1]}/x?sslmode=disable"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_host_that_no_name_server_can_be_asked_for_is_told() -> None:
    with pytest.raises(StoreError, match="has a host that nobody knows") as caught:
        open_store(f"postgresql:///x?host={'a' * 5_000}")
    assert caught.value.__context__ is None


def test_server_that_hangs_up_is_out_of_reach(hanging_up: str) -> None:
    with pytest.raises(StoreError, match="is out of reach") as caught:
        open_store(hanging_up)
    assert caught.value.hint == _AWAY


def _cut_off(store: Store) -> None:
    """Use a connection that has broken in the middle of a transaction."""
    with store._database.writing() as transaction:
        held = socket.socket(fileno=transaction._connection.fileno())  # type: ignore[attr-defined]
        held.shutdown(socket.SHUT_RDWR)
        held.detach()
        transaction.rows("SELECT 1")


def test_server_that_goes_away_in_the_middle_is_told_as_such(postgres_url: str) -> None:
    with open_store(postgres_url) as store, pytest.raises(StoreError, match="went away") as caught:
        _cut_off(store)
    assert caught.value.hint == _AWAY


@pytest.mark.parametrize("parameter", ["foo=1", "sslmode=foo", "connect_timeout=abc", "target_session_attrs=foo"])
def test_parameter_that_libpq_does_not_take_is_told(parameter: str) -> None:
    with pytest.raises(StoreError, match="has a parameter that libpq does not take"):
        open_store(f"postgresql://u@127.0.0.1/x?{parameter}")


@pytest.mark.parametrize("host", ["127.0.0.1:1/x", "/x?host=/nowhere"])
def test_server_that_is_not_there_does_not_answer(host: str) -> None:
    with pytest.raises(StoreError, match="does not answer") as caught:
        open_store(f"postgresql://u@{host}")
    assert caught.value.hint == _AWAY


@contextmanager
def _stopped(store: Store) -> Iterator[None]:
    """Have what serves the next statement stand still, as a server does behind a network that swallows all."""
    pid = int(str(store._database.select("SELECT pg_backend_pid()::text")[0][0]))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_server_that_says_nothing_any_more_is_left(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.store.postgres._SILENT", 1.0)
    monkeypatch.setattr("cellblock.store.postgres._SILENT_LEFT", 1.0)
    with open_store(postgres_url) as store:
        with _stopped(store), pytest.raises(StoreError, match="went away while it was written to") as caught:
            store._database.once("DELETE FROM sessions WHERE id = ?", -1)
        assert caught.value.hint == _AWAY
        with _stopped(store):
            assert store._database.now() > 0, "what only reads is asked of another"


@pytest.fixture
def pooler(postgres: Server) -> Iterator[str]:
    """The URL of what stands before a server and gives it another number, as poolers of connections do."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as server:

        def pass_on() -> None:
            client, _ = listener.accept()
            server.connect(f"{postgres.directory}/.s.PGSQL.5432")
            with client:
                while True:
                    ready, _, _ = select.select([client, server], [], [])
                    if not (data := ready[0].recv(65_536)):
                        return
                    if ready[0] is client:
                        server.sendall(data)
                        continue
                    before, found, after = data.partition(b"K\0\0\0\x0c")
                    client.sendall(before + found + b"\0\0\0\7" + after[4:] if found else data)

        thread = threading.Thread(target=pass_on)
        thread.start()
        yield f"postgresql://cellblock@127.0.0.1:{listener.getsockname()[1]}/postgres?sslmode=disable"
        thread.join()


def test_pooler_that_may_give_each_statement_to_another_server_is_refused(pooler: str) -> None:
    with pytest.raises(StoreError, match="is behind a pooler of connections") as caught:
        open_store(pooler)
    assert caught.value.hint.startswith("name the server itself in the URL")


def test_what_a_server_sets_for_connections_changes_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c default_transaction_isolation=serializable")
    with open_store(postgres_url) as store, store.hold("ana", "日本") as session:
        session.append({"begun": "日本"})
        assert [row.name for row in store.sessions("ana")] == ["日本"]
        with store._database.writing() as transaction:
            assert transaction.rows("SELECT current_setting('transaction_isolation')") == [("read committed",)]
