"""The benchmarks' command: every measure can be taken, and the document has the shape that is promised. No figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.local import PROGRAMS

from cellblock.guard.world import World

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


@pytest.mark.slow
def test_every_group_is_taken_beside_a_reference(tmp_path: Path) -> None:
    document = taken(tmp_path, "--only", "F1,back-to-back,print,value,F4/empty,F4/ready,F8,F14,F15")
    figures = {figure["id"]: figure for figure in document["figures"]}
    assert list(figures) == [
        "F1/async",
        "F1/sync",
        "F1/shown",
        "F1/policy",
        "back-to-back",
        "print",
        "value",
        "F4/empty",
        "F4/ready",
        "F8/soft",
        "F8/hard",
        "F14/run",
        "F14/run-shown",
        "F14/local",
        "F14/local-shown",
        "F14/script",
        "F15/import",
        "F15/run",
    ]
    for figure in figures.values():
        assert list(figure) == [
            *("id", "what", "unit", "rounds", "p50", "p95", "p99"),
            *("reference", "ratio", "ratio_p95", "paired_ratio", "goal", "met"),
        ]
        assert list(figure["reference"]) == ["what", "p50", "p95", "p99"]
        assert (figure["unit"], figure["rounds"], figure["p99"]) == ("ms", 2, None)
        assert (figure["met"] is None) == (figure["goal"] == "")
        assert figure["ratio"] == figure["p50"] / figure["reference"]["p50"]
        assert figure["ratio_p95"] == figure["p95"] / figure["reference"]["p95"]
    assert {name: figure["goal"] for name, figure in figures.items() if figure["goal"]} == {
        "F1/async": "<= 2x",
        "F1/sync": "<= 1.5x",
        "F4/empty": "<= 3x",
        "F4/ready": "<= 0.5x",
        "F8/soft": "+50 ms",
        "F8/hard": "+50 ms",
        "F14/local": "<= 10x",
        "F14/local-shown": "<= 10x",
        "F14/script": "<= 5x",
        "F15/import": "<= 4x",
        "F15/run": "<= 8x",
    }


@pytest.mark.slow
def test_ordinary_programs_are_measured_one_by_one_and_together(tmp_path: Path) -> None:
    figures = taken(tmp_path, "--only", "F13")["figures"]
    assert [figure["id"] for figure in figures] == ["F13/mean", *(f"F13/{name}" for name in PROGRAMS)]
    assert len(PROGRAMS) >= 12
    assert {figure["goal"] for figure in figures[1:]} == {"<= 2.5x"}
    assert figures[0]["goal"] == "<= 1.5x"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_measured_program_comes_to_the_same_as_in_cpython(name: str) -> None:
    source = PROGRAMS[name].read_text()
    world, namespace = World(write=lambda stream, text: None), {"__name__": "__main__"}
    world.ending.begin()
    for code in world.run(world.check(source, "<cell 1>")):
        eval(code, world.globals)
    world.ending.end()
    exec(source, namespace)
    assert repr(world.globals["result"]) == repr(namespace["result"])


@pytest.mark.sampled(0)
def test_sessions_that_last_are_measured(tmp_path: Path) -> None:
    figures = taken(tmp_path, "--only", "F11/reply", "--rounds", "3")["figures"]
    assert [(figure["id"], figure["goal"]) for figure in figures] == [("F11/reply", "<= 1.5x")]


@pytest.mark.sampled(0)
def test_sessions_at_local_are_measured(tmp_path: Path) -> None:
    figures = taken(tmp_path, "--only", "F4/local,F7/local")["figures"]
    assert [(figure["id"], figure["unit"]) for figure in figures] == [("F4/local", "ms"), ("F7/local", "MB")]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["memory", "forks", "setsid", "flood", "disk", "spin"])
def test_cells_are_measured_beside_a_session_at_its_worst(tmp_path: Path, which: str) -> None:
    (figure,) = taken(tmp_path, "--only", f"beside/{which}")["figures"]
    assert (figure["id"], figure["rounds"]) == (f"beside/{which}", 20)


@pytest.mark.sampled(0)
def test_a_cells_call_is_measured_for_each_call(tmp_path: Path) -> None:
    pytest.importorskip("msgpack")
    figures = taken(tmp_path, "--only", "F9")["figures"]
    assert [(figure["id"], figure["rounds"]) for figure in figures] == [("F9/async", 100), ("F9/plain", 100)]
    assert all(figure["p99"] >= figure["p95"] for figure in figures)


@pytest.mark.sampled(0)
def test_checkpoints_and_large_values_are_measured(tmp_path: Path) -> None:
    only = ["F2", "F3/1mb", "F5/undo", "F5/files", "F5/killed", "F10/array-in", "F10/frame-out"]
    figures = taken(tmp_path, "--only", ",".join(only))["figures"]
    assert [figure["id"] for figure in figures] == only


@pytest.mark.slow
def test_growth_is_measured(tmp_path: Path) -> None:
    only = ["F18/names", "F18/files", "F18/state", "F18/cells"]
    assert [figure["id"] for figure in taken(tmp_path, "--only", ",".join(only))["figures"]] == only


@pytest.mark.sampled(0)
def test_context_says_where_the_figures_come_from(tmp_path: Path) -> None:
    context = taken(tmp_path, "--only", "F15/import")["context"]
    assert list(context) == ["version", "python", "kernel", "cpus", "load", "think_ms", "taken"]
    assert context["think_ms"] == 20


@pytest.mark.slow
def test_preloaded_sessions_are_measured(tmp_path: Path) -> None:
    figures = taken(tmp_path, "--only", "F4/preloaded,F4/ready-preloaded")["figures"]
    assert [figure["rounds"] for figure in figures] == [2, 2]


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user may not read the memory of a session's init")
def test_memory_of_sessions_is_measured(tmp_path: Path) -> None:
    figures = taken(tmp_path, "--only", "F7/1,F7/10")["figures"]
    assert [(figure["id"], figure["unit"], figure["rounds"]) for figure in figures] == [
        ("F7/1", "MB", 2),
        ("F7/10", "MB", 2),
    ]
    for figure in figures:
        assert figure["p50"] > 1
        assert figure["reference"]["p50"] > 1


@pytest.mark.slow
def test_many_sessions_are_measured(tmp_path: Path) -> None:
    figures = taken(tmp_path, "--only", "F16/rate,F16/latency")["figures"]
    assert [(figure["id"], figure["rounds"]) for figure in figures] == [("F16/rate", 2), ("F16/latency", 400)]


@pytest.mark.sampled(0)
def test_a_peer_that_is_not_installed_is_skipped_with_a_word(tmp_path: Path) -> None:
    if find_spec("pydantic_monty") is not None:
        pytest.skip("pydantic_monty is installed")
    file = tmp_path / "figures.json"
    done = bench("bench", "--quick", "--peers", "--only", "F1/monty", "--json", str(file))
    assert "F1/monty            skipped: pydantic_monty is not installed" in done.stdout.splitlines()
    assert json.loads(file.read_text())["skipped"] == [{"id": "F1/monty", "reason": "pydantic_monty is not installed"}]


def test_table_has_a_line_for_each_measure_however_it_is_started() -> None:
    for start in (("bench",), ("-m", "bench")):
        done = bench(*start, "--quick", "--rounds", "1", "--only", "F15/import")
        assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == ["think", "id", "F15/import", "load"]


@pytest.mark.sampled(0)
def test_unknown_measure_is_refused_with_the_known_ones() -> None:
    done = bench("bench", "--only", "F99")
    assert done.returncode == 2
    assert "'F99' is none of F1, F1/async" in done.stderr
