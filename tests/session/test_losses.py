"""What a session that lasts says of what it cannot keep: in time, of the name alone, with a remedy that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cellblock import ExecutionLimits, Session, Versioned
from cellblock.errors import CaptureFailed
from cellblock.session.execution import recover
from cellblock.worker.saving.losses import REMEDIES

Open = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens the same stored session, one after the other."""
    sessions: list[Session] = []

    def open_(**options: object) -> Session:
        if sessions:
            sessions[-1].close()
        sessions.append(Session("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), **options))  # type: ignore[arg-type]
        return sessions[-1]

    yield open_
    for session in sessions:
        session.close()


BEFORE = (
    "import asyncio, contextvars, hashlib, mmap, multiprocessing, os, socket, sqlite3, subprocess, sys, threading\n"
)
BEFORE += (
    "import concurrent.futures, io, tarfile, tempfile, types, weakref, zipfile\nwho = contextvars.ContextVar('who')\n"
)
BEFORE += "class Thing: pass\nthing = Thing()\nopen('f', 'w').write('text')\nzipfile.ZipFile('a.zip', 'w').close()\n"
BEFORE += "tarfile.open('a.tar', 'w').close()"
_FUTURE = "concurrent.futures.ThreadPoolExecutor(1).submit(int)"
TRIED = {
    "_io.TextIOWrapper": ("x = open('f')", "with open('f') as x: text = x.read()"),
    "_io.BufferedReader": ("x = open('f', 'rb')", "with open('f', 'rb') as x: data = x.read()"),
    "_io.BufferedWriter": ("x = open('g', 'wb')", "with open('g', 'wb') as x: x.write(b'1')"),
    "_io.BufferedRandom": ("x = open('f', 'rb+')", "with open('f', 'rb+') as x: data = x.read()"),
    "_io.FileIO": ("x = io.FileIO('f')", "with io.FileIO('f') as x: data = x.read()"),
    "zipfile.ZipFile": ("x = zipfile.ZipFile('a.zip')", "with zipfile.ZipFile('a.zip') as x: x.namelist()"),
    "tarfile.TarFile": ("x = tarfile.open('a.tar')", "with tarfile.open('a.tar') as x: x.getnames()"),
    "tempfile._TemporaryFileWrapper": (
        "x = tempfile.NamedTemporaryFile()",
        "with tempfile.NamedTemporaryFile() as x: x.write(b'1')",
    ),
    "tempfile.TemporaryDirectory": ("x = tempfile.TemporaryDirectory()", "x = tempfile.mkdtemp()"),
    "mmap.mmap": (
        "with open('f', 'rb') as file: x = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)",
        "x = bytes(x)",
    ),
    "socket.socket": ("x = socket.socket()", "with socket.socket() as x: pass"),
    "sqlite3.Connection": ("x = sqlite3.connect('d.db')", "x = 'd.db'"),
    "sqlite3.Cursor": ("x = sqlite3.connect('d.db').execute('select 1')", "x = x.fetchall()"),
    "builtins.generator": ("x = (n for n in [1])", "x = list(x)"),
    "builtins.coroutine": ("async def f(): return 1\nx = f()", "x = await x"),
    "builtins.async_generator": ("async def g(): yield 1\nx = g()", "x = [item async for item in x]"),
    "builtins.frame": ("x = sys._getframe()", "x = list(x.f_locals)[:1]"),
    "builtins.traceback": (
        "try: 1 / 0\nexcept ZeroDivisionError as e: x = e.__traceback__",
        "import traceback\ntry: 1 / 0\nexcept ZeroDivisionError: x = traceback.format_exc()",
    ),
    "posix.ScandirIterator": ("x = os.scandir('.')", "x = os.listdir('.')"),
    "threading.Thread": (
        "x = threading.Timer(60, print)",
        "x = []; thread = threading.Thread(target=x.append, args=(1,)); thread.start(); thread.join(); del thread",
    ),
    "threading._MainThread": ("x = threading.main_thread()", "x = threading.main_thread().name"),
    "_thread.lock": ("x = threading.Lock(); x.acquire()", "x.release()"),
    "_thread.RLock": ("x = threading.RLock(); x.acquire()", "x.release()"),
    "subprocess.Popen": ("x = subprocess.Popen(['true'])", "x.wait(); x = subprocess.check_output(['echo', '1'])"),
    "multiprocessing.process.BaseProcess": (
        "x = multiprocessing.Process(target=print)",
        "x = multiprocessing.current_process().name",
    ),
    "concurrent.futures.thread.ThreadPoolExecutor": (
        "x = concurrent.futures.ThreadPoolExecutor(1)",
        "with concurrent.futures.ThreadPoolExecutor(1) as pool: x = list(pool.map(abs, [1]))\ndel pool",
    ),
    "concurrent.futures._base.Future": (f"x = {_FUTURE}", "x = x.result()"),
    "_asyncio.Task": ("x = asyncio.ensure_future(asyncio.sleep(0, 1)); await asyncio.sleep(0)", "x = await x"),
    "_asyncio.Future": (
        "x = asyncio.get_running_loop().create_future(); await asyncio.sleep(0)",
        "x.set_result(1); x = await x",
    ),
    "asyncio.events.AbstractEventLoop": (
        "x = asyncio.get_running_loop(); await asyncio.sleep(0)",
        "x = asyncio.get_running_loop().time(); await asyncio.sleep(0)",
    ),
    "weakref.finalize": ("x = weakref.finalize(thing, print)", "x = print"),
    "_weakref.ReferenceType": ("x = weakref.ref(os.__loader__)", "x = weakref.ref(thing)"),
    "_contextvars.Token": ("x = who.set(1)", "x = who.get(1); who.set(x); None"),
    "_contextvars.Context": ("x = contextvars.copy_context()", "x = list(x.values())[:0]"),
    "_hashlib.HASH": ("x = hashlib.sha256(b'1')", "x = x.digest()"),
}
"""Of types that cannot be saved: a cell that binds a name to one, and one that does what the remedy says."""
ALIKE = {
    "ssl.SSLSocket", "multiprocessing.connection._ConnectionBase", "multiprocessing.managers.BaseManager",
    "multiprocessing.pool.Pool", "concurrent.futures.process.ProcessPoolExecutor", "_hashlib.HASHXOF", "_hashlib.HMAC",
    "hmac.HMAC", "_blake2.blake2b", "_blake2.blake2s",
}  # fmt: skip
"""Those whose remedy is another's."""


def test_every_remedy_is_tried() -> None:
    assert TRIED.keys() | ALIKE == REMEDIES.keys()
    assert {REMEDIES[kind][1] for kind in ALIKE} <= {REMEDIES[kind][1] for kind in TRIED}


@pytest.mark.sampled(0)
def test_remedies_keep_what_was_told_as_lost(opened: Open) -> None:
    session = opened()
    assert session.run(BEFORE).ok
    names = {kind: f"x{number}" for number, kind in enumerate(TRIED)}
    cell = session.run("\n".join(f"{bind}\n{names[kind]} = x\ndel x" for kind, (bind, _) in TRIED.items()))
    assert cell.ok, cell.text
    session.flush()
    later = session.run("None").lost
    assert {one.name for one in later} == {names["_weakref.ReferenceType"]}  # which take a look at all that is held
    told = {one.name: one.remedy for one in (*cell.lost, *later)}
    assert told == {name: REMEDIES[kind][1] for kind, name in names.items()}
    cell = session.run(
        "\n".join(f"x = {names[kind]}\n{remedy}\n{names[kind]} = x\ndel x" for kind, (_, remedy) in TRIED.items())
    )
    assert cell.ok, cell.text
    session.flush()
    assert session.unsaved == ()
    session = opened()
    assert session.resumed is not None
    assert (session.resumed.lost, session.resumed.replayed) == ((), ())
    assert set(names.values()) <= session.names().keys()


KEPT = {
    "a closed file": ("with open('o', 'w') as x: x.write('1')", "x.closed, x.name, x.mode", (True, "o", "w")),
    "a match": ("import re\nx = list(re.finditer('(a)b', 'ab ab'))[1]", "x.span(), x[1]", ((3, 5), "a")),
    "a queue that was awaited": (
        "import asyncio\nx = asyncio.Queue()\ntask = asyncio.ensure_future(x.get()); await asyncio.sleep(0)\n"
        "await x.put(1); await task; del task; await x.put(2)",
        "await x.get()",
        2,
    ),
    "what a cell replaced": (
        "import datetime\nclass Fixed(datetime.datetime):\n    pass\ndatetime.datetime = Fixed\nx = Fixed(2021, 5, 4)",
        "x.year, datetime.datetime is Fixed, Fixed.__base__ is not Fixed",
        (2021, True, True),
    ),
    "results that a function had kept": (
        "import functools\n@functools.lru_cache\ndef x(r): return 3 * r\nx(2)",
        "x(2)",
        6,
    ),
}


def test_queue_that_a_thread_waits_on_says_to_end_the_thread(opened: Open) -> None:
    session = opened()
    session.run("import queue, threading, time\nq = queue.Queue()")
    session.run("t = threading.Thread(target=q.get)\nt.start()\nwhile not q.not_empty._waiters: time.sleep(0.01)")
    session.flush()
    assert {one.name: one.remedy for one in session.unsaved}["q"] == "end the thread before the cell ends"
    session.run("q.put(None)\nt.join()\ndel t")
    session.flush()
    assert session.unsaved == ()


@pytest.mark.sampled(0)
@pytest.mark.parametrize("back", ["undo", "undo to", "checkout", "rolled back"])
def test_what_is_not_saved_is_that_of_where_the_session_stands(opened: Open, back: str) -> None:
    session = opened()
    session.run("g = (one for one in 'abc')")
    session.flush()
    assert [one.name for one in session.unsaved] == ["g"]
    step = session.checkpoint()
    session.run("g = h = None\nk = (one for one in 'abc')")
    session.flush()
    assert [one.name for one in session.unsaved] == ["k"]
    if back == "undo":
        session.undo()
    elif back == "undo to":
        session.undo(to=step)
    elif back == "checkout":
        session.checkout("HEAD~1")
    else:
        session.undo()
        assert session.run("import os\nos._exit(1)").rolled_back
    assert [one.name for one in session.unsaved] == ([] if back == "checkout" else ["g"])
    assert {one.name for one in session.run("x = 1").lost} == ({"g"} if back == "checkout" else set())
    session.flush()
    assert [one.name for one in session.unsaved] == ([] if back == "checkout" else ["g"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", KEPT)
def test_what_is_kept_is_not_told_as_lost(opened: Open, what: str) -> None:
    source, ask, expected = KEPT[what]
    session = opened()
    cell = session.run(source)
    session.flush()
    assert (cell.ok, cell.lost, session.unsaved) == (True, (), ())
    cell = opened().run(ask)
    assert (cell.value, cell.lost) == (expected, ())


def test_what_is_left_out_of_a_value_is_told_as_its_part(opened: Open) -> None:
    session = opened()
    session.run("try: int('x')\nexcept ValueError as error: failure = error")
    session.flush()
    (told,) = session.unsaved
    assert (told.name, told.type) == ("traceback of failure", "part of ValueError")
    cell = opened().run("str(failure)[:15]")
    assert cell.text.splitlines()[-1] == "lost: traceback of failure (keep traceback.format_exc() beside it)"


UNLOADABLE = {
    "raises": ("raise ValueError('damaged')", "ValueError: damaged"),
    "ends the process": ("import os; os._exit(1)", "its code ended the process that loaded it"),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("clears", [False, True])
def test_what_is_lost_by_several_steps_back_is_told_once_and_not_after_clear(opened: Open, clears: bool) -> None:
    session = opened()
    session.run("import socket; left, right = socket.socketpair(); rows = (row for row in 'ab'); next(rows)")
    session.run("x = 1")
    session.run("x = 2")
    session.undo()
    session.undo()
    session.checkout(session.log()[0].id)
    session = opened()
    if clears:
        session.clear()
    cell = session.run("1")
    assert sorted(one.name for one in cell.lost) == ([] if clears else ["left", "right", "rows"])
    assert cell.text.count("left") == (not clears)
    assert session.run("1").lost == ()


@pytest.mark.parametrize("clears", [False, True])
def test_what_is_lost_by_undo_is_told_once_and_not_after_clear(clears: bool) -> None:
    with Session() as session:
        session.run("import socket; left, right = socket.socketpair(); nameless = open('f', 'w')")
        for value in range(3):
            session.run(f"x = {value}; import os; os.remove('f') if os.path.exists('f') else open('f', 'w').close()")
        session.undo()
        session.undo()
        if clears:
            session.clear()
        cell = session.run("1")
        assert [one.name for one in cell.lost] == ([] if clears else ["left", "right"])
        assert session.run("1").lost == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", UNLOADABLE)
def test_what_was_saved_and_cannot_be_loaded_is_told_by_the_next_cell(opened: Open, what: str) -> None:
    code, reason = UNLOADABLE[what]
    session = opened()
    session.run(f"class A:\n    def __setstate__(self, state):\n        {code}\nkept = [1]")
    session.run("a = A(); a.x = 1; b = [a, A]")
    session.flush()
    assert {one.name for one in session.unsaved} == {"a", "b"}
    cell = session.run("a.x")
    assert {one.name: (one.reason, one.alive) for one in cell.lost}["a"] == (
        f"it could not be loaded again: {reason}",
        True,
    )
    assert cell.text.splitlines()[-1].startswith("not saved: a, b (register a codec for its type with cellblock.codec")
    assert session.run("kept").lost == ()
    session.run("from cellblock import codec\ncodec(A, save=lambda a: a.x, load=lambda x: A())")
    session.run("a = A(); a.x = 2; b = [a]")
    session.flush()
    assert session.unsaved == ()
    session = opened()
    assert session.resumed is not None
    assert session.resumed.lost == ()
    assert session.run("b[0] is a, kept").value == (True, [1])


@pytest.mark.sampled(0)
def test_what_is_loaded_when_the_session_goes_to_sleep_is_not_told_as_lost(opened: Open) -> None:
    session = opened()
    session.run("import time\nclass Slow:\n    def __setstate__(self, state): time.sleep(1)\nslow = Slow(); slow.x = 1")
    session.hibernate()
    cell = session.run("type(slow).__name__")
    assert (cell.value, cell.lost, session.unsaved) == ("Slow", (), ())


def test_what_is_loaded_may_call_what_the_session_holds(opened: Open) -> None:
    session = opened()
    session.run("CONF = {'n': [5]}\ndef made(n): return [n, CONF['n']]\nmatplotlib = numpy = None")
    session.run("class A:\n    def __setstate__(self, state): self.got = made(1)\na = A(); a.x = 1")
    session.flush()
    assert session.unsaved == ()


def test_a_failure_of_all_saving_is_told_by_the_next_cell_and_by_flush(opened: Open) -> None:
    session = opened()
    session.run("kept = 1")
    session.flush()
    session.run("import os\nos.register_at_fork(after_in_child=lambda: os._exit(1))")
    with pytest.raises(CaptureFailed, match="nothing since cell 2 could be saved"):
        session.flush()
    assert [one.name for one in session.unsaved] == ["everything since cell 2"]


_FORK_FAILS = "import os\nos.register_at_fork(after_in_child=lambda: os._exit(1))"
_NESTED = """
def held(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
nested, most = [], held() + 40_000
while held() < most: nested.extend([[n], [n]] for n in range(1000))
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", [_FORK_FAILS, _NESTED], ids=["no copy is made", "no memory is left to save in"])
def test_session_whose_state_cannot_be_saved_does_not_hibernate(opened: Open, what: str) -> None:
    session = opened(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=64))
    made = session.run("import os; made = os.urandom(8); made").value
    assert session.run(what).ok
    with pytest.raises(CaptureFailed, match="nothing since cell 2 could be saved"):
        session.hibernate()
    assert session.run("made").value == made
    assert "asleep" not in repr(session)


@pytest.mark.sampled(0)
def test_session_that_went_back_to_a_state_hibernates_whatever_could_not_be_saved_later(opened: Open) -> None:
    session = opened(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=64))
    made = session.run("import os; made = os.urandom(8); made").value
    session.flush()
    at = session.log()[0].id
    assert session.run(_NESTED).ok
    with pytest.raises(CaptureFailed):
        session.hibernate()
    session.checkout(at)
    session.hibernate()
    assert session.run("made").value == made


_ENDLESS = "while True: pass"
_HELD_UP = {
    "ends the process": "import os; os._exit(1)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "never ends": _ENDLESS,
    "never ends in C": "sum(range(10**12))",
    "waits for a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
}
_SOON = "cellblock.executors.suspects.STILL_SECONDS"
_CODEC = "register a codec for its type with cellblock.codec, and make it again"
_OPENED = "import cellblock\ncellblock.codec(A, save=lambda one: 7, load=lambda seven: A())\na = A(); a.x = 1"


def _of(method: str, code: str, name: str = "A") -> str:
    return f"class {name}:\n    def {method}:\n        {code}\n"


def _holds_up(told: str) -> bool:
    return told.startswith(("its code ended the process", "its code did not come to an end within "))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", _HELD_UP)
def test_value_whose_code_ends_or_holds_up_its_writer_is_lost_and_the_rest_is_saved(
    opened: Open, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SOON, 1.0)
    session = opened()
    session.run("kept = [1]; same = kept")
    session.run(_of("__reduce__(self)", _HELD_UP[what]) + "a = A(); b = {'of': a, 'kept': kept}; c = ['c', b['kept']]")
    session.flush()
    (a, b) = told = session.run("import uuid; shown = str(uuid.uuid4())").lost
    assert [one.name for one in told] == ["a", "b"]
    assert _holds_up(a.reason)
    assert _holds_up(b.reason)
    assert (a.type, a.remedy, a.alive) == ("__main__.A", _CODEC, True)
    shown = session.run("shown").value
    session = opened()
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    assert [one.name for one in session.resumed.lost] == ["a", "b"]
    cell = session.run("shown, kept, same is kept, c[1] is kept, 'a' in globals()")
    assert cell.value == (shown, [1], True, True, False)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("method", ["__reduce__(self)", "__setstate__(self, state)"])
def test_no_number_of_values_that_end_or_hold_up_a_process_stops_saving_or_opening(
    opened: Open, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SOON, 1.0)
    session = opened()
    session.run("kept = [1]")
    session.run(_of(method, "import os; os._exit(1)", "Ends") + _of(method, _ENDLESS, "Stays"))
    session.run("for number in range(8):\n    for kind in (Ends, Stays):\n        one = kind(); one.x = 1\n"
                "        globals()[f'{kind.__name__}{number}'] = one\ndel one")  # fmt: skip
    bad = {f"{kind}{number}" for kind in ("Ends", "Stays") for number in range(8)}
    session.flush()
    assert {one.name for one in session.run("None").lost} == bad
    shown = session.run("import uuid; shown = str(uuid.uuid4()); shown").value
    session.flush()
    assert {one.name for one in session.unsaved} == bad
    session = opened()
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    assert {one.name for one in session.resumed.lost} == bad
    assert session.run("shown, kept").value == (shown, [1])


@pytest.mark.sampled(0)
def test_value_whose_loading_never_ends_is_loaded_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    async def counted(*args: object, **options: object) -> object:
        begun.append(args)
        return await recover(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(_SOON, 1.0)
    monkeypatch.setattr("cellblock.session.versions.recover", counted)
    session = opened()
    session.run("kept = [1]; import os")
    code = "while os.path.exists('flag'): pass"
    session.run(_of("__setstate__(self, state)", code) + "a = A(); a.x = 1; b = A(); b.x = 2")
    session.flush()
    session.files.write("flag", b"")
    session = opened()
    assert session.resumed is not None
    assert {one.name: one.remedy for one in session.resumed.lost} == {"a": _CODEC, "b": _CODEC}
    assert len(begun) == 2  # processes after the first: one for each value that held one up
    assert session.run("kept, 'a' in globals()").value == ([1], False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["__reduce__(self)", "__setstate__(self, state)"])
def test_remedy_for_a_value_that_ends_or_holds_up_a_process_keeps_it(opened: Open, method: str) -> None:
    session = opened()
    session.run(_of(method, "import os; os._exit(1)") + "a = A(); a.x = 1")
    session.flush()
    assert [one.remedy for one in session.unsaved] == [_CODEC]
    session.run(_OPENED)
    session.flush()
    assert session.unsaved == ()
    session = opened()
    assert session.run("type(a) is A").value is True


@pytest.mark.sampled(0)
def test_value_that_ended_its_writer_is_saved_once_what_it_holds_is_another(opened: Open) -> None:
    session = opened()
    session.run("import os\n" + _of("__reduce__(self)", "return (int, (5,)) if self.well else os._exit(1)"))
    session.run("a = A(); a.well = False; b = [A()]; b[0].well = False")
    session.flush()
    assert {one.name for one in session.unsaved} == {"a", "b"}
    session.run("a.well = True")
    session.flush()
    assert {one.name for one in session.unsaved} == {"b"}
    session.run("A.__reduce__ = lambda self: (int, (6,))")
    session.flush()
    assert session.unsaved == ()
    assert opened().run("a, b").value == (6, [6])


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", ["ends the process", "never ends"])
def test_value_that_cannot_show_itself_is_saved(opened: Open, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_SOON, 1.0)
    session = opened()
    session.run(_of("__repr__(self)", _HELD_UP[what]) + "a = A(); a.x = 1")
    session.flush()
    assert session.unsaved == ()
    assert opened().run("a.x").value == 1


@pytest.mark.sampled(0)
def test_newest_state_is_saved_though_many_came_while_a_value_held_up_the_writer(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_SOON, 1.0)
    session = opened()
    session.run(_of("__reduce__(self)", _ENDLESS) + "a = A(); count = 0")
    for _ in range(12):
        session.run("count += 1")
    session.flush()
    session = opened()
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    assert session.run("count").value == 12


_TEXTS = {
    "a lone surrogate in a name": "globals()['\\ud800'] = 1",
    "NUL in a name": "globals()['a\\0b'] = [1]",
    "a name of a hundred thousand characters": "globals()['a' * 100_000] = 1",
    "names of Python's own kind": "globals()['__\\ud800__'] = [1]",
    "a name of a module's": "import json; setattr(json, '\\ud800', [1])",
    "a logger's name": "import logging; logging.getLogger('\\ud800').setLevel(10)",
    "a class's name": "A = type('A', (), {}); A.__qualname__ = 'A' * 100_000; a = A()",
    "a class's module": "A = type('A', (), {'__module__': 'm\\ud800\\0'}); a = A()",
    "a class without a name": "def f():\n    class A: pass\n    A.__qualname__ = 'A' * 5000\n    return A()\na = f()",
    "a function's name": "def f(): pass\nf.__name__ = f.__qualname__ = '\\ud800'",
    "what shows a value": "class A:\n    def __repr__(self): return '\\ud800\\0'\na = A()",
    "why a value is lost": "class A:\n    def __reduce__(self): raise ValueError('\\ud800\\0' * 10**6)\na = A()",
    "where a loss lies": "a = {'\\ud800': {'\\0': open('f', 'w')}}",
    "why a value cannot be loaded": "class A:\n    def __init__(self): self.x = 1\n"
    "    def __setstate__(self, state): raise ValueError('\\ud800\\0' * 10**6)\na = A()",
    "values": "a = '\\ud800'; b = ['x\\0y']",
    "files": "import os; open(b'f\\xff', 'w').write('x'); os.symlink(b'\\xfe', 'link'); os.mkdir(b'd\\xff')",
    "what is shown": "import sys; sys.stdout.reconfigure(errors='surrogatepass'); print('\\ud800\\0'); '\\ud800\\0'",
    "an error": "raise ValueError('\\ud800\\0')",
    "a source": "x = 1 # \0",
    "a lone surrogate in a source": "x = 1 # \ud800",
}
_NOT_KEPT = {
    "a lone surrogate in a name": "\\ud800",
    "NUL in a name": "a\\x00b",
    "a name of a hundred thousand characters": "a" * 1000,
    "names of Python's own kind": "__\\ud800__",
    "a name of a module's": "json.\\ud800",
    "a logger's name": "logger.\\ud800",
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", _TEXTS)
def test_text_that_no_record_can_hold_is_told_and_stops_no_saving(opened: Open, what: str) -> None:
    session = opened()
    session.run("kept = [1]")
    session.run(_TEXTS[what])
    session.flush()
    lost = session.run("import uuid; shown = str(uuid.uuid4())").lost
    shown = session.run("shown").value
    if what in _NOT_KEPT:
        reason = "its name is longer than 1000 characters, or has NUL or a lone surrogate in it"
        assert [(one.name, one.reason, one.remedy) for one in lost] == [
            (_NOT_KEPT[what], reason, "give it another name")
        ]
    session = opened()
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    assert session.run("shown, kept").value == (shown, [1])
    assert session.notebook.to_html()
    assert session.log()


SLOW_TO_LOAD = """
import time
def load():
    time.sleep(3)
    return Slow()
class Slow:
    def __reduce__(self):
        return load, ()
"""


@pytest.mark.sampled(0)
def test_steps_that_come_while_saved_values_are_still_being_loaded_are_saved(opened: Open) -> None:
    session = opened()
    session.run(SLOW_TO_LOAD)
    for number in range(12):
        assert session.run(f"x{number} = Slow()").lost == ()
        session.log(limit=1)  # its commit is made, and its trial has begun
    session.flush()
    assert session.unsaved == ()


TOLD = {
    "last value": ("(n for n in [1])", ("_", "generator", "a generator")),
    "in the last value": ("{'a': [(n for n in [1])]}", ("_", "dict", "_['a'][0]: a generator")),
    "last value of what a name holds": (
        "import sqlite3; db = sqlite3.connect('x.db'); db.execute('create table t(a)')",
        ("_", "sqlite3.Cursor", "it shares objects with db, which is not saved: an open database"),
    ),
    "name between underscores": ("__hook__ = (n for n in [1])", ("__hook__", "generator", "a generator")),
    "in a name between underscores": (
        "__hook__ = [open('f', 'w')]",
        ("__hook__", "list", "__hook__[0]: an open file"),
    ),
    "part of a name between underscores": (
        "class Thing(ValueError): pass\n__hook__ = [1]\ntry: raise Thing\nexcept Thing as e: __hook__.append(e)",
        ("traceback of __hook__[1]", "part of __main__.Thing", "its traceback cannot be saved"),
    ),
    "name between underscores that cannot be loaded": (
        "class Thing:\n    def __reduce__(self): return int, ('x',)\n__hook__ = Thing()",
        (
            "__hook__",
            "",
            "it could not be loaded again: ValueError: invalid literal for int() with base 10: 'x'",
        ),
    ),
    "annotation": ("x: (n for n in [1]) = 1", ("__annotations__['x']", "generator", "a generator")),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", TOLD)
def test_loss_is_told_under_the_name_that_cells_use(opened: Open, what: str) -> None:
    source, expected = TOLD[what]
    session = opened()
    assert session.run(source).ok
    session.flush()
    assert expected in [(one.name, one.type, one.reason) for one in session.unsaved]
