"""A session's door: a listener inside its network namespace that the host serves, and nothing else leads out.

What comes in are requests to a proxy, one for each connection: CONNECT, and plain HTTP. What the list does not name is
refused before anything is asked or sent anywhere. A name is resolved here, refused where any of its addresses is not
public or is one of this machine's own, and dialled at the very address that was looked at. An address that is listed is
dialled as it is. Who follows a redirect makes another request.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from cellblock.errors import CellblockError
from cellblock.executors import room
from cellblock.executors.door.addresses import is_own, why_not_public
from cellblock.executors.door.message import Refused
from cellblock.executors.door.passing import Stream, exchange, tunnel
from cellblock.executors.door.request import Wanted, read
from cellblock.hosting.forks import Lock
from cellblock.hosting.loops import new_loop
from cellblock.hosting.threads import begun, in_thread
from cellblock.network import Destination, Traffic

HEAD_SECONDS = 10.0
RESOLVE_SECONDS = 10.0
DIAL_SECONDS = 10.0
IDLE_SECONDS = 300.0
"""Longest time that a connection may pass nothing in either direction."""
_MOST_ADDRESSES = 8
_MOST_A_SECOND = 100
"""Connections that are taken: what is refused at once costs the host time as well."""
_RETRY_SECONDS = 0.1
_OF_CONNECTION = 2
"""Descriptors: one to the client and one to the server."""
_LINGER_SECONDS = 2.0
"""Seconds that a client may take to end once it has its answer."""
_LOOKED_UP_AT_ONCE = 2
"""Names of one session. Each takes a thread until the resolver gives up, however long ago it was last waited for."""

_USED_UP = "the session has used up ExecutionLimits.max_network_mb"
_SHUT = "the session holds private data: its network is closed for good"

Resolve = Callable[[str, int], list[str]]
"""The addresses of a name; OSError where it has none. May block."""


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine's resolver has them, without repetition."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(_zoned(address) for *_, address in found))


def _zoned(address: tuple[Any, ...]) -> str:
    return f"{address[0]}%{address[3]}" if len(address) == 4 and address[3] and "%" not in address[0] else address[0]


class Door:
    """Serves one listener until it is closed. Its methods may be called from any thread but that of the doors."""

    def __init__(
        self,
        listener: socket.socket,
        listed: Collection[Destination],
        *,
        max_connections: int,
        max_bytes: int,
        resolve: Resolve = resolved,
    ) -> None:
        """`max_bytes` is for all connections together, in both directions."""
        listener.setblocking(False)
        self._listener = listener
        self._listed = frozenset(listed)
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._host = os.getpid()
        self._slots = asyncio.Semaphore(max_connections)
        self._resolving = asyncio.Semaphore(_LOOKED_UP_AT_ONCE)
        self._under_way: set[asyncio.Task[None]] = set()
        self.is_shut = False
        """True if it is closed for good."""
        self._connections = self._refused = self._sent = self._received = 0
        self.unlisted = ""
        """The destination that it has refused last for not being listed."""
        self._accepting: asyncio.Task[None] | None = None
        done(self._open())

    @property
    def traffic(self) -> Traffic:
        """Bytes passed so far."""
        return Traffic(
            connections=self._connections,
            connections_refused=self._refused,
            sent_bytes=self._sent,
            received_bytes=self._received,
        )

    def shut(self) -> None:
        """Cut what is open, and refuse everything from now on. For good; returns when it is done."""
        self.is_shut = True
        if os.getpid() == self._host:
            done(self._cut())

    def close(self) -> None:
        """Cut what is open, and let go of the listener. Safe to call twice; a forked copy of the host only lets go."""
        if os.getpid() == self._host:
            done(self._leave())
        else:
            self._listener.close()

    # -------------------------------------------------------- in the thread of the doors

    async def _open(self) -> None:
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def _leave(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._accepting
        await self._cut()
        self._listener.close()

    async def _cut(self) -> None:
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        began, taken = loop.time(), 0
        while True:
            await self._slots.acquire()  # who comes when all are taken waits in the listener's queue
            try:
                if not room.has_room(_OF_CONNECTION):
                    raise BlockingIOError
                client, _ = await loop.sock_accept(self._listener)
            except OSError:  # no descriptor is to spare, or the client has gone
                self._slots.release()
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            except BaseException:
                self._slots.release()
                raise
            task = loop.create_task(self._serve(client))
            self._under_way.add(task)
            task.add_done_callback(partial(self._served, client))
            if (taken := taken + 1) >= _MOST_A_SECOND:
                await asyncio.sleep(max(0.0, began + 1 - loop.time()))
                began, taken = loop.time(), 0

    def _served(self, client: socket.socket, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._slots.release()
        client.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler({"message": "a door's connection", "exception": error})

    async def _serve(self, end: socket.socket) -> None:
        """One connection of a client's, to its end. What goes wrong on the way to a server is told to the client."""
        with contextlib.suppress(OSError):  # either end has gone, or nothing passes: both learn it as this closes
            client = Stream(end)
            try:
                try:
                    if (wanted := await _asked(client)) is None:
                        return
                    server = await self._connected(wanted.destination)
                except Refused:
                    self._refused += 1
                    raise
                self._connections += 1
                with server:
                    await self._pass(wanted, client, server)
            except Refused as refused:
                await client.send(refused.answer())
            client.end()
            async with asyncio.timeout(_LINGER_SECONDS):
                await client.discard()

    async def _connected(self, destination: Destination) -> socket.socket:
        """A connection to a destination that is listed; `Refused` where it is not, or cannot be had."""
        self._require_open(destination)
        if destination.is_address:
            addresses = [destination.host]
        else:
            addresses = await self._addresses(destination)
            self._require_open(destination)
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                return await _dialled(address, destination.port)
        raise Refused(502, f"{destination} does not answer")

    def _require_open(self, destination: Destination) -> None:
        if self.is_shut:
            raise Refused(403, _SHUT)
        if destination not in self._listed:
            self.unlisted = str(destination)
            raise Refused(403, f"{destination} is not in the network= list of this session")
        if self._sent + self._received >= self._max_bytes:
            raise Refused(403, _USED_UP)

    async def _addresses(self, destination: Destination) -> list[str]:
        """Addresses of a name, each of them checked."""
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await self._looked_up(destination)
        except (OSError, UnicodeError):  # a timeout is one, too
            raise Refused(502, f"{destination.host} cannot be resolved on the host") from None
        for address in found:
            if kind := why_not_public(address) or ("an address of the host's own" if is_own(address) else ""):
                raise Refused(403, f"{destination.host} leads to {kind}, and only a public one is connected to")
        if not found:
            raise Refused(502, f"{destination.host} cannot be resolved on the host")
        return found[:_MOST_ADDRESSES]

    async def _looked_up(self, destination: Destination) -> list[str]:
        """Answer of the resolver. A caller that stops waiting leaves it to its thread, which keeps its place until it
        ends."""
        await self._resolving.acquire()
        try:
            asked = in_thread(partial(self._resolve, destination.host, destination.port), "cellblock-door-asks")
        except BaseException as error:
            self._resolving.release()
            if isinstance(error, CellblockError):  # no thread is to be had
                raise Refused(502, f"{destination.host} cannot be resolved on the host: {error.args[0]}") from None
            raise
        asked.add_done_callback(partial(self._give_place, asyncio.get_running_loop()))
        return await asyncio.wrap_future(asked)

    def _give_place(self, loop: asyncio.AbstractEventLoop, _asked: Future[list[str]]) -> None:
        """In the thread that has asked, or in that of the doors where it had not begun to."""
        loop.call_soon_threadsafe(self._resolving.release)

    async def _pass(self, wanted: Wanted, client: Stream, server: socket.socket) -> None:
        """Pass what was asked for until it ends; `Refused` where none of it has come to the client."""
        idle = asyncio.timeout(IDLE_SECONDS)

        def passes(sent: int, received: int) -> None:
            self._sent += sent
            self._received += received
            if self._sent + self._received > self._max_bytes:
                raise Refused(403, _USED_UP)
            if not idle.expired():
                idle.reschedule(asyncio.get_running_loop().time() + IDLE_SECONDS)

        failures: list[BaseException] = []
        try:
            async with idle:
                await (exchange if wanted.head else tunnel)(wanted, client, Stream(server, passes))
        except* Refused as refused:
            failures += refused.exceptions
        except* OSError:
            failures.append(Refused(502, f"{wanted.destination} broke off, or was silent for {IDLE_SECONDS:.0f} s"))
        if failures and not client.is_answered:
            raise failures[0]
        if failures and wanted.head:
            client.reset()
            raise ConnectionAbortedError(f"the answer of {wanted.destination} broke off")


async def _asked(client: Stream) -> Wanted | None:
    """A client's request; None where it goes away without one."""
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await client.head("a request's")
    except TimeoutError:
        raise Refused(408, f"no request within {HEAD_SECONDS:.0f} s") from None
    return read(head) if head else None


async def _dialled(address: str, port: int) -> socket.socket:
    """A connection to an address, which is no name any more."""
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.setblocking(False)
        async with asyncio.timeout(DIAL_SECONDS):
            await asyncio.get_running_loop().sock_connect(server, (address, port))
    except BaseException:
        server.close()
        raise
    return server


T = TypeVar("T")

_lock = Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: that of a program which was forked has no thread in the copy."""


def loop() -> asyncio.AbstractEventLoop:
    """The loop of that thread, which is started with the first door and stays."""
    with _lock:
        here = os.getpid()
        if here not in _loops:
            _loops.clear()
            _loops[here] = new_loop()
            begun(_loops[here].run_forever, name="cellblock-doors")
        return _loops[here]


def done(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that is run there. Blocks, and must not be called from there."""
    return asyncio.run_coroutine_threadsafe(work, loop()).result()
