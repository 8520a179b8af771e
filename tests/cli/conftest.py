"""The command line as its users meet it: arguments, three streams and an exit status, or a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fcntl import ioctl
from pathlib import Path

import pytest

from cellblock.cli import main

SCRIPTS = Path(__file__).parent / "scripts"
Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]

_SECONDS = 30
_ON_ITS_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # who runs the tests may ignore it, as background jobs do
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.fixture
def program(tmp_path: Path) -> Cellblock:
    """Runs `python -m cellblock` in a directory of its own."""

    def run(
        *words: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "cellblock", *map(str, words)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            timeout=60,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture
def cellblock(tmp_path: Path, program: Cellblock, monkeypatch: pytest.MonkeyPatch) -> Cellblock:
    """Runs a command in this process, with standard streams and a directory of its own.

    Its sessions come from processes that are there already, so it takes a tenth of a program's time. A program is run
    where it needs an environment of its own.
    """

    def run(
        *words: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        if environment is not None and environment.keys() != {"CELLBLOCK_STORE"}:
            return program(*words, stdin=stdin, environment=environment)
        with monkeypatch.context() as patch, _standard_streams(patch, stdin) as written:
            patch.chdir(tmp_path)
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            status = main([str(word) for word in words])
        return subprocess.CompletedProcess(words, status, *written)

    return run


@contextmanager
def _standard_streams(patch: pytest.MonkeyPatch, stdin: bytes) -> Iterator[list[bytes]]:
    """Replace the standard streams and their descriptors by files; at the end, what was written to the two."""
    written: list[bytes] = []
    with ExitStack() as files:
        opened = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        opened[0].write(stdin)
        opened[0].seek(0)
        for number, (name, file) in enumerate(zip(("stdin", "stdout", "stderr"), opened, strict=True)):
            kept = os.dup(number)
            files.callback(os.close, kept)
            files.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
            stream = files.enter_context(open(number, "w" if number else "r", encoding="utf-8", closefd=False))
            patch.setattr(sys, name, stream)
        yield written
        for file in opened[1:]:
            file.seek(0)
            written.append(file.read())


@pytest.fixture
def scripts() -> Path:
    """Directory of the sample scripts."""
    return SCRIPTS


class Typed:
    """A process at a terminal of its own, 100 columns wide, and the fingers of the one in front of it."""

    def __init__(self, words: list[str], directory: Path, environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(100)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_ITS_TERMINAL, *words],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=directory, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._read = b""
        self._seen = 0

    @property
    def screen(self) -> str:
        """All that was written to the terminal so far, without what readline says to the terminal itself."""
        text = self._read.decode("utf-8", "replace").replace("\r\n", "\n")
        return re.sub(r"\x1b\[\?2004[hl]\r?|\x1b\[\d*[CDK]|\x07|\r", "", text)

    def resize(self, columns: int) -> None:
        """Make the terminal so wide."""
        ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press the keys of a text."""
        os.write(self._ours, text.encode())

    def line(self, text: str) -> None:
        """Type a line once there is a prompt."""
        self.expect(r"(?:>>>|\.\.\.) \Z")
        self.type(text + "\r")

    def expect(self, pattern: str, seconds: float = _SECONDS) -> str:
        """Wait until what was not yet looked at matches; what matched. `\\Z` is the end of all there is."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.screen
            if (found := re.compile(pattern).search(text, self._seen)) is not None:
                self._seen = found.end()
                return found[0]
            if not self._more(deadline - time.monotonic()):
                raise AssertionError(f"no {pattern!r} in {text[self._seen :]!r}, after {text[: self._seen]!r}")

    def press_until(self, key: str, pattern: str) -> str:
        """Press a key again and again, once a second."""
        for _ in range(_SECONDS):
            self.type(key)
            try:
                return self.expect(pattern, 1)
            except AssertionError as error:
                missing = error
        raise missing

    def result(self, text: str) -> str:
        """Type a line, and all that is shown until the next prompt."""
        self.line(text)
        self.expect(re.escape(text) + "\n")
        return self.expect(r"(?s).*?(?=>>> \Z)")

    def end(self) -> int:
        """Wait for the process to leave; its exit status."""
        while self._more(_SECONDS):
            pass
        return self._process.wait(_SECONDS)

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def close(self) -> None:
        """Hang up."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def _more(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], max(seconds, 0))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # the process has gone
            return False
        self._read += chunk
        return bool(chunk)


@pytest.fixture
def repl(tmp_path: Path) -> Iterator[Callable[..., Typed]]:
    """Starts `cellblock repl`, or another command, at a terminal, with a home of its own; ends what it started."""
    started: list[Typed] = []

    def start(*words: str, command: str = "repl", python: tuple[str, ...] = ("-m", "cellblock")) -> Typed:
        environment = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm", "NO_COLOR": "1"}
        environment.pop("XDG_STATE_HOME", None)
        environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
        started.append(Typed([*python, command, *words], tmp_path, environment))
        return started[-1]

    yield start
    for one in started:
        one.close()
