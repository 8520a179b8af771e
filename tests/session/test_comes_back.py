"""A state that `flush` took comes back whole, whichever way leads to it; or the call fails, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import ExecutionLimits, RestoreFailed, Session, Versioned

Open = Callable[..., Session]
SHOP = "class Cart:\n    def __init__(self): self.n = 7\ndef total(cart): return cart.n + RATE\nRATE = 1\n"
MADE = "from shop import Cart, total\nimport shop\ncart = Cart(); rows = [cart, total]"
ASK = "rows[1](rows[0]), rows[0] is cart, type(cart) is shop.Cart, shop.RATE"
ANSWER = (8, True, True, 1)


def written(file: str, source: str = SHOP) -> str:
    place = file.rpartition("/")[0] or "."
    return f"import os, sys\nos.makedirs({place!r}, exist_ok=True)\nopen({file!r}, 'w').write({source!r})\n"


MODULES = {
    "in the workspace": written("shop.py") + MADE,
    "in a directory on sys.path": written("lib/shop.py") + "sys.path.append('lib')\n" + MADE,
    "in a directory of /data": written("/data/lib/shop.py") + "sys.path.insert(0, '/data/lib')\n" + MADE,
    "in another working directory": written("sub/shop.py") + "os.chdir('sub'); sys.path.insert(0, '')\n" + MADE,
    "that read a variable": written("shop.py", "import os\nos.environ['RATES']\n" + SHOP)
    + "os.environ['RATES'] = '1'\n"
    + MADE,
    "that read a file of the working directory": written("shop.py", "open('rates').close()\n" + SHOP)
    + "os.mkdir('sub'); os.chdir('sub'); open('rates', 'w').close()\n"
    + MADE,
    "whose file is gone": written("lib/shop.py") + f"sys.path.append('lib')\n{MADE}\nos.remove('lib/shop.py')",
    "whose file is another by now": written("shop.py") + MADE + "\nopen('shop.py', 'w').write('def other(): pass')",
    "whose file is half written": f"""{written("shop.py")}{MADE}
open('shop.py', 'w').write('def total(')
import importlib
try: importlib.reload(shop)
except SyntaxError: pass""",
    "from a path of its own": written("a-shop.py")
    + """
import importlib.util
spec = importlib.util.spec_from_file_location('shop', 'a-shop.py')
sys.modules['shop'] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules['shop'])
del spec
"""
    + MADE,
    "in an archive": "import sys, zipfile\nwith zipfile.ZipFile('a.zip', 'w') as file:\n"
    f"    file.writestr('shop.py', {SHOP!r})\nsys.path.append('a.zip')\n{MADE}",
    "found by a finder of a cell": f"""
import sys, importlib.util
class Finder:
    def find_spec(self, name, *_): return importlib.util.spec_from_loader(name, self) if name == 'shop' else None
    def create_module(self, spec): return None
    def exec_module(self, module): exec({SHOP!r}, vars(module))
sys.meta_path.append(Finder())
{MADE}""",
    "in a package": written("lib/store/__init__.py", "from .parts import make")
    + written("lib/store/parts.py", "import shop\ndef make(): return shop.Cart()\n")
    + written("lib/shop.py")
    + "sys.path.append('lib')\nimport shop, store\nfrom shop import total\ncart = store.make(); rows = [cart, total]",
}
"""Objects of modules, by where these were found."""

VALUES = {
    "text of two bytes a character": (
        "cart = rows = '中' * 14_000_000",
        "len(cart), cart is rows, cart[-1]",
        (14_000_000, True, "中"),
        64,
    ),
    "text that is longer as UTF-8": (
        "cart = rows = 'é' * 24_000_000",
        "len(cart), cart is rows, cart[-1]",
        (24_000_000, True, "é"),
        64,
    ),
    "text in a list": (
        "cart = ['x' * 30_000_000, 1]; rows = [cart]",
        "len(cart[0]), rows[0] is cart",
        (30_000_000, True),
        64,
    ),
    "arrays": (
        "import numpy\ncart = numpy.ones(5_000_000); rows = numpy.ones(5_000_000)",
        "int(cart.sum() + rows.sum())",
        10_000_000,
        128,
    ),
    "many objects": (
        "cart = [{'n': n} for n in range(180_000)]; rows = cart[-1]",
        "len(cart), cart[-1] is rows",
        (180_000, True),
        64,
    ),
}
"""Values near the limit of memory."""

STATES = {f"module {what}": (source, ASK, ANSWER, ExecutionLimits()) for what, source in MODULES.items()}
STATES |= {what: (*row, ExecutionLimits(max_memory_mb=limit)) for what, (*row, limit) in VALUES.items()}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", STATES)
def test_state_that_was_flushed_comes_back_by_every_way(opened: Open, what: str) -> None:
    source, ask, answer, limits = STATES[what]
    session = opened(limits=limits)
    cell = session.run(source)
    session.flush()
    assert (cell.ok, cell.lost, session.unsaved) == (True, (), ()), cell.text
    session.tag("good")

    def is_there(session: Session) -> None:
        cell = session.run(ask)
        assert (cell.value, cell.lost) == (answer, ()), cell.text

    session.hibernate()
    is_there(session)
    session.run("del cart, rows")
    session.checkout("good")
    is_there(session)
    branch = session.branch("idea")
    branch.run("other = 1")
    session.run("more = 2")
    session.merge(branch)
    branch.close()
    is_there(session)
    assert session.run("other, more").value == (1, 2)
    session.close()
    session = opened(limits=limits)
    assert session.resumed is not None
    assert (session.resumed.lost, session.resumed.replayed) == ((), ())
    is_there(session)


@pytest.mark.sampled(0)
def test_objects_of_a_mounted_module_come_back(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "shop.py").write_text(SHOP)
    mounts = {"lib": tmp_path / "code"}
    session = opened(mounts=mounts)
    session.run("import sys\nsys.path.insert(0, 'lib')\n" + MADE)
    session.hibernate()
    assert session.run(ASK).value == ANSWER
    session.close()
    assert opened(mounts=mounts).run(ASK).value == ANSWER


@pytest.mark.sampled(0)
def test_module_of_a_branch_comes_with_its_objects(opened: Open) -> None:
    session = opened()
    session.run("kept = 1")
    branch = session.branch("idea")
    branch.run(written("lib/shop.py") + "sys.path.append('lib')\n" + MADE)
    session.merge(branch)
    branch.close()
    assert session.run(ASK).value == ANSWER
    assert session.unsaved == ()


@pytest.mark.sampled(0)
@pytest.mark.parametrize("way", ["hibernate", "reopen", "checkout", "undo", "merge", "branch"])
def test_files_are_those_of_the_state_whatever_a_module_s_code_does_to_them(opened: Open, way: str) -> None:
    writes = "open('log', 'w').write('begun')\nopen('more', 'a').write('+')\nopen('new', 'w').close()\n"
    session = opened()
    session.run(f"{written('shop.py', writes + SHOP)}{MADE}")
    session.run("open('log', 'a').write(' and more'); os.remove('new')")
    session.flush()
    match way:
        case "hibernate":
            session.hibernate()
        case "reopen":
            session.close()
            session = opened()
        case "checkout":
            session.run("z = 1")
            session.checkout("HEAD~1")
        case "undo":
            session.run("z = 1")
            session.hibernate()
            session.undo()
        case "merge":
            with session.branch("other") as branch:
                branch.run("z = 1")
                session.merge(branch)
        case _:
            session.branch("other").close()
            session = opened("other")
    for _ in range(2):
        cell = session.run(f"{ASK}, open('log').read(), open('more').read(), os.path.exists('new')")
        assert (cell.value, cell.lost) == ((*ANSWER, "begun and more", "+", False), ())
        session.undo()
        session.hibernate()


@pytest.mark.sampled(0)
def test_object_whose_module_s_file_has_its_class_no_more_comes_back(opened: Open) -> None:
    session = opened()
    session.run(written("shop.py") + MADE)
    session.run("open('shop.py', 'w').write('RATE = 2')\nimport importlib; importlib.reload(shop)")
    session.flush()
    assert session.unsaved == ()
    session.hibernate()
    cell = session.run(ASK)
    assert (cell.value, cell.lost) == ((9, True, True, 2), ())


def test_module_that_reads_files_is_not_told_as_lost(opened: Open) -> None:
    """The process that loads what was saved once may open none."""
    session = opened()
    opens = "import sqlite3\nsqlite3.connect('d.db').executescript('create table if not exists t (n)')\n"
    reads = "try: open('rates').close()\nexcept OSError: raise ValueError('no rates') from None\n"
    session.run("open('rates', 'w').close()\n" + written("shop.py", reads + SHOP) + MADE)
    session.run(written("stock.py", opens + SHOP) + "import stock; stocked = stock.Cart()")
    session.flush()
    assert session.unsaved == ()
    session.hibernate()
    assert session.run(ASK).value == ANSWER


SMALL = ExecutionLimits(max_memory_mb=64)
NEEDY = "class Needy:\n    def __setstate__(self, state): self.room = bytearray(200 * 2**20)\na = Needy(); a.n = 1"
"""An object that takes more to be loaded than the limit allows."""
_SAID = r"needs more memory than max_memory_mb=64 allows; nothing is lost"


@pytest.mark.sampled(0)
def test_state_of_a_larger_limit_is_not_opened_with_a_smaller_and_stays(opened: Open, url: str) -> None:
    session = opened(limits=ExecutionLimits(max_memory_mb=200))
    session.run("a = bytearray(100 * 2**20); b = 1")
    session.flush()
    head = session.log(limit=1)[0].id
    session.close()
    for _ in range(2):
        with pytest.raises(RestoreFailed, match=_SAID):
            Session("one", state=Versioned(url), limits=SMALL)
    session = opened(limits=ExecutionLimits(max_memory_mb=200))
    assert session.log(limit=1)[0].id == head
    assert (session.resumed.lost, session.run("len(a), b").value) == ((), (100 * 2**20, 1))  # type: ignore[union-attr]


@pytest.mark.sampled(0)
def test_session_stays_where_it_was_where_another_state_needs_too_much_memory(opened: Open) -> None:
    session = opened(limits=SMALL)
    session.run("kept = 1")
    session.tag("small")
    branch = session.branch("idea")
    branch.run(NEEDY)
    branch.flush()
    session.run("other = 2")
    head = session.log(limit=1)[0].id
    with pytest.raises(RestoreFailed, match=_SAID):
        session.merge(branch)
    assert session.log(limit=1)[0].id == head
    assert sorted(session.names()) == ["kept", "other"]
    theirs = branch.log(limit=1)[0].id
    branch.close()
    with pytest.raises(RestoreFailed, match=_SAID):
        session.checkout(theirs)
    assert session.log(limit=1)[0].id == head
    assert session.run("kept, other").value == (1, 2)


@pytest.mark.sampled(0)
def test_session_that_needs_too_much_memory_to_wake_stays_asleep_and_whole(opened: Open) -> None:
    session = opened(limits=SMALL)
    session.run("kept = 1")
    session.run(NEEDY)
    session.hibernate()
    for _ in range(2):
        with pytest.raises(RestoreFailed, match=_SAID):
            session.run("kept")
    session.close()
    session = opened(limits=ExecutionLimits(max_memory_mb=300))
    assert session.run("kept, len(a.room)").value == (1, 200 * 2**20)


@pytest.mark.sampled(0)
def test_value_that_takes_more_than_the_limit_while_it_is_loaded_comes_back(opened: Open) -> None:
    session = opened(limits=SMALL)
    source = "import time\nclass A:\n    def __setstate__(self, state):\n        room = b'x' * (150 * 2**20)\n"
    session.run(source + "        time.sleep(0.5)\n        self.n = len(room)\na = A(); a.n = 1")
    session.hibernate()
    cell = session.run("a.n")
    assert (cell.value, cell.lost) == (150 * 2**20, ())
    cell = session.run("rooms = [b'x' * 2**20 for _ in range(150)]")
    assert cell.error is not None
    assert cell.error.type == "MemoryError"


def test_value_that_says_that_there_is_no_memory_stops_no_opening(opened: Open) -> None:
    session = opened()
    session.run(
        "class A:\n    def __setstate__(self, state): raise MemoryError('so it says')\na = A(); a.n = 1; kept = 1"
    )
    session.close()
    session = opened()
    assert [one.name for one in session.resumed.lost] == ["a"]  # type: ignore[union-attr]
    assert session.run("kept").value == 1


def test_cells_of_a_restored_session_have_no_more_memory_than_before(opened: Open) -> None:
    session = opened(limits=SMALL)
    session.run("kept = 1")
    session.hibernate()
    cell = session.run("room = bytearray(130 * 2**20)")
    assert cell.error is not None
    assert cell.error.type == "MemoryError"
    cell = session.run("import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**28, 2**28))")
    assert cell.error is not None
    assert cell.error.type == "ValueError"
