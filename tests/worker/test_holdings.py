"""What init reads of a process in /proc: here of a child that the test makes hold something."""

import ctypes
import fcntl
import mmap
import os
import resource
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from family_tree import soon

from cellblock.worker import holdings
from cellblock.worker.confine.syscall_numbers import NUMBERS
from cellblock.worker.confine.syscalls import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl
from cellblock.worker.holdings import Stand

MB = 1 << 20


@contextmanager
def child(hold: Callable[[], object]) -> Iterator[int]:
    """A process that holds what the function returns, for as long as the block runs."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        held = hold()
        os.write(writing, b"x")
        while held is not None:
            signal.pause()
        os._exit(0)
    try:
        os.read(reading, 1)
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)


@pytest.mark.sampled(0)
def test_memory_is_what_is_written_not_what_is_reserved() -> None:
    def reserved(*, written: bool) -> mmap.mmap:
        mapping = mmap.mmap(-1, 64 * MB, mmap.MAP_PRIVATE)  # not of the heap, which may have room for it
        if written:
            mapping.write(b"x" * (64 * MB))
        return mapping

    with child(lambda: reserved(written=False)) as empty, child(lambda: reserved(written=True)) as full:
        assert holdings.memory(full) - holdings.memory(empty) > 60 * MB


@pytest.mark.sampled(0)
def test_memory_that_is_read_only_by_now_and_page_tables_count() -> None:
    def page_tables() -> object:
        nothing = mmap.mmap(-1, 1 << 34, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
        return nothing, [nothing[place] for place in range(0, 1 << 34, 2 * MB)]

    with child(lambda: 1) as without, child(page_tables) as with_tables:
        assert holdings.memory(with_tables) - holdings.memory(without) >= 30 * MB


@pytest.mark.sampled(0)
def test_what_forks_share_is_divided_among_them() -> None:
    shared = bytearray(b"x") * (40 * MB)
    with child(lambda: 1) as one, child(lambda: 1):
        assert holdings.memory(one) > 40 * MB
        weight = holdings.weigh(one)
        assert weight is not None
        assert weight.whole > 40 * MB
        assert max(weight.part, weight.alone) < 20 * MB + weight.whole - len(shared)


def test_a_process_whose_first_thread_has_ended_is_seen_through_the_others() -> None:
    def leave() -> object:
        block, pipes = b"x" * (20 * MB), [os.pipe() for _ in range(5)]
        threading.Thread(target=lambda: (threading.Event().wait(), block, pipes)).start()
        return ctypes.CDLL(None).syscall(NUMBERS[os.uname().machine]["exit"], 0)

    pid = os.fork()
    if pid == 0:
        leave()
    try:
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.001)
        assert holdings.memory(pid) > 20 * MB
        assert len(holdings.files(pid).pipes) >= 5
        assert holdings.descriptors(pid) >= 10
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_descriptors_are_told_by_kind() -> None:
    def hold() -> object:
        watcher = select.epoll()
        targets = [os.eventfd(0) for _ in range(7)]
        for number in targets:
            watcher.register(number)
        tables = [os.open("/proc/stat", os.O_RDONLY) for _ in range(4)]
        return [os.pipe() for _ in range(3)], socket.socketpair(), watcher, targets, tables

    with child(lambda: 1) as without, child(hold) as process:
        few, found = holdings.files(without), holdings.files(process)
        assert len(found.pipes - few.pipes) == 4  # and that of the test
        assert len(found.sockets - few.sockets) == 2
        assert found.watched - few.watched == 7
        assert found.tables - few.tables == 4
        assert holdings.descriptors(process) - holdings.descriptors(without) == 2 + 6 + 2 + 1 + 7 + 4


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is hidden from root")
def test_hidden_descriptors_count_as_the_worst() -> None:
    def hold() -> object:
        prctl(PR_SET_DUMPABLE, 0)
        return [os.eventfd(0) for _ in range(40)]

    with child(hold) as process:
        count, found = holdings.descriptors(process), holdings.files(process)
        assert len(found.pipes) == count > 40
        assert found.watched == (count // 2) ** 2


@pytest.mark.sampled(0)
def test_mappings_past_a_number_are_noticed() -> None:
    def many() -> object:
        file = os.open("/proc/self/exe", os.O_RDONLY)
        return [mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ, offset=0) for _ in range(3000)]

    with child(lambda: 1) as few, child(many) as process:
        assert not holdings.has_mappings(few, 2000)
        assert holdings.has_mappings(process, 2000)


def test_mappings_of_files_with_long_paths_are_noticed(tmp_path: Path) -> None:
    """Of these 1,100 lines fit into what is read of the list."""
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    (deep / "f").write_bytes(bytes(4096))

    def many() -> object:
        with open(deep / "f", "rb") as file:
            return [mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ) for _ in range(3000)]

    with child(many) as process:
        assert holdings.has_mappings(process, 2000)


def test_locks_are_counted_by_their_holder(tmp_path: Path) -> None:
    def hold() -> object:
        file = (tmp_path / "locked").open("wb")
        for place in range(9):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * place)
        return file

    with child(hold) as process:
        assert holdings.locks()[process] == 9


def test_time_passes_for_a_process_that_runs_and_for_no_other() -> None:
    with child(lambda: 1) as idle:
        before = holdings.processor_time(idle)
        assert holdings.processor_time(idle) == before > 0
    assert holdings.processor_time(idle) == 0
    mine = holdings.processor_time(os.getpid())
    assert holdings.processor_time(os.getpid()) > mine


def test_a_process_that_is_gone_holds_nothing() -> None:
    with child(lambda: 1) as process:
        pass
    assert (holdings.memory(process), holdings.weigh(process), holdings.descriptors(process)) == (0, None, 0)
    assert holdings.files(process) == holdings.Files()


def test_a_limit_is_read_of_the_process() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    assert holdings.limit(os.getpid(), b"Max processes") == (0 if hard == resource.RLIM_INFINITY else hard)


@contextmanager
def running(work: Callable[[], object]) -> Iterator[int]:
    """A process that does something, and has not said that it has begun."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def spin() -> None:
    while True:
        pass


def test_who_was_stopped_stands_still_until_it_is_continued_or_killed() -> None:
    with running(spin) as pid:
        os.kill(pid, signal.SIGSTOP)
        assert soon(lambda: holdings.stand(pid), Stand.STILL) is Stand.STILL
        os.kill(pid, signal.SIGSTOP)  # this one stays pending
        assert holdings.stand(pid) is Stand.STILL
        os.kill(pid, signal.SIGCONT)
        assert soon(lambda: holdings.stand(pid), Stand.RUNNING) is Stand.RUNNING
        os.kill(pid, signal.SIGKILL)
        assert soon(lambda: holdings.stand(pid), Stand.ENDING) is Stand.ENDING
    assert holdings.stand(pid) is Stand.ENDING


def test_one_thread_that_runs_is_enough_not_to_stand_still() -> None:
    def leave() -> None:
        threading.Thread(target=spin).start()
        ctypes.CDLL(None).syscall(NUMBERS[os.uname().machine]["exit"], 0)

    with running(leave) as pid:
        assert soon(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0], "Z") == "Z"
        assert holdings.stand(pid) is Stand.RUNNING
        os.kill(pid, signal.SIGSTOP)
        assert soon(lambda: holdings.stand(pid), Stand.STILL) is Stand.STILL


def test_who_has_yet_to_leave_the_kernel_is_about_to_stop() -> None:
    def vfork() -> None:
        clone, vfork = NUMBERS[os.uname().machine]["clone"], 0x4000
        if ctypes.PyDLL(None).syscall(clone, vfork | signal.SIGCHLD, 0, 0, 0, 0) == 0:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pause()

    with running(vfork) as pid:
        assert soon(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0], "D") == "D"
        os.kill(pid, signal.SIGSTOP)
        assert holdings.stand(pid) is Stand.STOPPING
