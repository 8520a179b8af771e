"""Attempts to get out, each of them a file of `smoke/` whose first line says by which rule it is refused.

    # L1 refused: attribute        the source is refused before it runs, by this rule
    # L1 raises: SecurityError attribute    it runs, and raises this at the end, by this rule
    # L7 harmless                  it runs, and reaches nothing

`CANARY` is a class of the host whose instance `canary` is bound; an attempt that gets hold of it calls `reached()`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from runner import guarded

from cellblock.policy import RARE, Policy

FILES = sorted((Path(__file__).parent / "smoke").glob("*.py"))


class Canary:
    """A host's object with something to hide."""

    def __init__(self) -> None:
        self.secret = "the secret"
        self.public = "open"
        self.calls: list[str] = []

    def reached(self) -> None:
        self.calls.append("reached")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_attempt_reaches_nothing(path: Path) -> None:
    source = path.read_text()
    _, _, verdict = source.splitlines()[0].removeprefix("# ").partition(" ")
    canary = Canary()
    policy = Policy(also=RARE).cls(Canary, include=["public"], constructable=False)
    shown = guarded(source, policy, {"canary": canary})
    assert canary.calls == []
    assert vars(canary) == {"secret": "the secret", "public": "open", "calls": []}
    assert "the secret" not in shown.text + shown.message
    how, _, what = verdict.partition(": ")
    if how == "harmless":
        assert shown.error is None, shown
        return
    kind, rule = ("refused", what) if how == "refused" else what.split()
    assert shown.error == kind, shown
    assert f"[{rule}]" in shown.message
