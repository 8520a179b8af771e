"""The invariant of `fuzzer`, for a while: what was found breaks it no more, and what breaks it is found."""

from __future__ import annotations

import importlib
import os
import pickle
import secrets
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))  # for `fuzzer`, which is a program of its own as well

from fuzzer.cases import Case, from_word, to_word  # noqa: E402
from fuzzer.engine import Engine, judged, measured  # noqa: E402
from fuzzer.target import Target  # noqa: E402
from fuzzer.targets import BY_NAME, TARGETS  # noqa: E402

_ROUNDS = {"shown": 150, "conversations": 600, "turns": 300}
_SLOW_SECONDS = 30

FOUND: tuple[tuple[str, Case], ...] = (
    ("shown", (b'd{"is":"display","data":{"application/javascript":"x"},"mimes":[],"is_result":false,"mark":2}',)),
    ("shown", ("o\U000e0061".encode(),)),
    ("shown", ("s\U000e0061".encode(),)),
    (
        "turns",  # a call that is read along with the reply to the request
        (
            b"n",
            b"o\x00\x1bcb\x01\x02\x03\x04\x05\x06\x07\x08M" + bytes(7) + b"\x10text",
            b"w\x01" + struct.pack("<II", 0, 54) + b'{"is":"tool","call":1,"request":1,"name":"n","mark":0}',
            b"wF" + struct.pack("<QddQ", 1, 1.5, 0.5, 3),
        ),
    ),
    ("terminal", ("\u3164\u200b\U000e0061".encode(),)),
)
"""Cases that broke the invariant."""


def said(engine: Engine) -> list[str]:
    return [f"{find.how}\nmake fuzz ARGS='--again {to_word(find.target, find.case)}'" for find in engine.report.finds]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.threat("W7")
def test_invariant_holds_of_changed_messages(target: Target) -> None:
    engine = Engine(target, seed=1, led=False)
    engine.begin()
    engine.run(rounds=_ROUNDS.get(target.name, 1500))
    assert said(engine) == []


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.threat("W7")
def test_invariant_holds_of_what_no_run_before_tried(target: Target) -> None:
    engine = Engine(target, seed=secrets.randbits(32))
    engine.begin()
    engine.run(seconds=_SLOW_SECONDS)
    assert said(engine) == []


@pytest.mark.parametrize(("name", "case"), FOUND)
@pytest.mark.threat("W8")
def test_what_was_found_breaks_it_no_more(name: str, case: Case) -> None:
    assert judged(BY_NAME[name], case) is None


@pytest.mark.sampled(0)
def test_what_breaks_it_is_found_and_made_small() -> None:
    values = BY_NAME["values"]

    def read(case: Case) -> object:
        got = values.read(case)
        if isinstance(got, tuple) and isinstance(got[0], range) and got[0].start > 2:
            raise KeyError("planted")
        return got

    seeds = [case for case in values.seeds() if case[0].startswith((b'{"range"', b'{"slice"', b"[1"))]
    engine = Engine(replace(values, read=read, seeds=lambda: iter(seeds)), seed=1)
    engine.begin()
    engine.run(rounds=5000)
    (find,) = engine.report.finds
    assert find.how.endswith("KeyError: 'planted'")
    assert len(b"".join(find.case)) < 60
    assert from_word(to_word("values", find.case)) == ("values", find.case)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("reading", "how"),
    [
        (lambda case: bytes(3 * 2**20 + 2000 * len(case[0])), "bytes of memory"),
        (lambda case: sum(range(80_000_000)), " s for "),
    ],
    ids=["memory", "time"],
)
def test_what_takes_too_much_is_found(reading: Callable[[Case], object], how: str) -> None:
    assert how in str(measured(target_of(reading), (b"x" * 100,)))


@pytest.mark.parametrize(
    ("reading", "how"),
    [
        (lambda case: open("/etc/passwd"), "reading did open('/etc/passwd'"),  # noqa: SIM115
        (lambda case: subprocess.run(["true"]), "reading did subprocess.Popen('true'"),
        (lambda case: eval(case[0]), "reading did compile("),
        (lambda case: pickle.loads(pickle.dumps(int)), "reading did pickle.find_class('builtins', 'int')"),
        (lambda case: importlib.import_module("antigravity"), "reading did import('antigravity'"),
        (lambda case: endless(), "Endless: no end after 0.1 s"),
    ],
    ids=["file", "process", "code", "pickle", "module", "time"],
)
def test_what_does_more_than_reading_is_found(
    reading: Callable[[Case], object], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzzer.border.MOST_SECONDS", 0.1)
    found = judged(target_of(reading), (b"1",))
    assert found is not None
    assert how in found.how


def endless() -> None:
    while True:
        pass


def target_of(reading: Callable[[Case], object]) -> Target:
    return Target("greedy", lambda: iter([(b"x",)]), reading, lambda case, read: None)


@pytest.mark.sampled(0)
def test_command_tells_what_it_did_and_tries_a_case_again() -> None:
    def run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
        environment = {**os.environ, "PYTHONPATH": path}
        command = [sys.executable, "-m", "fuzzer", *words]
        return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=60, env=environment)

    done = run("--seconds", "0.2", "--only", "packed,text", "--seed", "7")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["seed", "packed", "text"]
    word = to_word("values", (b"[1]",))
    for again in (run("--again", word), run("--again", "-", typed=word + "\n")):
        assert (again.returncode, again.stdout) == (0, "the invariant holds\n")
    assert run("--only", "nothing").returncode == 2
