"""`cellblock doctor --attack`: the attacks of the hostile suite on this machine, and that it can fail."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cellblock.cli import main
from cellblock_attacks import report, tables
from cellblock_attacks.threats import THREATS

WALLED = tuple(threat.id for threat in THREATS if threat.id.startswith("W") and threat.id != "W11")
"""The host's time and memory are tried beside an idle event loop, by tests."""
Captured = pytest.CaptureFixture[str]


def test_classes_are_those_of_the_register() -> None:
    assert report.classes([]) == report.DEFAULT
    assert report.classes(["all"]) == WALLED
    assert report.classes(["W7", "W3"]) == ("W3", "W7")
    assert set(report.DEFAULT) < set(WALLED)
    assert {one.threat for one in report.chosen(WALLED)} == set(WALLED)
    assert len(report.chosen(WALLED)) == len(tables.ATTACKS)


def test_another_class_is_a_usage_error(capsys: Captured) -> None:
    assert main(["doctor", "--attack", "L1"]) == 2
    assert capsys.readouterr().err.startswith(
        "cellblock: 'L1' is not a class of attacks at the level isolated: there are W1, W2"
    )


def test_without_the_attacks_it_says_how_to_get_them(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cellblock_attacks", None)  # type: ignore[arg-type]
    assert main(["doctor", "--attack"]) == 2
    assert capsys.readouterr().err == (
        "cellblock: the attacks are not installed: pip install ./attacks in a checkout of cellblock\n"
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three attacks of each class that is asked for."""
    every = report.chosen

    def first(ids: tuple[str, ...], *, walls: str = "full") -> list[object]:
        return [one for name in ids for one in every((name,), walls=walls)[:3]]

    monkeypatch.setattr(report, "chosen", first)


@pytest.mark.hostile
def test_walls_that_hold_are_told_class_by_class(few: None, capsys: Captured) -> None:
    assert main(["doctor", "--attack", "W5", "W1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[2:4] for line in lines if not line.startswith((" ", "every"))] == ["W1", "W5"]
    assert "        absolute-path, home-of-the-host, shadow" in lines
    assert lines[-1].startswith("every wall held: 6 attacks in ")


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_json_has_each_attack(few: None, capsys: Captured) -> None:
    assert main(["doctor", "--attack", "W4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["trust_level"], found["walls"]) == (True, "isolated", "full")
    (group,) = found["classes"]
    assert (group["id"], group["held"], len(group["tried"])) == ("W4", True, 3)
    assert {(one["held"], *one["reached"], *one["failed"]) for one in group["tried"]} == {(True,)}


@pytest.mark.sampled(0)
def test_the_guard_is_tried_too(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    of_file = {path: found for path, found in report.attempts_of(("L9",)).items() if path.stem == "L09"}
    monkeypatch.setattr(report, "attempts_of", lambda ids: of_file)
    assert main(["doctor", "--attack", "L9", "--trust-level", "local", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (group,) = found["classes"]
    assert (group["id"], group["held"]) == ("L9", True)
    assert len(group["tried"]) >= 35


UNGUARDED = """
import json, sys
from cellblock_attacks.language.programs import programs
from pathlib import Path
for one in programs(Path(sys.argv[2])):
    print(json.dumps({"name": one.name, "canary": True, "changed": [], "ended": "completed", "rules": [], "left": 0}))
"""


def test_a_guard_that_lets_a_secret_out_is_told(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text that the program would print without a guard, where each attempt gets what it is after."""
    monkeypatch.setattr(report, "LANGUAGE", ("-c", UNGUARDED, "guard"))
    assert main(["doctor", "--attack", "L2", "--trust-level", "local"]) == 3
    out = capsys.readouterr().out
    assert "        REACHED gi-frame: a secret of the host came out" in out.splitlines()
    assert "        FAILED gi-frame: refused: [], where ['frame'] was expected" in out.splitlines()


OPENED = """
import sys
from cellblock import Session
from cellblock_attacks import __main__ as program, tables
from cellblock_attacks.attack import Attack
Session.__init__.__kwdefaults__["mounts"] = {{"open": {folder!r}}}
tables.BY_NAME["files-absolute-path"] = Attack(
    name="files-absolute-path", threat="W1", wall="none", expect="ENOENT", cell="attempt(read, 'open/secret')")
program.main({canary!r}, sys.argv[2:])
"""


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_a_wall_that_lets_a_secret_out_is_told(few: None, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount that should not be there shows the sessions a file with the host's canary."""
    canary = f"canary-{'5' * 32}"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # for the account of a root's sessions
        (Path(folder) / "secret").write_text(canary)
        monkeypatch.setattr(report, "PROGRAM", ("-c", OPENED.format(folder=folder, canary=canary)))
        assert main(["doctor", "--attack", "W1"]) == 3
    out = capsys.readouterr().out
    assert "        REACHED files-absolute-path: a secret of the host came out" in out.splitlines()
    assert "1 of 3 attacks did not meet their wall, 1 of which reached the host" in out


WITHOUT_NAMESPACES = """
import sys
from cellblock import Session
from cellblock_attacks import __main__ as program
Session.__init__.__kwdefaults__.update(walls="reduced", python={python!r})
program.main(*sys.argv[1:2], sys.argv[2:])
"""


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_a_wall_that_is_missing_is_told(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, readable_python: str
) -> None:
    """Sessions without namespaces, held against what is promised of those with them."""
    names = ("secrecy-host-name", "network-names")
    monkeypatch.setattr(report, "chosen", lambda ids, *, walls: [tables.BY_NAME[name] for name in names])
    monkeypatch.setattr(report, "PROGRAM", ("-c", WITHOUT_NAMESPACES.format(python=readable_python)))
    assert main(["doctor", "--attack", "W3", "W5"]) == 3
    out = capsys.readouterr().out
    assert f"FAILED secrecy-host-name: the answer was {socket.gethostname()!r}, that of the wall is 'cellblock'" in out
    assert out.splitlines()[-2] == "1 of 2 attacks did not meet their wall, 0 of which reached the host"


def test_a_machine_that_opens_no_session_is_told_why(
    few: None, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = 'print(\'{"failure": "namespaces: refused", "mechanism": "namespaces"}\')'
    monkeypatch.setattr(report, "PROGRAM", ("-c", program))
    assert main(["doctor", "--attack", "W1"]) == 3
    assert capsys.readouterr().err == "cellblock: namespaces: refused\n"


def test_a_program_that_ends_too_early_is_no_success(
    few: None, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PROGRAM", ("-c", "raise SystemExit('out of memory')"))
    assert main(["doctor", "--attack", "W1"]) == 3
    assert "3 of 3 attacks were not made: the program that makes them ended (it said: out of memory)" in (
        capsys.readouterr().err
    )


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_ctrl_c_ends_it_and_takes_away_what_was_laid_out(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cellblock", "doctor", "--attack", "W8", "W10"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()  # the first class has been made
        laid_out = list(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "cellblock: interrupted\n")
    assert {path.name.strip(".").partition("-")[0] for path in laid_out} >= {"attacked"}
    assert [path.name for path in tmp_path.iterdir() if "attacked" in path.name] == []
    assert tempfile.gettempdir() != str(tmp_path)
