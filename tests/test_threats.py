"""The register of threats and the tests that cite it, held against each other."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from threat_items import ITEMS, UNTRIED

import cellblock
from cellblock_attacks.language.programs import ESCAPES
from cellblock_attacks.tables import ATTACKS
from cellblock_attacks.threats import BY_ID, LEVELS, THREATS

TESTS = Path(__file__).parent
KITS = Path(cellblock.__file__).parent / "testing"
IDS = [f"L{n}" for n in range(1, 13)] + [f"W{n}" for n in range(1, 12)] + [f"D{n}" for n in range(1, 5)]


def cited_in(source: str) -> Iterator[str]:
    """Ids that a file cites: `pytest.mark.threat("W1")`, or `threat="W1"` in a row of a table."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        arguments = [keyword.value for keyword in node.keywords if keyword.arg == "threat"]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "threat":
            arguments += node.args
        yield from (str(argument.value) for argument in arguments if isinstance(argument, ast.Constant))


@cache
def cited() -> dict[Path, set[str]]:
    """What the tests cite by themselves, and in rows of the package that one of them makes."""
    found = {path: set(cited_in(path.read_text())) for path in sorted(TESTS.rglob("*.py"))}
    found[TESTS / "hostile" / "test_attacks.py"] |= {attack.threat for attack in ATTACKS}
    return found


_ATTEMPT = re.compile(r"^#: ([a-z0-9-]+)$", re.M)
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.M)


@cache
def tries() -> set[str]:
    """Attacks, attempts at the guard and tests, by name."""
    attempts = [*(TESTS / "guard/escapes").iterdir(), *ESCAPES.iterdir()]
    tests = [*TESTS.rglob("test_*.py"), *KITS.glob("*.py")]
    return {
        *(attack.name for attack in ATTACKS),
        *(name for path in attempts for name in _ATTEMPT.findall(path.read_text())),
        *(name for path in tests for name in _TEST.findall(path.read_text())),
    }


def test_the_register_holds_every_class_once():
    assert [threat.id for threat in THREATS] == IDS
    assert len(BY_ID) == len(THREATS)


@pytest.mark.parametrize("threat", THREATS, ids=lambda threat: threat.id)
def test_a_row_says_what_it_is_where_and_what_answers(threat):
    assert threat.title
    assert threat.wall
    assert threat.levels
    assert set(threat.levels) <= set(LEVELS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("threat", [t for t in THREATS if t.due], ids=lambda threat: threat.id)
def test_a_row_that_is_due_has_a_test(threat):
    assert any(threat.id in ids for ids in cited().values()), f"no test cites {threat.id}: {threat.title}"


@pytest.mark.parametrize("threat", [t for t in THREATS if t.due], ids=lambda threat: threat.id)
def test_what_a_row_is_made_of_is_tried(threat):
    items = ITEMS[threat.id]
    missing = {item: name for item, names in items.items() for name in names.split() if name not in tries()}
    assert missing == {}
    assert all(names for names in items.values())
    assert items.keys().isdisjoint(UNTRIED.get(threat.id, {}))


def test_what_is_not_tried_says_why():
    assert UNTRIED.keys() <= BY_ID.keys()
    assert all(why for items in UNTRIED.values() for why in items.values())


def test_tests_cite_rows_that_exist():
    unknown = {str(path): ids - BY_ID.keys() for path, ids in cited().items()}
    assert {path: ids for path, ids in unknown.items() if ids} == {}


def test_a_row_is_only_put_off_for_a_reason():
    reasons = {threat.not_due for threat in THREATS if not threat.due}
    assert all(re.search(r"\b(do|does) not exist yet$", reason) for reason in reasons)


def test_both_spellings_of_a_citation_are_found():
    source = '@pytest.mark.threat("W1")\ndef test(): pass\nrow = Attack(threat="W2", name="x")'
    assert set(cited_in(source)) == {"W1", "W2"}
