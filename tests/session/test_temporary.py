"""`with` at top level is a temporary scope where names are kept: what cannot be is gone after it (N8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cellblock import Live, Policy, Session, Versioned

PREPARE = """
class Lines:
    def __enter__(self): return (n for n in range(3))
    def __exit__(self, *how): return False

class Plain:
    def __init__(self, value): self.value = value
    def __enter__(self): return self.value
    def __exit__(self, *how): return isinstance(how[1], KeyError)

class Later:
    def __init__(self, value): self.value = value
    async def __aenter__(self): return self.value
    async def __aexit__(self, *how): return False

class Box: pass

box, rows = Box(), []
"""
BASE = {"Lines", "Plain", "Later", "Box", "box", "rows"}

CASES = {
    "what it opened, and what leads to that": (
        "with Lines() as r:\n    data = [next(r)]\n    lazy = (n for n in data)\n    again = [r]",
        {"data"},
    ),
    "its target, whatever that is": ("with Plain(3) as p:\n    q = p + 1", {"q"}),
    "a target that was bound before": ("p, other = 1, 2\nwith Plain(3) as p: pass", {"other"}),
    "a target that the block bound anew": ("with Plain(3) as p:\n    p = [4]", set[str]()),
    "a target that the block deleted": ("with Plain(3) as p:\n    del p", set[str]()),
    "several targets": ("with Lines() as r, Plain((1, [2, 3])) as (a, [b, *c]):\n    d = a + b", {"d"}),
    "a target that is no name": ("with Plain(3) as box.value: pass\nv = box.value", {"v"}),
    "no target": ("with Plain(3):\n    lazy = (n for n in [1])\n    v = 1", {"v"}),
    "an error that the block does not catch": (
        "try:\n    with Lines() as r:\n        lazy, kept = (n for n in r), [1]\n        raise ValueError\n"
        "except ValueError:\n    seen = 'r' in globals(), 'lazy' in globals()",
        {"kept", "seen"},
    ),
    "an error that it does": (
        "with Plain(1) as p:\n    lazy, kept = (n for n in [p]), [1]\n    raise KeyError",
        {"kept"},
    ),
    "one within another": (
        "with Plain(1) as a:\n    with Lines() as r:\n        x = list(r)\n    seen = 'r' in globals(), a",
        {"x", "seen"},
    ),
    "a loop, left in the middle": (
        "for i in range(9):\n    with Lines() as r:\n        got = next(r)\n        if i == 1: continue\n"
        "        if i: break\n    seen = 'r' in globals()",
        {"i", "got", "seen"},
    ),
    "a loop of the other kind": (
        "i = 0\nwhile i < 2:\n    with Lines() as r: i += 1\nelse:\n    with Plain(1) as p: j = p",
        {"i", "j"},
    ),
    "branches": (
        "if rows:\n    pass\nelse:\n    with Lines() as r: x = next(r)\n"
        "match x:\n    case 0:\n        with Lines() as s: y = next(s)\n"
        "try:\n    pass\nfinally:\n    with Lines() as t: z = next(t)",
        {"x", "y", "z"},
    ),
    "a function, where it is as ever": (
        "def f():\n    with Lines() as r:\n        lazy = r\n    return next(lazy), next(r)\ngot = f()",
        {"f", "got"},
    ),
    "a class body, too": ("class K:\n    with Plain(2) as inside: pass\ngot = K.inside", {"K", "got"}),
    "what a function binds meanwhile": (
        "def g():\n    global lazy\n    lazy = (n for n in [1])\nwith Plain(1): g()",
        {"g"},
    ),
    "an assignment in an expression": ("with Plain(1):\n    (w := (n for n in [1]), v := 2)", {"v"}),
    "an import": ("with Plain(1):\n    import math", {"math"}),
    "a definition": ("with Lines() as r:\n    def h(): return 1\n    def bad(x=r): return x", {"h"}),
    "an asynchronous one": (
        "async with Later((n for n in range(3))) as r, Later(2) as p:\n    x = [p, next(r)]\n    lazy = r",
        {"x"},
    ),
}


@pytest.fixture(scope="module", params=["isolated", "local", "both"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session that keeps names and refuses what it cannot keep."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/cells.db"
    level = "local" if request.param == "local" else "isolated"
    state = Versioned(url, strict=level == "isolated")
    policy = Policy() if request.param == "both" else None
    with Session("one", state=state, trust_level=level, policy=policy) as session:  # type: ignore[arg-type]
        assert session.run(PREPARE).error is None
        yield session


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", CASES)
def test_what_cannot_be_kept_is_gone_after_a_with(session: Session, what: str) -> None:
    source, left = CASES[what]
    cell = session.run(source)
    try:
        assert cell.error is None, cell.text
        assert set(session.names()) - BASE == left
        if "seen" in left:
            assert not any(seen is True for seen in _several(session["seen"]))
    finally:
        session.run("; ".join(f"del {name}" for name in set(session.names()) - BASE) or "pass")


def test_an_error_leaves_a_with_as_its_end_does(session: Session) -> None:
    cell = session.run("with Lines() as r:\n    lazy, kept = (n for n in r), [1]\n    raise ValueError('in the block')")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message, cell.rolled_back) == ("ValueError", "in the block", False)
    assert set(session.names()) - BASE == {"kept"}
    assert "line 3, in <module>\n    raise ValueError" in cell.error.traceback
    session.run("del kept")


def test_what_the_block_put_into_something_older_is_refused(session: Session, request: pytest.FixtureRequest) -> None:
    if "both" in request.node.name:
        pytest.skip("there names are made again by running the cells")
    cell = session.run("with Lines() as r:\n    rows.append(r)")
    assert cell.error is not None
    assert (cell.error.type, cell.error.kind, cell.rolled_back) == ("UnpicklableError", "refused", True)
    assert cell.error.message.startswith("rows is a list, which cannot be saved: rows[0]: a generator")
    assert "keep list(...) of it" in cell.error.hint
    assert session["rows"] == []
    assert set(session.names()) == BASE


@pytest.mark.parametrize("level", ["isolated", "local"])
def test_elsewhere_a_with_is_as_ever(level: str, tmp_path: Path) -> None:
    def after(session: Session) -> object:
        with session:
            return session.run(f"{PREPARE}\nwith Lines() as r:\n    lazy = r\nnext(lazy) + next(r)").value

    assert after(Session(trust_level=level, state=Live())) == 1  # type: ignore[arg-type]
    if level == "isolated":
        assert after(Session("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"))) == 1


def _several(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
