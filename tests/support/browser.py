"""Chromium, once, with pages of ours in frames of one page: which scripts ran in them, and whom they called.

The pages come from a server of their own. Names end in `.test`, and all lead to the listeners of `Callers`; no other
name is known.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from page_server import page_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1000,2000 --remote-debugging-port=0 "
    "--disable-features=HttpsUpgrades"
)
_SHOW = """<!doctype html><script>
var ran = "", left = new Set(PAGES)
function shown(page, frame) {
  if (!left.delete(page)) return
  for (const one of frame.contentDocument?.querySelectorAll("iframe[loading]") ?? []) one.loading = "eager"
  if (left.size == 0) setTimeout(() => { new Image().src = "/done?" + encodeURIComponent(ran) }, 1500)
}
</script><body></body><script>
for (const page of PAGES) {
  const frame = document.createElement("iframe")
  frame.width = 900, frame.height = 1500, frame.src = page
  frame.onload = () => shown(page, frame)
  document.body.append(frame)
}
</script>"""


class Callers:
    """Addresses on loopback, one for each thing that could be asked for. Who connects gets no answer."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self._selector = selectors.DefaultSelector()
        self._wake, self._asleep = socket.socketpair()
        self._selector.register(self._asleep, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> Callers:
        return self

    def __exit__(self, *_: object) -> None:
        self._wake.close()
        if self._thread.ident is not None:
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def url(self, name: str) -> str:
        """A new address, whose host name begins with this name. Before the first call of `listen`."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._selector.register(listener, selectors.EVENT_READ, name)
        return f"http://{name}.test:{listener.getsockname()[1]}/"

    def listen(self) -> None:
        """From now on."""
        self._thread.start()

    def _listen(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                self.called.add(key.data)
                key.fileobj.accept()[0].close()  # type: ignore[union-attr]


@dataclass
class Visit:
    """What came of opening the pages: scripts that ran, as the pages were marked, and names that were looked up."""

    ran: str
    looked_up: str


def visit(pages: Mapping[str, str], directory: Path) -> Visit:
    """Open each of the pages, by name, and wait until they have had time to do what they do."""
    names = [f"/{name}" for name in pages]
    bodies = {f"/{name}": page.encode() for name, page in pages.items()}
    bodies["/all"] = _SHOW.replace("PAGES", repr(names)).encode()
    log = directory / "net.json"
    with page_server(bodies) as server:
        command = [
            str(CHROMIUM), *_OPTIONS.split(), f"--user-data-dir={directory / 'user'}", f"--log-net-log={log}",
            "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"http://{server.place}/all",
        ]  # fmt: skip
        with (directory / "said").open("w") as said:
            browser = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        try:
            deadline = time.monotonic() + 100
            while not (done := [path for path in server.asked if path.startswith("/done?")]):
                assert browser.poll() is None, (directory / "said").read_text()
                assert time.monotonic() < deadline, f"asked for {server.asked}: {(directory / 'said').read_text()}"
                time.sleep(0.05)
        finally:
            os.killpg(browser.pid, signal.SIGTERM)
            browser.wait(30)
        assert {*names, "/all"} <= set(server.asked)
    return Visit(unquote(done[0].partition("?")[2]), log.read_text(errors="replace"))
