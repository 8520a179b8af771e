"""The references: what a process that runs code for another costs without walls, records and limits."""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from cellblock.worker.environment import ENVIRONMENT

_PIECE = 64 * 1024
_LENGTH = struct.Struct("<Q")


class BareWorker:
    """A fork of this process that compiles and executes what it is sent, over a SOCK_SEQPACKET pair.

    Make it before this process starts threads.
    """

    def __init__(self) -> None:
        self._socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._stdout, stdout_end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            os.dup2(stdout_end, 1)
            try:
                _serve(end)
            finally:
                os._exit(0)
        end.close()
        os.close(stdout_end)

    def run(self, source: str) -> None:
        """Execute source to its end."""
        self._socket.send(b"r" + source.encode())
        self._socket.recv(_PIECE)

    async def run_async(self, source: str) -> None:
        """The same, waiting on the running event loop."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        await loop.sock_sendall(self._socket, b"r" + source.encode())
        await loop.sock_recv(self._socket, _PIECE)

    def run_printing(self, source: str) -> str:
        """Execute source to its end; what it printed, which must fit a pipe."""
        self._socket.send(b"p" + source.encode())
        self._socket.recv(_PIECE)
        return os.read(self._stdout, _PIECE).decode()

    def value(self, name: str) -> object:
        """A copy of what a name is bound to."""
        self._socket.send(b"v" + name.encode())
        (length,) = _LENGTH.unpack(self._socket.recv(_PIECE))
        data = bytearray()
        while len(data) < length:
            data += self._socket.recv(_PIECE)
        return pickle.loads(data)

    def calls(self, count: int) -> list[float]:
        """Have it call this process so often; the seconds of each call as the caller counts them."""
        import msgpack

        self._socket.send(b"c" + str(count).encode())
        for _ in range(count):
            number, name = msgpack.unpackb(self._socket.recv(_PIECE))
            self._socket.send(msgpack.packb([number, ["NameError", f"no tool {name!r}"]]))
        seconds: list[float] = pickle.loads(self._socket.recv(_PIECE))
        return seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        os.close(self._stdout)
        os.waitpid(self._pid, 0)


def _serve(end: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
    namespace: dict[str, object] = {}
    while request := end.recv(_PIECE):
        command, text = request[:1], request[1:].decode()
        if command == b"v":
            data = pickle.dumps(namespace[text], protocol=5)
            end.send(_LENGTH.pack(len(data)))
            for at in range(0, len(data), _PIECE):
                end.send(data[at : at + _PIECE])
            continue
        if command == b"c":
            end.send(pickle.dumps(list(_call(end, int(text)))))
            continue
        exec(compile(text, "<cell>", "exec"), namespace)
        if command == b"p":
            sys.stdout.flush()
        end.send(b"done")


def _call(end: socket.socket, count: int) -> Iterator[float]:
    import msgpack

    for number in range(count):
        began = time.perf_counter()
        end.send(msgpack.packb([number, "nothing"]))
        msgpack.unpackb(end.recv(_PIECE))
        yield time.perf_counter() - began


class BareImage:
    """A process with packages imported, started as a zygote is, that forks on demand and does nothing else."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        imports = "".join(f"import {name}\n" for name in ("cellblock.worker.family.zygote", *packages))
        with end:
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-c", imports + _FORKING, str(end.fileno())],
                pass_fds=[end.fileno()],
                env={**os.environ, **ENVIRONMENT},
            )
        if self._socket.recv(1) != b"!":
            raise RuntimeError("the reference image did not start")

    def fork(self) -> None:
        """Have a child forked and wait for its first word."""
        self._socket.send(b"f")
        self._socket.recv(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.wait()


_FORKING = """
import gc, os, signal, socket, sys
end = socket.socket(fileno=int(sys.argv[1]))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gc.collect()
gc.freeze()
end.send(b"!")
while end.recv(1):
    if os.fork() == 0:
        end.send(b"!")
        os._exit(0)
"""
