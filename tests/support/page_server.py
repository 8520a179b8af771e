"""A web server on loopback that serves fixed pages, and keeps which were asked for.

with page_server() as server:
    ...                        # network=[server.place]
server.asked
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class PageServer:
    """A server that runs: its address, as `network=` takes it, and the paths that were asked for, in order."""

    place: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def page_server(pages: Mapping[str, bytes] | None = None) -> Iterator[PageServer]:
    """Serve `pages`, bodies by path; without any, every path has the body `ok`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            running.asked.append(self.path)
            body = b"ok" if pages is None else pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *words: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        running = PageServer(f"127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield running
        finally:
            server.shutdown()
