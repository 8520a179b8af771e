"""A scribe: a disposable copy of a frozen copy, which writes down what the session's names hold.

What it pickles runs the cells' own code, so nothing is left to it that such code could harm. It has no descriptor but
its socket, whose other end believes nothing; memory that was shared becomes its own; it opens files to read them, and
none of the session's; it starts, signals and meets no other process. It ends when it has said what it found.
"""

from __future__ import annotations

import gc
import os
import resource
import socket
import sys
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NoReturn

from cellblock.values.represent import type_name
from cellblock.walls import Unavailable
from cellblock.wire import saving
from cellblock.worker.checkpoint import owning
from cellblock.worker.checkpoint.written import Written
from cellblock.worker.confine import landlock, layout, seccomp
from cellblock.worker.saving import save

_FILTER = seccomp.build_for_scribe()
_NICE = 10
_NO_DEVICE = -1
_OWN = {layout.HOME.removeprefix("/"), "workspace", "tmp", "proc"}
"""Of the root, what leads to files of the session's."""
_MOST_WORDS = 1000


def write(end: int, message: Mapping[str, object], namespace: dict[str, Any], written: Written) -> NoReturn:
    """In the copy that is to be a scribe: wall in, save, end. `end` is its socket, `message` its limits.

    The index begins with a line that names the copy, by which `written` tells what is as it was then.
    """
    status = 1
    try:
        gc.disable()
        stream = socket.socket(fileno=end)
        teller = _Teller(stream)
        try:
            walls = _wall_in(end, int(str(message["seconds"])))
            teller.say(saving.HELLO, saving.pack_words({"walls": walls}))
            index, teller.known = saving.unpack_beginning(_begun(stream))
            tag, _, before = index.partition(b"\n")
            record = save(namespace, put=teller.put, index=before, unchanged=written.since(bytes.fromhex(tag.decode())))
            teller.say(saving.INDEX, written.tag.hex().encode() + b"\n" + record.pop("index").encode())
            teller.say(saving.RECORD, saving.pack_words(record))
            status = 0
        except BaseException as error:
            teller.say(saving.FAILED, saving.pack_words({"reason": _said(error)}))
    finally:
        os._exit(status)


def _wall_in(end: int, seconds: int) -> list[str]:
    """Give everything away that code could do harm with; the walls' names. OSError where that cannot be done."""
    _close_all_but(end)
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    owning.make_own(_NO_DEVICE)
    put_up = [
        landlock.apply(read_only=_readable(), read_write=(), connect_ports=None, scope=False),
        seccomp.apply(_FILTER),
    ]
    for wall in put_up:
        if isinstance(wall, Unavailable):
            raise OSError(f"{wall.mechanism}: {wall.reason}")
    return [wall.mechanism for wall in put_up]


def _close_all_but(end: int) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, end)
    os.closerange(end + 1, 2**31 - 1)


def _readable() -> list[str]:
    """The system, the interpreter and its packages, and no file of the session's."""
    places = [f"/{name}" for name in os.listdir("/") if name not in _OWN]
    places += (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    return [place for place in dict.fromkeys(places) if os.path.exists(place)]


class _Teller:
    """Speaks on the socket."""

    def __init__(self, stream: socket.socket) -> None:
        self._send = stream.sendall
        self.known: set[str] = set()

    def say(self, kind: bytes, data: bytes) -> None:
        self._send(saving.frame(kind, len(data)))
        self._send(data)

    def put(self, chunk: bytes | memoryview) -> str:
        """The address of at most `CHUNK_BYTES`, which are sent where the host has not got them."""
        address = f"sha256-{sha256(chunk).hexdigest()}"
        if address not in self.known:
            self._send(saving.frame(saving.CHUNK, len(chunk)))
            self._send(chunk)
            self.known.add(address)
        return address


def _begun(stream: socket.socket) -> bytes:
    kind, length = saving.HEADER.unpack(_received(stream, saving.HEADER.size))
    if kind != saving.BEGIN:
        raise OSError("the host said something else")
    return _received(stream, length)


def _received(stream: socket.socket, length: int) -> bytes:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = stream.recv_into(view)
        if not count:
            os._exit(0)
        view = view[count:]
    return bytes(data)


def _said(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "the session's memory limit leaves no room to save in (raise max_memory_mb)"
    try:
        return f"{type_name(error)}: {error}"[:_MOST_WORDS]
    except BaseException:  # of a class that the cells made
        return "an exception that cannot be shown"
