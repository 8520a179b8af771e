"""The engine's own sockets: what a program sets or replaces in the module `socket` for its network is not for them.

They block until they are told otherwise, and never have the number of a standard stream that the program has closed.
"""

from __future__ import annotations

import socket
from os import close

_FIRST_NUMBER = 3
Socket: type[socket.socket] = next((one for one in socket.socket.__mro__ if one.__module__ == "socket"), socket.socket)
"""The class itself, whatever guard of a test suite stands in its place."""

if hasattr(socket, "AF_UNIX"):  # not on Windows, where commands import this module too
    from _socket import socketpair
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    PACKETS = socket.AF_UNIX, socket.SOCK_SEQPACKET
    STREAM = socket.AF_UNIX, socket.SOCK_STREAM
    INTERNET = socket.AF_INET, socket.SOCK_STREAM

Kind = tuple[socket.AddressFamily, socket.SocketKind]


def pair(kind: Kind | None = None) -> tuple[socket.socket, socket.socket]:
    """Two connected ends, of `PACKETS` unless another kind is asked for."""
    family, how = kind or PACKETS
    ours, theirs = socketpair(family, how)
    return adopted(ours.detach(), kind), adopted(theirs.detach(), kind)


def adopted(descriptor: int, kind: Kind | None = None) -> socket.socket:
    """A socket over a descriptor, which it owns from now on."""
    if descriptor < _FIRST_NUMBER:
        low, descriptor = descriptor, fcntl(descriptor, F_DUPFD_CLOEXEC, _FIRST_NUMBER)
        close(low)
    family, how = kind or PACKETS
    one = Socket(family, how, 0, descriptor)
    if one.gettimeout() is not None:  # by default; which is a flag in the kernel, of whoever is sent the descriptor
        one.settimeout(None)
    return one
