"""`cellblock doctor`: every wall of this machine is tried, and what is missing is named with its remedy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

import cellblock
from cellblock.cli.doctor import GIVEN_UP
from cellblock.cli.examination import Report, examine
from cellblock.cli.machine import Machine, inspect
from cellblock.cli.probes import PROBES, REDUCED
from cellblock.cli.remedies import remedies
from cellblock.walls import Applied, Unavailable

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]

HEALTHY = Machine(
    system="Linux", kernel="6.12.0", architecture="x86_64", python="/usr/bin/python3", python_version="3.12.0",
    user=1000, container="", landlock_abi=6, cgroups="v1",
    switches={
        "user.max_user_namespaces": 1000, "kernel.unprivileged_userns_clone": None,
        "kernel.apparmor_restrict_unprivileged_userns": None,
    },
)  # fmt: skip


REFUSED = Report(walls=(Unavailable(mechanism="namespaces", reason="EPERM", remedy=""),), failure="EPERM")


def opened(detail: str = "") -> Report:
    """A report of a session that opened, with a detail of one of its walls."""
    return Report(walls=(Applied(mechanism="root", detail=detail),))


def causes(machine: Machine, report: Report) -> list[str]:
    return [remedy.cause for remedy in remedies(machine, report)]


def commands(machine: Machine, report: Report) -> tuple[str, ...]:
    return remedies(machine, report)[0].commands


@pytest.mark.hostile
def test_every_attempt_is_refused_on_this_machine(cellblock: Cellblock) -> None:
    done = cellblock("doctor", "--json")
    report = json.loads(done.stdout)
    assert [finding for finding in report["tried"] if not finding["proved"]] == []
    assert (done.returncode, report["ok"], report["failure"], done.stderr) == (0, True, "", b"")
    assert len(report["tried"]) + len(report["skipped"]) == len(PROBES)
    assert {wall["mechanism"] for wall in report["walls"] if wall["applied"]} - {"cgroup"} == {
        "namespaces", "root", "capabilities", "landlock", "seccomp", "rlimits",
    }  # fmt: skip
    (group,) = [wall for wall in report["walls"] if wall["mechanism"] == "cgroup"]
    assert group["applied"] or (group["reason"] and group["remedy"] and group["needed"] is False)


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_a_group_that_cannot_be_made_is_told_and_is_no_failure(cellblock: Cellblock) -> None:
    done = cellblock("doctor", environment={"CELLBLOCK_CGROUP": "/nonexistent", "PYTHONIOENCODING": "utf-8"})
    lines = done.stdout.decode().splitlines()
    at = lines.index("- cgroup: /nonexistent is not a control group of version 2")
    assert lines[at + 1].startswith("    to have it: start the program in a group of its own, systemd-run --user")
    assert "    - not tried: be counted in the host's control group: there is no cgroup" in lines
    assert done.returncode == 0


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_text_report_names_each_mechanism_without_colour(cellblock: Cellblock) -> None:
    done = cellblock("doctor", environment={"PYTHONIOENCODING": "utf-8"})
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, b"\x1b" in done.stdout) == (0, False)
    assert [line.split(":")[0] for line in lines if line.startswith("\u2713") and "cgroup" not in line] == [
        f"\u2713 {name}" for name in ("namespaces", "root", "rlimits", "capabilities", "landlock", "seccomp")
    ]
    assert lines[-1].endswith("attempts from inside were refused")


@pytest.mark.sampled(0)
def test_stream_without_check_marks_gets_words(cellblock: Cellblock) -> None:
    done = cellblock("doctor", environment={"PYTHONIOENCODING": "ascii"})
    assert done.stdout.startswith(b"ok namespaces: ")


def test_probes_cover_every_mechanism() -> None:
    assert {probe.mechanism for probe in PROBES} == {
        "namespaces", "root", "capabilities", "landlock", "seccomp", "rlimits", "cgroup",
    }  # fmt: skip


def test_answers_of_an_open_machine_prove_nothing() -> None:
    answers: tuple[object, ...] = (
        "got through", None, {}, {"ptrace": "got through", "bpf": "EPERM"}, "got all", "mode 0",
        "0 of the process, no_new_privs 1, 41 to gain", "got net, user", "counted in 0 of its own",
    )  # fmt: skip
    assert [probe.title for probe in (*PROBES, *REDUCED) for answer in answers if probe.is_proved(answer)] == []


@pytest.mark.sampled(0)
def test_machine_without_user_namespaces_is_told_the_switch() -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-Ur", "true"], capture_output=True).returncode:
        pytest.skip("no user namespace to switch them off in")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -m cellblock doctor --json'
    done = subprocess.run([unshare, "-Ur", "sh", "-c", script, sys.executable], capture_output=True, timeout=60)
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["tried"]) == (3, False, [])
    assert [(wall["mechanism"], wall["applied"]) for wall in report["walls"]] == [("namespaces", False)]
    assert "cellblock doctor" in report["walls"][0]["remedy"]
    assert report["machine"]["namespaces_refused"] == "ENOSPC"
    assert report["reduced"] == {  # root of a namespace with one user
        "ok": False,
        "failure": "root may not run sessions as accounts of their own here",
    }


WITHOUT_NAMESPACES = """
import struct, sys
from cellblock.cli import main
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS
number = NUMBERS[syscalls.MACHINE]["unshare"]
program = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.seccomp_install(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
sys.exit(main(["doctor", *sys.argv[1:]]))
"""


def without_namespaces(python: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`cellblock doctor` where unshare is refused, run by an interpreter that reduced sessions can have too."""
    path = os.pathsep.join(str(Path(module.__file__).parents[1]) for module in (cellblock, anyio) if module.__file__)
    return subprocess.run(
        [python, "-c", WITHOUT_NAMESPACES, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
    )


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_machine_without_namespaces_is_told_that_reduced_walls_work(readable_python: str) -> None:
    done = without_namespaces(readable_python)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (3, "")
    at = next(number for number, line in enumerate(lines) if line.startswith('walls="reduced"'))
    assert lines[at : at + 2] == [
        'walls="reduced", which goes without namespaces, works here, if it is asked for: Session(walls="reduced"),',
        f"cellblock run --walls reduced. {len(REDUCED)} attempts from inside were refused. It gives up:",
    ]
    assert [line.removeprefix("    - ") for line in lines[at + 2 :]] == list(GIVEN_UP)


@pytest.mark.sampled(0)
@pytest.mark.hostile
def test_every_attempt_is_refused_behind_reduced_walls(readable_python: str) -> None:
    done = without_namespaces(readable_python, "--walls", "reduced", "--json")
    report = json.loads(done.stdout)
    assert [finding for finding in report["tried"] if not finding["proved"]] == []
    assert (done.returncode, report["ok"], report["skipped"], report["reduced"]) == (0, True, [], None)
    walls = [wall for wall in report["walls"] if wall["mechanism"] != "cgroup"]
    assert [wall["mechanism"] for wall in walls if not wall["applied"]] == ["namespaces", "root", "mounts"]
    tried = {finding["mechanism"] for finding in report["tried"]}
    assert {wall["mechanism"] for wall in walls if wall["applied"]} == tried


def test_healthy_machine_is_told_nothing() -> None:
    assert remedies(HEALTHY, opened()) == []


def test_each_switch_is_told_by_its_command() -> None:
    switches = HEALTHY.switches
    kept = replace(HEALTHY, switches={**switches, "kernel.unprivileged_userns_clone": 0})
    assert commands(kept, REFUSED) == ("sudo sysctl -w kernel.unprivileged_userns_clone=1",)
    off = replace(HEALTHY, switches={**switches, "user.max_user_namespaces": 0})
    assert commands(off, REFUSED) == ("sudo sysctl -w user.max_user_namespaces=10000",)
    without = replace(HEALTHY, switches={**switches, "user.max_net_namespaces": 0})
    assert commands(without, REFUSED) == ("sudo sysctl -w user.max_net_namespaces=10000",)
    restricted = replace(HEALTHY, switches={**switches, "kernel.apparmor_restrict_unprivileged_userns": 1})
    assert commands(restricted, REFUSED) == (
        "cellblock doctor --profile apparmor | sudo tee /etc/apparmor.d/cellblock",
        "sudo apparmor_parser -r /etc/apparmor.d/cellblock",
    )
    assert remedies(replace(restricted, user=0), REFUSED) == []
    assert causes(replace(HEALTHY, landlock_abi=4), opened()) == ["Landlock ABI 4"]
    assert causes(replace(HEALTHY, landlock_abi=0), REFUSED) == ["no Landlock"]
    assert causes(replace(HEALTHY, system="Darwin"), REFUSED) == ["trust_level='isolated' needs Linux"]


def test_container_is_told_how_it_must_be_started() -> None:
    docker = replace(HEALTHY, container="docker", filtered=True)
    assert commands(docker, REFUSED) == (
        "cellblock doctor --profile seccomp > cellblock-seccomp.json",
        "docker run --security-opt seccomp=cellblock-seccomp.json ...",
    )
    assert remedies(docker, opened()) == []
    confined = replace(docker, apparmor="docker-default")
    assert commands(confined, REFUSED)[1:] == (
        "cellblock doctor --profile apparmor-container | sudo tee /etc/apparmor.d/cellblock-container",
        "sudo apparmor_parser -r /etc/apparmor.d/cellblock-container",
        "docker run --security-opt seccomp=cellblock-seccomp.json --security-opt apparmor=cellblock-container ...",
    )
    pod = replace(HEALTHY, container="kubernetes", filtered=True)
    assert [line.partition("   #")[0] for line in commands(pod, REFUSED)] == [
        "cellblock doctor --profile seccomp > /var/lib/kubelet/seccomp/cellblock.json",
        "cellblock doctor --profile kubernetes > pod.yaml",
    ]


def test_masked_proc_is_unmasked_for_ordinary_users_alone() -> None:
    docker = replace(HEALTHY, container="docker", proc_masked=True)
    masked = opened("read-only tree, without /proc (masked on this host)")
    assert commands(docker, masked) == ("docker run --security-opt systempaths=unconfined --user 1000 ...",)
    assert commands(replace(docker, user=0), masked) == ()
    assert "another user than root" in remedies(replace(docker, user=0), masked)[0].note


def test_without_a_place_for_files_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    report = anyio.run(examine, 7, "full")
    assert (report.ok, report.walls, report.failure) == (
        False,
        (),
        "no file can be written for the sessions to look for: No usable temporary directory found in ['/tmp'] "
        "(give this program a /tmp; to a container, --tmpfs /tmp)",
    )


@pytest.mark.sampled(0)
def test_program_that_may_write_no_files_is_told_the_limit() -> None:
    words = ["bash", "-c", 'ulimit -f 0; exec "$0" -m cellblock doctor --json 2> /dev/null', sys.executable]
    report = json.loads(subprocess.run(words, stdout=subprocess.PIPE, timeout=60).stdout)
    assert [(wall["mechanism"], wall["reason"], wall["remedy"]) for wall in report["walls"]] == [
        (
            "files",
            "this program may write no file of more than 0 bytes (RLIMIT_FSIZE)",
            "raise the limit: ulimit -f unlimited",
        )
    ]


def test_every_condition_of_the_program_is_among_the_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    causes = [remedy.cause for remedy in remedies(inspect(), Report(walls=(), failure="something else"))]
    assert causes[0] == f"{sys.executable} is a frozen program, so there is no interpreter to start sessions with"
