"""Families of sessions: ended when nobody needs them, told about while they take long to start."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from family_tree import Process, inits_of, launchers, soon, zygotes_of

from cellblock import Session, keep_ready
from cellblock.executors.process import families, launching
from cellblock.executors.process.families import family_of
from cellblock.executors.process.family import Profile


@pytest.fixture
def new_launchers() -> Iterator[Callable[[], list[Process]]]:
    """Tells what was launched since the test began; it is ended with the test."""
    before = {one.pid for one in launchers()}

    def new() -> list[Process]:
        return [one for one in launchers() if one.pid not in before]

    yield new
    for one in new():
        os.kill(one.pid, signal.SIGKILL)
    assert soon(new, []) == []


HELD = """
import os, stat
held = []
for number in range(64):
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        continue
    held.append(stat.filemode(mode)[0])
sorted(held)
"""


@pytest.mark.sampled(0)
def test_every_session_holds_the_same_descriptors_whoever_made_it(
    open_session: Callable[..., Session],
    new_launchers: Callable[[], list[Process]],
) -> None:
    told = [open_session(preload=["sched"]).run(HELD).value]  # made with the family, of its first zygote
    told.append(open_session(preload=["sched"]).run(HELD).value)
    (launcher,) = new_launchers()
    os.kill(zygotes_of(launcher)[0].pid, signal.SIGKILL)
    told.append(open_session(preload=["sched"]).run(HELD).value)  # of an executed zygote
    keep_ready(1, preload=["sched"])
    told.append(open_session(preload=["sched"]).run(HELD).value)
    keep_ready(0, preload=["sched"])
    assert told == [told[2]] * 4
    wire_and_next_checkpoint = 2
    assert told[0].count("s") == wire_and_next_checkpoint  # type: ignore[union-attr]


@pytest.mark.sampled(0)
def test_family_without_sessions_ends_after_a_time_and_not_before(
    open_session: Callable[..., Session],
    new_launchers: Callable[[], list[Process]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "IDLE_SECONDS", 0.3)
    session = open_session(preload=["sched"])
    assert session.run("import time\ntime.sleep(1)\n'alive'").value == "alive"
    assert len(new_launchers()) == 1
    session.close()
    assert soon(new_launchers, []) == []
    assert open_session(preload=["sched"]).run("1").value == 1


@pytest.mark.sampled(0)
def test_session_that_a_family_is_started_for_is_made_with_it_and_no_other(
    open_session: Callable[..., Session], new_launchers: Callable[[], list[Process]]
) -> None:
    session = open_session(preload=["sched"])
    assert session.run("import time\ntime.sleep(0.5)\n1").value == 1  # time enough for another
    (launcher,) = new_launchers()
    assert len(inits_of(launcher)) == 1


@pytest.mark.sampled(0)
def test_families_without_sessions_are_so_many_at_most(
    open_session: Callable[..., Session],
    new_launchers: Callable[[], list[Process]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(families, "MOST_IDLE", 1)
    used = open_session(preload=["sched"])
    for module in ("rlcompleter", "symtable", "tabnanny"):
        open_session(preload=[module]).close()
    open_session(preload=["nturl2path"])
    assert len(new_launchers()) == 3  # the first and the last have a session, and one of the others is left
    assert used.run("1").value == 1


_STOPPED = """
import os, signal, sys, time
from family_tree import below
from cellblock import Session
sessions = [Session(mounts={"given": sys.argv[1]}), Session(preload=["sched"])]
for process in below():
    if process.parent == os.getpid() or "launch" in process.words:
        os.kill(process.pid, signal.SIGSTOP)
if sys.argv[2:]:
    print(Session(mounts={"given": sys.argv[1]}).run("1").value)
print(time.monotonic())
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize("words", [(), ("open another",)])
def test_program_ends_and_opens_where_its_processes_are_stopped(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED, str(Path(__file__).parent), *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    *values, told = done.stdout.split()
    assert values == ["1"] * len(words)
    assert time.monotonic() - float(told) < 8, done.stderr
    assert {line.partition(" has been stopped, and goes on")[1] for line in done.stderr.splitlines()} != {""}


def test_what_is_imported_is_told_to_the_log_and_to_who_asks(
    new_launchers: Callable[[], list[Process]], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    profile = Profile(os.path.realpath("/proc/self/exe"), ("sched", "symtable"))
    with caplog.at_level(logging.INFO, logger="cellblock"):
        made = family_of(profile, told.append)
    assert told == ["importing sched", "importing symtable"] == [record.message for record in caplog.records]
    assert family_of(profile, told.append) is made
    assert len(told) == 2
    assert [len(inits_of(one)) for one in new_launchers()] == [0]
