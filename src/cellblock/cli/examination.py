"""The examination of a machine: a session is opened, and each of its walls is tried from inside."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from cellblock.cli.probes import PRELUDE, PROBES, REDUCED, Probe
from cellblock.errors import CellblockError, IsolationUnavailable
from cellblock.executors.system import require_linux
from cellblock.hosting.conditions import require, small_files, without_internet
from cellblock.hosting.machine import MACHINE
from cellblock.limits import ExecutionLimits
from cellblock.session.session import AsyncSession
from cellblock.text import message_of, plain, type_name
from cellblock.walls import Unavailable, Wall, Walls
from cellblock.worker.confine.syscall_numbers import NUMBERS

_MEMORY_MB, _DISK_MB, _PROCESSES = 96, 16, 32
_MOST_SAID = 500
_VARIABLE = "CELLBLOCK_DOCTOR_CANARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One attempt, the answer it got, and `proved`: the answer proves the wall."""

    mechanism: str
    tried: str
    answer: str
    proved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The walls, and the attempts made; `failure` is the reason why no session could be opened, "" where one was."""

    walls: tuple[Wall, ...]
    findings: tuple[Finding, ...] = ()
    failure: str = ""
    python: str = ""
    skipped: tuple[str, ...] = ()

    @property
    def walls_up(self) -> bool:
        """True if a session could be opened."""
        return bool(self.walls) and not self.failure

    @property
    def ok(self) -> bool:
        """True if every wall is up and every attempt was refused."""
        return self.walls_up and bool(self.findings) and all(one.proved for one in self.findings)


async def examine(landlock_abi: int, asked: Walls = "full") -> Report:
    """Open a session with small limits and make every attempt that this Landlock version should refuse."""
    limits = ExecutionLimits(max_memory_mb=_MEMORY_MB, max_disk_mb=_DISK_MB, max_processes=_PROCESSES)
    findings, skipped = [], []
    try:
        require_linux("trust_level='isolated'")
        require(small_files)  # before any is written
        with _bait() as bait:
            async with AsyncSession(limits=limits, walls=asked) as session:
                walls, python = session.capabilities.walls, session.capabilities.python
                absent = {wall.mechanism for wall in walls if isinstance(wall, Unavailable) and not wall.needed}
                has_proc = (await session.run("__import__('os').path.exists('/proc/self')")).value
                for probe in PROBES if asked == "full" else REDUCED:
                    if probe.mechanism in absent:
                        skipped.append(f"{probe.title}: there is no {probe.mechanism}")
                    elif probe.needs_abi > landlock_abi:
                        skipped.append(f"{probe.title}: needs Landlock ABI {probe.needs_abi}")
                    elif probe.needs_proc and not has_proc:
                        skipped.append(f"{probe.title}: the session has no /proc")
                    else:
                        findings.append(await _try(session, probe, bait))
    except IsolationUnavailable as error:
        reason = Exception.__str__(error).removesuffix(f" ({error.hint})").removeprefix(f"{error.mechanism}: ")
        missing = Unavailable(mechanism=error.mechanism, reason=reason, remedy=error.hint)
        return Report(walls=(missing,), failure=reason)
    except Exception as error:  # a border: whatever keeps the walls from being tried is the report
        return Report(walls=(), failure=_message(error))
    return Report(walls=walls, findings=tuple(findings), python=python, skipped=tuple(skipped))


async def examine_local() -> str:
    """Run two cells at the level local, which asks nothing of the system: "" where it works, else why it does not."""
    try:
        async with AsyncSession(trust_level="local") as session:
            ran, refused = await session.run("6 * 7"), await session.run("import os")
    except CellblockError as error:
        return str(error)
    if ran.value != 42 or refused.error is None or refused.error.kind != "refused":
        return f"6 * 7 gave {ran.value!r}, and import os {refused.error}"
    return ""


async def _try(session: AsyncSession, probe: Probe, bait: dict[str, object]) -> Finding:
    try:
        await session.set("bait", bait)  # each time: an attempt may end the process, and the names with it
        await session.run(PRELUDE)
        cell = await session.run(probe.source)
        answer = cell.value if cell.error is None else f"{cell.error.type}: {cell.error.message}"
        proved = cell.error is None and probe.is_proved(answer)
    except Exception as error:  # a border: the others are tried all the same
        answer, proved = f"could not be tried: {_message(error)}", False
    if isinstance(answer, dict):  # each answer once, after the names of its attempts
        names = {one: "/".join(str(name) for name, other in answer.items() if other == one) for one in answer.values()}
        answer = ", ".join(f"{attempts} {one}" for one, attempts in names.items())
    return Finding(mechanism=probe.mechanism, tried=probe.title, answer=plain(str(answer)), proved=proved)


def _message(error: Exception) -> str:
    return str(error) if isinstance(error, CellblockError) else f"{type_name(error)}: {message_of(error, _MOST_SAID)}"


@contextmanager
def _bait() -> Iterator[dict[str, object]]:
    """A file, a variable and a listener that the session must not reach, as facts for the attempts."""
    try:
        file = tempfile.NamedTemporaryFile("w", prefix="cellblock-doctor-")  # noqa: SIM115 - the next statement closes it
    except FileNotFoundError as error:
        raise CellblockError(
            f"no file can be written for the sessions to look for: {error.strerror}",
            hint="give this program a /tmp; to a container, --tmpfs /tmp",
        ) from None
    with file as canary, ExitStack() as listening:
        port = 1
        if not without_internet():
            port = listening.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        canary.write("canary")
        canary.flush()
        os.chmod(canary.name, 0o644)
        os.environ[_VARIABLE] = "canary"
        kinds = ("user", "mnt", "pid", "net", "ipc", "uts")
        try:
            yield {
                "canary": canary.name,
                "secret": _VARIABLE,
                "port": port,
                "pid": os.getpid(),
                "namespaces": {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in kinds},
                "numbers": dict(NUMBERS.get(MACHINE, {})),
                "memory": _MEMORY_MB * 2**20,
                "disk": _DISK_MB * 2**20,
                "processes": _PROCESSES,
            }
        finally:
            del os.environ[_VARIABLE]
