"""Capabilities: none is left, and none comes back."""

import ctypes
import errno
import os
import struct
import subprocess

import pytest
from child import in_child

from cellblock.walls import Applied
from cellblock.worker.confine import capabilities, syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS

UNPRIVILEGED = 61000
CAP_NET_BIND_SERVICE = 10
PR_CAP_AMBIENT_RAISE = 2
SETS = ("CapInh", "CapPrm", "CapEff", "CapAmb")

pytestmark = [
    pytest.mark.skipif(
        syscalls.MACHINE not in NUMBERS,
        reason="capabilities are dropped on 64-bit Linux on x86_64 and aarch64 only",
    ),
    pytest.mark.skipif(
        not os.path.exists("/proc/self/status"), reason="/proc, where the sets are read back, is missing"
    ),
]


def sets_in(status: str) -> dict[str, int]:
    """The capability sets and no_new_privs as `/proc/PID/status` shows them."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {name: int(fields[name], 16) for name in (*SETS, "CapBnd", "NoNewPrivs")}


def own_sets() -> dict[str, int]:
    with open("/proc/self/status") as status:
        return sets_in(status.read())


def needs_root() -> None:
    if os.geteuid() != 0 or own_sets()["CapEff"] == 0:
        pytest.skip("only root has capabilities to lose")


def test_root_loses_every_set_and_says_so() -> None:
    needs_root()

    def action() -> object:
        before = own_sets()
        wall = capabilities.apply()
        assert isinstance(wall, Applied)
        return [before["CapEff"] != 0, own_sets(), wall.mechanism, wall.detail]

    assert in_child(action) == [
        True,
        {**dict.fromkeys((*SETS, "CapBnd"), 0), "NoNewPrivs": 1},
        "capabilities",
        "effective, permitted, inheritable, ambient empty; bounding set empty; no_new_privs",
    ]


def test_unprivileged_process_keeps_only_its_bounding_set_and_says_so() -> None:
    needs_root()

    def action() -> object:
        bounding = own_sets()["CapBnd"]
        wall = capabilities.apply()
        assert isinstance(wall, Applied)
        after = own_sets()
        return [after.pop("CapBnd") == bounding != 0, after, wall.detail]

    assert in_child(action, uid=UNPRIVILEGED) == [
        True,
        {**dict.fromkeys(SETS, 0), "NoNewPrivs": 1},
        "effective, permitted, inheritable, ambient empty; bounding set kept (no CAP_SETPCAP); no_new_privs",
    ]


def test_applying_twice_is_the_same_as_once() -> None:
    def action() -> object:
        return [isinstance(capabilities.apply(), Applied), isinstance(capabilities.apply(), Applied)]

    assert in_child(action) == [True, True]


def test_root_cannot_use_what_it_lost() -> None:
    needs_root()

    def action() -> object:
        capabilities.apply()
        try:
            os.chroot("/")
        except OSError as error:
            return error.errno
        return 0

    assert in_child(action) == errno.EPERM


def test_a_program_started_as_root_gets_nothing_back() -> None:
    needs_root()

    def action() -> object:
        capabilities.apply()
        shown = subprocess.run(["/bin/cat", "/proc/self/status"], capture_output=True, text=True, check=True)
        return sets_in(shown.stdout)

    assert in_child(action) == {**dict.fromkeys((*SETS, "CapBnd"), 0), "NoNewPrivs": 1}


def test_ambient_capabilities_go_too() -> None:
    needs_root()

    def action() -> object:
        header = struct.pack("=Ii", 0x20080522, 0)
        held = 1 << CAP_NET_BIND_SERVICE
        ctypes.CDLL(None).capset(header, struct.pack("=6I", held, held, held, 0, 0, 0))
        syscalls.prctl(syscalls.PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE)
        before = own_sets()["CapAmb"]
        capabilities.apply()
        return [before, own_sets()["CapAmb"]]

    assert in_child(action) == [1 << CAP_NET_BIND_SERVICE, 0]
