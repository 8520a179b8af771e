"""What the sockets of a network namespace hold, as init counts it: in a namespace of the test's own."""

import os
import socket
from collections.abc import Callable

import pytest
from child import be_alone, in_child

from cellblock.worker.confine import namespaces
from cellblock.worker.confine.syscalls import CLONE_NEWNET, CLONE_NEWUSER, unshare
from cellblock.worker.init import sockets

MB = 1 << 20


def in_namespace(action: Callable[[], object]) -> object:
    """What `action` returns in a child with a network namespace of its own, as JSON; its exception as text."""

    def alone() -> object:
        be_alone()
        unshare(CLONE_NEWUSER | CLONE_NEWNET)
        return action()

    return in_child(alone)


def fill(one: socket.socket) -> int:
    """Send until it would block; how many bytes that were."""
    one.setblocking(False)
    sent = 0
    try:
        while True:
            sent += one.send(bytes(16384))
    except BlockingIOError:
        return sent


def pairs(count: int) -> list[socket.socket]:
    return [end for _ in range(count) for end in socket.socketpair()]


def test_few_sockets_are_not_looked_at_one_by_one() -> None:
    def action() -> object:
        sockets.bound()
        ends = pairs(3)
        fill(ends[0])
        return sockets.Sockets().account().total

    assert in_namespace(action) == 0


def test_what_was_sent_and_not_read_is_counted() -> None:
    def action() -> object:
        ends = pairs(60)
        counter = sockets.Sockets()
        empty = counter.account()
        sent = sum(map(fill, ends))
        full = counter.account()
        held = {one.fileno(): full.by_inode[os.fstat(one.fileno()).st_ino] for one in ends}
        return [empty.total < MB, len(empty.by_inode), sent <= full.total < 4 * sent, sum(held.values()) == full.total]

    assert in_namespace(action) == [True, 120, True, True]


def test_a_closed_socket_counts_as_full_while_its_message_waits() -> None:
    def action() -> object:
        ends = pairs(60)
        sent = sum(map(fill, ends[::2]))
        for one in ends[::2]:
            one.close()
        account = sockets.Sockets().account()
        return [len(account.by_inode), account.total >= sent]

    assert in_namespace(action) == [60, True]


def test_datagrams_and_connections_are_counted() -> None:
    def action() -> object:
        namespaces.raise_loopback()
        sockets.bound()
        ends = pairs(60)
        counter = sockets.Sockets()
        before = counter.account().total
        receivers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
        for one in receivers:
            one.bind(("127.0.0.1", 0))
            for _ in range(10):
                one.sendto(bytes(30_000), one.getsockname())
        datagrams = counter.account().total - before
        with socket.create_server(("127.0.0.1", 0)) as server:
            clients = [socket.create_connection(server.getsockname()) for _ in range(20)]
            sent = sum(map(fill, clients))
            connections = counter.account().total - before - datagrams
        assert len(ends) == 120
        return [datagrams > 20 * 60_000, connections >= sent]

    assert in_namespace(action) == [True, True]


def test_sockets_that_are_not_used_hold_little() -> None:
    def action() -> object:
        unused = [socket.socket() for _ in range(100)]
        unused += [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(100)]
        account = sockets.Sockets().account()
        return [len(unused), account.total < MB]

    assert in_namespace(action) == [200, True]


def test_where_the_kernel_has_no_account_each_counts_as_full(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = sockets._Table(b"\xff" * 56, bytes=0, inode=0, memory=0)
    monkeypatch.setattr(sockets, "_UNIX", missing)

    def action() -> object:
        ends = pairs(60)
        return [len(ends), sockets.Sockets().account().total >= 120 * 212_992]

    assert in_namespace(action) == [120, True]


def test_bounds_hold_for_the_namespace() -> None:
    def action() -> object:
        sockets.bound()
        with open("/proc/self/net/../../sys/net/ipv4/tcp_rmem") as file:
            return file.read().split()

    assert in_namespace(action) == ["4096", "65536", "262144"]
