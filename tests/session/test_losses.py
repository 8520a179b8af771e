"""What a session that lasts says of what it cannot keep: in time, of the name alone, with a remedy that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cellblock import Session, Versioned
from cellblock.errors import CaptureFailed
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
