"""An OpenAI-compatible endpoint on loopback that answers what a test says, in the ways that real ones do and fail.

with ModelServer([Answer("hello"), Failure(429, retry_after="1")]) as server:
    ...                        # OPENAI_BASE_URL=server.url, OPENAI_API_KEY=server.key
server.asked[0].body["messages"]
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

PATIENCE = 30.0
"""Seconds after which a client that hangs is given up."""


@dataclass(frozen=True)
class Answer:
    """A reply that comes in pieces of `piece` characters, `pause` seconds apart.

    `calls` are names and arguments of tool calls, as text. After `cut` pieces the connection is dropped, after `error`
    ones an error is sent in the stream, and after `end` ones the stream ends as if it were whole, or with `hang` says
    nothing more.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    reasoning: str = ""
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    finish: str = ""
    model: str = "served"
    piece: int = 5
    pause: float = 0.0
    cut: int | None = None
    error: int | None = None
    end: int | None = None
    hang: bool = False

    def deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for start in range(0, len(self.reasoning), self.piece):
            yield {"reasoning_content": self.reasoning[start : start + self.piece]}
        for start in range(0, len(self.text), self.piece):
            yield {"content": self.text[start : start + self.piece]}
        for index, (name, arguments) in enumerate(self.calls):
            function = {"name": name, "arguments": ""}
            yield {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]}
            for start in range(0, len(arguments), self.piece):
                function = {"arguments": arguments[start : start + self.piece]}
                yield {"tool_calls": [{"index": index, "function": function}]}

    def chunks(self, accounted: bool) -> Iterator[dict[str, Any]]:
        for delta in self.deltas():
            yield self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])
        yield self._chunk([{"index": 0, "delta": {}, "finish_reason": self._finish()}])
        if accounted and self.usage is not None:
            yield self._chunk([]) | {"usage": self.usage}

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [
                {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for number, (name, arguments) in enumerate(self.calls)
            ]
        choices = [{"index": 0, "message": message, "finish_reason": self._finish()}]
        return {"id": "1", "object": "chat.completion", "model": self.model, "choices": choices, "usage": self.usage}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": "1", "object": "chat.completion.chunk", "model": self.model, "choices": choices}

    def _finish(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Failure:
    """A status that is no answer, with an error in OpenAI's form, or with `body` as it is."""

    status: int
    message: str = "no"
    code: str | None = None
    retry_after: str | None = None
    body: str | None = None
    type: str = "error"
    param: str | None = None

    def content(self) -> bytes:
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return (self.body if self.body is not None else json.dumps({"error": error})).encode()


@dataclass(frozen=True)
class Stream:
    """A stream of these lines, as they are, or another body where `kind` is another media type.

    A stream may come in pieces of `piece` characters, and with `hang` leaves the connection open.
    """

    lines: tuple[str, ...]
    kind: str = "text/event-stream"
    piece: int = 2**16
    hang: bool = False


@dataclass(frozen=True)
class Raw:
    """A status, headers and a body as they are."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Drop:
    """The connection ends before anything is answered."""


@dataclass(frozen=True)
class Silence:
    """Nothing is answered until the client leaves."""


Behaviour = Answer | Failure | Stream | Raw | Drop | Silence


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    port: int
    """The client's: equal ones are one connection."""


class ModelServer:
    """Serves `script`, one behaviour for each request, or what a callable makes of each request's body.

    Past the end of the script the answer is status 400. With `knows_accounts=False` a request with `stream_options`
    is refused, with `streams=False` one with `stream`; neither counts as asked of the script. A wrong key is refused.
    """

    def __init__(
        self,
        script: Iterable[Behaviour] | Callable[[dict[str, Any]], Behaviour] = (),
        *,
        key: str = "sk-right",
        knows_accounts: bool = True,
        streams: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.key = key
        self.asked: list[Asked] = []
        self.left = threading.Event()
        """Set when a client closed its connection before its answer had ended."""
        self._answer = script if callable(script) else _in_order(script)
        self._knows_accounts = knows_accounts
        self._streams = streams
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.served = self
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def behaviour(self, asked: Asked) -> Behaviour:
        with self._lock:
            self.asked.append(asked)
            if asked.headers.get("authorization") != f"Bearer {self.key}":
                return Failure(401, f"Incorrect API key provided: {asked.headers.get('authorization')}")
            if not self._knows_accounts and "stream_options" in asked.body:
                return Failure(400, "Unrecognized request argument supplied: stream_options")
            if not self._streams and asked.body.get("stream"):
                return Failure(400, "streaming is not supported", param="stream")
            return self._answer(asked.body)


def _in_order(script: Iterable[Behaviour]) -> Callable[[dict[str, Any]], Behaviour]:
    left = iter(script)
    return lambda body: next(left, Failure(400, "the script has ended"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    served: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that leave are what some tests are about


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = PATIENCE
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, body, self.client_address[1])
        behaviour = self.server.served.behaviour(asked)
        try:
            self._perform(behaviour, body)
        except (BrokenPipeError, ConnectionResetError):
            self._gone()

    def _perform(self, behaviour: Behaviour, body: dict[str, Any]) -> None:
        match behaviour:
            case Failure():
                headers = {"retry-after": behaviour.retry_after} if behaviour.retry_after is not None else {}
                kind = "text/html" if behaviour.body is not None else "application/json"
                self._send(behaviour.status, kind, behaviour.content(), headers)
            case Stream(kind="text/event-stream"):
                self._begin()
                for line in behaviour.lines:
                    for start in range(0, len(line) + 1, behaviour.piece):
                        self._chunk(f"{line}\n"[start : start + behaviour.piece])
                if behaviour.hang:
                    self._pause(PATIENCE)
                self._chunk("")
            case Stream():
                self._send(200, behaviour.kind, "\n".join(behaviour.lines).encode())
            case Raw():
                self._send(behaviour.status, "", behaviour.body, behaviour.headers)
            case Drop():
                self._drop()
            case Silence():
                self._pause(PATIENCE)
            case Answer() if body.get("stream"):
                self._stream(behaviour, bool((body.get("stream_options") or {}).get("include_usage")))
            case Answer():
                self._send(200, "application/json", json.dumps(behaviour.whole()).encode())

    def _stream(self, answer: Answer, accounted: bool) -> None:
        self._begin()
        for number, chunk in enumerate(answer.chunks(accounted)):
            if number == answer.cut:
                return self._drop()
            if number == answer.error:
                chunk = {"error": {"message": "the engine failed", "type": "server_error", "code": None}}
            if number == answer.end:
                if answer.hang:
                    self._pause(PATIENCE)
                return self._chunk("")
            self._chunk(f"data: {json.dumps(chunk)}\n\n")
            if self._pause(answer.pause):
                return None
        self._chunk("data: [DONE]\n\n")
        return self._chunk("")

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send(self, status: int, kind: str, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _drop(self) -> None:
        """End the connection as a crash does: with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _pause(self, seconds: float) -> bool:
        """Wait; whether the client left meanwhile, or the server is being stopped."""
        waited = 0.0
        while waited < seconds:
            step = min(0.02, seconds - waited)
            readable, _, _ = select.select([self.connection], [], [], step)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self._gone()
                return True
            if self.server.served._stopped.is_set():
                self.close_connection = True
                return True
            waited += step
        return False

    def _gone(self) -> None:
        self.server.served.left.set()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass
