"""Streamable HTTP: a listener whose every request has a token, an allowed `Host` and an allowed `Origin`."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from h11 import LocalProtocolError
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE
from mcp_types import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from cellblock.errors import CellblockError
from cellblock.hosting import to_thread
from cellblock.integrations.mcp.messages import Refused, excess, read
from cellblock.text import whole_number

if TYPE_CHECKING:
    from cellblock.integrations.mcp.server import SessionServer

PATH = "/mcp"
_ADMIT = "cellblock.admit"
"""Key of a request's scope: a function of the user whose token it has; False for one connection too many."""
_SHORTEST_TOKEN = 16
_MOST_CLIENTS = 500
"""Clients of one user that the SDK remembers, for half an hour each after their last request."""
MOST_CONNECTIONS = 200
"""Connections that have shown a token, shared evenly by the users."""
_MOST_STRANGERS = 64
_STRANGER_SECONDS = 10.0
"""Time for a new connection to show a token. It is closed then, or earlier to make room for newer ones."""
_HEAD_BYTES, _PIECE_BYTES = 16 * 1024, 4 * 1024
_BODIES_AT_ONCE, _BODY_SECONDS = 4, 30.0
"""Bodies of one user that are read at a time, and how long one may take."""
_TOO_LARGE = f"the request has more than {DEFAULT_MAX_REQUEST_BODY_SIZE >> 20} MB"
_MOST_OTHER_BYTES = 64 * 1024
"""Bytes of a request that calls no tool: the SDK keeps what a client says of itself, for 500 clients of a user."""
_MOST_HELD_BYTES = 32 * 2**20
"""Bytes of one user's bodies whose requests are under way."""


class TokenWall:
    """Security border: an ASGI app behind which every request has one token of `tokens`, by user.

    421 for a `Host` that is not one of `hosts` (a page that had its name's address changed), 403 for an `Origin` that
    is not one of `origins` (a page of another site), 401 without a token that is known. Tokens are compared by their
    hashes, all of them, in a time that says nothing of them. 503 where too many connections of the user are open.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Mapping[str, str],
        *,
        hosts: Collection[str],
        origins: Collection[str] = (),
    ) -> None:
        if not tokens:
            raise CellblockError("no token was given", hint="each user of the server has one")
        for user, token in tokens.items():
            if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
                raise CellblockError(
                    f"the token of {user!r} cannot be one: it needs {_SHORTEST_TOKEN} or more visible ASCII characters",
                    hint="python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes one",
                )
        self._app = AuthContextMiddleware(app)
        self._tokens = {user: _hash(token.encode()) for user, token in tokens.items()}
        self._hosts = {host.lower().encode() for host in hosts}
        self._origins = {origin.lower().encode() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, as its user, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := self._misdirected(scope):
            await _refuse(send, *refusal)
        elif (user := self._user_of(scope)) is None:
            await _refuse(send, 401, "give the server's token: Authorization: Bearer TOKEN")
        elif _ADMIT in scope and not scope[_ADMIT](user):
            await _refuse(send, 503, "too many connections of yours: close some, or try again later")
        else:
            token = AccessToken(token="", client_id=user, scopes=[])
            await self._app({**scope, "user": AuthenticatedUser(token)}, receive, send)

    def _misdirected(self, scope: Scope) -> tuple[int, str] | None:
        if not _one_of(scope, b"host", self._hosts):
            return 421, "this server does not go by that name (allow it with --allow-host)"
        if _values(scope, b"origin") and not _one_of(scope, b"origin", self._origins):
            return 403, "requests of that page are not answered (allow it with --allow-origin)"
        return None

    def _user_of(self, scope: Scope) -> str | None:
        given = _values(scope, b"authorization")
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        shown, found = _hash(token.strip()), None
        for user, expected in self._tokens.items():
            if hmac.compare_digest(shown, expected):
                found = user
        return found if scheme.lower() == b"bearer" else None


def listen(address: str) -> socket.socket:
    """A socket that listens at `HOST:PORT`, IPv6 in brackets; port 0 is any that is free. `CellblockError`."""
    host, colon, port = address.rpartition(":")
    if not (colon and host) or (number := whole_number(port, 65_535)) is None:
        raise CellblockError(f"{address!r} is not HOST:PORT", hint="127.0.0.1:8000, [::1]:8000")
    host = host.removeprefix("[").removesuffix("]")
    try:
        family, _, _, _, place = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place, family=family, backlog=128)
    except OSError as error:
        raise CellblockError(f"cannot listen at {address}: {error.strerror or error}", hint="choose another") from None


def names_of(listener: socket.socket, allowed: Collection[str]) -> frozenset[str]:
    """Allowed values of `Host`: the listener's address, names of the loopback, and those of `allowed`."""
    place: tuple[str, int] = listener.getsockname()[:2]
    host, port = place
    address = ipaddress.ip_address(host)
    own = [] if address.is_unspecified else [f"[{host}]" if address.version == 6 else host]
    own += ["127.0.0.1", "localhost", "[::1]"] if address.is_loopback or address.is_unspecified else []
    return frozenset({*(f"{name}:{port}" for name in own), *allowed, *(f"{name}:{port}" for name in allowed)})


async def serve_http(
    server: SessionServer,
    listener: socket.socket,
    tokens: Mapping[str, str],
    *,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
) -> None:
    """Serve the users of `tokens` at a socket that listens, until SIGINT or SIGTERM. The path is /mcp.

    `hosts` are names that requests may come by beside the socket's own address, `origins` sites whose pages may ask.
    Sessions, connections and what the SDK remembers of clients are shared evenly: no user takes another's part.
    """
    server.pool.share(len(tokens))
    managers = {
        user: StreamableHTTPSessionManager(server._lowlevel_server, max_sessions=_MOST_CLIENTS) for user in tokens
    }

    under_way: set[tuple[str, bytes, str]] = set()

    bodies = {user: _Bodies() for user in tokens}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        user = scope["user"].username
        # The SDK gives no answer to who asks to go on with a stream, as it keeps none.
        scope = {**scope, "headers": [one for one in scope["headers"] if one[0].lower() != b"last-event-id"]}
        if scope["path"] != PATH:
            await _refuse(send, 404, f"the path is {PATH}")
            return
        try:
            async with bodies[user].read(scope, receive) as (body, asked):
                first = {"type": "http.request", "body": body, "more_body": False}
                with _alone(under_way, user, scope, asked):
                    await managers[user].handle_request(scope, _after(first, receive), send)
        except _Unread as unread:
            await _refuse(send, *unread.args)
        except Refused as refused:
            text = refused.answer.model_dump_json(by_alias=True, exclude_unset=True)
            await _refuse(send, 400, text, b"application/json")

    wall = TokenWall(app, tokens, hosts=names_of(listener, hosts), origins=origins)
    connection: Any = partial(Connection, connections=Connections(len(tokens)))
    config = uvicorn.Config(
        wall, log_level="warning", access_log=False, server_header=False, lifespan="off", http=connection, ws="none",
        h11_max_incomplete_event_size=_HEAD_BYTES, timeout_graceful_shutdown=3,
    )  # fmt: skip
    async with AsyncExitStack() as running:
        for manager in managers.values():
            await running.enter_async_context(manager.run())
        await uvicorn.Server(config).serve(sockets=[listener])


class Connections:
    """Connections of one listener: strangers, and those that have shown the token of a user."""

    def __init__(self, users: int) -> None:
        self._each = max(1, MOST_CONNECTIONS // users)
        self._strangers: dict[Connection, asyncio.TimerHandle] = {}
        self._known: dict[Connection, str] = {}

    def enter(self, connection: Connection) -> None:
        """Add a connection as a stranger; where there are too many, the oldest stranger is closed."""
        if len(self._strangers) >= _MOST_STRANGERS:
            next(iter(self._strangers)).close()
        self._strangers[connection] = connection.loop.call_later(_STRANGER_SECONDS, connection.close)

    def show(self, connection: Connection, user: str) -> bool:
        """Add a connection to those of a user; False where the user has too many. A proxy's may change its user."""
        others = [one for one, whose in self._known.items() if whose == user and one is not connection]
        if len(others) >= self._each or (connection not in self._strangers and connection not in self._known):
            return False
        if (timer := self._strangers.pop(connection, None)) is not None:
            timer.cancel()
        self._known[connection] = user
        return True

    def leave(self, connection: Connection) -> None:
        """Forget a connection that is closed, or about to be."""
        self._known.pop(connection, None)
        if (timer := self._strangers.pop(connection, None)) is not None:
            timer.cancel()


class Connection(H11Protocol):
    """One connection, with a function in the scope of its requests by which they report their token."""

    def __init__(self, *args: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._all = connections
        self._unread = bytearray()
        self._serve = self.app
        self.app = self._serve_with_scope

    async def _serve_with_scope(self, scope: Any, receive: Any, send: Any) -> None:
        await self._serve({**scope, _ADMIT: partial(self._all.show, self)}, receive, send)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came in pieces, a turn of the loop for each: a body may come in chunks of a byte."""
        is_first = not self._unread
        self._unread += data
        if is_first:
            self._take()

    def _take(self) -> None:
        piece = bytes(self._unread[:_PIECE_BYTES])
        del self._unread[:_PIECE_BYTES]
        if self.transport.is_closing():
            return
        try:
            super().data_received(piece)
        except LocalProtocolError:  # a body breaks off whose request was refused
            self.close()
        if self._unread:
            self.transport.pause_reading()
            self.loop.call_soon(self._take)
        elif not self.flow.read_paused:
            self.transport.resume_reading()

    def close(self) -> None:
        """Abort the connection."""
        self._all.leave(self)
        self.transport.abort()


class _Unread(Exception):
    """A body that is not taken: the status and the text of the answer."""


class _Bodies:
    """Bodies of one user's requests: few are read at a time, each within a time, and all under way are bounded."""

    def __init__(self) -> None:
        self._places = anyio.Semaphore(_BODIES_AT_ONCE)
        self._held = 0

    @asynccontextmanager
    async def read(self, scope: Scope, receive: Receive) -> AsyncIterator[tuple[bytes, JSONRPCMessage | None]]:
        """A request's body, and the message that it is. Raises `_Unread` or `Refused`."""
        asked: JSONRPCMessage | None = None
        declared = (whole_number(one.decode("latin-1"), 2**63) for one in _values(scope, b"content-length"))
        if max((size or 0 for size in declared), default=0) > DEFAULT_MAX_REQUEST_BODY_SIZE:
            raise _Unread(413, _TOO_LARGE)
        async with self._places:
            body = b""
            with anyio.move_on_after(_BODY_SECONDS) as limit:
                body = await _body(receive)
            if limit.cancelled_caught:
                raise _Unread(408, f"the body did not come within {_BODY_SECONDS:.0f} s")
            if self._held + len(body) > _MOST_HELD_BYTES:
                raise _Unread(503, "too much of yours is under way: wait for answers, or send less at a time")
            if reason := await to_thread.run_sync(excess, body):
                raise _Unread(413, f"the request has {reason} or more")
            if scope["method"] == "POST":
                body, asked = await to_thread.run_sync(read, body)
                if len(body) > _MOST_OTHER_BYTES and getattr(asked, "method", "") != "tools/call":
                    said = f"it has more than {_MOST_OTHER_BYTES >> 10} KB and calls no tool"
                    raise Refused(INVALID_REQUEST, said, getattr(asked, "id", None))
            self._held += len(body)
        try:
            yield body, asked
        finally:
            self._held -= len(body)


async def _body(receive: Receive) -> bytes:
    pieces, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise _Unread(400, "the connection was closed within the body")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        more = message.get("more_body", False)
        if size > DEFAULT_MAX_REQUEST_BODY_SIZE:
            raise _Unread(413, _TOO_LARGE)
    return b"".join(pieces)


@contextmanager
def _alone(
    under_way: set[tuple[str, bytes, str]], user: str, scope: Scope, asked: JSONRPCMessage | None
) -> Iterator[None]:
    """Reserve a request's id while it is under way: of two with one id the SDK would send both answers to the newer.

    Raises `Refused` for a second one of the same client. The SDK takes 1 and "1" for one id.
    """
    client = b"".join(_values(scope, b"mcp-session-id"))
    if not isinstance(asked, JSONRPCRequest) or not client:
        yield
        return
    key = (user, client, str(asked.id))
    if key in under_way:
        raise Refused(INVALID_REQUEST, f"a request with the id {asked.id!r} is under way")
    under_way.add(key)
    try:
        yield
    finally:
        under_way.discard(key)


def _after(first: Message, receive: Receive) -> Receive:
    """A `receive` that gives a message received before, then the others."""
    left = [first]

    async def received() -> Message:
        return left.pop() if left else await receive()

    return received


def _hash(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


def _one_of(scope: Scope, name: bytes, allowed: Collection[bytes]) -> bool:
    values = _values(scope, name)
    return len(values) == 1 and values[0].strip().lower() in allowed


async def _refuse(send: Send, status: int, text: str, kind: bytes = b"text/plain; charset=utf-8") -> None:
    headers = [(b"content-type", kind), (b"connection", b"close")]  # of a body that comes still, nothing is read
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
