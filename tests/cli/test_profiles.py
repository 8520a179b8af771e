"""Profiles that ship: they let through what sessions need, refuse what no container should, and parse."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock.cli.doctor import PROFILES, profile
from cellblock.worker.confine import seccomp
from cellblock.worker.confine.syscall_numbers import NUMBERS

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]

NEEDED_TO_OPEN = "unshare setns mount umount2 pivot_root mount_setattr sethostname openat2 seccomp clone3 capset prctl"
NEVER = """init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff settimeofday
    clock_settime bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register add_key request_key
    keyctl open_by_handle_at fanotify_init acct quotactl iopl ioperm syslog"""


def rules() -> list[dict[str, object]]:
    found = json.loads(profile("seccomp"))["syscalls"]
    assert isinstance(found, list)
    return found


def allowed(*, whatever_the_arguments: bool) -> set[str]:
    found: set[str] = set()
    for rule in rules():
        names = rule["names"]
        assert isinstance(names, list)
        if rule["action"] == "SCMP_ACT_ALLOW" and not (whatever_the_arguments and "args" in rule):
            found.update(names)
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROFILES)
def test_each_is_printed_as_it_is(cellblock: Cellblock, name: str) -> None:
    done = cellblock("doctor", "--profile", name)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, profile(name), b"")


def test_seccomp_lets_through_what_a_sessions_own_filter_does() -> None:
    policy = seccomp.policy()
    inside = {name for name, answer in policy.items() if answer == 0 or not isinstance(answer, int)}
    assert inside - allowed(whatever_the_arguments=True) == {"socket", "personality"}  # by argument
    assert inside <= allowed(whatever_the_arguments=False)


def test_seccomp_lets_through_what_opens_a_session_and_nothing_that_no_container_should() -> None:
    assert set(NEEDED_TO_OPEN.split()) <= allowed(whatever_the_arguments=False)
    assert set(NEVER.split()) & allowed(whatever_the_arguments=False) == set()
    assert json.loads(profile("seccomp"))["defaultAction"] == "SCMP_ACT_ERRNO"


def test_seccomp_names_calls_that_exist_once() -> None:
    named = [name for rule in rules() if "args" not in rule for name in rule["names"]]  # type: ignore[attr-defined]
    assert len(named) == len(set(named))
    assert set(named) <= set().union(*NUMBERS.values())


def test_apparmor_names_the_interpreter_by_its_real_path() -> None:
    assert f'profile cellblock "{os.path.realpath(sys.executable)}" flags=(unconfined)' in profile("apparmor")


@pytest.mark.parametrize("name", ["apparmor", "apparmor-container"])
def test_apparmor_parses(name: str, tmp_path: Path) -> None:
    parser = shutil.which("apparmor_parser", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if parser is None:
        pytest.skip("needs apparmor_parser")
    version = subprocess.run([parser, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.findall(r"version (\d+)", version)[0]) < 4:
        pytest.skip("needs apparmor_parser 4, which knows `userns,`")
    path = tmp_path / name
    path.write_text(profile(name))
    words = ["--skip-kernel-load", "--skip-cache", "--skip-read-cache", str(path)]
    done = subprocess.run([parser, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", ["1.33", "1.34"])
def test_kubernetes_accepts_the_pod(version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")
    pod = yaml.safe_load(profile("kubernetes"))
    assert validator.validate(pod, version, strict=True)
    pod["spec"]["hostUser"] = False
    with pytest.raises(validator.ValidationError):
        validator.validate(pod, version, strict=True)
