"""Sockets of this network namespace: their number, and the memory of each by the kernel's own account.

The count is a cheap look. The account is that of sock_diag(7), which needs no privilege. It does not list unix
sockets that are closed while a message of theirs waits to be read, nor those that wait to be accepted: each of these
counts as full, as does each socket of a kind that the kernel has no account of.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_SOCK_DIAG = 4
_BY_FAMILY, _REQUEST_DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_MEMORY = struct.Struct("=8I")  # received, its bound, sent, its bound, forward, queued, options, backlog
_EVERY_STATE = 0xFFFFFFFF
_TCP, _UDP = 6, 17

_BOUNDS = {
    "ipv4/tcp_rmem": "4096 65536 262144",
    "ipv4/tcp_wmem": "4096 16384 262144",
    "ipv4/tcp_max_tw_buckets": "1024",
    "core/optmem_max": "20480",
}
_USUAL_BYTES = 212_992
_OBJECT_BYTES = 3072
"""A socket, its inode and its file, with nothing in it."""
_UNSEEN_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Table:
    """Layout of an answer of the diagnostics: the inode's place in it, and its memory among the attributes."""

    request: bytes
    bytes: int
    inode: int
    memory: int


def _inet(family: int, protocol: int) -> _Table:
    request = struct.pack("=BBBBI48x", family, protocol, 1 << 6, 0, _EVERY_STATE)  # with INET_DIAG_SKMEMINFO
    return _Table(request, bytes=72, inode=68, memory=7)


_UNIX = _Table(
    struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _EVERY_STATE, 0, 0x20, 0xFFFFFFFF, 0xFFFFFFFF),  # UDIAG_SHOW_MEMINFO
    bytes=16,
    inode=4,
    memory=5,
)
_INTERNET = [_inet(family, protocol) for family in (socket.AF_INET, socket.AF_INET6) for protocol in (_TCP, _UDP)]


@dataclass(slots=True)
class Account:
    """Bytes that sockets hold: in all, and by inode those that a descriptor leads to."""

    total: int = 0
    by_inode: dict[int, int] = field(default_factory=dict)


def bound() -> None:
    """Bound what each socket of the namespace may hold. Needs CAP_NET_ADMIN over it.

    What cannot be set keeps its bound, and the sockets are looked at one by one from fewer on.
    """
    for name, value in _BOUNDS.items():
        with contextlib.suppress(OSError), open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write(value)


class Sockets:
    """The sockets of the namespace that the process is in."""

    def __init__(self) -> None:
        ends = max(_setting("core/wmem_default", _USUAL_BYTES), _setting("core/rmem_default", _USUAL_BYTES))
        tcp = _setting("ipv4/tcp_rmem", 0) + _setting("ipv4/tcp_wmem", 0)
        self._full = max(3 * ends // 2, tcp)  # the last packet overshoots
        self._few = _UNSEEN_BYTES // self._full

    def account(self) -> Account:
        """Memory that the sockets hold; empty while they are so few that it is little."""
        used = _words("/proc/self/net/sockstat", b"sockets:", 1)
        account = Account()
        if used <= self._few:
            return account
        unix = sum(_words("/proc/self/net/protocols", name, 1) for name in (b"UNIX", b"UNIX-STREAM"))
        unlisted = unix - (_enter(account, _UNIX) or 0)
        if any(_enter(account, table) is None for table in _INTERNET):
            unlisted += used - unix
        account.total += max(0, unlisted) * self._full
        return account


def _enter(account: Account, table: _Table) -> int | None:
    """Add the sockets of a table; how many they are, or None where the kernel has no account of them."""
    count = 0
    try:
        for inode, held in _dump(table):
            count += 1
            account.total += held
            if inode:
                account.by_inode[inode] = held
    except OSError:
        return None
    return count


def _dump(table: _Table) -> Iterator[tuple[int, int]]:
    """Each socket's inode, 0 for one that is closed, and the bytes it holds."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as diagnostics:
        length = _HEADER.size + len(table.request)
        diagnostics.send(_HEADER.pack(length, _BY_FAMILY, _REQUEST_DUMP, 0, 0) + table.request)
        while True:
            answer, place = diagnostics.recv(1 << 17), 0
            while place < len(answer):
                length, kind, *_ = _HEADER.unpack_from(answer, place)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    (code,) = struct.unpack_from("=i", answer, place + _HEADER.size)
                    raise OSError(-code, os.strerror(-code))
                (inode,) = struct.unpack_from("=I", answer, place + _HEADER.size + table.inode)
                yield inode, _held(answer, place + _HEADER.size + table.bytes, place + length, table.memory)
                place += length + 3 & ~3


def _held(answer: bytes, place: int, end: int, wanted: int) -> int:
    while place + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(answer, place)
        if kind == wanted:
            received, _, sent, _, _, queued, options, backlog = _MEMORY.unpack_from(answer, place + _ATTRIBUTE.size)
            return int(received + max(sent, queued) + options + backlog + _OBJECT_BYTES)
        place += max(length + 3 & ~3, _ATTRIBUTE.size)
    return _OBJECT_BYTES


def _setting(name: str, usual: int) -> int:
    """The last number of a setting; `usual` where an older kernel shows it to its first namespace only."""
    try:
        with open(f"/proc/sys/net/{name}", "rb") as file:
            return int(file.read().split()[-1])
    except OSError:
        return usual


def _words(path: str, name: bytes, place: int) -> int:
    """A number in the line of a table that begins with a name: that after so many words."""
    try:
        with open(path, "rb") as file:
            for line in file:
                words = line.split()
                if words and words[0] == name:
                    return int(words[place + 1])
    except OSError:
        return 0
    return 0
