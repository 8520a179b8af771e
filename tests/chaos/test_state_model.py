"""Random histories of versioned sessions beside a model in plain Python: nothing acknowledged is lost or done twice.

Runs, asides, values, files, undo, checkout, branches, merges, hibernation, collections and reopening, while the store
fails, any of the session's processes is killed, and the program dies: a copy of the store, as it is at that moment, is
what its death would leave.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import postgres_server
import pytest
from family_tree import below
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from versioned_model import ENDS, LOOK, SLOW, UNSAVED, Model, ends, steps_of

from cellblock import CellblockError, ExecutionLimits, Session, StoreError, Versioned
from cellblock.errors import CaptureFailed
from cellblock.store import Quota, open_store

LIMITS = ExecutionLimits(timeout_seconds=30, max_checkpoints=3)
NAMES = st.sampled_from([f"x{n}" for n in range(3)])
VALUES = st.integers(0, 99)
EVERY = 10**9


class States(RuleBasedStateMachine):
    """One session, opened again and again, and its model."""

    objects = ""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="cellblock-states-"))
        self.lives = 0
        self.failing = False
        self.struck = False
        """Whether a process has been killed, and nothing was done since."""
        self.model = Model()
        self.branches = 0
        self.calls = 0

    @initialize()
    def begin(self) -> None:
        self.session = self._opened()

    @property
    def _database(self) -> Path:
        return self.directory / f"{self.lives}.db"

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._database}{self.objects.format(directory=self.directory)}"

    def _opened(self) -> Session:
        return Session("one", state=Versioned(self._url), limits=LIMITS)

    def _run(self, source: str, change: Callable[[Model], None] = lambda model: None, *, dies: bool = False) -> None:
        """Run a cell that is to change the model so."""
        struck, self.struck = self.struck, False
        cell = self.session.run(source)
        assert cell.rolled_back == dies or (struck and cell.rolled_back), cell
        if not cell.rolled_back:
            change(self.model)
        self.model.step(is_step=not cell.rolled_back)

    def _do(self, call: Callable[[], object], change: Callable[[Model], None] = lambda model: None) -> None:
        """Make a call that is to change the model so. Right after a kill it may fail, and has taken place or not."""
        struck, self.struck = self.struck, False
        after = self.model.copy()
        change(after)
        try:
            call()
        except CellblockError:
            if not struck:
                raise
            seen = self._seen()
            self.model = next(one for one in (self.model, after) if {**one.seen(), "log": len(one.commits)} == seen)
        else:
            self.model = after

    # --- steps ---

    @rule(name=NAMES, value=VALUES)
    def bind(self, name: str, value: int) -> None:
        self._run(f"{name} = [{value}]", lambda model: model.bind(name, [value]))

    @rule(name=NAMES, value=VALUES)
    def append(self, name: str, value: int) -> None:
        self._run(f"{name}.append({value})", lambda model: model.append(name, value))  # an error is a step, too

    @rule(name=NAMES, other=NAMES)
    def share(self, name: str, other: str) -> None:
        self._run(f"{name} = {other}", lambda model: model.share(name, other))

    @rule(name=NAMES)
    def drop(self, name: str) -> None:
        self._run(f"globals().pop({name!r}, None)", lambda model: model.bind(name, None))

    @rule(name=NAMES, value=VALUES)
    def write(self, name: str, value: int) -> None:
        self._run(f"open({name!r}, 'w').write('{value}')", lambda model: model.write(name, str(value)))

    @rule(name=NAMES)
    def crash(self, name: str) -> None:
        self._run(f"{name} = [-1]; open({name!r}, 'w').write('-1'); import os; os._exit(3)", dies=True)

    @rule(value=VALUES)
    def call_twice(self, value: int) -> None:
        """The same call once more gives the cell of the first, and runs nothing."""
        self.calls += 1
        struck, self.struck = self.struck, False
        call = f"call-{self.lives}-{self.calls}"
        first, second = (self.session.run(f"x0 = [{value}]", call_id=call) for _ in "12")
        assert (first.id, first) == (call, second)
        assert not first.rolled_back or struck
        if not first.rolled_back:
            self.model.bind("x0", [value])
        self.model.step(is_step=not first.rolled_back)

    @rule(name=NAMES, value=VALUES)
    def aside(self, name: str, value: int) -> None:
        def change(model: Model) -> None:
            model.append(name, value)
            model.step(is_step=False)

        if name in self.model.names:
            self._do(lambda: self.session.aside(f"{name}.append({value})"), change)

    @precondition(lambda self: not self.failing)
    @rule(name=NAMES, value=VALUES)
    def aside_that_is_a_step(self, name: str, value: int) -> None:
        self._do(lambda: self.session.aside(f"{name} = [{value}]", step="noted"), _step(Model.bind, name, [value]))

    @precondition(lambda self: not self.failing)
    @rule(name=NAMES, value=VALUES)
    def set(self, name: str, value: int) -> None:
        self._do(lambda: self.session.__setitem__(name, [value]), _step(Model.bind, name, [value]))

    @precondition(lambda self: not self.failing)
    @rule(name=NAMES, value=VALUES, delete=st.booleans())
    def change_file(self, name: str, value: int, delete: bool) -> None:
        if delete and name in self.model.files:
            self._do(lambda: self.session.files.delete(name), _step(Model.write, name, None))
        else:
            self._do(lambda: self.session.files.write(name, str(value)), _step(Model.write, name, str(value)))

    # --- looks ---

    @rule(name=NAMES)
    def get(self, name: str) -> None:
        found: list[object] = []
        if name in self.model.names:
            self._do(lambda: found.append(self.session[name]))
            assert found in ([], [self.model.names[name]])

    @rule()
    def look(self) -> None:
        found: list[list[str]] = []
        self._do(lambda: found.append(sorted(name for name in self.session.names() if name[0] == "x")))
        assert found in ([], [sorted(self.model.names)]), (found, self.model.names)
        self._agree()

    def _agree(self) -> None:
        """That the session is as the model, whatever has just been killed."""
        seen, expected = self._seen(), {**self.model.seen(), "log": len(self.model.commits)}
        assert seen == expected, (seen, expected)

    def _seen(self) -> dict[str, Any]:
        try:
            return self._look()
        except CellblockError:
            return self._look()

    def _look(self) -> dict[str, Any]:
        names = self.session.aside(LOOK, reads=True)
        files = {name: self.session.files.read(name).decode() for name in self.session.files.list()}
        log = len(self.model.commits) if self.failing else len(steps_of(self.session.log(limit=10_000)))
        return {"names": names, "files": files, "log": log}

    # --- the past ---

    @precondition(lambda self: not self.failing)
    @rule(steps=st.integers(1, 6))
    def undo(self, steps: int) -> None:
        if steps <= self.model.steps:
            self._do(lambda: self.session.undo(steps), lambda model: model.undo(steps))
            self._agree()

    @precondition(lambda self: not self.failing)
    @rule(commits=st.integers(0, 5))
    def checkout(self, commits: int) -> None:
        if commits < len(self.model.commits):
            wanted = steps_of(self.session.log(limit=10_000))[commits].id
            self._do(lambda: self.session.checkout(wanted), lambda model: model.checkout(commits))
            self._agree()

    @precondition(lambda self: not self.failing and not self.struck)
    @rule(value=VALUES, merge=st.booleans())
    def branch(self, value: int, merge: bool) -> None:
        self._run("None")  # which leaves a checkpoint, whichever was killed before
        self.branches += 1
        name = f"xb{self.branches}"
        with self.session.branch(f"b{self.lives}-{self.branches}") as branch:
            assert branch.run(LOOK).value == self.model.seen()["names"]
            branch.run(f"{name} = []")
            branch.aside(f"{name}.append({value})")
            if merge:
                self._do(lambda: self.session.merge(branch), _step(Model.bind, name, [value]))

    # --- ends ---

    @precondition(lambda self: not self.failing)
    @rule()
    def hibernate(self) -> None:
        try:
            self._do(self.session.hibernate)
        except CaptureFailed:  # a checkpoint was killed before it was saved: the hint says to run a cell
            self._run("None")
            self._do(self.session.hibernate)

    @precondition(lambda self: not self.failing)
    @rule(collects=st.booleans())
    def reopen(self, collects: bool = False) -> None:
        self.session.close()
        if collects:
            with open_store(self._url) as store:
                assert [store.gc(grace_seconds=0) for _ in range(2)][1].condemned == 0
        self.session = self._opened()
        self._agree()

    @rule()
    def collect(self) -> None:
        """Beside the open session: what nothing leads to is noted, and a later commit may use it again."""
        with open_store(self._url) as store:
            store.gc()

    @rule()
    def die(self) -> None:
        """The program is killed: what is in the store at this moment is opened by another."""
        self._copy()
        with contextlib.suppress(StoreError):
            self.session.close()
        self.failing = False
        self.session = self._opened()
        self.struck = False
        resumed = self.session.resumed
        assert resumed is not None
        assert (resumed.interrupted, {one.name for one in resumed.lost} - {*UNSAVED}) == (None, set())
        self._agree()

    def _copy(self) -> None:
        """Go on with a copy of the database, which nobody holds and which has room."""
        before = self._database
        self.lives += 1
        with contextlib.closing(sqlite3.connect(self._database)) as copy:
            with contextlib.closing(sqlite3.connect(before)) as old:
                old.backup(copy)
            for change in _FREE:
                copy.execute(change)
            copy.commit()

    @rule(which=st.integers(0, 999), milliseconds=st.sampled_from([0, 0, 1, 5, 30, 150]))
    def kill(self, which: int, milliseconds: int) -> None:
        """One of the session's processes is killed, or of those that made it."""
        if found := self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(found[which % len(found)], signal.SIGKILL)
            self.struck = True
            time.sleep(milliseconds / 1e3)

    def _processes(self) -> list[int]:
        """The processes of the sessions, and those that made them."""
        found = below()
        apart = self._apart()  # afterwards: a server begins processes at any time
        return [one.pid for one in found if one.pid not in apart]

    def _apart(self) -> set[int]:
        """Children of this process that serve no session."""
        return set()

    @precondition(lambda self: not self.failing)
    @rule()
    def fail(self) -> None:
        """The store takes no commits from now on."""
        self._flush()
        with open_store(self._url) as store:
            store.set_quota("default", Quota(sessions=EVERY, bytes=1))
        self.failing = True

    @precondition(lambda self: self.failing)
    @rule()
    def mend(self) -> None:
        with open_store(self._url) as store:
            store.set_quota("default", Quota(sessions=EVERY, bytes=EVERY))
        self.failing = False
        self._flush()

    def _flush(self) -> None:
        """All is in the store. Where a checkpoint was killed before it was saved, the hint says to run a cell."""
        try:
            self.session.flush()
        except CaptureFailed:
            self._run("None")
            self.session.flush()

    def teardown(self) -> None:
        try:
            if self.failing:
                self.mend()
            self.reopen()
        finally:
            self.session.close()
            shutil.rmtree(self.directory)


class WithoutStates(States):
    """Cells whose states cannot be saved, come too fast for that, or are made again."""

    @precondition(lambda self: not self.failing)
    @rule(name=NAMES, value=VALUES, how=st.sampled_from(ENDS), milliseconds=st.integers(0, 150))
    def end_what_saves(self, name: str, value: int, how: str, milliseconds: int) -> None:
        """A value ends the process that saves or loads it, while the next cell, with much to be saved, ends."""
        write, large = f"open({name!r}, 'w').write", "open('/tmp/large', 'wb').write(os.urandom(30_000_000))"
        self._run(f"import os; {large}; {write}('0')", lambda model: model.write(name, "0"))
        self._flush()
        self._run(f"{ends(how, value)}\n{write}('{value}')", lambda model: model.write(name, str(value)))
        time.sleep(milliseconds / 1e3)
        self._run(f"{large}; {write}('{value} too')", lambda model: model.write(name, f"{value} too"))
        self.hibernate()
        self._agree()
        self._run("globals().pop('ends', None)")

    @precondition(lambda self: not self.failing and not self.struck)
    @rule(name=NAMES, value=VALUES)
    def part_where_no_state_was_saved(self, name: str, value: int) -> None:
        """A branch begins at a commit of a cell's source alone, if cells have come fast enough."""
        for number in range(6):
            self._run(f"{SLOW}\n{name} = [{number}]", lambda model, number=number: model.bind(name, [number]))  # type: ignore[misc]
        self._flush()
        lacking = [not one.snapshot for one in steps_of(self.session.log(limit=10_000))[:6]]
        if steps := lacking.index(True) if any(lacking) else 0:
            self._do(lambda: self.session.undo(steps), lambda model: model.undo(steps))
        self.branches += 1
        with self.session.branch(f"b{self.lives}-{self.branches}") as branch:
            branch.run(f"{name} = [{value}, 'theirs']")
            self._do(lambda: self.session.merge(branch), _step(Model.bind, name, [value, "theirs"]))
        self._agree()

    @precondition(lambda self: not self.failing and not self.struck)
    @rule(value=VALUES)
    def merge_what_resumes(self, value: int) -> None:
        """All processes are killed, and a branch whose newest cell was not saved takes that again meanwhile."""
        self._run("None")
        self.branches += 1
        name = f"xb{self.branches}"
        with self.session.branch(f"b{self.lives}-{self.branches}") as branch, ThreadPoolExecutor(1) as pool:
            branch.run("None")
            assert branch.run(f"{SLOW}\ntime.sleep(0.5)\n{name} = [{value}]").ok
            for one in self._processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            self.struck = True
            going_on = pool.submit(branch.run, "None")
            time.sleep(0.3)
            self._do(lambda: self.session.merge(branch), _step(Model.bind, name, [value]))
            going_on.result()
        self._agree()


class WithObjects(States):
    """What is large lies in a directory beside the database."""

    objects = "?objects={directory}/objects"


class WithBucket(States):
    """What is large lies in a bucket."""

    objects = "?objects=file://{directory}"


class InPostgres(States):
    """The database is a server's; each life has a schema of its own."""

    server: ClassVar[postgres_server.Server]

    @property
    def _schema(self) -> str:
        return f"{self.directory.name.replace('-', '_')}_{self.lives}".lower()

    @property
    def _url(self) -> str:
        return f"{self.server.url}&schema={self._schema}"

    def _apart(self) -> set[int]:
        server = self.server.process.pid
        return {server, *(one.pid for one in below(server))}

    def _copy(self) -> None:
        import psycopg

        before = self._schema
        self.lives += 1
        with psycopg.connect(self.server.url) as database:
            database.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            database.execute(f"CREATE SCHEMA {self._schema}")
            tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [before]).fetchall()
            for (table,) in tables:
                new = f"{self._schema}.{table}"
                database.execute(f"CREATE TABLE {new} (LIKE {before}.{table} INCLUDING ALL)")
                database.execute(f"INSERT INTO {new} OVERRIDING SYSTEM VALUE SELECT * FROM {before}.{table}")
                if table in ("users", "sessions"):
                    next_id = f"(SELECT max(id) FROM {new})"
                    database.execute(f"SELECT setval(pg_get_serial_sequence('{new}', 'id'), {next_id})")
            database.execute(f"SET search_path TO {self._schema}")
            for change in _FREE:
                database.execute(change)


_FREE = ("UPDATE sessions SET holder = NULL", "UPDATE users SET quota_bytes = NULL")


def _step(change: Callable[..., None], *arguments: object) -> Callable[[Model], None]:
    """A change of the model that is a step."""

    def step(model: Model) -> None:
        change(model, *arguments)
        model.step()

    return step


def _settings(examples: int, steps: int, *, always_the_same: bool = False) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=always_the_same,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.sampled(0)
@pytest.mark.timeout(300)
def test_sessions_are_as_the_model_through_failures_and_deaths() -> None:
    run_state_machine_as_test(States, settings=_settings(12, 25, always_the_same=True))  # type: ignore[no-untyped-call]


ODD: dict[str, Callable[[WithoutStates, int], None]] = {
    "a value ends what saves it": lambda machine, time: machine.end_what_saves("x0", time, ENDS[time % 2], 30 * time),
    "a branch begins without a state": lambda machine, time: machine.part_where_no_state_was_saved("x1", time),
    "a branch that is merged resumes": lambda machine, time: machine.merge_what_resumes(time),
}


@pytest.mark.sampled(0)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("odd", ODD)
def test_sessions_are_as_the_model_where_states_are_not_saved(odd: str) -> None:
    machine = WithoutStates()
    machine.begin()
    try:
        for time in range(3):
            ODD[odd](machine, time)
        machine.die()
    finally:
        machine.teardown()


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("machine", [States, WithoutStates, WithObjects, WithBucket])
def test_sessions_are_as_the_model_for_long(machine: type[States], thorough_seed: int) -> None:
    examples = int(os.environ.get("CELLBLOCK_EXAMPLES", "40"))
    run_state_machine_as_test(seed(thorough_seed)(machine), settings=_settings(examples, 40))  # type: ignore[no-untyped-call]


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.skipif(postgres_server.why_none() != "", reason=postgres_server.why_none())
def test_sessions_of_a_server_are_as_the_model_for_long(thorough_seed: int) -> None:
    examples = int(os.environ.get("CELLBLOCK_EXAMPLES", "40")) // 2
    with postgres_server.server() as server:
        InPostgres.server = server
        run_state_machine_as_test(seed(thorough_seed)(InPostgres), settings=_settings(examples, 40))  # type: ignore[no-untyped-call]
