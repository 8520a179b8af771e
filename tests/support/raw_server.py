"""An HTTP server on loopback that answers with bytes of a test's own, and keeps what came on each of its connections.

with raw_server(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok", stays=True) as server:
    ...                        # network=[server.place]
server.came
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

RESETS = b"\x00resets"
"""At the end of an answer: the server breaks the connection off instead of ending it."""


@dataclass(frozen=True)
class RawServer:
    """A server that runs: its address, as `network=` takes it, and the bytes that came, by connection."""

    place: str
    came: list[bytes] = field(default_factory=list)


@contextlib.contextmanager
def raw_server(*answers: bytes, stays: bool = False, waits_for: bytes = b"\r\n\r\n") -> Iterator[RawServer]:
    """Answer a request that ends in `waits_for` with the first answer, what comes next with the second, and so on.

    The last one is for all that comes after. A server that `stays` ends a connection when the client does, no sooner.
    """

    def serve(client: socket.socket) -> None:
        index = len(running.came)
        running.came.append(b"")
        left = [*answers]
        with client, contextlib.suppress(OSError):
            while more := client.recv(65536):
                running.came[index] += more
                if not running.came[index].endswith(waits_for) and len(left) == len(answers):
                    continue
                is_last = len(left) == 1
                answer = left[0] if is_last else left.pop(0)
                client.sendall(answer.removesuffix(RESETS))
                if answer.endswith(RESETS):
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                if is_last and not stays:
                    client.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = RawServer(f"127.0.0.1:{listener.getsockname()[1]}")
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield running
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
