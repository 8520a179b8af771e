"""`cellblock doctor`: every wall of this machine is tried, and what is missing is named with its remedy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from cellblock.cli.machine import Machine, advice, in_container
from cellblock.cli.probes import PROBES

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]

HEALTHY = Machine(
    system="Linux", kernel="6.12.0", architecture="x86_64", python="/usr/bin/python3", python_version="3.12.0",
    user=1000, container="", landlock_abi=6, cgroups="v1",
    switches={
        "user.max_user_namespaces": 1000, "kernel.unprivileged_userns_clone": None,
        "kernel.apparmor_restrict_unprivileged_userns": None,
    },
)  # fmt: skip


@pytest.mark.hostile
def test_every_attempt_is_refused_on_this_machine(cellblock: Cellblock) -> None:
    done = cellblock("doctor", "--json")
    report = json.loads(done.stdout)
    assert [finding for finding in report["tried"] if not finding["proved"]] == []
    assert (done.returncode, report["ok"], report["failure"], done.stderr) == (0, True, "", b"")
    assert len(report["tried"]) + len(report["skipped"]) == len(PROBES)
    assert {wall["mechanism"] for wall in report["walls"] if wall["applied"]} == {
        "namespaces", "root", "capabilities", "landlock", "seccomp", "rlimits",
    }  # fmt: skip


@pytest.mark.hostile
def test_text_report_names_each_mechanism_without_colour(cellblock: Cellblock) -> None:
    done = cellblock("doctor", environment={"PYTHONIOENCODING": "utf-8"})
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, b"\x1b" in done.stdout) == (0, False)
    assert [line.split(":")[0] for line in lines if line.startswith("\u2713")] == [
        f"\u2713 {name}" for name in ("namespaces", "root", "rlimits", "capabilities", "landlock", "seccomp")
    ]
    assert lines[-1].endswith("attempts from inside were refused")


def test_stream_without_check_marks_gets_words(cellblock: Cellblock) -> None:
    done = cellblock("doctor", environment={"PYTHONIOENCODING": "ascii"})
    assert done.stdout.startswith(b"ok namespaces: ")


def test_probes_cover_every_mechanism() -> None:
    assert {probe.mechanism for probe in PROBES} == {
        "namespaces", "root", "capabilities", "landlock", "seccomp", "rlimits",
    }  # fmt: skip


def test_answers_of_an_open_machine_prove_nothing() -> None:
    bait: dict[str, object] = {
        "hostname": "box", "processes": 32, "namespaces": {"net": "net:[1]", "user": "user:[2]"},
    }  # fmt: skip
    answers: tuple[object, ...] = (
        "got through", "box", None, {}, {"net": "net:[1]", "user": "user:[2]"}, {"Seccomp": "0"},
        {"ptrace": "got through", "bpf": "EPERM"}, "got after 64 forks", "EAGAIN after 64 forks",
    )  # fmt: skip
    proved = {(probe.title, str(answer)) for probe in PROBES for answer in answers if probe.judge(answer, bait)}
    assert {title for title, _ in proved} == {"learn the host's name"}  # any other name than the host's
    assert ("learn the host's name", "box") not in proved


def test_machine_without_user_namespaces_is_told_the_switch() -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-Ur", "true"], capture_output=True).returncode:
        pytest.skip("no user namespace to switch them off in")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -m cellblock doctor --json'
    done = subprocess.run([unshare, "-Ur", "sh", "-c", script, sys.executable], capture_output=True, timeout=60)
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["tried"]) == (3, False, [])
    assert [(wall["mechanism"], wall["applied"]) for wall in report["walls"]] == [("namespaces", False)]
    assert "user.max_user_namespaces" in report["walls"][0]["remedy"]
    assert "user namespaces are switched off: sysctl -w user.max_user_namespaces=10000" in report["advice"]


def test_advice_names_what_is_missing_and_nothing_else() -> None:
    switches = HEALTHY.switches
    assert advice(HEALTHY) == []
    assert advice(replace(HEALTHY, system="Darwin"))[0].startswith("trust_level='isolated' needs Linux")
    assert advice(replace(HEALTHY, switches={**switches, "kernel.unprivileged_userns_clone": 0})) == [
        "user namespaces are kept for root: sysctl -w kernel.unprivileged_userns_clone=1"
    ]
    assert advice(replace(HEALTHY, landlock_abi=4)) == [
        "Landlock ABI 4: Linux >= 6.12 has ABI 6, which also scopes signals"
    ]
    restricted = replace(HEALTHY, switches={**switches, "kernel.apparmor_restrict_unprivileged_userns": 1})
    assert "AppArmor restricts user namespaces" in advice(restricted)[0]
    assert advice(replace(restricted, user=0)) == []


@pytest.mark.parametrize(("kind", "word"), [("docker", "seccomp=unconfined"), ("kubernetes", "procMount: Unmasked")])
def test_container_is_told_what_it_must_be_given(kind: str, word: str) -> None:
    assert in_container(HEALTHY) == []
    assert word in in_container(replace(HEALTHY, container=kind))[0]
