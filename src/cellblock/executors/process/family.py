"""The host's hold on a family: one nursery and one zygote that make every session of a profile.

Started on first use, kept until this process ends, replaced when its zygote dies. Every end of a channel that
this process holds is closed in its forked copies, so that the family's end is tied to this process alone.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from cellblock.errors import IsolationUnavailable, PreloadFailed
from cellblock.worker import control

_START_SECONDS = 120.0
_DEATH_SECONDS = 0.5
_PACKAGE = Path(__file__).parents[2]
_BOOT = _PACKAGE / "worker" / "__main__.py"
_INHERITED = ("LD_LIBRARY_PATH", "TZ")
"""The only variables of the host's environment that a family sees."""

_NEEDED = "python= must name CPython 3.11 or newer; what it said is on stderr"


@dataclass(frozen=True, slots=True)
class Profile:
    """What sessions of one family share: the interpreter and the packages imported beforehand."""

    python: str
    preload: tuple[str, ...] = ()


@dataclass(slots=True)
class Family:
    """A running family. All methods may be called from any thread."""

    profile: Profile
    _process: subprocess.Popen[bytes]
    _nursery: socket.socket
    _zygote: socket.socket
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tokens: int = 0
    _deaths: dict[int, int] = field(default_factory=dict)

    @classmethod
    def start(cls, profile: Profile) -> Family:
        """Start a family and wait until its packages are imported. Blocks; raises what it lacks."""
        if sys.platform != "linux":
            raise IsolationUnavailable(
                f"trust_level='isolated' needs Linux, this is {sys.platform}",
                mechanism="namespaces",
                hint="run it on Linux: a virtual machine or a container on this one will do",
            )
        nursery, nursery_end = control.pair()
        zygote, zygote_end = control.pair()
        ends = (nursery_end.fileno(), zygote_end.fileno())
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment |= {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}  # the rest the zygote sets before it imports anything
        try:
            process = subprocess.Popen(
                [profile.python, "-s", "-P", str(_BOOT), *map(str, ends)],
                pass_fds=ends,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            nursery.close()
            zygote.close()
            raise IsolationUnavailable(
                f"{profile.python} cannot be started: {error}",
                mechanism="python",
                hint=_NEEDED,
            ) from error
        finally:
            nursery_end.close()
            zygote_end.close()
        family = cls(profile, process, nursery, zygote)
        watch_forks(nursery, zygote)
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which is reported below
            control.send(zygote, {"expose": [str(_PACKAGE)], "preload": list(profile.preload)})
        family._await_ready()
        return family

    def _await_ready(self) -> None:
        self._zygote.settimeout(_START_SECONDS)
        try:
            report, _ = control.receive(self._zygote)
        except TimeoutError:
            report = {"failed": "start", "reason": f"no answer in {_START_SECONDS:.0f} s", "remedy": ""}
        if report is not None and report.get("ready"):
            self._zygote.setblocking(False)
            return
        self.close()
        if report is None:
            report = {"failed": "start", "reason": f"{self.profile.python} ended at once", "remedy": _NEEDED}
        if report["failed"] == "preload":
            raise PreloadFailed(
                f"cannot preload {report['module']}: {report['reason']}",
                hint=str(
                    report.get("remedy")
                    or f"install it into the environment of {self.profile.python}, or leave it out of preload="
                ),
            )
        raise IsolationUnavailable(
            f"{report['failed']}: {report['reason']}",
            mechanism=str(report["failed"]),
            hint=str(report["remedy"]),
        )

    @property
    def alive(self) -> bool:
        """Whether new sessions can be made."""
        self._read_deaths()
        return self._process.poll() is None and self._zygote.fileno() >= 0

    def make_shell(self, init: socket.socket, *, disk_bytes: int, files: int, memory_bytes: int) -> None:
        """Ask for a shell whose first process speaks on `init`."""
        with self._lock:
            sizes = {"disk_bytes": disk_bytes, "files": files, "memory_bytes": memory_bytes}
            control.send(self._nursery, sizes, [init.fileno()])

    def attach(self, init: int, ends: tuple[socket.socket, int, int], setup: dict[str, object]) -> int:
        """Ask for a worker in a shell; the token under which its end will be known."""
        worker, stdout, stderr = ends
        with self._lock:
            self._tokens += 1
            message = {**setup, "token": self._tokens}
            control.send(self._zygote, message, [init, worker.fileno(), stdout, stderr])
            return self._tokens

    def how_it_ended(self, token: int) -> int | None:
        """The wait status of a worker that is dead, once; None if the zygote does not tell it soon. Blocks."""
        deadline = time.monotonic() + _DEATH_SECONDS
        while token not in self._deaths and time.monotonic() < deadline and self._zygote.fileno() >= 0:
            wait = select.poll()
            wait.register(self._zygote, select.POLLIN)
            wait.poll((deadline - time.monotonic()) * 1e3)
            self._read_deaths()
        return self._deaths.pop(token, None)

    def _read_deaths(self) -> None:
        with self._lock:
            while self._zygote.fileno() >= 0:
                try:
                    notice, _ = control.receive(self._zygote)
                except BlockingIOError:
                    return
                except (OSError, json.JSONDecodeError):
                    notice = None
                if notice is None:
                    self._zygote.close()
                    return
                if isinstance(notice.get("ended"), int):
                    self._deaths[int(str(notice["ended"]))] = int(str(notice["status"]))

    def close(self) -> None:
        """End the family and every session of it."""
        with self._lock:
            self._nursery.close()
            self._zygote.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_families: dict[Profile, Family] = {}
_starting = threading.Lock()


def family_of(profile: Profile) -> Family:
    """The family of a profile, started if there is none that lives. Blocks while it starts."""
    family = _families.get(profile)
    if family is not None and family.alive:
        return family
    with _starting:
        family = _families.get(profile)
        if family is None or not family.alive:
            family = _families[profile] = Family.start(profile)
        return family


@atexit.register
def _close_all() -> None:
    while _families:
        _families.popitem()[1].close()


_ours: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def watch_forks(*sockets: socket.socket) -> None:
    """Have forked copies of this process close their copies of these; they would keep the other end waiting."""
    _ours.update(sockets)


def _after_fork_in_child() -> None:
    for one in list(_ours):
        one.close()
    _families.clear()
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
