"""Models behind OpenAI-compatible endpoints, by the `openai` package: OpenAI's, Ollama's, vLLM's, llama.cpp's…"""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from string import punctuation
from typing import Any, Self
from urllib.parse import quote

from anyio import fail_after, move_on_after
from anyio.lowlevel import RunVar

from cellblock.errors import CellblockError, ModelError, needing
from cellblock.hosting import clock, to_thread
from cellblock.hosting.to_thread import off_loop
from cellblock.models.assembling import Assembly, read_piece
from cellblock.models.failures import Failure, Translator
from cellblock.models.protocol import Message, OnText, Reply, ToolSchema
from cellblock.models.retrying import OnRetry, Patience, persist
from cellblock.models.streaming import Turn, beginning, events, give, whole
from cellblock.text import bounded, half_made, line
from cellblock.url import parsed

with needing("openai", "an endpoint's models need the package openai", partial(ModelError, kind="setup")):
    import openai

_OPENAI = "https://api.openai.com/v1"
_CONNECTING = 20.0
"""Seconds that a connection may take to be made."""
_TRAILING = 5.0
"""Seconds for what comes after an answer's end, such as its account of tokens."""
_CLOSING = 5.0
"""Seconds that closing a connection may take."""
_ANSWERED: ContextVar[bool] = ContextVar("cellblock.models.answered", default=False)
"""True once an answer to this task's request has begun to come."""
_NO_STREAM = re.compile(r"\bstream(ing|ed)?\b", re.IGNORECASE)
_numbers = count(1)


class EndpointModel:
    """The model `name` of an endpoint; a `Connected`.

    `base_url` and `api_key` are `$OPENAI_BASE_URL` and `$OPENAI_API_KEY` unless given; an endpoint other than OpenAI's
    may need no key. `options` are sent with each request, such as `{"temperature": 0}`. `on_retry` is called before
    each wait. Raises `ModelError` where there is no key for OpenAI, or the URL is none.
    """

    provider = "openai"
    """Whose form of requests it takes, as OpenTelemetry calls it."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        options: Mapping[str, object] | None = None,
        patience: Patience | None = None,
        on_retry: OnRetry | None = None,
    ) -> None:
        url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        self.name, self._place, self._query = name, parsed(url), url.partition("?")[2]
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        del url, base_url, api_key  # no frame of an error holds them
        if not name:
            raise ModelError("a model's name must not be empty", kind="setup")
        place = self._place
        if place is None or not place.host or place.scheme not in ("http", "https"):
            raise ModelError("the endpoint's URL is not an HTTP URL", kind="setup", hint=_NO_URL)
        self._errors = Translator(name, place, self._key)
        if not self._key and self._errors.place == _OPENAI:
            raise ModelError(f"there is no key for the model {name!r} of OpenAI", kind="key", hint=_NO_KEY)
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelError("the key contains characters that no key has", kind="key", hint="copy it again")
        self._options = dict(options or {})
        self._patience = patience or Patience()
        self._on_retry = on_retry
        self._streams = True
        self._accounts = True
        self._kept: RunVar[_Kept | None] = RunVar(f"cellblock.models.{next(_numbers)}", None)

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        async with self:
            client = self._opened().client

            async def attempt(assembly: Assembly) -> None:
                await self._attempt(client, self._request(messages, tools), assembly, on_text)

            return await persist(attempt, self._patience, self._on_retry)

    async def __aenter__(self) -> Self:
        made = await self._new_client() if self._kept.get() is None else None
        if self._kept.get() is None and made is not None:
            self._kept.set(_Kept(made))
            made = None
        self._opened().users += 1
        if made is not None:  # another task has been faster
            await _close(made)
        return self

    async def __aexit__(self, *_: object) -> None:
        kept = self._opened()
        kept.users -= 1
        if not kept.users:
            self._kept.set(None)
            await _close(kept.client)

    @half_made
    def __repr__(self) -> str:
        return f"EndpointModel({self.name!r}, base_url={str(self._place).rstrip('/')!r})"

    # --- one attempt -----------------------------------------------------------------------------------------

    async def _attempt(
        self, client: openai.AsyncOpenAI, request: dict[str, Any], assembly: Assembly, on_text: OnText | None
    ) -> None:
        answer = await self._ask(client, request)
        response = answer.http_response
        try:
            if not request.get("stream") or "json" in response.headers.get("content-type", ""):
                # some endpoints do not stream, and do not say so
                await give(await self._added(whole(response), assembly.add_whole), on_text, Turn())
                return
            await self._stream(events(response), assembly, on_text)
        finally:
            await _close(answer)
        if not assembly.is_whole:
            raise self._errors.failure("connection", "the answer broke off before its end", "try again later")

    async def _stream(self, pieces: AsyncIterator[bytes], assembly: Assembly, on_text: OnText | None) -> None:
        """Take the pieces of an answer. A connection that breaks after the answer's end takes nothing away from it."""
        limit: float | None = None  # until the first piece, which may be long in coming, the request's own holds
        until = math.inf
        turn = Turn()
        while clock.now() < until:
            await turn.end_if_long()
            try:
                with fail_after(limit):
                    text = await self._added(anext(pieces), assembly.add)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if assembly.is_whole:
                    return
                said = f"nothing came for {self._patience.stall_seconds:.3g} s in the midst of an answer"
                raise self._errors.failure("timeout", said, "raise stall_seconds") from None
            except Failure as failure:
                if assembly.is_whole and failure.error.kind in ("connection", "timeout"):
                    return
                raise
            await give(text, on_text, turn)
            limit = self._patience.stall_seconds
            if assembly.is_whole:
                until = min(until, clock.now() + _TRAILING)
                limit = min(limit, until - clock.now())

    def _request(self, messages: list[Message], tools: list[ToolSchema]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self.name, "messages": bounded(messages), "extra_body": self._options}
        if tools:
            request["tools"] = tools
        if self._streams:
            request["stream"] = True
            if self._accounts:
                request["stream_options"] = {"include_usage": True}
        return request

    async def _ask(self, client: openai.AsyncOpenAI, request: dict[str, Any]) -> Any:
        """Send a request; again without what the endpoint says it does not know."""
        while True:
            _ANSWERED.set(False)
            try:
                return await client.chat.completions.with_streaming_response.create(**request).__aenter__()
            except Exception as error:  # translated or raised
                for one in (error, error.__cause__):
                    if isinstance(one, Failure):
                        raise one from None
                if not self._do_without(request, error):
                    raise self._errors.translated(error, answered=_ANSWERED.get()) from None

    def _do_without(self, request: dict[str, Any], error: Exception) -> bool:
        """True if a refusal was of streaming or its account; both are left out from then on."""
        if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 405, 415, 422, 501):
            return False
        said = f"{line(error.param or '')} {line(error.message, 10_000)}"
        if "stream_options" in said and request.pop("stream_options", None):
            self._accounts = False
            return True
        if _NO_STREAM.search(said) and request.pop("stream", None):
            request.pop("stream_options", None)
            self._streams = False
            return True
        return False

    async def _added(self, coming: Awaitable[bytes], add: Callable[[object], str]) -> str:
        """The text that a piece, or a whole answer, adds."""
        try:
            data = await coming
            return await off_loop(len(data), self._assembled, data, add)
        except (StopAsyncIteration, Failure):
            raise
        except Exception as error:
            raise self._errors.translated(error, answered=True) from None

    def _assembled(self, data: bytes, add: Callable[[object], str]) -> str:
        told = read_piece(data)
        if isinstance(told, Mapping) and (refused := told.get("error")):
            raise self._errors.refused(0, refused)
        return add(told)

    # --- connections -----------------------------------------------------------------------------------------

    def _opened(self) -> _Kept:
        kept = self._kept.get()
        assert kept is not None, "left more often than entered"
        return kept

    async def _new_client(self) -> openai.AsyncOpenAI:
        """A client. Raises ModelError for proxies and certificates of the environment that cannot be.

        A thread reads the certificates, which takes some 40 ms.
        """
        try:
            return await to_thread.run_sync(self._made_client)
        except CellblockError:  # no thread can be started
            raise
        except Exception as error:  # of httpx or of the package of a proxy, such as ImportError
            failed = self._errors.unusable(error)
        raise failed  # here: what was raised has frames with the password

    def _made_client(self) -> openai.AsyncOpenAI:
        whole = self._patience.timeout_seconds
        limits = openai.Timeout(whole, connect=min(whole, _CONNECTING))
        headers = {"Accept-Encoding": "identity"}
        if self._place and (self._place.user or self._place.password):  # not in the URL, which httpx logs
            named = f"{self._place.user or ''}:{self._place.password or ''}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(named).decode()}"
        return openai.AsyncOpenAI(
            base_url=self._errors.place, api_key=self._key or "none", max_retries=0, timeout=limits,
            default_headers=headers, http_client=openai.DefaultAsyncHttpxClient(
                timeout=limits, event_hooks={"request": [self._add_query], "response": [_answered]}
            ),
        )  # fmt: skip

    async def _add_query(self, request: Any) -> None:
        """Before a request is sent: the query of the endpoint's URL. Raises `Failure` where it would go elsewhere."""
        asked, place = request.url, type(request.url)(self._errors.place)
        if (asked.scheme, asked.host, asked.port) != (place.scheme, place.host, place.port):
            failure = self._errors.failure(
                "refused", f"{self._errors.place} sends requests on to another server", "give base_url that one"
            )
            failure.again = False
            raise failure
        if self._query and not asked.query:
            request.url = _unshown(asked.copy_with(query=quote(self._query, safe=punctuation).encode()))


def _unshown(url: Any) -> Any:
    """A URL whose query, which may hold a key, is sent and in no log or error: those have its text."""
    kind: Any = type(url)
    text = {name: lambda self: kind.__str__(kind(self, query=None)) for name in ("__str__", "__repr__")}
    return type("Unshown", (kind,), text)(url)


@dataclass
class _Kept:
    """A client that stays open on one event loop while `users` want it."""

    client: openai.AsyncOpenAI
    users: int = 0


_NO_URL = "set OPENAI_BASE_URL to something like http://localhost:11434/v1"
_NO_KEY = (
    "set OPENAI_API_KEY, from https://platform.openai.com/api-keys, or point OPENAI_BASE_URL to another endpoint, such "
    "as a local Ollama's http://localhost:11434/v1, vLLM's or llama.cpp's http://localhost:8080/v1"
)


async def _answered(response: Any) -> None:
    """Before the package reads an error: make it read the beginning alone, as UTF-8 whatever its type says."""
    _ANSWERED.set(True)
    response.encoding = "utf-8"
    response.aiter_bytes = partial(beginning, response)


async def _close(opened: Any) -> None:
    """Close a stream or a client, also where the caller is being cancelled."""
    with move_on_after(_CLOSING, shield=True):
        await opened.close()
