"""A program in a container opens sessions with the shipped profile, and is told how where it cannot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

pytestmark = pytest.mark.containers

Cells = Callable[..., str]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

SHIPPED = f"--security-opt=seccomp={files('cellblock') / 'cli' / 'profiles' / 'seccomp.json'}"

OPEN = """
from cellblock import IsolationUnavailable, Session
try:
    with Session() as session:
        print("opened", *(wall.mechanism for wall in session.capabilities.walls if wall.mechanism != "cgroup"))
        print(session.capabilities.walls[1].detail)
        cell = session.run("import os; sum(range(10)), os.getuid(), os.uname().nodename, os.path.exists('/proc/self')")
        print(cell.value)
except IsolationUnavailable as error:
    print("refused", error.mechanism, "doctor" in error.hint)
"""

WALLS = "opened namespaces root rlimits capabilities landlock seccomp"
TREE = "read-only tree, 512 MB of files of its own"
MASKED = f"{TREE}, without /proc (masked on this host)"

ACCOUNTS = {
    "root": (),
    "user": ("--user", "1234"),
    "user-without-capabilities": ("--user", "1234:1234", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    "read-only": ("--user", "1234", "--read-only"),
    "root-read-only": ("--read-only",),
}


@pytest.fixture
def namespaces_refused(tmp_path: Path) -> str:
    """The option for a profile that refuses what Docker's own refuses to containers without CAP_SYS_ADMIN."""
    calls = ["unshare", "setns", "mount", "umount2", "pivot_root", "mount_setattr", "open_tree", "move_mount"]
    refuse = {"names": [*calls, "sethostname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    profile = tmp_path / "refusing.json"
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refuse]}))
    return f"--security-opt=seccomp={profile}"


@pytest.mark.parametrize("account", ACCOUNTS)
def test_shipped_profile_gives_every_wall(cells: Cells, account: str) -> None:
    shown = cells(OPEN, SHIPPED, *ACCOUNTS[account])
    assert shown.splitlines() == [WALLS, MASKED, "(45, 1000, 'cellblock', False)"]


@pytest.mark.parametrize("account", ["root", "user"])
def test_proc_that_is_not_masked_gives_sessions_one(cells: Cells, account: str) -> None:
    shown = cells(OPEN, SHIPPED, "--security-opt", "unmask=/proc/*", *ACCOUNTS[account])
    assert shown.splitlines() == [WALLS, TREE, "(45, 1000, 'cellblock', True)"]


def test_profile_without_namespaces_is_refused_and_names_doctor(cells: Cells, namespaces_refused: str) -> None:
    assert cells(OPEN, namespaces_refused) == "refused namespaces True\n"


def test_doctor_prints_the_line_that_starts_a_container_right(podman: Run, namespaces_refused: str) -> None:
    done = podman("python3", "-m", "cellblock", "doctor", "--json", options=(namespaces_refused,))
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["machine"]["container"]) == (3, False, "podman")
    assert report["machine"]["namespaces_refused"] == "EPERM"
    assert report["remedies"][0]["commands"] == [
        "cellblock doctor --profile seccomp > cellblock-seccomp.json",
        "podman run --security-opt seccomp=cellblock-seccomp.json ...",
    ]


def test_what_doctor_prints_is_what_a_container_needs(podman: Run, cells: Cells, tmp_path: Path) -> None:
    printed = podman("python3", "-m", "cellblock", "doctor", "--profile", "seccomp")
    profile = tmp_path / "printed.json"
    profile.write_text(printed.stdout)
    assert cells(OPEN, f"--security-opt=seccomp={profile}").startswith(WALLS)


def test_podmans_own_profile_gives_all_but_a_host_name(cells: Cells) -> None:
    shown = cells(OPEN, "--hostname", "outside").splitlines()
    assert shown == [
        WALLS,
        f"{MASKED}, host name as outside (sethostname is refused)",
        "(45, 1000, 'outside', False)",
    ]


@pytest.mark.parametrize("options", [(), ("--user", "1234", "--security-opt", "unmask=/proc/*")])
def test_every_attempt_of_doctor_is_refused_behind_the_shipped_profile(podman: Run, options: tuple[str, ...]) -> None:
    done = podman("python3", "-m", "cellblock", "doctor", "--json", options=(SHIPPED, *options))
    report = json.loads(done.stdout)
    assert [finding for finding in report["tried"] if not finding["proved"]] == []
    assert (done.returncode, report["ok"]) == (0, True)
    assert [line for line in report["skipped"] if "no cgroup" not in line] == (
        []
        if options
        else [
            "share a namespace with the host: the session has no /proc",
            "find the host's processes: the session has no /proc",
        ]
    )


REDUCED = """
from cellblock import IsolationUnavailable, Session
try:
    with Session(walls="reduced") as session:
        print("opened", *(wall.mechanism for wall in session.capabilities.walls if wall.mechanism != "cgroup"))
        cell = session.run("import os; os.stat('/etc/shadow')")
        print(cell.error.message)
        print(session.run("open('f', 'w').write('x'); os.listdir('.'), os.getuid()").value)
except IsolationUnavailable as error:
    print("refused", error.mechanism)
"""

REDUCED_WALLS = "opened namespaces root mounts files identity rlimits capabilities landlock seccomp metadata"


@pytest.mark.parametrize(
    ("account", "user"),
    [
        *((name, 1234) for name in ACCOUNTS if name.startswith(("u", "read"))),
        ("root", 60_579),
        ("root-read-only", 60_579),
    ],
)
def test_reduced_walls_work_where_namespaces_are_refused(
    cells: Cells, namespaces_refused: str, account: str, user: int
) -> None:
    shown = cells(REDUCED, namespaces_refused, *ACCOUNTS[account])
    missing = "[Errno 2] No such file or directory: '/etc/shadow'"
    assert shown.splitlines() == [REDUCED_WALLS, missing, f"(['f'], {user})"]


def test_reduced_walls_are_refused_to_a_root_without_capabilities(cells: Cells, namespaces_refused: str) -> None:
    assert cells(REDUCED, namespaces_refused, "--cap-drop", "ALL") == "refused identity\n"


@pytest.mark.parametrize("account", ["root", "user"])
def test_doctor_says_that_reduced_walls_work(podman: Run, namespaces_refused: str, account: str) -> None:
    options = (namespaces_refused, *ACCOUNTS[account])
    report = json.loads(podman("python3", "-m", "cellblock", "doctor", "--json", options=options).stdout)
    assert (report["ok"], report["reduced"]) == (False, {"ok": True, "failure": ""})
