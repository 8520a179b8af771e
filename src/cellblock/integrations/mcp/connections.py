"""Connections of an HTTP listener: those that have shown no token are few, end soon, and take nobody's place."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from cellblock.integrations.mcp.http import SHOWN

MOST = 200
"""Connections that have shown a token, shared evenly by the users."""
_MOST_STRANGERS = 64
_STRANGER_SECONDS = 10.0
"""In which a new connection shows a token; it is closed then, and before that where newer ones take its place."""
HEAD_BYTES = 16 * 1024


class Connections:
    """Those of one listener: strangers, and those that have shown the token of a user."""

    def __init__(self, users: int) -> None:
        self._each = max(1, MOST // users)
        self._strangers: dict[Connection, asyncio.TimerHandle] = {}
        self._known: dict[Connection, str] = {}

    def enter(self, connection: Connection) -> None:
        """A new one is a stranger; where there are too many, the one that has taken longest is closed."""
        if len(self._strangers) >= _MOST_STRANGERS:
            next(iter(self._strangers)).close()
        self._strangers[connection] = connection.loop.call_later(_STRANGER_SECONDS, connection.close)

    def show(self, connection: Connection, user: str) -> bool:
        """It has shown the token of a user; whether there is room for it. A proxy's may show one after another."""
        others = [one for one, whose in self._known.items() if whose == user and one is not connection]
        if len(others) >= self._each or (connection not in self._strangers and connection not in self._known):
            return False
        if (timer := self._strangers.pop(connection, None)) is not None:
            timer.cancel()
        self._known[connection] = user
        return True

    def leave(self, connection: Connection) -> None:
        """It is closed, or about to be."""
        self._known.pop(connection, None)
        if (timer := self._strangers.pop(connection, None)) is not None:
            timer.cancel()


class Connection(H11Protocol):
    """One connection, which its requests can tell that they have shown a token."""

    def __init__(self, *args: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._all = connections
        self._serve = self.app
        self.app = self._told

    async def _told(self, scope: Any, receive: Any, send: Any) -> None:
        await self._serve({**scope, SHOWN: partial(self._all.show, self)}, receive, send)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.leave(self)
        super().connection_lost(exc)

    def close(self) -> None:
        """Close it at once, whatever is under way."""
        self._all.leave(self)
        self.transport.abort()
