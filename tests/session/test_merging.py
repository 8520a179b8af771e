"""What a merge makes of two versions: all that either changed, or an error, and never something else unsaid."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, MergeConflict, Session, Versioned
from cellblock.errors import SessionClosed, UnknownCommit
from cellblock.session.mergedtrees import merge_files

Parted = Callable[[str, str, str], tuple[Session, Session]]
MAKE = "def made(number):\n    class Item:\n        value = number\n    return Item()\n"


@pytest.fixture
def parted(tmp_path: Path) -> Iterator[Parted]:
    """A session and its branch, after cells of both, of this one, and of the branch."""
    sessions: list[Session] = []

    def part(both: str, ours: str, theirs: str) -> tuple[Session, Session]:
        session = Session("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"))
        sessions.append(session)
        assert session.run(both).ok
        branch = session.branch("other")
        sessions.append(branch)
        assert session.run(ours).ok
        assert branch.run(theirs).ok
        return session, branch

    yield part
    for session in sessions:
        session.close()


@pytest.mark.sampled(0)
def test_merge_takes_over_what_surrounds_the_names(parted: Parted) -> None:
    session, branch = parted(
        "import decimal, json, os",
        "os.environ['OURS'] = '1'\ndecimal.getcontext().prec = 9",
        "__version__ = '2'\njson.added = [3]\ndecimal.getcontext().prec = 7",
    )
    session.merge(branch)
    cell = session.run("os.environ['OURS'], __version__, json.added, decimal.getcontext().prec")
    assert (cell.value, [one.name for one in cell.lost]) == (("1", "2", [3], 9), ["decimal"])


@pytest.mark.sampled(0)
@pytest.mark.parametrize(("prefer", "expected"), [("ours", "1"), ("theirs", "2")])
def test_name_between_underscores_that_both_changed_is_a_conflict(
    parted: Parted, prefer: Literal["ours", "theirs"], expected: str
) -> None:
    session, branch = parted("__version__ = '0'", "__version__ = '1'", "__version__ = '2'\nx = 1")
    with pytest.raises(MergeConflict, match=r"^both changed names: __version__ ") as conflict:
        session.merge(branch)
    assert conflict.value.names == ("__version__",)
    session.merge(branch, prefer=prefer)
    cell = session.run("__version__, x")
    assert (cell.value, cell.lost) == ((expected, 1), ())


ANNOTATED = {
    "of either version": ("x: int = 1", "y: str = 'a'", "z: float = 1.0", ["x: int", "y: str", "z: float"]),
    "of what was cached": (
        "from typing import Optional\nx: Optional[int] = 1", "y: Optional[int] = 1", "z: Optional[int] = 1",
        ["x: Optional", "y: Optional", "z: Optional"],
    ),
    "in the order of the cells": (
        "b: int = 1\na: int = 1", "d: int = 1", "c: int = 1",
        ["b: int", "a: int", "d: int", "c: int"],
    ),
    "of a class of the cells": ("class A: pass\nx: A = A()", "A.more = 1", "y: A = x", ["x: A", "y: A"]),
    "alike": ("x = 1", "y: int = 1", "y: int = 1", ["y: int"]),
    "removed": ("x: int = 1\ny: int = 1", "del __annotations__['x']", "z: int = 1", ["y: int", "z: int"]),
}  # fmt: skip


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", ANNOTATED)
def test_annotations_are_merged_each(parted: Parted, what: str) -> None:
    both, ours, theirs, expected = ANNOTATED[what]
    session, branch = parted(both, ours, theirs)
    session.merge(branch)
    for _ in range(2):
        cell = session.run("[f'{name}: {kind.__name__}' for name, kind in __annotations__.items()]")
        assert (cell.value, cell.lost) == (expected, ())
        session.hibernate()


@pytest.mark.sampled(0)
@pytest.mark.parametrize(("prefer", "expected"), [("ours", ["str", "int"]), ("theirs", ["bytes", "int"])])
def test_annotation_that_both_changed_is_a_conflict(
    parted: Parted, prefer: Literal["ours", "theirs"], expected: list[str]
) -> None:
    session, branch = parted("x: int", "x: str", "x: bytes\ny: int")
    with pytest.raises(MergeConflict) as conflict:
        session.merge(branch)
    assert conflict.value.names == ("__annotations__",)
    session.merge(branch, prefer=prefer)
    cell = session.run("[kind.__name__ for kind in __annotations__.values()]")
    assert (cell.value, cell.lost) == (expected, ())


@pytest.mark.sampled(0)
def test_annotations_that_a_name_holds_too_are_one_object_after_a_merge(parted: Parted) -> None:
    session, branch = parted("x: int = 1", "held = __annotations__", "y: str = 'a'")
    session.merge(branch)
    session.hibernate()
    assert session.run("held is __annotations__, list(held)").value == (True, ["x", "y"])


@pytest.mark.sampled(0)
def test_warnings_that_were_shown_are_nothing_that_both_changed(parted: Parted) -> None:
    session, branch = parted("import warnings", "warnings.warn('a')", "warnings.warn('b')")
    session.merge(branch)
    assert session.run("1").lost == ()


@pytest.mark.sampled(0)
def test_last_values_that_both_lost_are_no_conflict(parted: Parted) -> None:
    session, branch = parted("x = 1", "(n for n in [1])", "y = 2\n[(n for n in [1])]")
    session.merge(branch)
    cell = session.run("x, y")
    assert (cell.value, [one.name for one in cell.lost]) == ((1, 2), ["_"])


SETS = [
    ("os.environ['A'] = '1'", "os.environ['B'] = '1'", "process"),
    ("os.environ['A'] = '1'", "sys.path.append('/b')", "process"),
    ("warnings.simplefilter('ignore')", "warnings.simplefilter('error')", "warnings"),
    ("logging.getLogger('a').setLevel(10)", "logging.getLogger('a').setLevel(20)", "logger.a"),
]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("prefer", [None, "ours", "theirs"])
@pytest.mark.parametrize(("ours", "theirs", "told"), SETS)
def test_merge_tells_which_settings_both_changed(
    parted: Parted, ours: str, theirs: str, told: str, prefer: Literal["ours", "theirs"] | None
) -> None:
    session, branch = parted("import logging, os, sys, warnings\nx = 1", ours, theirs)
    session.merge(branch, prefer=prefer)
    assert [one.name for one in session.run("x").lost] == [told]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("prefer", [None, "ours", "theirs"])
@pytest.mark.parametrize("draws", ["random.random()", "pass"])
def test_versions_draw_numbers_of_their_own_after_a_merge(
    parted: Parted, draws: str, prefer: Literal["ours", "theirs"] | None
) -> None:
    begin = "import random, numpy\nnumpy.random.seed(1)"
    session, branch = parted(begin, draws, "numpy.random.random(), " + draws if draws != "pass" else draws)
    drawn = "random.random(), numpy.random.random()"
    expected = session.run(drawn).value, branch.run(drawn).value
    assert expected[0][0] != expected[1][0]
    session.undo()
    branch.undo()
    branch.run("z = 1")
    merged = session.merge(branch, prefer=prefer), branch.merge(session, prefer=prefer)
    assert len({one.id for one in merged}) == 2
    assert (session.run(drawn).value, branch.run(drawn).value) == expected
    session.hibernate()
    session.undo()
    assert session.run(drawn).value == expected[0]


@pytest.mark.sampled(0)
def test_branch_that_takes_over_the_session_before_it_ran_anything_draws_its_own_numbers(tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("one", state=state) as session:
        session.run("import random")
        with session.branch("other") as branch, session.branch("another") as another:
            session.run("x = 1")
            branch.merge(session)
            another.run("x = 1")
            drawn = [one.run("random.random(), x").value for one in (session, branch, another)]
            assert len({*drawn}) == 3
            branch.hibernate()
            branch.undo()
            assert branch.run("random.random(), x").value == drawn[1]


LEFT = {
    "a process": "import os, time\nif not os.fork():\n    time.sleep(0.3); open('later', 'w').close(); os._exit(0)",
    "a thread": "import threading\n"
    "threading.Timer(0.3, lambda: (open('later', 'w').close(), globals().update(done=1))).start()",
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", LEFT)
def test_merge_takes_over_what_went_on_in_the_other_after_its_last_cell(parted: Parted, what: str) -> None:
    session, branch = parted("x = 1", "y = 1", LEFT[what])
    deadline = time.monotonic() + 20
    while "later" not in branch.files.list() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    session.merge(branch)
    assert session.files.list() == ["later"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("both", "ours", "theirs", "told", "left"),
    [
        ("x = 1", "y = 1", "lines = (n for n in [1])", ["lines"], None),
        ("lines = 4", "y = 1", "lines = (n for n in [1])", ["lines"], None),
        ("lines = (n for n in [1])", "y = 1", "lines = 5", [], 5),
        ("lines = (n for n in [1])", "lines = 5", "y = 1", [], 5),
        ("x = 1", "lines = (n for n in [1])", "y = 1", ["lines"], None),
    ],
)
def test_merge_tells_what_either_version_had_lost(
    parted: Parted, both: str, ours: str, theirs: str, told: list[str], left: object
) -> None:
    session, branch = parted(both, ours, theirs)
    session.merge(branch)
    cell = session.run("globals().get('lines')")
    assert [one.name for one in cell.lost] == told
    assert cell.value == left


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("both", "ours", "theirs", "names"),
    [
        (MAKE, "a = made(1)", "b = made(2)", ("b",)),
        (MAKE + "a = made(1)", "type(a).value = 5", "type(a).value = 6", ("a",)),
        (MAKE + "a = made(1)", "type(a).value = 5", "b = type(a)()", ("b",)),
        (MAKE + "a = made(1); b = made(2)", "c = type(a)()", "del a", ("c",)),
        ("class A: pass", "del A", "b = A()", ("b",)),
        ("lines = 1", "lines = (n for n in [1])", "lines = 2", ("lines",)),
    ],
)
def test_definition_that_is_another_one_in_the_other_version_is_a_conflict(
    parted: Parted, both: str, ours: str, theirs: str, names: tuple[str, ...]
) -> None:
    session, branch = parted(both, ours, theirs)
    with pytest.raises(MergeConflict) as conflict:
        session.merge(branch)
    assert conflict.value.names == names


LOOKED = {
    "shown": ("x = [1, 2]", "x", "x.append(3)", "x", [1, 2, 3]),
    "shown within": ("x = {'a': [1]}; y = [2]", "x['a'], y", "x['a'].append(3)", "x", {"a": [1, 3]}),
    "a list that grew and shrank": ("x = [1]", "x.extend(range(99)); del x[1:]", "x.append(3)", "x", [1, 3]),
    "parts of packages": ("import xml", "import xml.dom.minidom", "import xml.sax", "xml.dom is not xml.sax", True),
    "results kept by a function": (
        "import functools\n@functools.lru_cache\ndef x(n): return n",
        "x(1), x",
        "x.more = 5; x(2)",
        "x.more",
        5,
    ),
    "caches in files": (
        "import os; place = os.environ['XDG_CACHE_HOME']; os.makedirs(place, exist_ok=True); x = 1",
        "open(place + '/fonts', 'w').write('1')",
        "open(place + '/fonts', 'w').write('2'); x = 5",
        "x, open(place + '/fonts').read()",
        (5, "1"),
    ),
}


@pytest.mark.sampled(0)
def test_a_diff_has_the_steps_of_a_branch_that_parted_long_before(parted: Parted) -> None:
    session, branch = parted("x = 1", "y = 1", "z = 1")
    for number in range(2, 5):
        session.run(f"y = {number}")
    session.merge(branch)
    steps = [one.message for one in session.diff().steps]
    assert [steps[0], steps[1].split()[0], len(steps)] == ["z = 1", "merged", 2]
    assert session.diff("HEAD", "HEAD~1").steps == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", LOOKED)
def test_looking_at_a_value_is_no_change(parted: Parted, what: str) -> None:
    both, looks, changes, ask, expected = LOOKED[what]
    session, branch = parted(both, looks, changes)
    diff = session.diff()
    assert (diff.names, diff.files) == ((), ())
    session.merge(branch)
    assert session.run(ask).value == expected


@pytest.mark.sampled(0)
def test_table_that_was_looked_at_is_no_change(parted: Parted) -> None:
    pytest.importorskip("pandas")
    looks = "x.head(), x['a'].max(), x.index.is_unique, x.describe(), x.loc['p']; x"
    session, branch = parted(
        "import pandas as pd; x = pd.DataFrame({'a': [3, 1], 'b': ['p', 'q']}).set_index('b')", looks, "x['c'] = [1, 2]"
    )
    assert session.diff().names == ()
    session.merge(branch)
    assert session.run("list(x.columns)").value == ["a", "c"]


TABLES = """import numpy as np, pandas as pd
x = pd.DataFrame({
    'when': pd.date_range('2023', periods=60, freq='h', tz='Europe/Berlin'), 'name': ['name', 'data'] * 30,
    'kind': pd.Categorical(['a', 'b'] * 30), 'sold': range(60)})
index = x.set_index(['kind', 'when']).sort_index(); groups = x.groupby('kind', observed=True)
window = x['sold'].rolling(3); whole = x['sold'].astype('Int64')
"""
LOOKS = {
    "text": "str(x), str(index), str(whole)",
    "statistics": "x.describe(), x['sold'].mean(), whole.sum()",
    "place": "index.loc['a'].head(), x.iloc[3], x.loc[5], x.columns.get_loc('sold')",
    "groups": "groups['sold'].sum(), groups.ngroups, groups.groups",
    "other tables": "x.sort_values('when'), x.to_csv(), x.T, x['when'].dt.month, x.merge(x, on='sold')",
    "index": "x.index.is_unique, x['when'].is_unique, index.index.is_monotonic_increasing, index.index.levels",
    "window": "window.mean(), window.std()",
    "last value": "x['sold']",
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("looks", LOOKS.values(), ids=LOOKS)
def test_looking_at_tables_is_no_change_beside_a_change_of_them(parted: Parted, looks: str) -> None:
    pytest.importorskip("pandas")
    session, branch = parted(TABLES, looks, "x['more'] = 1; index['more'] = 2; whole[0] = 7")
    assert session.diff().names == ()
    session.merge(branch)
    asked = session.run("list(x.columns)[-1], list(index.columns)[-1], int(whole[0])")
    assert asked.value == ("more", "more", 7)


MANY = """import json, collections, dataclasses, enum
class P:
    n = 0
    def hi(self): return 'hi'
p = P(); pair = collections.namedtuple('pair', 'n hi')
@dataclasses.dataclass
class Row:
    'a row'
    n: int = 0
rows = [Row(1), {'n': 'hi', 'hi': 'n'}]; tags = {f'tag {n}' for n in range(40)}
class Kind(enum.Enum): N = 1
def made(n): return lambda: (json, n)
call = made('n')
"""
BETWEEN = {
    "hibernation": lambda session, branch: session.hibernate(),
    "hibernation of both": lambda session, branch: (session.hibernate(), branch.hibernate()),
    "merge": lambda session, branch: (branch.run("w = 1"), session.merge(branch)),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_what_was_loaded_is_no_change_beside_a_change_of_it(
    parted: Parted, between: Callable[[Session, Session], object]
) -> None:
    session, branch = parted(MANY, "q = 1", "q2 = 1")
    between(session, branch)
    assert session.run("q = 2").ok
    assert [one.name for one in session.diff().names] == ["q"]
    assert branch.run("P.n = 5; Row.n = 6; json = 3; pair = 4; rows.append(7)").ok
    session.merge(branch)
    asked = session.run("P.n, Row.n, json, pair, len(rows), q, type(p) is P, call()[1]")
    assert asked.value == (5, 6, 3, 4, 3, 2, True, "n")


@pytest.mark.sampled(0)
def test_figure_that_was_loaded_is_no_change_beside_a_change_of_it(parted: Parted) -> None:
    pytest.importorskip("matplotlib")
    made = "import matplotlib.pyplot as plt; fig, ax = plt.subplots(); ax.plot([1], label='normal'); plt.close('all')"
    session, branch = parted(made, "q = 1", "q2 = 1")
    session.hibernate()
    assert session.run("q = 2").ok
    assert [one.name for one in session.diff().names] == ["q"]
    assert branch.run("ax.set_title('t')").ok
    session.merge(branch)
    assert session.run("ax.get_title(), ax.figure is fig").value == ("t", True)


@pytest.mark.sampled(0)
def test_last_value_is_that_of_the_names_it_shares_objects_with_when_it_is_opened_again(tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    for name, source, check in (
        ("one", "x = [1]; y = {'of': [2]}\nx", "_ is x"),
        ("two", "x = [1]; y = {'of': [2]}\n(x, y['of'], [3])", "_[0] is x and _[1] is y['of'] and _[2] == [3]"),
        (
            "three",
            "class A: pass\na = A(); a.b = A()\n[a.b, A, a.__dict__]",
            "_[0] is a.b and _[1] is A and len(_[2]) == 1",
        ),
        ("four", "def f(): return f\nx = f\nlambda: (f, x)", "_()[0] is f"),
    ):
        with Session(name, state=state) as session:
            assert session.run(source).ok
        with Session(name, state=state) as session:
            cell = session.run(check)
            assert (name, cell.value, cell.text) == (name, True, "True")


@pytest.mark.sampled(0)
def test_preferred_version_keeps_its_definitions_and_the_rest_is_told(parted: Parted) -> None:
    session, branch = parted(MAKE, "a = made(1)", "b = made(2)\nc = 3")
    session.merge(branch, prefer="ours")
    cell = session.run("a.value, c, 'b' in globals()")
    assert cell.value == (1, 3, False)
    assert [(one.name, one.remedy) for one in cell.lost] == [("b", "run the cells again that made it")]


def test_version_to_prefer_is_one_of_two(parted: Parted) -> None:
    session, branch = parted("a = 1", "a = 2", "a = 3")
    with pytest.raises(ValueError, match=r'^prefer must be "ours", "theirs" or None, not \'their\'$'):
        session.merge(branch, prefer="their")  # type: ignore[arg-type]
    assert session.run("a").value == 2


@pytest.mark.sampled(0)
def test_last_value_that_shares_what_the_preferred_version_changed_is_told(parted: Parted) -> None:
    session, branch = parted(
        "import decimal\ndecimal.getcontext().prec = 5", "decimal.getcontext()", "decimal.getcontext().prec = 7"
    )
    session.merge(branch, prefer="theirs")
    cell = session.run("decimal.getcontext().prec")
    assert cell.value == 7
    assert [(one.name, one.reason) for one in cell.lost] == [
        ("_", "the other version changed what it shares objects with")
    ]


@pytest.mark.sampled(0)
def test_merging_what_was_merged_already_makes_no_commit(parted: Parted) -> None:
    session, branch = parted("x = 1", "y = 1", "z = 1")
    merged = session.merge(branch)
    assert session.merge(branch).id == merged.id
    assert session.merge("HEAD~1").id == merged.id
    assert session.log()[0].id == merged.id
    assert session.run("z").value == 1


def test_what_cannot_be_found_to_be_merged_is_named_as_what_was_looked_for(parted: Parted) -> None:
    session, _ = parted("x = 1", "y = 1", "z = 1")
    with pytest.raises(UnknownCommit, match="'nope' is no session of the user 'default', and no revision of this"):
        session.merge("nope")


@pytest.mark.sampled(0)
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", ["main", "HEAD", "v1", "abc"])
def test_session_that_is_called_as_a_revision_is_merged(tmp_path: Path, name: str, by_name: bool) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session(name, state=state) as session:
        session.run("x = 1")
        with session.branch("other") as branch:
            branch.tag("v1")
            session.run("z = 1")
            session.flush()
            branch.merge(name if by_name else session)
            assert branch.run("z").value == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("apart", ["user", "store"])
def test_session_of_another_user_or_store_is_not_merged_nor_its_namesake(tmp_path: Path, apart: str) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    other_state = Versioned(f"sqlite:///{tmp_path}/other.db") if apart == "store" else state
    with Session("x", state=state, private=True) as namesake:
        namesake.run("secret = 1")
    with (
        Session("y", state=state) as session,
        Session("x", state=other_state, user="bob" if apart == "user" else "default") as other,
    ):
        other.run("z = 1")
        with pytest.raises(CellblockError, match="is of another user than 'y', or in another store"):
            session.merge(other)
        assert session.names() == {}


def test_what_is_no_session_of_the_same_kind_cannot_be_merged(parted: Parted) -> None:
    session, _ = parted("x = 1", "y = 1", "z = 1")
    with pytest.raises(TypeError, match="other must be Session, not AsyncSession"):
        session.merge(AsyncSession())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="other must be Session, not NoneType"):
        session.merge(None)  # type: ignore[arg-type]


JOINED = {
    "a name that joins an object": ("a = [1]; b = [2]", "a.append(3)", "b = a", ("a", "b"), [[1, 3], [2]], [[1], [1]]),
    "a name that left for one": ("a = [1]; b = [2]", "b.append(3)", "b = a", ("b",), [[1], [2, 3]], [[1], [1]]),
    "an object that holds one": ("a = [1]; b = 2", "a.append(3)", "b = [a]", ("a", "b"), [[1, 3], 2], [[1], [[1]]]),
    "a new name of one": ("a = [1]", "a.append(3)", "b = a", ("a", "b"), [[1, 3], None], [[1], [1]]),
    "two names that part": ("a = [1]; b = a", "a.append(3)", "b = [2]", ("a", "b"), [[1, 3], [1, 3]], [[1], [2]]),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
@pytest.mark.parametrize("what", JOINED)
def test_names_that_share_objects_change_together(parted: Parted, what: str, prefer: Literal["ours", "theirs"]) -> None:
    """Both kept as one version has them; a name that it does not have is told as lost."""
    both, ours, theirs, names, as_ours, as_theirs = JOINED[what]
    session, branch = parted(both, ours, theirs)
    with pytest.raises(MergeConflict) as conflict:
        session.merge(branch)
    assert conflict.value.names == names
    session.merge(branch, prefer=prefer)
    cell = session.run("[a, globals().get('b')]")
    expected = as_ours if prefer == "ours" else as_theirs
    assert cell.value == expected
    assert [one.name for one in cell.lost] == (["b"] if expected[1] is None else [])
    session.hibernate()
    assert session.run("[a, globals().get('b')]").value == expected


MAKES = "import os, shutil\nos.makedirs('d/e')\nopen('d/a', 'w').write('a'); open('d/e/a', 'w').write('a')\n"
LISTED = "sorted(os.path.join(at, one) for at, _, files in os.walk('.') for one in files)"
FILES = {
    "directory removed, file added": (
        MAKES, "shutil.rmtree('d')", "open('d/x', 'w').write('x')",
        [], ["./d/x"],
    ),
    "directory replaced by a file, file added": (
        MAKES, "shutil.rmtree('d'); open('d', 'w').write('d')", "open('d/e/x', 'w').write('x')",
        ["./d"], ["./d/e/x"],
    ),
    "directory removed, file changed": (
        MAKES, "shutil.rmtree('d')", "open('d/e/a', 'a').write('x')",
        [], ["./d/e/a"],
    ),
    "file changed, directory moved": (
        MAKES, "open('d/e/a', 'a').write('x')", "os.rename('d', 'f')",
        ["./d/e/a", "./f/a", "./f/e/a"], ["./f/a", "./f/e/a"],
    ),
    "file against directory": (
        "import os", "open('d', 'w').write('d')", "os.mkdir('d'); open('d/x', 'w').write('x')",
        ["./d"], ["./d/x"],
    ),
}  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
@pytest.mark.parametrize("what", FILES)
def test_file_and_the_directories_it_is_in_are_of_one_version(
    parted: Parted, what: str, prefer: Literal["ours", "theirs"]
) -> None:
    both, ours, theirs, as_ours, as_theirs = FILES[what]
    session, branch = parted(both, ours, theirs)
    with pytest.raises(MergeConflict, match="both changed files: workspace/d"):
        session.merge(branch)
    session.merge(branch, prefer=prefer)
    assert session.run(LISTED).value == (as_ours if prefer == "ours" else as_theirs)


@pytest.mark.sampled(0)
def test_files_in_one_directory_that_either_version_added_are_both_there(parted: Parted) -> None:
    session, branch = parted(
        MAKES + "os.mkdir('n')",
        "open('d/x', 'w').write('x'); os.makedirs('both'); open('both/x', 'w').write('x')",
        "open('d/y', 'w').write('y'); os.makedirs('both'); open('both/y', 'w').write('y')",
    )
    session.merge(branch)
    assert session.run(LISTED).value == ["./both/x", "./both/y", "./d/a", "./d/e/a", "./d/x", "./d/y"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("both", "ours", "theirs", "same"),
    [
        ("for n in 'abcd': open(n, 'w').write(n)", "os.link('a', 'x')", "os.link('b', 'y')", "ax by"),
        ("for n in 'ab': open(n, 'w').write(n)", "os.link('a', 'x'); os.link('a', 'y')", "os.link('b', 'z')", "axy bz"),
        ("", "open('p', 'w').write('p'); os.link('p', 'q')", "open('r', 'w').write('r'); os.link('r', 's')", "pq rs"),
        ("open('a', 'w').write('a'); os.link('a', 'b')", "q = 1", "os.link('a', 'c')", "abc"),
        ("open('a', 'w').write('a'); os.link('a', 'b')", "q = 1", "os.remove('a'); open('a', 'w').write('n')", "a b"),
    ],
)  # fmt: skip
def test_names_of_one_file_stay_so_and_others_do_not_become_it(
    parted: Parted, both: str, ours: str, theirs: str, same: str
) -> None:
    """Where the session was loaded meanwhile, too: its inodes are other ones then."""
    session, branch = parted("import os\n" + both, ours, theirs)
    session.hibernate()
    session.run("0")
    assert session.diff().files == ()
    session.merge(branch)
    found = session.run("[(n, os.stat(n).st_ino) for n in sorted(os.listdir('.')) if len(n) == 1]").value
    inodes: dict[int, str] = {}
    for name, inode in found:
        inodes[inode] = inodes.get(inode, "") + name
    assert [one for one in inodes.values() if one not in "cd"] == same.split()


SLOW = """
import os, time
class Slow:
    def __reduce__(self): time.sleep(0.4); return Slow, ()
v, token = ['old'], ''
"""
"""Begins cells that come faster than they can be saved."""


def _stands_where_no_state_was_saved(session: Session) -> int:
    """Undo steps until it does; the number of the newest that is left."""
    session.run(SLOW)
    session.flush()
    for number in range(8):
        session.run(f"slow = Slow(); v = ['new {number}']; n{number} = 1")
    session.flush()
    steps = [one.snapshot for one in session.log()].index(False)
    session.undo(steps)
    return 7 - steps


@pytest.mark.sampled(0)
def test_branch_that_begins_where_no_state_was_saved_merges_what_it_has_changed(opened: Callable[..., Session]) -> None:
    session = opened()
    number = _stands_where_no_state_was_saved(session)
    with session.branch("other") as branch:
        branch.run(f"v = ['old']; del n{number}")
        session.run("mine = 1")
        session.merge(branch)
    assert session.run(f"v, 'n{number}' in globals(), mine, n{number - 1}").value == (["old"], False, 1, 1)


@pytest.mark.sampled(0)
def test_branch_that_was_made_there_while_a_cell_ran_is_merged_too(opened: Callable[..., Session]) -> None:
    session = opened()
    number = _stands_where_no_state_was_saved(session)
    running = session.stream("print('begun'); time.sleep(2); mine = 1")
    next(running)
    with session.branch("other") as branch:
        list(running)
        branch.run(f"v = ['old']; del n{number}")
        session.merge(branch)
    assert session.run(f"v, 'n{number}' in globals(), mine, n{number - 1}").value == (["old"], False, 1, 1)


@pytest.mark.sampled(0)
def test_what_parted_where_no_state_could_be_saved_is_not_merged(opened: Callable[..., Session]) -> None:
    session = opened(limits=ExecutionLimits(max_memory_mb=256))
    source = "v = 1; large = [[str(n)] for n in range(900_000)]"
    assert session.run(source).ok
    with session.branch("other") as branch:
        branch.run("del large; v = 2")
        session.run("del large; mine = 1")
        for prefer in (None, "theirs"):
            with pytest.raises(CellblockError) as refused:
                session.merge(branch, prefer=prefer)  # type: ignore[arg-type]
            assert str(refused.value).startswith(
                f"nothing was merged: the state of cell 1, {source!r}, where both parted, was not saved"
            )
        assert branch["v"] == 2
    assert session.run("v, mine").value == (1, 1)


@pytest.mark.sampled(0)
def test_branch_that_was_closed_is_merged_by_its_name_which_the_error_says(parted: Parted) -> None:
    session, branch = parted("x = 1", "y = 2", "z = 3")
    branch.close()
    with pytest.raises(SessionClosed) as caught:
        session.merge(branch)
    assert str(caught.value) == "session 'other', which is to be merged, was closed (give its name: 'other')"
    session.merge("other")
    assert session.run("x, y, z").value == (1, 2, 3)


def test_log_has_no_limit_below_none(parted: Parted) -> None:
    session, _ = parted("x = 1", "y = 2", "z = 3")
    with pytest.raises(ValueError, match=r"^limit must be 0 or more, not -1$"):
        session.log(limit=-1)
    assert session.log(limit=0) == []


@pytest.mark.sampled(0)
def test_session_that_is_open_is_merged_by_its_name_as_it_stands(opened: Callable[..., Session]) -> None:
    session = opened()
    session.run("x = 0")
    with session.branch("other") as branch:
        branch.run("import os; large = os.urandom(40 * 2**20)")
        branch.flush()
        assert branch.run("large = os.urandom(40 * 2**20); y = 1").ok  # its commit takes a while
        session.merge("other")
        assert session["y"] == 1


DIES = """
import os, sys
from cellblock import Session, Versioned
session = Session("one", state=Versioned(sys.argv[1]))
session.run("x = 0")
branch = session.branch("other")
session.close()
branch.run("import os, time; large = os.urandom(40 * 2**20)")
branch.flush()
assert branch.run("large = os.urandom(40 * 2**20); y = 1").ok
os._exit(0)
"""


@pytest.mark.sampled(0)
def test_session_whose_journal_holds_more_than_its_commits_is_merged_once_it_was_resumed(
    opened: Callable[..., Session], url: str
) -> None:
    subprocess.run([sys.executable, "-c", DIES, url], check=True)
    session = opened()
    with pytest.raises(CellblockError) as refused:
        session.merge("other")
    assert str(refused.value) == (
        "nothing was merged: what session 'other' did last is not in a commit yet"
        " (open it, so that it is resumed, or flush() it where it is open; then merge)"
    )
    with opened("other"):
        session.merge("other")
    assert session["y"] == 1


@pytest.mark.threat("W11")
def test_merge_of_files_that_lead_from_one_to_the_next_takes_time_by_their_number() -> None:
    """Each version has pairs of names of one file, and the pairs of one lie across those of the other."""

    def row(same: int, content: int) -> dict[str, object]:
        return {"kind": "file", "mode": 0o644, "same": same, "chunks": [content]}

    count = 20_000  # took hours when each name had all of them looked at again
    first = {f"workspace/{which}{at}": row(at + 1, 1) for which in "mx" for at in range(count)}
    base = {**first, "workspace/m0": row(1, 0), "workspace/x0": row(1, 0)}
    second = {f"workspace/m{at}": row(at + 1, 2) for at in range(count)}
    second |= {f"workspace/x{at + 1}": row(at + 1, 2) for at in range(count - 1)}
    merged, conflicts = merge_files(base, first, second, set())
    assert merged == first
    assert len(conflicts) == 2 * count
