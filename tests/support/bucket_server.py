"""A server of S3's protocol on loopback, as far as a store needs it, that can fail: it refuses, breaks off, or repeats.

with BucketServer() as server:
    server.environment()         # what the provider's client takes its address and credentials from
    server.failing = "500"       # or "refused", "cut", "denied", "garbage"; "" is none
"""

from __future__ import annotations

import socket
import struct
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "cells"


class BucketServer:
    """One bucket in memory. Answers that are errors repeat the credentials of the request, as S3's own do."""

    def __init__(self, key: str = "AKIATEST", secret: str = "throw-away-secret") -> None:
        self.key, self.secret = key, secret
        self.objects: dict[str, bytes] = {}
        self.failing = ""
        self.asked = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"bucket": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"s3://{BUCKET}/objects"

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    bucket: BucketServer
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self._fails():
            return
        key = self._key()
        if self.headers.get("If-None-Match") == "*" and key in self.bucket.objects:
            self._error(412, "PreconditionFailed")
            return
        self.bucket.objects[key] = body
        self._answer(200, b"", ETag=f'"{hash(body)}"')

    def do_GET(self) -> None:
        if self._fails():
            return
        parts = urlsplit(self.path)
        if "list-type" in parse_qs(parts.query):
            self._list(parse_qs(parts.query).get("prefix", [""])[0])
            return
        body = self.bucket.objects.get(self._key())
        if body is None:
            self._error(404, "NoSuchKey")
            return
        self._answer(200, body, **{"ETag": f'"{hash(body)}"', "Last-Modified": formatdate(usegmt=True)})

    def do_DELETE(self) -> None:
        if self._fails():
            return
        self.bucket.objects.pop(self._key(), None)
        self._answer(204, b"")

    def do_POST(self) -> None:
        """DeleteObjects, as the client asks for it in bulk."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self._fails():
            return
        keys = [part.partition("</Key>")[0] for part in body.split("<Key>")[1:]]
        for key in keys:
            self.bucket.objects.pop(key, None)
        told = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{told}</DeleteResult>".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _list(self, prefix: str) -> None:
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{hash(body)}"</ETag><Size>{len(body)}</Size></Contents>'
            for key, body in sorted(self.bucket.objects.items())
            if key.startswith(prefix)
        )
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
        self._answer(200, text.encode())

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")

    def _fails(self) -> bool:
        self.bucket.asked += 1
        match self.bucket.failing:
            case "":
                return False
            case "refused":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            case "cut":
                self.send_response(200)
                self.send_header("Content-Length", "100000")
                self.send_header("ETag", '"cut"')
                self.send_header("Last-Modified", formatdate(usegmt=True))
                self.end_headers()
                self.wfile.write(b"x" * 1000)
                self.close_connection = True
            case "garbage":
                dated = {"ETag": '"g"', "Last-Modified": formatdate(usegmt=True)}
                self._answer(200, b"\xff not what was asked for", **dated)
            case "denied":
                self._error(403, "SignatureDoesNotMatch")
            case status:
                self._error(int(status), "InternalError")
        return True

    def _error(self, status: int, code: str) -> None:
        told = f"{self.headers.get('Authorization', '')} {self.bucket.secret}"
        self._answer(status, f"<Error><Code>{code}</Code><Message>{escape(told)}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
