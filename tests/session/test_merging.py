"""What a merge makes of two versions: all that either changed, or an error, and never something else unsaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cellblock import AsyncSession, MergeConflict, Session, Versioned

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


def test_merge_takes_over_what_surrounds_the_names(parted: Parted) -> None:
    session, branch = parted(
        "import decimal, json, os",
        "os.environ['OURS'] = '1'\ndecimal.getcontext().prec = 9",
        "__version__ = '2'\njson.added = [3]\ndecimal.getcontext().prec = 7",
    )
    session.merge(branch)
    cell = session.run("os.environ['OURS'], __version__, json.added, decimal.getcontext().prec")
    assert (cell.value, cell.lost) == (("1", "2", [3], 9), ())


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


def test_preferred_version_keeps_its_definitions_and_the_rest_is_told(parted: Parted) -> None:
    session, branch = parted(MAKE, "a = made(1)", "b = made(2)\nc = 3")
    session.merge(branch, prefer="ours")
    cell = session.run("a.value, c, 'b' in globals()")
    assert cell.value == (1, 3, False)
    assert [(one.name, one.remedy) for one in cell.lost] == [("b", "run the cells again that made it")]


def test_last_value_that_shares_what_the_preferred_version_changed_is_told(parted: Parted) -> None:
    session, branch = parted(
        "import decimal\ndecimal.getcontext().prec = 5", "decimal.getcontext()", "decimal.getcontext().prec = 7"
    )
    session.merge(branch, prefer="theirs")
    cell = session.run("decimal.getcontext().prec")
    assert cell.value == 7
    assert [(one.name, one.reason) for one in cell.lost] == [
        ("last", "the other version changed what it shares objects with")
    ]


def test_what_is_no_session_of_the_same_kind_cannot_be_merged(parted: Parted) -> None:
    session, _ = parted("x = 1", "y = 1", "z = 1")
    with pytest.raises(TypeError, match="other must be Session, not AsyncSession"):
        session.merge(AsyncSession())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="other must be Session, not NoneType"):
        session.merge(None)  # type: ignore[arg-type]
