"""Modules of the session's own files come back as they were: what their functions and classes hold, too, and what their
code registered with packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cellblock import Session

Open = Callable[..., Session]

KINDS = {
    "a counter on a class": ("class C:\n    n = 0\n", "m.C.n += 1; m.C.more = [m.C.n]", "m.C.n, m.C.more", (1, [1])),
    "a registry on a class": (
        "class Bus:\n    held = {}\n    @classmethod\n"
        "    def on(cls, name): return lambda f: cls.held.setdefault(name, f)\n",
        "@m.Bus.on('pay')\ndef pay(): return 5",
        "m.Bus.held['pay'] is pay, pay()",
        (True, 5),
    ),
    "objects of a class in its own registry": (
        "class C:\n    held = []\n    def __init__(self): C.held.append(self)\n",
        "one = m.C()",
        "m.C.held[0] is one, type(one) is m.C, len(m.C.held)",
        (True, True, 1),
    ),
    "subclasses known to a base": (
        "class Base:\n    known = []\n    def __init_subclass__(cls): Base.known.append(cls)\n",
        "class Mine(m.Base): pass",
        "m.Base.known == [Mine] == m.Base.__subclasses__()",
        True,
    ),
    "classes of a metaclass": (
        "class Meta(type):\n    all = {}\n    def __new__(meta, *of):\n        made = super().__new__(meta, *of)\n"
        "        meta.all[made.__name__] = made\n        return made\nclass Base(metaclass=Meta): pass\n",
        "class Other(m.Base): pass",
        "m.Meta.all == {'Base': m.Base, 'Other': Other}",
        True,
    ),
    "attributes of a function": (
        "def f():\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n\n",
        "m.f()",
        "m.f.n",
        1,
    ),
    "a default that was changed": (
        "def f(x, held={}): held[x] = x; return held\n",
        "m.f(1)",
        "m.f.__defaults__",
        ({1: 1},),
    ),
    "keyword defaults": (
        "def f(*, x=1): return x\n",
        "m.f.__kwdefaults__['x'] = 2",
        "m.f()",
        2,
    ),
    "cells of a closure": (
        "def make():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return step\nstep = make()\n",
        "m.step()",
        "m.step.__closure__[0].cell_contents",
        1,
    ),
    "a function that was wrapped": (
        "def f(): return 1\ndef wrap():\n    global f\n    old = f\n    def f(): return 10 + old()\n",
        "m.wrap(); from m import f",
        "m.f(), f is m.f",
        (11, True),
    ),
    "a function that was decorated by a cell": (
        "import functools\ndef f(x): return [x]\n",
        "import functools; plain = m.f; m.f = functools.lru_cache(m.f)",
        "m.f(1) is m.f(1), m.f.__wrapped__ is plain, plain(1)",
        (True, True, [1]),
    ),
    "a global that is another class": (
        "class A: pass\nclass B: pass\nused = A\n",
        "m.used = m.B",
        "m.used is m.B",
        True,
    ),
    "a global that is a cell's function": (
        "hook = None\n",
        "def mine(): return 7\nm.hook = mine",
        "m.hook is mine, m.hook()",
        (True, 7),
    ),
    "a global that is gone": ("token = 1\n", "del m.token", "hasattr(m, 'token')", False),
    "private names": (
        "__held = {}\ndef put(): __held[1] = 2\ndef get(): return __held\n__version__ = '1'\n",
        "m.put(); m.__version__ = '2'",
        "m.get(), m.__version__",
        ({1: 2}, "2"),
    ),
    "a class that a function made": (
        "def model(name): globals()[name] = type(name, (), {'x': 3})\n",
        "m.model('User'); user = m.User()",
        "type(user) is m.User, user.x",
        (True, 3),
    ),
    "functions for types": (
        "import functools\n@functools.singledispatch\ndef show(x): return 'any'\n",
        "@m.show.register\ndef _(x: int): return 'int'",
        "m.show(1), m.show('')",
        ("int", "any"),
    ),
    "an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\n    @classmethod\n    def note(cls): cls.noted = 3\n",
        "m.E.note(); a = m.E.A",
        "a is m.E.A is m.E(1), m.E.noted",
        (True, 3),
    ),
    "what is different each time the code runs": (
        "import os\nRUN = os.urandom(8)\nclass T:\n    run = RUN\ndef make(secret): return lambda: secret\n"
        "told = make(RUN)\n",
        "run = m.RUN",
        "m.T.run == run == m.told() == m.RUN",
        True,
    ),
}


def restored(opened: Open, session: Session, way: str) -> Session:
    """The session with its state loaded in a new process."""
    match way:
        case "hibernate":
            session.hibernate()
        case "reopen":
            session.close()
            session = opened()
        case _:
            session.run("after = 1")
            session.hibernate()
            session.checkout("HEAD~1")
    return session


@pytest.mark.sampled(0)
@pytest.mark.parametrize("way", ["hibernate", "reopen", "checkout"])
def test_what_functions_and_classes_of_a_module_hold_comes_back(opened: Open, way: str) -> None:
    session = opened()
    for number, (source, change, *_) in enumerate(KINDS.values()):
        session.files.write(f"m{number}.py", source)
        assert session.run(about(number, change)).error is None, source
    session.flush()
    assert session.unsaved == ()
    session = restored(opened, session, way)
    for number, (kind, (*_, ask, answer)) in enumerate(KINDS.items()):
        cell = session.run(about(number, ask))
        assert (cell.value, cell.lost) == (answer, ()), kind


def about(number: int, source: str) -> str:
    """A cell about the module of this number."""
    return re.sub(r"\bm\b", f"m{number}", f"import m\n{source}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["hibernate", "reopen", "checkout"])
def test_code_of_a_module_that_runs_only_once_is_no_loss(opened: Open, way: str) -> None:
    session = opened()
    once = "import os\nif os.path.exists('ran'): raise RuntimeError('only once')\nopen('ran', 'w').close()\n"
    session.files.write("once.py", f"{once}drawn = os.urandom(8)\nclass P: pass\n")
    assert session.run("import once; p = once.P(); drawn = once.drawn").error is None
    session.flush()
    assert session.unsaved == ()
    session = restored(opened, session, way)
    cell = session.run("once.drawn == drawn, type(p) is once.P")
    assert (cell.value, cell.lost) == ((True, True), ())


@pytest.mark.sampled(0)
def test_package_of_which_a_part_was_reloaded_keeps_both_versions(opened: Open) -> None:
    session = opened()
    session.files.write("pk/__init__.py", "from .core import Item, rate\n")
    session.files.write("pk/core.py", "class Item: v = 'old'\ndef rate(): return 'old'\n")
    session.run("import pk, pk.core, importlib\nfrom pk import rate\nold = pk.Item()")
    session.files.write("pk/core.py", "class Item: v = 'new'\ndef rate(): return 'new'\n")
    session.run("importlib.reload(pk.core)")
    session.hibernate()
    cell = session.run("rate(), pk.rate(), pk.core.rate(), old.v, type(old) is pk.Item, pk.core.Item.v")
    assert (cell.value, cell.lost) == (("old", "old", "new", "old", True, "new"), ())


@pytest.mark.sampled(0)
def test_reload_after_a_restore_runs_the_file(opened: Open) -> None:
    session = opened()
    session.files.write("m.py", "n = 1\ndef f(): return n\n")
    session.run("import m; m.n = 5")
    session.hibernate()
    session.run("import importlib; before = m.f(); importlib.reload(m)")
    assert session.run("before, m.f(), m.__spec__.name").value == (5, 1, "m")


@pytest.mark.sampled(0)
def test_what_of_a_module_cannot_be_saved_is_told_and_made_by_its_code(opened: Open) -> None:
    session = opened()
    session.files.write("reg.py", "held = []\ndef register(f): held.append(f); return f\n")
    session.files.write(
        "db.py",
        "import sqlite3, reg\nconn = sqlite3.connect('x.db')\nn = 0\nclass Store:\n    conn = sqlite3.connect('y.db')\n"
        "@reg.register\ndef handler(): return n\ndef bump():\n    global n\n    n += 1\n",
    )
    session.run("import db, reg; store = db.Store(); db.bump(); db.conn.execute('create table t (a)'); None")
    session.flush()
    assert {(one.name, one.reason) for one in session.unsaved} == {
        ("db.conn", "an open database"),
        ("db.Store", "db.Store.conn: an open database"),
    }
    session.hibernate()
    cell = session.run("db.n, reg.held == [db.handler], db.handler(), type(store) is db.Store")
    assert cell.value == (1, True, 1, True)
    assert {(one.name, one.alive) for one in cell.lost} == {("db.conn", False), ("db.Store", False)}
    assert session.run("db.conn.execute('select * from t').fetchall()").value == []


def test_package_in_a_virtual_environment_of_the_workspace_is_the_session_s_own(opened: Open) -> None:
    session = opened()
    session.files.write("venv/lib/site-packages/tiny.py", "held = {}\nclass K: n = 0\n")
    session.run("import sys; sys.path.insert(0, 'venv/lib/site-packages'); import tiny; tiny.held['a'] = k = tiny.K()")
    session.run("tiny.K.n = 3; import shutil; shutil.rmtree('venv')")
    session.hibernate()
    cell = session.run("tiny.held['a'] is k, type(k) is tiny.K, k.n")
    assert (cell.value, cell.lost) == ((True, True, 3), ())


FINDER = """
import sys, importlib.machinery
class Finder:
    def find_spec(self, name, *_): return importlib.machinery.ModuleSpec(name, self) if name == 'ghost' else None
    def create_module(self, spec): return None
    def exec_module(self, module): exec("class Ghost: pass", vars(module))
finder = Finder(); sys.meta_path.append(finder)
import ghost; one = ghost.Ghost()
sys.meta_path.remove(finder); del Finder, finder
"""


def test_loss_names_the_import_that_fails_and_is_told_once(opened: Open) -> None:
    session = opened()
    session.run(FINDER)
    session.flush()
    session.hibernate()
    cell = session.run("1")
    reason = "it could not be loaded: ModuleNotFoundError: No module named 'ghost'"
    remedy = "have import ghost succeed again, and make it again"
    assert sorted((one.name, one.reason, one.remedy) for one in cell.lost) == [
        ("ghost", reason, remedy),
        ("one", reason, remedy),
    ]
    assert session.run("2").lost == ()


@pytest.mark.sampled(0)
def test_loss_that_flush_found_is_told_once_after_a_restore(opened: Open) -> None:
    session = opened()
    session.run("class A:\n    def __setstate__(self, state): raise ValueError('damaged')\na = A(); a.x = 1")
    session.flush()
    assert [one.name for one in session.unsaved] == ["a"]
    session.hibernate()
    assert [(one.name, one.alive) for one in session.run("1").lost] == [("a", False)]


@pytest.mark.sampled(0)
def test_what_of_a_module_cannot_be_loaded_is_told_and_made_by_its_code(opened: Open) -> None:
    session = opened()
    damaged = "class A:\n    def __setstate__(self, state): raise ValueError('damaged')\n"
    session.files.write("conf.py", f"{damaged}bad = A()\nbad.x = 1\nn = 0\nrows = []\n")
    session.files.write("uses.py", "import conf\nconf.rows.append('begun')\n")
    session.run("import conf, uses; conf.n = 5; rows = conf.rows; kind = conf.A")
    session.flush()
    assert [(one.name, one.reason) for one in session.unsaved] == [
        ("conf.bad", "it could not be loaded again: ValueError: damaged")
    ]
    session.hibernate()
    cell = session.run("conf.n, rows is conf.rows, rows, kind is conf.A, conf.bad.x")
    assert cell.value == (5, True, ["begun"], True, 1)
    (told,) = [one for one in cell.lost if not one.alive]
    assert (told.name, told.reason) == ("conf", "some of it is as its code makes it: ValueError: damaged")
    assert told.remedy == "set again what its functions and classes held"


EFFECTS = {
    "a converter for SQLite": (
        "import sqlite3\nclass Point:\n    x = 3\nsqlite3.register_adapter(Point, lambda one: one.x)\n",
        "import sqlite3; sqlite3.connect(':memory:').execute('select ?', (m.Point(),)).fetchone()",
        (4,),
        "m.Point.x = 4",
    ),
    "a class that an abstract one counts in": (
        "from collections.abc import Sequence\nclass Row:\n    class Part: pass\nSequence.register(Row)\n"
        "Sequence.register(Row.Part)\n",
        "from collections.abc import Sequence; row = m.Row(); "
        "isinstance(row, Sequence), issubclass(m.Row.Part, Sequence), m.Row.n",
        (True, True, 1),
        "m.Row.n = 1",
    ),
    "an encoding": (
        "import codecs\ndef search(name): return codecs.lookup(used) if name == 'ours' else None\nused = 'utf-8'\n"
        "codecs.register(search)\n",
        "import codecs; found = 'ä'.encode('ours'); codecs.unregister(m.search); found",
        "ä".encode("latin-1"),
        "m.used = 'latin-1'",
    ),
    "a thread": (
        "import threading, time\nsteps = [0]\nfactor = 1\ndef work():\n    while True:\n        steps[0] += factor\n"
        "        time.sleep(0.001)\nthreading.Thread(target=work, daemon=True).start()\n",
        "import time; begun = m.steps[0]\nwhile m.steps[0] == begun: time.sleep(0.001)\nm.factor",
        3,
        "m.factor = 3",
    ),
    "a call at the end": (
        "import atexit\ncalls = []\ndef note(): calls.append(1)\natexit.register(note)\n",
        "import atexit; before = len(m.calls); atexit._run_exitfuncs(); before, len(m.calls)",
        (1, 2),
        "m.note()",
    ),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("way", ["hibernate", "reopen", "checkout"])
def test_what_code_of_a_module_registers_is_registered_after_a_restore(opened: Open, way: str) -> None:
    session = opened()
    for number, (source, *_, change) in enumerate(EFFECTS.values()):
        session.files.write(f"m{number}.py", f"print('begun')\n{source}")
        assert session.run(about(number, change)).error is None, source
    session = restored(opened, session, way)
    for number, (kind, (_, ask, answer, _)) in enumerate(EFFECTS.items()):
        cell = session.run(about(number, ask))
        assert cell.error is None, kind
        assert (cell.value, cell.text) == (answer, repr(answer)), kind


@pytest.mark.sampled(0)
def test_accessor_for_tables_that_a_module_registers_is_there_after_a_restore(opened: Open) -> None:
    pytest.importorskip("pandas")
    session = opened()
    session.files.write(
        "geo.py",
        "import pandas as pd\n@pd.api.extensions.register_dataframe_accessor('geo')\nclass Geo:\n    scale = 1\n"
        "    def __init__(self, table): self.table = table\n    def total(self): return len(self.table) * self.scale\n",
    )
    session.run("import geo, pandas as pd; geo.Geo.scale = 5; table = pd.DataFrame({'a': [1, 2]})")
    session.hibernate()
    cell = session.run("table.geo.total(), type(table.geo) is geo.Geo")
    assert (cell.value, cell.lost) == ((10, True), ())


def test_files_that_code_of_a_module_changes_are_those_of_the_state_after_a_restore(opened: Open) -> None:
    session = opened()
    session.files.write("log.py", "with open('log.txt', 'a') as log: log.write('run ')\nimport absent_later\n")
    session.files.write("absent_later.py", "import os\nif os.path.exists('again'): raise OSError\nn = 1\n")
    session.run("import log; open('again', 'w').close(); log.absent_later.n = 2")
    session.hibernate()
    cell = session.run("open('log.txt').read(), log.absent_later.n")
    assert (cell.value, cell.lost) == (("run ", 2), ())


def test_modules_run_again_in_the_order_of_their_imports(opened: Open) -> None:
    session = opened()
    note = "import token; token.tok_name.setdefault('order', []).append(__name__)\n"
    session.files.write("z_base.py", note)
    session.files.write("a_uses.py", f"import m_within\n{note}")
    session.files.write("m_within.py", note)
    session.run("import z_base, a_uses")
    session.hibernate()
    cell = session.run("import token; token.tok_name['order']")
    assert (cell.value, cell.lost) == (["z_base", "m_within", "a_uses"], ())


def test_code_of_a_module_that_ends_the_process_when_run_again_is_no_loss(opened: Open) -> None:
    session = opened()
    session.files.write("ends.py", "import os\nn = 0\nif os.path.exists('again'): os._exit(3)\nclass C: k = 1\n")
    session.files.write("uses.py", "import ends, token\ntoken.tok_name['used'] = 1\nclass D(ends.C): pass\n")
    session.run("import uses, ends; ends.n = 5; uses.D.k = 9; d = uses.D(); open('again', 'w').close()")
    session.hibernate()
    cell = session.run(
        "import token; ends.n, d.k, type(d) is uses.D, uses.D.__base__ is ends.C, token.tok_name['used']"
    )
    assert (cell.value, cell.lost) == ((5, 9, True, True, 1), ())
