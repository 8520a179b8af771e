"""The sources of cells, as they are saved."""

from __future__ import annotations

import linecache
import random

import pytest

from cellblock.worker.saving import ambient


def _saved(numbers: list[int], monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """The labels that these cells' sources are saved under, and whose are under each."""
    lines = {f"<cell {number}>": (2, None, [f"{number}\n"], f"<cell {number}>") for number in numbers}
    monkeypatch.setattr(linecache, "cache", {"other.py": (1, None, ["\n"], "other.py"), **lines})
    found = {label: get() for label, get in ambient.collect({}) if label.startswith("sources:")}
    return {int(label.removeprefix("sources:")): list(block) for label, block in found.items()}


def test_sources_of_many_cells_are_few_blocks_in_the_order_in_which_they_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = list(range(1, 1001))
    random.Random(0).shuffle(numbers)
    found = _saved(numbers, monkeypatch)
    assert len(found) <= 3 + 16
    names = [name for _, block in sorted(found.items()) for name in block]
    assert names == [f"<cell {number}>" for number in range(1, 1001)]


def test_a_new_cell_changes_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _saved(list(range(1, 700)), monkeypatch)
    after = _saved(list(range(1, 701)), monkeypatch)
    assert [number for number in after if after[number] != before.get(number)] == [688]
    assert after.keys() == before.keys()
