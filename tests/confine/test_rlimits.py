"""Resource limits: what is set, what it stops, and what the runtime may still raise."""

import ctypes
import errno
import mmap
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import child
import pytest

from cellblock.walls import Applied
from cellblock.worker.confine import capabilities, rlimits
from cellblock.worker.confine.syscalls import PR_SET_DUMPABLE, prctl

MB = 1 << 20


def in_child(action: Callable[[], object], *, uid: int | None = None) -> object:
    """As `child.in_child`, with memory that can be looked at: the zygote's copies become dumpable again, too."""

    def dumpable() -> object:
        prctl(PR_SET_DUMPABLE, 1)
        return action()

    return child.in_child(dumpable, uid=uid)


def apply(**changed: int) -> Applied:
    wanted = {"data_bytes": 64 * MB, "processes": 50, "file_bytes": MB, "open_files": 64}
    return rlimits.apply(**(wanted | changed))


def test_limits_are_set_around_the_baseline(uid: int | None) -> None:
    def action() -> object:
        wall = apply(baseline_bytes=10 * MB, data_headroom_bytes=8 * MB)
        return [
            wall.mechanism,
            wall.detail,
            resource.getrlimit(resource.RLIMIT_DATA),
            resource.getrlimit(resource.RLIMIT_NPROC),
            resource.getrlimit(resource.RLIMIT_FSIZE),
            resource.getrlimit(resource.RLIMIT_NOFILE),
            resource.getrlimit(resource.RLIMIT_CORE),
            resource.getrlimit(resource.RLIMIT_SIGPENDING),
        ]

    assert in_child(action, uid=uid) == [
        "rlimits",
        f"data {74 * MB}, processes 50, file size {MB}, open files 64, core 1, locked 65536, stack {8 * MB}, "
        f"pending signals 1024, priority 0, out of memory 500 (data includes a baseline of {10 * MB})",
        [74 * MB, 82 * MB],
        [50, 50],
        [MB, MB],
        [64, 64],
        [1, 1],
        [1024, 1024],
    ]


def test_the_stack_may_grow_to_eight_megabytes_and_never_without_end() -> None:
    def action() -> object:
        apply()
        return resource.getrlimit(resource.RLIMIT_STACK)

    assert in_child(action) == [8 * MB, rlimits.STACK_CEILING_BYTES]


def test_a_lower_hard_limit_stays(uid: int | None) -> None:
    def action() -> object:
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        wall = apply()
        return [resource.getrlimit(resource.RLIMIT_NOFILE), "open files 20," in wall.detail]

    assert in_child(action, uid=uid) == [[20, 20], True]


def test_memory_past_the_limit_is_a_memory_error_and_the_process_goes_on() -> None:
    def action() -> object:
        apply()
        try:
            bytearray(1_000 * MB)  # more than this copy of the tests' process can have left to use again
        except MemoryError:
            return len(bytearray(40 * MB))
        return "the limit did not hold"

    assert in_child(action) == 40 * MB


def test_the_limit_counts_from_what_the_process_already_had() -> None:
    def action() -> object:
        kept = bytearray(100 * MB)
        apply()
        return [len(kept), len(bytearray(50 * MB))]

    assert in_child(action) == [100 * MB, 50 * MB]


def test_the_runtime_may_raise_the_limit_by_the_headroom_and_no_further(uid: int | None) -> None:
    def action() -> object:
        capabilities.apply()  # CAP_SYS_RESOURCE raises any limit
        apply(baseline_bytes=0)
        resource.setrlimit(resource.RLIMIT_DATA, (96 * MB, 96 * MB))
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (97 * MB, 97 * MB))
        except ValueError:
            return "refused"
        return "raised"

    assert in_child(action, uid=uid) == "refused"


@pytest.mark.sampled(0)
def test_a_fork_bomb_meets_the_process_limit() -> None:
    if os.geteuid() != 0:
        pytest.skip("the count of this user's processes is not the test's to know")

    def action() -> object:
        apply(processes=5)
        children = []
        try:
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    signal.pause()
                    os._exit(0)
                children.append(pid)
        except OSError as error:
            return [error.errno, len(children)]
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        return "the limit did not hold"

    assert in_child(action, uid=61_999) == [errno.EAGAIN, 4]


def test_a_file_past_the_limit_is_an_error(tmp_path: Path) -> None:
    def action() -> object:
        apply()
        try:
            (tmp_path / "file").write_bytes(bytes(2 * MB))
        except OSError as error:
            return error.errno
        return "the limit did not hold"

    assert in_child(action) == errno.EFBIG
    assert (tmp_path / "file").stat().st_size <= MB


def test_descriptors_past_the_limit_are_an_error() -> None:
    def action() -> object:
        apply()
        opened = []
        try:
            for _ in range(100):
                opened.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            return [error.errno, max(opened)]
        return "the limit did not hold"

    assert in_child(action) == [errno.EMFILE, 63]


def test_it_is_killed_before_others_where_memory_ends(uid: int | None) -> None:
    def action() -> object:
        apply()
        return int(os.read(os.open("/proc/self/oom_score_adj", os.O_RDONLY), 10))

    assert in_child(action, uid=uid) == rlimits.OOM_SCORE


def test_started_programs_inherit_the_limits() -> None:
    def action() -> object:
        apply()
        shown = subprocess.run(["/bin/sh", "-c", "ulimit -n; ulimit -c"], capture_output=True, text=True, check=True)
        return shown.stdout.split()

    assert in_child(action) == ["64", "0"]  # a core's size in blocks of 512 bytes


def test_signals_and_timers_past_the_limit_are_an_error() -> None:
    def action() -> object:
        apply()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
        libc = ctypes.CDLL(None, use_errno=True)
        queued = 0
        while queued < 5000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0:
            queued += 1
        timer = ctypes.c_void_p()
        made = libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(timer))
        return [queued <= rlimits.PENDING_SIGNALS, made, errno.errorcode[ctypes.get_errno()]]

    assert in_child(action) == [True, -1, "EAGAIN"]


def test_vm_data_grows_with_private_memory_only() -> None:
    if rlimits.vm_data() == 0:
        pytest.skip("/proc is not readable here")

    def action() -> object:
        before = rlimits.vm_data()
        private = mmap.mmap(-1, 32 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with_private = rlimits.vm_data()
        shared = mmap.mmap(-1, 32 * MB)
        grown = [with_private - before, rlimits.vm_data() - with_private]
        private.close()
        shared.close()
        return [grown[0] >= 32 * MB, grown[1] < MB]

    assert in_child(action) == [True, True]


def test_vm_data_is_zero_where_proc_cannot_be_read() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can enter an empty root directory")

    def action() -> object:
        os.chroot("/dev")
        return rlimits.vm_data()

    assert in_child(action) == 0
