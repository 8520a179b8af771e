"""macOS, Windows and WSL 1, simulated (`tests/support/elsewhere.py` says how far): what works, and what refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cellblock import IsolationUnavailable, Session
from cellblock.cli.doctor import machine_lines
from cellblock.cli.examination import Report
from cellblock.cli.machine import inspect
from cellblock.cli.remedies import remedies
from cellblock.executors.system import require_linux, wsl
from cellblock.walls import Unavailable

ELSEWHERE = Path(__file__).parents[1] / "support" / "elsewhere.py"
SYSTEMS = pytest.mark.parametrize("system", ["darwin", "win32"])
WSL1 = "4.4.0-19041-Microsoft"
WSL2 = "5.15.153.1-microsoft-standard-WSL2"
REFUSED = Report(walls=(Unavailable(mechanism="namespaces", reason="", remedy=""),), failure="no namespaces")


def elsewhere(system: str, program: str, home: Path) -> list[object]:
    """What a program prints there, a JSON value a line."""
    done = subprocess.run(
        [sys.executable, str(ELSEWHERE), system, "import json, sys\n" + program],
        capture_output=True, text=True, timeout=60, env=os.environ | {"HOME": str(home)}, cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@SYSTEMS
def test_what_linux_alone_has_is_absent_in_the_simulation(system: str, tmp_path: Path) -> None:
    """Else the other tests here would prove nothing: each of these works in this process."""
    tries = """
import ctypes, os, signal, socket, select, time
def answer(act):
    try:
        act()
    except (AttributeError, ImportError, OSError) as error:
        return type(error).__name__
print(json.dumps([answer(act) for act in (
    lambda: os.pidfd_open(os.getpid()), lambda: os.memfd_create("a"), lambda: signal.pidfd_send_signal,
    lambda: socket.SO_PEERCRED, lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET),
    lambda: select.epoll, lambda: time.CLOCK_BOOTTIME, lambda: open("/proc/self/statm"), lambda: os.stat("/proc"),
    lambda: os.listdir("/sys"), lambda: ctypes.CDLL(None).unshare, lambda: ctypes.CDLL(None).prctl,
    lambda: __import__("resource").prlimit,
)]))"""
    (answers,) = elsewhere(system, tries, tmp_path)
    assert isinstance(answers, list)
    assert None not in answers


@pytest.mark.slow
@SYSTEMS
def test_all_but_what_runs_behind_walls_can_be_imported(system: str, tmp_path: Path) -> None:
    walled = ["executors.container", "executors.process", "executors.reduced", "executors.door", "worker",
              "hosting.inherited", "cli.keyboard"]
    # what they import is not ours
    for_others = ["guard.libraries", "integrations", "models.langchain", "store.postgres", "testing"]
    program = f"""
import importlib, pathlib, cellblock
root, left, failed = pathlib.Path(cellblock.__file__).parent, {walled + for_others!r}, []
for path in sorted(root.rglob("*.py")):
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    if name.startswith("__") or any((name + ".").startswith(one + ".") for one in left):
        continue
    try:
        importlib.import_module("cellblock." + name)
    except Exception as error:
        failed.append((name, repr(error)))
print(json.dumps(failed))"""
    assert elsewhere(system, program, tmp_path) == [[]]


LOCAL = """
from cellblock import CodeAgent, ExecutionLimits, Policy, ScriptedModel, Session, Versioned
def tell(*values): print(json.dumps(values))
limits = ExecutionLimits(timeout_seconds=0.3, max_memory_mb=64)
with Session(trust_level="local", limits=limits, tools=[], policy=Policy().fn(lambda: 7, name="seven")) as session:
    tell(session.run("x = seven() * 6\\nx").value, session.run("print(x)").text)
    tell(session.run("import os").error.kind, session.run("().__class__").error.kind)
    tell(session.run("while True: pass").error.kind, session.run("x").value)
url = "sqlite:///cells.db"
with Session("kept", trust_level="local", state=Versioned(url)) as session:
    session.run("rows = [1]"); session.run("rows.append(2)")
with Session("kept", trust_level="local", state=Versioned(url)) as session:
    tell(session.run("rows").value, len(session.log()))
    session.checkout("HEAD~2")
    tell(session.run("rows").value)
agent = CodeAgent(ScriptedModel(["```python\\nfinal_answer(6 * 7)\\n```"]), trust_level="local")
tell(agent.run("What is it?").value)
"""


@pytest.mark.sampled(0)
@SYSTEMS
def test_the_level_local_its_store_and_an_agent_work(system: str, tmp_path: Path) -> None:
    assert elsewhere(system, LOCAL, tmp_path) == [
        [42, "42"], ["refused", "refused"], ["timeout", 42], [[1, 2], 4], [[1]], [42],
    ]  # fmt: skip


@pytest.mark.sampled(0)
def test_growth_past_the_peak_is_noticed_without_proc(tmp_path: Path) -> None:
    program = """
from cellblock import ExecutionLimits, Session
limits = ExecutionLimits(timeout_seconds=30, max_memory_mb=32)
with Session(trust_level="local", limits=limits) as session:
    print(json.dumps(session.run("kept = []\\nwhile True: kept.append(bytearray(10_000))").error.kind))
    print(json.dumps([wall.reason for wall in session.capabilities.walls if wall.mechanism == "memory"]))"""
    kind, [reason] = elsewhere("darwin", program, tmp_path)  # type: ignore[misc]
    assert kind == "memory"
    assert "growth past the most that the process ever held" in reason


COMMANDS = """
import contextlib, io
from cellblock.cli import main
pathlib = __import__("pathlib")
pathlib.Path("script.py").write_text("print(1)")
pathlib.Path("page.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
def run(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    return status, out.getvalue(), err.getvalue()
for words in (["run", "script.py"], ["repl"], ["demo"], ["notebook", "run", "page.ipynb"]):
    status, out, err = run(*words)
    said = [words in err for words in ("needs Linux, this is", 'trust_level="local"', "virtual machine")]
    print(json.dumps([status, *said]))
print(json.dumps(run("sessions", "list")[0]))
print(json.dumps([run("doctor")[:2], json.loads(run("doctor", "--json")[1])]))
"""


@pytest.mark.sampled(1)
@SYSTEMS
def test_commands_refuse_in_one_line_or_work(system: str, tmp_path: Path) -> None:
    *refused, listed, [[status, text], report] = elsewhere(system, COMMANDS, tmp_path)  # type: ignore[misc]
    assert refused == [[3, True, True, True]] * 4
    assert listed == 0
    assert status == 3
    assert text.splitlines()[-1].startswith('trust_level="local" works here')
    assert (report["walls"][0]["mechanism"], report["local"]) == ("namespaces", {"ok": True, "failure": ""})
    assert 'trust_level="local"' in report["walls"][0]["remedy"]
    assert report["remedies"][0]["commands"] == (["wsl --install"] if system == "win32" else [])


@pytest.mark.parametrize(
    ("options", "mechanism"),
    [({}, "namespaces"), ({"walls": "reduced"}, "landlock"), ({"trust_level": "sandboxed"}, "container")],
    ids=["full", "reduced", "sandboxed"],
)
def test_walls_are_refused_with_the_ways_out(
    options: dict[str, str], mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(IsolationUnavailable, match="needs Linux, this is darwin") as refused:
        Session(**options)  # type: ignore[arg-type]
    assert refused.value.mechanism == mechanism
    assert "Linux virtual machine" in refused.value.hint
    assert 'trust_level="local"' in refused.value.hint


# --- the Windows Subsystem for Linux, by the name that its kernels give themselves ------------------------------


def kernel(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    named = os.uname_result(("Linux", "pc", release, "#1", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: named)
    monkeypatch.setattr("platform.release", lambda: release)


def test_versions_of_wsl_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for release in (WSL1, WSL2, "6.6.36.3-microsoft-standard-WSL2+", "6.12.0", "6.8.0-1015-azure"):
        kernel(monkeypatch, release)
        found[release] = wsl()
    assert list(found.values()) == [1, 2, 2, 0, 0]


def test_wsl_1_is_refused_and_told_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(monkeypatch, WSL1)
    with pytest.raises(IsolationUnavailable, match="WSL 1 has none") as refused:
        Session()
    assert (refused.value.mechanism, "wsl --set-version DISTRIBUTION 2" in refused.value.hint) == ("namespaces", True)
    machine = inspect()
    assert (machine.wsl, machine.is_linux) == (1, False)
    assert remedies(machine, REFUSED)[0].commands == (
        "wsl.exe --list --verbose", "wsl.exe --set-version DISTRIBUTION 2",
    )  # fmt: skip


def test_wsl_2_is_a_linux_and_doctor_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(monkeypatch, WSL2)
    require_linux("trust_level='isolated'")
    machine = inspect()
    assert (machine.wsl, machine.is_linux, machine.kernel) == (2, True, WSL2)
    assert next(machine_lines(machine)).startswith(f"machine: Linux {WSL2} ")
    assert ", WSL 2" in next(machine_lines(machine))
    (landlock,) = remedies(replace(machine, landlock_abi=0, container="", user=0, proc_masked=False), REFUSED)
    assert landlock.cause == "no Landlock"
    assert "kernelCommandLine= below [wsl2] of .wslconfig" in landlock.note
