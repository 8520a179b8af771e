"""The channel between trusted parties (host, nursery, zygote, init): small JSON messages with descriptors."""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence

from cellblock.hosting import sockets
from cellblock.hosting.sockets import pair as pair
from cellblock.text import dumps

MAX_MESSAGE = 64 * 1024
MAX_DESCRIPTORS = 32

SHOW = {"show": True}
"""Asks a frozen copy for a file of `/proc` that tells what it holds, over a socket that comes along."""
APART = {"apart": True}
"""Asks a frozen copy, over a socket that comes along, for one that no cell can have had."""
READY, FAILED = b"ready", b"failed"
"""Messages of a frozen copy once it is one, and of its process where there will be none."""

_CREDENTIALS = struct.Struct("3i")
_SCM_CREDENTIALS = 2
STAMPED = socket.CMSG_SPACE(_CREDENTIALS.size)
"""Room for the kernel's stamp, and none for descriptors, which a cell might send along: those are closed unseen."""


def send(
    channel: socket.socket, message: Mapping[str, object], descriptors: Sequence[int] = (), *, flags: int = 0
) -> None:
    """Send one message; the receiver gets copies of the descriptors."""
    send_packed(channel, packed(message), descriptors, flags=flags)


def packed(message: Mapping[str, object]) -> bytes:
    """A message as it is sent: two that were made alike are alike."""
    return dumps(message).encode()


def send_packed(channel: socket.socket, message: bytes, descriptors: Sequence[int] = (), *, flags: int = 0) -> None:
    """Send one message that was packed."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    channel.sendmsg([message], rights, flags)


def tell(channel: socket.socket, message: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
    """Send one message to who may not listen, or be gone: then it is dropped. Never waits."""
    with contextlib.suppress(BlockingIOError, ConnectionError):
        send(channel, message, descriptors, flags=socket.MSG_DONTWAIT)


def receive(channel: socket.socket) -> tuple[dict[str, object] | None, list[int]]:
    """The next message and its descriptors, which are the caller's to close; None when the other end is gone.

    OSError where this process has no room for one of them: the message is lost then, with the others.
    """
    try:
        data, ancillary, flags, _ = _take(channel)
    except ConnectionResetError:  # closed with something of ours unread: told once, before what is still to be read
        data, ancillary, flags, _ = _take(channel)
    descriptors = sent_with(ancillary)[1]
    if flags & socket.MSG_CTRUNC:
        close_all(descriptors)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return (_read(data) if data else None), descriptors


def sent_with(ancillary: Sequence[tuple[int, int, bytes]]) -> tuple[int, list[int]]:
    """The process that sent a message, by the kernel's stamp, 0 without one; and the descriptors that it sent along,
    which are the caller's to close.
    """
    sender, descriptors = 0, array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == _SCM_CREDENTIALS:
            sender = _CREDENTIALS.unpack(payload)[0]
        elif level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    return sender, list(descriptors)


def close_all(descriptors: Sequence[int]) -> None:
    """Close what came along and nobody takes."""
    for descriptor in descriptors:
        os.close(descriptor)


def heard(channel: socket.socket) -> dict[str, object] | None:
    """The next message of one who sends no descriptors; any that come along are closed before they are ours."""
    try:
        data = channel.recv(MAX_MESSAGE)
    except ConnectionResetError:
        data = channel.recv(MAX_MESSAGE)
    return _read(data) if data else None


def told(channel: socket.socket) -> list[dict[str, object]]:
    """Messages that came on a channel that does not block since the last call. At its end it is closed."""
    messages = []
    while channel.fileno() >= 0:
        try:
            message = heard(channel)
        except BlockingIOError:
            break
        except (OSError, json.JSONDecodeError):
            message = None
        if message is None:
            channel.close()
            break
        messages.append(message)
    return messages


def _read(data: bytes) -> dict[str, object]:
    """A message; JSONDecodeError for anything else, which whoever gets out of a container's inner walls may send."""
    try:
        message = json.loads(data)
    except (RecursionError, UnicodeDecodeError):
        message = None
    if not isinstance(message, dict):
        raise json.JSONDecodeError("no message", ascii(data[:40]), 0)
    return message


def take(channel: socket.socket, message: bytes) -> bool:
    """True if the next message is this one, packed; then it is taken. Never waits.

    For one without descriptors. Costs a tenth of `receive`, which has to find out what it says.
    """
    try:
        if channel.recv(len(message) + 1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != message:
            return False
    except OSError:  # there is none, or the other end is gone
        return False
    channel.recv(len(message), socket.MSG_DONTWAIT)
    return True


def introduce(init: socket.socket) -> socket.socket:
    """Over init's channel, have it expect the listener of a worker that is to be made; the end for that worker."""
    supervised, supervisor = pair()
    with supervisor:
        send(init, {"do": "supervise"}, [supervisor.fileno()])
    return supervised


def ready(channel: socket.socket) -> int:
    """Process whose next message says that it is ready; 0 for none.

    The kernel stamped the process, as the channel has SO_PASSCRED. The message stays where it is.
    """
    with contextlib.suppress(OSError):
        data, ancillary, _, _ = channel.recvmsg(
            len(READY), STAMPED, socket.MSG_CMSG_CLOEXEC | socket.MSG_PEEK | socket.MSG_DONTWAIT
        )
        if data == READY:
            return sent_with(ancillary)[0]
    return 0


def given(channel: socket.socket, process: int) -> socket.socket | None:
    """A socket that this process has sent, as the kernel says; None where there is no such message yet.

    The channel has SO_PASSCRED. What others send is closed and dropped. OSError when nobody can send one any more.
    """
    try:
        data, ancillary, _, _ = channel.recvmsg(
            len(READY), STAMPED + socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
        )
    except BlockingIOError:
        return None
    sender, found = sent_with(ancillary)
    if sender == process and len(found) == 1:
        return sockets.adopted(found[0])
    close_all(found)
    if not data:
        raise OSError("nobody holds the other end any more")
    return None


def _take(channel: socket.socket) -> tuple[bytes, list[tuple[int, int, bytes]], int, object]:
    return channel.recvmsg(MAX_MESSAGE, socket.CMSG_SPACE(MAX_DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC)
