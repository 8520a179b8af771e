"""A scribe: a disposable copy of a frozen copy, which writes down what the session's names hold.

What it pickles runs the cells' own code, behind the walls of `sealing`. The other end of its socket believes nothing.
"""

from __future__ import annotations

import gc
import os
import socket
from hashlib import sha256
from typing import Any, NoReturn

from cellblock.hosting import sockets
from cellblock.text import type_name
from cellblock.wire import saving
from cellblock.worker.checkpoint.written import Written
from cellblock.worker.saving.facts import sayable
from cellblock.worker.saving.snapshot import save
from cellblock.worker.saving.trial import Trial
from cellblock.worker.saving.work import Work


def write(
    end: int, walls: list[str] | Exception, namespace: dict[str, Any], written: Written, standing: dict[str, object]
) -> NoReturn:
    """In a copy that has walled itself in, or could not: save, load what is new once, end. `end` is its socket.

    The index begins with a line that names the copy, by which `written` tells what is as it was then. `standing` are
    settings of the cells' that are others in the copy.
    """
    status = 1
    try:
        gc.disable()
        socket.setdefaulttimeout(None)  # behind its walls no socket can be set to block
        stream = sockets.adopted(end, sockets.STREAM)
        teller = _Teller(stream)
        try:
            if isinstance(walls, Exception):
                raise walls
            teller.say(saving.HELLO, saving.pack_words({"walls": walls}))
            index, teller.known, teller.had, left_out = saving.unpack_beginning(_begun(stream))
            tag, _, before = index.partition(b"\n")
            unchanged, trial = written.since(bytes.fromhex(tag.decode())), Trial(teller.new.__contains__)
            teller.work = Work(teller.say_work, left_out)
            record = save(
                namespace,
                put=teller.put,
                index=before,
                unchanged=unchanged,
                trial=trial,
                standing=standing,
                work=teller.work,
            )
            teller.say(saving.INDEX, written.tag.hex().encode() + b"\n" + record.pop("index").encode())
            teller.say(saving.RECORD, saving.pack_record(record))
            status = 0
            trial.run(record, namespace, teller.say_tried)
            teller.say_tried("", [])
        except BaseException as error:
            if not status:
                raise  # of the trial: what was said stands
            teller.say(saving.FAILED, saving.pack_words({"reason": sayable(_said(error))}))
    finally:
        os._exit(status)


class _Teller:
    """Speaks on the socket."""

    def __init__(self, stream: socket.socket) -> None:
        self._send = stream.sendall
        self.work = Work()
        self.known: set[str] = set()
        self.had: set[str] = set()
        """Addresses that the host got of an earlier scribe of this state."""
        self.new: set[str] = set()
        """Of what was put away, what the host did not have."""

    def say(self, kind: bytes, data: bytes) -> None:
        self._send(saving.frame(kind, len(data)))
        self._send(data)

    def say_work(self, work: str, holds: str) -> None:
        """Say which piece of work is begun, or, by a fingerprint of what it holds, left out."""
        self.say(saving.WORK, saving.pack_words({"work": work, "holds": holds}))

    def say_tried(self, loading: str, failed: list[list[str]]) -> None:
        """Say which group is loaded next, and what failed before."""
        failed = [[key, sayable(reason)] for key, reason in failed]
        self.say(saving.TRIED, saving.pack_words({"loading": loading, "failed": failed}))

    def put(self, chunk: bytes | memoryview) -> str:
        """The address of at most `CHUNK_BYTES`, which are sent where the host has not got them."""
        address = f"sha256-{sha256(chunk).hexdigest()}"
        if address not in self.known:
            self.known.add(address)
            self.new.add(address)
            if address not in self.had:
                self._send(saving.frame(saving.CHUNK, len(chunk)))
                self._send(chunk)
                return address
        self.work.go_on()
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
        return f"{type_name(error)}: {error}"
    except BaseException:  # of a class that the cells made
        return "an exception that cannot be shown"
