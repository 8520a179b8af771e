"""Who holds a session: processes that die, hang, or forget, and the thread that keeps a lease."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import cellblock
from cellblock.errors import LeaseLost, SessionClosed, SessionHeld, StoreError
from cellblock.store import Store, blobs, lease, open_store
from cellblock.store.places import DirectoryPlace
from cellblock.store.sqlite import SqliteDatabase

pytestmark = pytest.mark.threat("D1")

HOLDER = """
import sys
from cellblock.store import open_store
store = open_store(sys.argv[1], lease_seconds=1e6)
held = store.hold("ana", "q3")
held.append({"from": "the child"})
print("held", flush=True)
sys.stdin.read()
held.append({"from": "the child, later"})
print("wrote", flush=True)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/cells.db"


@pytest.fixture
def child(url: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the session, until it is told to go on by the end of its input."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize(
    ("boot", "remedy"),
    [
        ("", "close it there; it is free once that process has ended, or when it has not been heard of for 1000 s"),
        ("another machine", "close it there; it is free when it has not been heard of for 1000 s"),
    ],
)
def test_remedy_for_a_held_session_tells_when_it_is_free(
    url: str, monkeypatch: pytest.MonkeyPatch, boot: str, remedy: str
) -> None:
    holder = replace(lease.new_holder(), boot=boot or lease.new_holder().boot, pid=os.getppid())
    holder = replace(holder, started=lease._started(holder.pid))
    with open_store(url, lease_seconds=1000.2) as store:
        with monkeypatch.context() as patch:
            patch.setattr(lease, "new_holder", lambda: holder)
            store.hold("ana", "q3")
        with pytest.raises(SessionHeld) as caught:
            store.hold("ana", "q3")
    assert caught.value.hint == remedy


def test_session_of_a_process_that_was_killed_is_free_at_once(url: str, child: subprocess.Popen[str]) -> None:
    with open_store(url) as store:
        with pytest.raises(SessionHeld, match=f"open in process {child.pid} on"):
            store.hold("ana", "q3")
        child.kill()
        child.wait()
        with store.hold("ana", "q3") as held:
            assert [entry.value for entry in held.journal()] == [{"from": "the child"}]


def test_session_of_a_process_that_is_not_yet_collected_is_free(url: str, child: subprocess.Popen[str]) -> None:
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with open_store(url) as store:
        store.hold("ana", "q3").release()


def test_process_that_was_stopped_too_long_is_fenced_off(url: str, child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    assert child.stderr is not None
    os.kill(child.pid, signal.SIGSTOP)
    with open_store(url) as store:
        with pytest.raises(SessionHeld):
            store.hold("ana", "q3")
        other = SqliteDatabase(url.removeprefix("sqlite:///"))
        other.once("UPDATE sessions SET until = 0")
        other.close()
        with store.hold("ana", "q3") as held:
            os.kill(child.pid, signal.SIGCONT)
            child.stdin.close()
            assert "LeaseLost" in child.stderr.read()
            assert [entry.value for entry in held.journal()] == [{"from": "the child"}]
            held.append({"from": "the second"})


AN_HOUR_AHEAD = """
import sys, time
real = time.time
time.time = lambda: real() + float(sys.argv[2])
from cellblock.store import open_store
with open_store(sys.argv[1]) as store:
    try: store.hold("ana", "q3")
    except Exception as error: print(type(error).__name__)
    with store.hold("ana", "other") as held: print(held.epoch)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ahead", [3600, -3600, 86_400 * 365 * 50])
def test_clock_that_is_set_ends_no_lease_of_a_process_of_this_machine(url: str, ahead: float) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
    words = [sys.executable, "-c", AN_HOUR_AHEAD, url, str(ahead)]
    with open_store(url) as store, store.hold("ana", "q3") as held:
        for _ in range(2):
            said = subprocess.run(words, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout
            assert said.split()[0] == "SessionHeld"
            assert [row.holder for row in store.sessions() if row.name == "other"] == [None]
        held.append({"still": "held"})


@pytest.mark.parametrize(
    "told",
    [
        "", "nonsense", "00000000 {}", lease.clock_as_text(0.0).replace(lease.boot(), "another"),
        lease.clock_as_text(2.0**50), lease.clock_as_text(-5.0),
    ],
)  # fmt: skip
def test_clock_of_another_start_of_the_machine_is_told_anew(url: str, told: str) -> None:
    with open_store(url) as store, contextlib.closing(SqliteDatabase(url.removeprefix("sqlite:///"))) as database:
        database.once("INSERT INTO meta (name, value) VALUES ('clock', ?)", told)
        assert abs(database.now() - time.time()) < 3600
        assert database.select("SELECT count(*) FROM meta WHERE name = 'clock'") == [(1,)]
        with store.hold("ana", "q3"), pytest.raises(SessionHeld), open_store(url) as other:
            other.hold("ana", "q3")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("act", ["rename", "delete", "hold", "gc"])
def test_clock_of_this_host_does_not_end_the_lease_of_another(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    elsewhere = replace(lease.new_holder(), boot="another machine")
    monkeypatch.setattr(lease, "new_holder", lambda: elsewhere)
    real = time.time
    with open_store(postgres_url) as store, store.hold("ana", "q3") as held:
        monkeypatch.setattr(time, "time", lambda: real() + 86_400)
        calls = {
            "rename": lambda: store.rename("ana", "q3", "q4"),
            "delete": lambda: store.delete("ana", "q3"),
            "hold": lambda: store.hold("ana", "q3"),
            "gc": lambda: store.gc(grace_seconds=0),
        }
        with held.batch() as batch, suppress(SessionHeld):
            batch.put(bytes(100))
            batch.flush()
            calls[act]()
            assert act == "gc"  # which finds nothing that was condemned
        held.append({"still": "held"})


def test_age_of_a_body_is_told_by_the_clock_of_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/cells.db?objects={tmp_path}/objects"
    real, inside = time.time, DirectoryPlace.put

    def put(place: DirectoryPlace, prefix: str, body: bytes) -> str:
        """A collection by a host whose clock is a day ahead, before the row of the body is written."""
        key = inside(place, prefix, body)
        with monkeypatch.context() as patch, open_store(url) as other:
            patch.setattr(time, "time", lambda: real() + 86_400)
            assert other.gc().strays == 0
        return key

    monkeypatch.setattr(DirectoryPlace, "put", put)
    with open_store(url) as store, store.hold("ana", "q3") as held, held.batch() as batch:
        data = batch.put(os.urandom(100_000))
        batch.commit(kind="cell", trees={"names": batch.tree(None, {"x": blobs(data)})})
        assert store.verify().ok


def test_pid_that_another_process_has_by_now_is_not_its_holder() -> None:
    mine = lease.new_holder()
    try:
        assert not lease.is_gone(mine)
        assert lease.is_gone(replace(mine, started=mine.started - 1))
        assert lease.is_gone(replace(mine, pid=2**22 + 1))
        assert not lease.is_gone(replace(mine, boot="another machine", pid=2**22 + 1))
        assert not lease.is_gone(replace(mine, pids="pid:[1]", pid=2**22 + 1))
        assert lease.is_gone(replace(mine, nonce="of nobody"))
        assert lease.from_text(lease.as_text(mine)) == mine
    finally:
        lease.forget(mine)
    assert lease.is_gone(mine)
    with pytest.raises(StoreError, match="cannot be read"):
        lease.from_text('{"host": 1}')


@pytest.mark.parametrize("text", ["-1", "0", "4294967296", '"1"', "true", "null"])
def test_holder_whose_process_is_none_is_refused(text: str) -> None:
    mine = lease.new_holder()
    lease.forget(mine)
    with pytest.raises(StoreError, match="cannot be read"):
        lease.from_text(lease.as_text(mine).replace(f'"pid":{mine.pid}', f'"pid":{text}'))


def test_process_that_may_not_be_seen_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `hidepid`, where `/proc` shows other users' processes to nobody."""
    with subprocess.Popen(["sleep", "60"]) as other:
        theirs = replace(lease.new_holder(), pid=other.pid, started=lease._started(other.pid), nonce="theirs")
        read = lease._read
        monkeypatch.setattr(lease, "_read", lambda path: "" if str(other.pid) in path else read(path))
        assert not lease.is_gone(theirs)
        other.kill()
    assert lease.is_gone(theirs)


def test_machines_that_hide_which_they_are_are_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "boot", lambda: "")
    mine = lease.new_holder()
    try:
        theirs = replace(mine, pid=2**22 + 1, nonce="theirs")
        assert (lease.is_near(theirs), lease.is_gone(theirs)) == (False, False)
        assert not lease.is_gone(replace(mine, nonce="theirs"))
        assert not lease.is_gone(mine)
    finally:
        lease.forget(mine)


def test_thread_renews_while_sessions_are_held_and_ends_with_the_last(url: str) -> None:
    renewed = threading.Event()

    class Told(SqliteDatabase):
        def once(self, sql: str, *parameters: object) -> int:
            done = super().once(sql, *parameters)  # type: ignore[arg-type]
            if sql.startswith("UPDATE sessions SET until"):
                renewed.set()
            return done

    with Store(Told(url.removeprefix("sqlite:///")), lease_seconds=0.06) as store:
        held = store.hold("ana", "q3")
        assert renewed.wait(30)
        thread = store._keeper._thread
        assert thread is not None
        held.release()
        thread.join(30)
        assert not thread.is_alive()


def test_holder_learns_from_the_thread_that_it_has_lost(url: str) -> None:
    lost = threading.Event()
    with open_store(url, lease_seconds=0.06) as store:
        held = store.hold("ana", "q3")
        other = SqliteDatabase(url.removeprefix("sqlite:///"))
        keep = held._lose

        def lose() -> None:
            keep()
            lost.set()

        store._keeper.keep(held._id, held._epoch, lose, held._release_left)
        other.once("UPDATE sessions SET epoch = epoch + 1")
        assert lost.wait(30)
        assert not held.held
        with pytest.raises(LeaseLost):
            held.append({})
        other.close()


def test_session_that_nobody_is_left_to_release_is_free_for_every_process(url: str) -> None:
    is_left = threading.Event()
    with open_store(url, lease_seconds=1e6) as store, open_store(url, lease_seconds=0.06) as keeping:
        held = keeping.hold("ana", "q3")
        held.watch(is_left.is_set)
        with pytest.raises(SessionHeld):
            store.hold("ana", "q3")
        is_left.set()
        keeping._keeper._thread.join(30)  # type: ignore[union-attr]
        hold = "import sys; from cellblock.store import open_store; open_store(sys.argv[1]).hold('ana', 'q3').release()"
        environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
        subprocess.run([sys.executable, "-c", hold, url], env=environment, check=True)
        with pytest.raises(SessionClosed, match="was closed"):
            held.append({})


def test_store_that_is_forgotten_leaves_no_thread(url: str) -> None:
    store = open_store(url, lease_seconds=0.06)
    store.hold("ana", "q3").abandon()
    held = store.hold("ana", "q3")
    thread = store._keeper._thread
    assert thread is not None
    held.abandon()
    held = store.hold("ana", "other")
    store.close()
    del store, held
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


COPY = """
import os, sys, threading, time
from cellblock.store.sqlite import SqliteDatabase

path, is_busy = sys.argv[1], sys.argv[2] == "busy"
database = SqliteDatabase(path)
for number in range(50):
    database.once("INSERT INTO meta VALUES (?, ?)", f"before {number}", "x" * 2000)
busy, left = threading.Event(), threading.Event()

def write():
    with database.writing():
        busy.set()
        left.wait()

if is_busy:
    from cellblock.hosting import forks
    forks._CALL_SECONDS = 0.1
    threading.Thread(target=write, daemon=True).start()
    busy.wait()
read, wrote = os.pipe()
if not os.fork():
    try:
        own = SqliteDatabase(path)
        for number in range(1500):
            own.once("INSERT INTO meta VALUES (?, ?)", f"copy {number}", "x" * 100)
            os.write(wrote, b".")
    except BaseException as error:
        os.write(wrote, str(error).encode())
    finally:
        os._exit(0)
os.close(wrote)
told = os.read(read, 1)
left.set()
database.close()  # the last one that has the file, as far as it knows
while more := os.read(read, 4096):
    told += more
print(told.decode())
"""


def test_forked_copy_opens_the_same_file_anew_and_loses_nothing(tmp_path: Path) -> None:
    """SQLite's own notes of who has the file locked are the parent's, and are copied; the locks are not."""
    for attempt in range(5):
        path = str(tmp_path / f"{attempt}.db")
        done = subprocess.run([sys.executable, "-c", COPY, path, "idle"], capture_output=True, text=True, timeout=60)
        assert done.stdout == "." * 1500 + "\n", done.stderr
        names = {row[0] for row in SqliteDatabase(path).select("SELECT name FROM meta")}
        assert {f"copy {number}" for number in range(1500)} <= names


def test_forked_copy_does_not_open_a_file_that_was_in_use_at_the_fork(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COPY, str(tmp_path / "cells.db"), "busy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "was in use when this process was forked from another (close it there before" in done.stdout, done.stderr


def test_forked_copy_of_the_process_cannot_write(url: str) -> None:
    with open_store(url) as store:
        held = store.hold("ana", "q3")
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                held.append({"from": "the copy"})
                os.write(write, b"written")
            except StoreError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        with os.fdopen(read, "rb") as told:
            assert b"was opened by the process this one was forked from" in told.read()
        assert held.journal() == []
        held.release()


_IN_ANOTHER = """
import ctypes, os
from cellblock.store.lease import namespace
before = namespace("pid")
assert ctypes.CDLL(None).unshare(0x10000000 | 0x20000000) == 0  # of users and of processes, for the children
child = os.fork()
os._exit(namespace("pid") == before) if not child else os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_namespace_of_processes_is_that_of_this_process() -> None:
    assert subprocess.run([sys.executable, "-c", _IN_ANOTHER]).returncode == 0
