"""The host that is attacked: it holds canaries in every place a secret may be, and listens everywhere."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import cellblock
from cellblock import AsyncSession, ExecutionLimits, Session

LIMITS = ExecutionLimits(timeout_seconds=8, max_memory_mb=128, max_disk_mb=32, max_files=2000, max_processes=48)


WALLS = os.environ.get("ATTACKED_WALLS", "full")
TRUST_LEVEL = os.environ.get("ATTACKED_TRUST_LEVEL", "isolated")
"""Of every session that is attacked: the programs of the attacks, processes of their own, are told in this way."""

for _name, _variable in (("walls", "ATTACKED_WALLS"), ("trust_level", "ATTACKED_TRUST_LEVEL")):
    if _variable in os.environ:
        for _kind in (Session, AsyncSession):
            cast("dict[str, object]", _kind.__init__.__kwdefaults__)[_name] = os.environ[_variable]


@dataclass(slots=True)
class Listeners:
    """Services on the host's loopback and unix sockets; each answers with the canary, and counts."""

    canary: str
    folder: Path
    touched: list[str] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    _sockets: dict[int, tuple[str, socket.socket]] = field(default_factory=dict)
    _poll: select.poll = field(default_factory=select.poll)

    def start(self) -> None:
        self.facts["tcp"] = self._add("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.facts["udp"] = self._add("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        with contextlib.suppress(OSError):  # a host without IPv6
            self.facts["tcp6"] = self._add("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        self.facts["abstract"] = f"\0listener-{os.getpid()}"
        self._add("abstract", socket.AF_UNIX, socket.SOCK_STREAM, self.facts["abstract"])
        self.facts["unix"] = str(self.folder / "listener")
        self._add("unix", socket.AF_UNIX, socket.SOCK_STREAM, self.facts["unix"])
        os.chmod(str(self.facts["unix"]), 0o777)
        threading.Thread(target=self._serve, daemon=True).start()

    def _add(self, name: str, family: int, kind: int, address: object) -> object:
        one = socket.socket(family, kind)
        one.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            one.listen()
        self._sockets[one.fileno()] = name, one
        self._poll.register(one, select.POLLIN)
        return one.getsockname()[1] if family in (socket.AF_INET, socket.AF_INET6) else None

    def _serve(self) -> None:
        while True:
            for number, _ in self._poll.poll():
                name, one = self._sockets[number]
                self.touched.append(name)
                if one.type == socket.SOCK_STREAM:
                    with one.accept()[0] as peer:
                        peer.sendall(self.canary.encode())
                else:
                    _, sender = one.recvfrom(100)
                    one.sendto(self.canary.encode(), sender)


@dataclass(slots=True)
class Host:
    """Tools for attacks from the host's side: the session, a neighbour's session, and the canaries."""

    canary: str
    session: Session
    neighbour: Session
    listeners: Listeners
    folder: Path
    facts: dict[str, object]
    prelude: str = ""

    def cell(self, source: str) -> object:
        """Run a cell with the prelude; its value, or "kind: type: message" of its failure."""
        return outcome_of(self.session, self.prelude + source)


def outcome_of(session: Session, source: str) -> object:
    """A cell's value, or "kind: type: message" of its failure."""
    cell = session.run(source)
    if cell.error is None:
        return cell.value
    return f"{cell.error.kind}: {cell.error.type}: {cell.error.message}"


def refusal_of(function: Callable[..., object], *args: object) -> object:
    """Answer of a call on the host: its result, or the message of the error it raised."""
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def hosting(canary: str) -> Iterator[Host]:
    """A host with canaries in files, environment, memory, arguments and a neighbour's session."""
    folder = Path(tempfile.mkdtemp(prefix="attacked-"))
    folder.chmod(0o755)
    home = Path(tempfile.mkdtemp(prefix=".attacked-", dir=os.path.expanduser("~")))
    os.environ["ATTACKED_SECRET"] = canary
    try:
        os.chdir(folder)
        for place in (folder, home):
            (place / "secret").write_text(canary)
            (place / "victim").write_text("unharmed")
        listeners = Listeners(canary, folder)
        listeners.start()
        with Session(limits=LIMITS) as neighbour, Session(limits=LIMITS) as session:
            port = _furnish(neighbour, canary)
            facts = {
                **listeners.facts,
                "folder": str(folder),
                "secret": str(folder / "secret"),
                "home": str(home / "secret"),
                "pid": os.getpid(),
                "package": str(Path(cellblock.__file__).parents[1]),
                "neighbour_port": port,
            }
            yield Host(canary, session, neighbour, listeners, folder, facts)
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def _furnish(neighbour: Session, canary: str) -> object:
    """Put the canary where a session keeps things, and a server on its loopback; the server's port."""
    neighbour["secret"] = canary
    neighbour.files.write("secret", canary)
    neighbour.files.write("/tmp/secret", canary)
    outcome_of(neighbour, "import os\nos.environ['ATTACKED_SECRET'] = secret")
    if WALLS == "reduced":  # without sockets and shared memory there is no more to furnish
        return 0
    return outcome_of(
        neighbour,
        """
import os, socket, threading
with open("/dev/shm/secret", "w") as file:
    file.write(secret)
server = socket.create_server(("127.0.0.1", 0))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0neighbour")
abstract.listen()
def serve(one):
    while True:
        with one.accept()[0] as peer:
            peer.sendall(secret.encode())
for one in (server, abstract):
    threading.Thread(target=serve, args=(one,), daemon=True).start()
server.getsockname()[1]
""",
    )
