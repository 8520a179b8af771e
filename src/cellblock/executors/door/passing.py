"""Passing bytes between a client and a server: a tunnel, or one request with its answer and nothing after them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

from cellblock.executors.door.message import MAX_HEAD, Body, Refused
from cellblock.executors.door.request import Wanted, read_answer

_CHUNK = 64 * 1024
_MOST_UNREAD = 16 * 2**20
"""Bytes that a client may send and that are nobody's: they are counted nowhere."""
_RESET = struct.pack("ii", 1, 0)


class Stream:
    """One end of a connection. It reads only when it is asked: what waits is in the kernel."""

    def __init__(self, end: socket.socket, passes: Callable[[int, int], None] = lambda sent, received: None) -> None:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a head and its body are sent one after the other
        self._end = end
        self._passes = passes
        self._held = b""
        self.is_answered = False
        """An answer to this client has begun: nothing else can be told it."""

    async def head(self, whose: str) -> bytes:
        """The bytes up to an empty line, with it; b"" where the other end ends before."""
        held, seen = bytearray(), 0
        while (end := held.find(b"\r\n\r\n", max(0, seen - 3), MAX_HEAD)) < 0:
            if (seen := len(held)) >= MAX_HEAD:
                raise Refused(431, f"{whose} head has more than {MAX_HEAD} bytes")
            if not (more := await self.some()):
                return b""
            held += more
        self._held = bytes(held[end + 4 :])
        return bytes(held[: end + 4])

    async def some(self) -> bytes:
        """The next bytes; b"" where the other end has ended."""
        await asyncio.sleep(0)  # where bytes wait already, nothing else gives way to other connections
        if held := self._held:
            self._held = b""
            return held
        data = await asyncio.get_running_loop().sock_recv(self._end, _CHUNK)
        self._passes(0, len(data))
        return data

    async def send(self, data: bytes) -> None:
        """Returns when the kernel has it all."""
        self._passes(len(data), 0)
        await asyncio.get_running_loop().sock_sendall(self._end, data)

    async def discard(self) -> None:
        """Read what is nobody's until the other end ends: the kernel takes an answer back where that is left unread."""
        unread = 0
        while unread < _MOST_UNREAD and (data := await self.some()):
            unread += len(data)

    def end(self) -> None:
        """Send nothing more."""
        self._end.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Let the other end not take what it has for all, when this one is closed."""
        self._end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


async def tunnel(_wanted: Wanted, client: Stream, server: Stream) -> None:
    """Pass bytes both ways until both have ended, or one goes away."""
    client.is_answered = True
    await client.send(b"HTTP/1.1 200 connected\r\n\r\n")
    async with asyncio.TaskGroup() as both:
        for source, sink in ((client, server), (server, client)):
            both.create_task(_pass_all(source, sink))


async def exchange(wanted: Wanted, client: Stream, server: Stream) -> None:
    """Pass a request and its answer, which ends it, whatever either end still sends."""
    async with asyncio.TaskGroup() as both:
        sending = both.create_task(_ask(wanted, client, server))
        await _answer(wanted, client, server)
        sending.cancel()


async def _pass_all(source: Stream, sink: Stream) -> None:
    await _pass(source, Body(), sink)
    sink.end()


async def _ask(wanted: Wanted, client: Stream, server: Stream) -> None:
    """Send a request, and tell the server where the client ends. Of a server that takes no more the answer is read."""
    with contextlib.suppress(OSError):
        await server.send(wanted.head)
        if wanted.body is not None:
            await _pass(client, wanted.body, server)
        await client.discard()
    with contextlib.suppress(OSError):
        server.end()


async def _answer(wanted: Wanted, client: Stream, server: Stream) -> None:
    is_interim = True
    while is_interim:
        try:
            if not (head := await server.head("its")):
                raise Refused(400, "it ends before")
            answer = read_answer(head, wanted)
        except Refused as error:
            if error.status == 403:  # the door's own: nothing more may pass
                raise
            raise Refused(502, f"the answer of {wanted.destination}: {error.reason}") from None
        is_interim = answer.is_interim
        client.is_answered = not is_interim
        if not (is_interim and wanted.is_old):
            await client.send(answer.head)
    await _pass(server, answer.body, client)


async def _pass(source: Stream, body: Body, sink: Stream) -> None:
    while not body.is_over:
        if not (data := await source.some()):
            if body.needs_end:
                raise ConnectionError("a body breaks off")
            return
        if part := body.passed(data):
            await sink.send(part)
