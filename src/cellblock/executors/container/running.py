"""Starts a container for a family, and connects to its first process over a socket in a directory that both see.

The engine's command ends once the container has started. Afterwards messages and descriptors pass over that socket,
since host and container share a kernel: with runc, crun and their like.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from cellblock.container import Container
from cellblock.errors import IsolationUnavailable
from cellblock.executors.container.engine import (
    Engine,
    ask,
    engine_of,
    not_started,
    reason_in,
    working_directory,
)
from cellblock.executors.container.options import (
    INSIDE,
    mount,
    nesting,
    new_name,
    options_of,
    private_directory,
    program,
)
from cellblock.hosting import clock
from cellblock.hosting.sockets import Socket
from cellblock.hosting.threads import begun
from cellblock.hosting.waiting import ready

_MEETING = "/run/cellblock"
_SOCKET = "socket"
_START_SECONDS = 60.0
_IDLE_SECONDS = 1e6
"""The container ends when the host closes it or ends; it need not end by itself."""
_ENDING_SECONDS = 10.0
_CREDENTIALS = struct.Struct("3i")
_MOST_SOCKET_PATH = 60


class Running:
    """A container that runs, as the first process of a family."""

    def __init__(
        self, engine: Engine, runtime: str, image: str, name: str, channel: socket.socket, zygote: socket.socket
    ) -> None:
        self.engine, self.runtime, self.image, self.name = engine, runtime, image, name
        self.channel, self.zygote = channel, zygote
        told = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.pid: int = _CREDENTIALS.unpack(told)[0]  # as the kernel says
        self._ending = threading.Lock()
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except OSError as error:
            self.close()
            raise IsolationUnavailable(
                f"the container ended while it was starting: {error}",
                mechanism="container",
                hint="check that the machine has memory to spare",
            ) from None

    @property
    def alive(self) -> bool:
        return self._pidfd >= 0 and not ready(self._pidfd)

    def kill(self) -> None:
        """End it, with everything inside."""
        if self._pidfd < 0:
            return
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return
        except PermissionError:  # of another user, as whom the engine runs
            ask(self.engine.words("kill", "--signal", "KILL", self.name))

    def await_end(self) -> None:
        """Wait until it has ended, as it does once both channels are closed; kill it where that takes long."""
        with self._ending:
            if self._pidfd < 0:
                return
            if not ready(self._pidfd, seconds=_ENDING_SECONDS):
                self.kill()
                ready(self._pidfd, seconds=_ENDING_SECONDS)
            pidfd, self._pidfd = self._pidfd, -1
            os.close(pidfd)

    def close(self) -> None:
        """Close our ends, which ends it."""
        self.channel.close()
        self.zygote.close()


def run(container: Container, *, python: str, memory_bytes: int, processes: int) -> Running:
    """Start a container. Blocks; IsolationUnavailable says what is missing."""
    engine = engine_of(container.engine)
    words = ("contained", f"{_MEETING}/{_SOCKET}", str(_IDLE_SECONDS), INSIDE)
    options = [*options_of(container, engine, memory_bytes=memory_bytes, processes=processes), *nesting(engine)]
    with _meeting() as (directory, listener):
        options += mount(directory, _MEETING, engine)
        failures = []
        for runtime in engine.runtimes(container.runtime):
            name = new_name()
            line = ["run", "--detach", "--name", name, *options, *program(python, container.image, *words)]
            starting = _Starting(engine.words(*line, runtime=runtime))
            try:
                ends = _met(listener, starting, engine, name)
            except BaseException:
                starting.give_up(engine, name)
                raise
            if ends is not None:
                return Running(engine, runtime, container.image, name, *ends)
            failures.append((runtime, starting.said if starting.status else "its first process ended without a word"))
        raise not_started(engine, container.image, python, failures)


@contextlib.contextmanager
def _meeting() -> Iterator[tuple[Path, socket.socket]]:
    """A directory with a socket for the container alone: its parent is for this user only."""
    private = private_directory()
    if len(str(private)) > _MOST_SOCKET_PATH:
        private.rmdir()
        private = private_directory("/tmp")
    _meetings.add(private)
    try:
        directory = private / "meet"
        directory.mkdir()
        directory.chmod(0o755)
        with Socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(directory / _SOCKET))
            (directory / _SOCKET).chmod(0o666)
            listener.listen(2)
            yield directory, listener
    finally:
        shutil.rmtree(private, ignore_errors=True)
        _meetings.discard(private)


_meetings: set[Path] = set()
"""Directories in use: the end of a program does not wait for a thread that starts a container beforehand."""


@atexit.register
def _leave_none() -> None:
    for private in list(_meetings):
        shutil.rmtree(private, ignore_errors=True)


os.register_at_fork(after_in_child=_meetings.clear)


class _Starting:
    """The engine's command while it starts a container."""

    def __init__(self, words: list[str]) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=working_directory(),
        )
        self._heard: list[bytes] = []
        self._reader = begun(self._hear, name="cellblock-engine")

    def _hear(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            self._heard.append(said.read())
        self._process.wait()

    @property
    def status(self) -> int | None:
        return self._process.poll()

    @property
    def said(self) -> str:
        self._reader.join(_ENDING_SECONDS)
        return reason_in(b"".join(self._heard).decode(errors="replace"))

    def give_up(self, engine: Engine, name: str) -> None:
        """End it, and remove its container."""
        self._process.kill()
        with contextlib.suppress(IsolationUnavailable):
            ask(engine.words("rm", "--force", name))


def _met(
    listener: socket.socket, starting: _Starting, engine: Engine, name: str
) -> tuple[socket.socket, socket.socket] | None:
    """The two connections of the container's first process; None if the engine could not start it."""
    deadline = clock.now() + _START_SECONDS
    listener.settimeout(0.1)
    met: list[socket.socket] = []
    asked = 0.0
    try:
        while len(met) < 2:
            with contextlib.suppress(TimeoutError):
                met.append(listener.accept()[0])
                continue
            if starting.status:
                return None
            now = clock.now()
            if starting.status == 0 and now - asked > 1.0:
                asked = now
                if ask(engine.words("inspect", "--type", "container", name)).returncode:
                    return None  # it ran, and has ended without a word
            if now > deadline:
                raise IsolationUnavailable(
                    f"the container's first process did not answer within {_START_SECONDS:.0f} s",
                    mechanism="container",
                    hint="see whether the machine is overloaded",
                )
        channel, zygote = met
        met = []
        return channel, zygote
    finally:
        for one in met:
            one.close()
