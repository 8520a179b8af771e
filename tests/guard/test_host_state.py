"""The host is after a hostile run what it was before: one process, a picture of it, the corpus, another picture."""

from __future__ import annotations

import gc
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from levels import local_session

from cellblock import ExecutionLimits

PROGRAM = Path(__file__).parent / "picture.py"
EVERY = 25


def changed(every: int, first: int = 0, timeout: float = 100) -> dict[str, str]:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), str(every), str(first)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout.splitlines()[-1])
    assert found["made"] >= 600 // every
    return dict(found["changed"])


@pytest.mark.sampled(0)
@pytest.mark.threat("L8")
def test_some_attempts_leave_the_host_as_it_was():
    assert changed(EVERY, 3) == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.threat("L8")
def test_all_attempts_leave_the_host_as_it_was():
    assert changed(1, timeout=580) == {}


def test_what_the_host_has_the_collector_call_is_not_ended_with_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called in the cell's thread; here after every object that is made."""
    calls: list[str] = []
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def told(phase: str, _: object) -> None:
        calls.append(f"{phase} begins")
        _counted()
        calls.append(f"{phase} ends")

    thresholds = gc.get_threshold()
    with local_session(limits=ExecutionLimits(timeout_seconds=0.2)) as session:
        gc.callbacks.append(told)
        gc.set_threshold(1)
        try:
            cell = session.run(
                "def f():\n    return [[]]\nwhile True:\n    try:\n        f()\n    finally:\n        f()"
            )
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(told)
    assert cell.error is not None
    assert cell.error.kind == "timeout"
    assert set(itertools.pairwise(calls)) == {
        ("start begins", "start ends"), ("start ends", "stop begins"), ("stop begins", "stop ends"),
        ("stop ends", "start begins"),
    }  # fmt: skip
    assert unraisable == []


def _counted() -> None:
    """A call of a callback's own."""


ENDED_OFTEN = """
import sys, threading, time
from cellblock import Session

ended, is_over = [], threading.Event()
threading.excepthook = ended.append
sys.unraisablehook = lambda _: None  # what a finalizer is ended in
sys.setswitchinterval(1e-6)  # threads change places as often as they can

def end(ending):
    while not is_over.is_set():
        ending.raise_in("timeout")
        time.sleep(0)

with Session(trust_level="local") as session:
    ender = threading.Thread(target=end, args=(session._session._living()._runner.world.ending,))
    ender.start()
    cells = [session.run("def f(): return [i for i in range(50)]\\nfor i in range(20): f()") for _ in range(5000)]
    is_over.set()
    ender.join()
    print(ended, any(cell.error for cell in cells), session.run("1 + 1").value)
"""


@pytest.mark.sampled(0)
def test_what_ends_a_cell_never_ends_the_thread_that_runs_it():
    """It is raised again and again, wherever the thread is."""
    command = [sys.executable, "-W", "ignore", "-c", ENDED_OFTEN]
    told = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert told.stdout == "[] True 2\n", told.stderr


def test_a_picture_shows_what_was_changed():
    """So that nothing that is said to be looked at is not."""
    sys.path.insert(0, str(PROGRAM.parent))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CHANGES.format(here=str(PROGRAM.parent))],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "CANARY": "c", "CANARY_FILE": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) >= {
        "builtins.hex", "textwrap.TextWrapper.wrap", "json.added", "math.pi", "textwrap.fill", "environment",
        "warnings", "decimal", "random", "signals", "recursion", "gc", "tracers", "directory", "descriptors", "threads",
        "root logger", "exits", "hooks", "sys.path", "lines", "digits", "switch interval", "given.rows",
        "asyncgen hooks",
        "collections.abc.Sized registry", "levels", "streams", "umask", "copyreg.dispatch_table", "modules",
    }  # fmt: skip


_CHANGES = """
import sys, json
sys.path[:0] = [{here!r}]
import picture
import atexit, builtins, collections.abc, copyreg, decimal, gc, io, linecache, logging, math, os, random, signal
import tempfile, textwrap, threading, types, warnings
os.chdir(tempfile.mkdtemp())
given = {{"rows": [1]}}
before = picture.picture(given)
builtins.hex = None
textwrap.TextWrapper.wrap = None
json.added = 1
math.pi = 3
textwrap.fill.__defaults__ = (1,)
os.environ["ADDED"] = "1"
warnings.filterwarnings("ignore", message="x")
decimal.getcontext().prec = 5
random.random()
signal.signal(signal.SIGUSR1, lambda *_: None)
sys.setrecursionlimit(1234)
gc.disable()
threading.settrace(lambda *_: None)
threading.settrace(None) or threading.setprofile(lambda *_: None)
os.chdir("/")
os.open("/", 0)
threading.Thread(target=threading.Event().wait, daemon=True).start()
logging.root.setLevel(5)
atexit.register(print, "", end="")
sys.excepthook = print
sys.path.append("/x")
linecache.cache["there"] = (1, None, [], "there")
sys.set_int_max_str_digits(5000)
sys.setswitchinterval(0.1)
given["rows"].append(2)
sys.set_asyncgen_hooks(firstiter=print)
collections.abc.Sized.register(type("Mine", (), {{}}))
logging.addLevelName(77, "MINE")
streams, sys.stdout = sys.stdout, io.StringIO()
os.umask(0)
copyreg.pickle(complex, str)
sys.modules["added"] = types.ModuleType("added")
after = picture.picture(given)
sys.stdout = streams
print(json.dumps(list(picture._differences(before, after))))
"""
