"""A proxy in front of an HTTP server on loopback, which fails to order: a real server does not.

with FailingProxy(("127.0.0.1", 9000)) as proxy:
    proxy.address                # for the client
    with proxy.failing("cut"):   # each answer breaks off in its middle
        ...
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

_DATED = f'ETag: "g"\r\nLast-Modified: {formatdate(usegmt=True)}\r\n'


class FailingProxy:
    """One request for each connection. Its errors repeat the request's credentials and the `secret`, as S3's may."""

    def __init__(self, server: tuple[str, int], secret: str = "") -> None:
        self.server, self.secret = server, secret
        self.how = ""
        self.released = threading.Event()
        # keeps the port while nobody listens on it
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        self._listen()

    @property
    def address(self) -> str:
        host, port = self._port.getsockname()
        return f"http://{host}:{port}"

    @contextmanager
    def failing(self, how: str) -> Iterator[None]:
        """Fail from now to the end of the block.

        refused: nobody listens. reset, stalled: requests do not reach the server. cut, slow: its answer breaks off,
        or comes in pieces. garbage: a 200 to a request that does not reach it. denied, or a status: an error instead.
        """
        self.how = how
        self.released.clear()
        if how == "refused":
            self._close()
        try:
            yield
        finally:
            self.how = ""
            self.released.set()
            if how == "refused":
                self._listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._port.close()

    def _listen(self) -> None:
        self._listener = _Listener(self._port.getsockname(), type("Bound", (_Connection,), {"proxy": self}))
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def _close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


class _Listener(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


class _Connection(StreamRequestHandler):
    proxy: FailingProxy

    def handle(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not lines:
            return
        named = (line.decode("latin-1").partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in named}
        request = b"".join([*lines, b"\r\n", self.rfile.read(int(headers.get("content-length", 0)))])
        match self.proxy.how:
            case "":
                self.wfile.write(self._passed_on(request))
            case "slow":
                answer = self._passed_on(request)
                piece = len(answer) // 20 + 1
                for start in range(0, len(answer), piece):
                    time.sleep(0.01)
                    self.wfile.write(answer[start : start + piece])
            case "cut":
                answer = self._passed_on(request)
                self.wfile.write(answer[: len(answer) // 2])
            case "stalled":
                self.proxy.released.wait()
            case "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            case "garbage":
                self._answer(200, b"\xff not what was asked for")
            case "denied":
                self._error(403, "SignatureDoesNotMatch", headers)
            case status:
                self._error(int(status), "InternalError", headers)

    def _passed_on(self, request: bytes) -> bytes:
        """The server's whole answer: it ends the connection after each."""
        with socket.create_connection(self.proxy.server) as server, server.makefile("rb") as answer:
            server.sendall(request)
            return answer.read()

    def _error(self, status: int, code: str, headers: dict[str, str]) -> None:
        told = escape(f"{headers.get('authorization', '')} {self.proxy.secret}")
        self._answer(status, f"<Error><Code>{code}</Code><Message>{told}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} .\r\n{_DATED}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.wfile.write(head.encode() + body)
