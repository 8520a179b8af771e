"""A host that is killed at any step: what it was told is committed is there, the rest is there whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from postgres_server import Server

import cellblock
from cellblock.errors import StoreError
from cellblock.store import HeldSession, Store, StoredSession, open_store
from cellblock.store.database import Transaction, Uncertain
from cellblock.store.postgres import PostgresDatabase
from cellblock.store.urls import parse_url

HERE = Path(__file__).parent
PROGRAM = HERE / "mortal.py"
sys.path.append(str(HERE))

from mortal import COMMITS, NAMES  # noqa: E402 - a program beside this file

pytestmark = pytest.mark.threat("D1")


def run(url: str, last: int) -> list[list[str]]:
    """Run the program until its step `last`: what it said."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), url, str(last)], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == (-signal.SIGKILL if last else 0), done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def check(store: Store, said: list[list[str]]) -> None:
    """Open what is left: everything acknowledged is there, everything that is there is whole, and it goes on."""
    if not store.sessions("ana"):
        assert said == []
        return
    with store.hold("ana", "q3") as held:  # at once, though the lease of the dead has not run out
        commits = [words[1] for words in said if words[0] == "commit"]
        log = list(held.log()) if held.head().commit else []
        assert [one.id for one in reversed(log)][: len(commits)] == commits
        assert len(log) - len(commits) in (0, 1)
        for one in log:
            names = dict(held.tree(one.trees["names"]).pairs())
            assert len(names) == NAMES
            assert names["n0"]["value"] == names["n1"]["value"] == one.number
        acknowledged = [int(words[1]) for words in said if words[0] == "append"]
        _check_journal(held, acknowledged, len(log))
        report = store.verify()
        assert report.ok, report
        assert report.objects == store.usage("ana").objects
        assert report.bytes == store.usage("ana").bytes
        with held.batch() as batch:
            batch.commit(kind="cell", trees={"names": batch.tree(None, {"after": 1})})
    store.gc(grace_seconds=0)
    assert store.verify().ok
    assert len(list(store.read("ana", "q3").log())) == len(log) + 1


def _check_journal(held: StoredSession, acknowledged: list[int], commits: int) -> None:
    """Commit N takes with it what came before the end of cell N."""
    trimmed = max(0, 2 * commits - 1)
    numbers = [entry.number for entry in held.journal()]
    assert numbers == list(range(trimmed + 1, trimmed + 1 + len(numbers)))
    newest = max(acknowledged, default=0)
    assert max(numbers, default=trimmed) in (newest, newest + 1)
    for entry in held.journal():
        word = "begun" if entry.number % 2 else "finished"
        assert entry.value == {word: (entry.number + 1) // 2}


def steps_of(url: str) -> int:
    said = run(url, 0)
    assert [words[0] for words in said].count("commit") == COMMITS
    return int(said[-1][1])


def chosen(steps: int, most: int, seed: int) -> list[int]:
    """All steps, or a sample of them that is another one with each seed."""
    return list(range(1, steps + 1)) if steps <= most else sorted(random.Random(seed).sample(range(1, steps + 1), most))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("objects", [False, True], ids=["in the file", "in a directory"])
def test_kill_at_a_step_loses_nothing_acknowledged_in_sqlite(tmp_path: Path, objects: bool) -> None:
    _kill_at(tmp_path, objects, 12)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("objects", [False, True], ids=["in the file", "in a directory"])
def test_kill_at_every_step_loses_nothing_acknowledged_in_sqlite(tmp_path: Path, objects: bool) -> None:
    _kill_at(tmp_path, objects, 10_000)


def _kill_at(tmp_path: Path, objects: bool, most: int) -> None:
    def url(name: str) -> str:
        return f"sqlite:///{tmp_path}/{name}.db" + (f"?objects={tmp_path}/{name}-objects" if objects else "")

    for last in chosen(steps_of(url("whole")), most, seed=11 + objects):
        said = run(url(str(last)), last)
        with open_store(url(str(last))) as store:
            check(store, said)


@pytest.mark.sampled(0)
def test_kill_at_a_step_loses_nothing_acknowledged_in_postgres(postgres: Server, postgres_url: str) -> None:
    _kill_at_in_postgres(postgres, postgres_url, 8)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_kill_at_every_step_loses_nothing_acknowledged_in_postgres(postgres: Server, postgres_url: str) -> None:
    _kill_at_in_postgres(postgres, postgres_url, 10_000)


def _kill_at_in_postgres(postgres: Server, postgres_url: str, most: int) -> None:
    for last in chosen(steps_of(postgres_url), most, seed=13):
        url = f"{postgres_url}_{last}"
        said = run(url, last)
        with open_store(url) as store:
            check(store, said)


def test_host_killed_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Not at a step of the program's but in the middle of whatever the kernel does for it."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
    order = random.Random(5)
    for number in range(5):
        url = f"sqlite:///{tmp_path}/{number}.db"
        program = subprocess.Popen(
            [sys.executable, str(PROGRAM), url, "0"], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert program.stdout is not None
        said = []
        for _ in range(order.randrange(1, 9)):  # killed right after it has said so much
            said.append(program.stdout.readline().split())
        program.kill()
        said += [line.split() for line in program.stdout if line.endswith("\n")]
        program.wait()
        program.stdout.close()
        with open_store(url) as store:
            check(store, [words for words in said if words[0] != "steps"])


@pytest.mark.sampled(0)
def test_server_that_is_killed_loses_nothing_acknowledged(postgres: Server, postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        held = store.hold("ana", "q3")
        made = _commit(held, 1)
        noted = held.append({"n": 1})
        with held.batch() as batch:
            root = batch.tree(None, {"n": 2})
            postgres.kill()
            for call in (lambda: batch.commit(kind="cell", trees={"names": root}), lambda: held.append({"n": 2})):
                with pytest.raises(StoreError) as raised:
                    call()
                assert "see whether its server runs" in raised.value.hint
        postgres.start()
        assert held.head().commit == made
        assert [entry.number for entry in held.journal()] == [noted]
        assert held.append({"n": 2}) > noted
        _commit(held, 3)
        held.release()
        assert store.verify().ok


def _commit(held: HeldSession, value: int) -> str:
    with held.batch() as batch:
        return batch.commit(kind="cell", trees={"names": batch.tree(None, {"n": value})}).id


def test_commit_whose_answer_is_lost_is_made_once(postgres: Server, postgres_url: str) -> None:
    """The connection breaks after the server has committed: the store looks, and tells what is."""

    class Breaking(PostgresDatabase):
        """Loses the answer to every write."""

        breaks = False

        @contextmanager
        def writing(self) -> Iterator[Transaction]:
            with super().writing() as transaction:
                yield transaction
            if self.breaks:
                self.breaks = False
                raise Uncertain("the answer was lost")

        def once(self, sql: str, *parameters: object) -> int:
            done = super().once(sql, *parameters)  # type: ignore[arg-type]
            if self.breaks:
                self.breaks = False
                raise Uncertain("the answer was lost")
            return done

    parts = parse_url(postgres_url)
    database = Breaking(parts)
    with Store(database) as store:
        held = store.hold("ana", "q3")
        database.breaks = True
        assert held.append({"n": 1}) == 1
        assert held.append({"n": 2}) == 2
        assert [entry.value for entry in held.journal()] == [{"n": 1}, {"n": 2}]
        with held.batch() as batch:
            root = batch.tree(None, {"n": 1})
            database.breaks = True
            batch.flush()
            assert not database.breaks
            database.breaks = True
            made = batch.commit(kind="cell", trees={"names": root}, entries=[1])
            assert not database.breaks
        assert held.resolve("HEAD") == made
        assert [entry.number for entry in held.journal()] == [2]
        assert store.verify().objects == store.usage("ana").objects == 2
        held.release()
