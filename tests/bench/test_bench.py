"""The benchmarks' command: every measure can be taken, and the document has the shape that is promised. No times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=100, cwd=ROOT)


def taken(tmp_path: Path, *words: str) -> dict[str, object]:
    file = tmp_path / "figures.json"
    done = bench("bench", "--quick", "--rounds", "2", "--json", str(file), *words)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(file.read_text())
    assert document["skipped"] == []
    return document


def test_every_group_is_taken_beside_a_reference(tmp_path: Path) -> None:
    document = taken(tmp_path, "--only", "F1,back-to-back,print,value,F4/empty,F8,F15")
    figures = {figure["id"]: figure for figure in document["figures"]}
    assert list(figures) == [
        "F1/async",
        "F1/sync",
        "F1/shown",
        "back-to-back",
        "print",
        "value",
        "F4/empty",
        "F8/soft",
        "F8/hard",
        "F15/import",
        "F15/run",
    ]
    for figure in figures.values():
        assert list(figure) == [
            *("id", "what", "rounds", "p50", "p95", "noise"),
            *("reference", "ratio", "paired_ratio", "goal", "met"),
        ]
        assert list(figure["reference"]) == ["what", "p50", "p95", "noise"]
        assert figure["rounds"] == 2
        assert (figure["met"] is None) == (figure["goal"] == "")
        assert figure["ratio"] == figure["p50"] / figure["reference"]["p50"]
    assert {name: figure["goal"] for name, figure in figures.items() if figure["goal"]} == {
        "F1/async": "<= 2x",
        "F1/sync": "<= 1.5x",
        "F4/empty": "<= 3x",
        "F8/soft": "+50 ms",
        "F8/hard": "+50 ms",
        "F15/import": "<= 4x",
        "F15/run": "<= 8x",
    }


def test_context_says_where_the_figures_come_from(tmp_path: Path) -> None:
    context = taken(tmp_path, "--only", "F15/import")["context"]
    assert list(context) == ["version", "python", "kernel", "cpus", "load", "think_ms", "taken"]
    assert context["think_ms"] == 20


@pytest.mark.slow
def test_preloaded_sessions_are_measured(tmp_path: Path) -> None:
    (figure,) = taken(tmp_path, "--only", "F4/preloaded")["figures"]
    assert figure["rounds"] == 2


def test_table_has_a_line_for_each_measure_however_it_is_started() -> None:
    for start in (("bench",), ("-m", "bench")):
        done = bench(*start, "--quick", "--rounds", "1", "--only", "F15/import")
        assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == ["think", "id", "F15/import", "load"]


def test_unknown_measure_is_refused_with_the_known_ones() -> None:
    done = bench("bench", "--only", "F99")
    assert done.returncode == 2
    assert "'F99' is none of F1, F1/async" in done.stderr
