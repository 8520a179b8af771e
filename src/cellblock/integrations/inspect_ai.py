"""Inspect: a session for each sample, as a sandbox for its commands and files."""

from __future__ import annotations

import errno
import os
import posixpath
import shlex
from typing import Any, Literal

import anyio

from cellblock.errors import FileRefused, LeaseLost, SessionClosed, needing
from cellblock.hosting.unique import unique_word
from cellblock.integrations.commands import command_end, export_lines, time_limit, timed_out
from cellblock.limits import ExecutionLimits
from cellblock.session.session import AsyncSession
from cellblock.text import valid

with needing("inspect", "the sandbox for Inspect needs inspect_ai, 0.3.285 or newer"):
    from inspect_ai.util import (
        ExecResult,
        OutputLimitExceededError,
        SandboxEnvironment,
        SandboxEnvironmentLimits,
        SandboxUnavailableError,
        SandboxUserUnsupportedError,
        sandboxenv,
    )
    from pydantic import BaseModel, ConfigDict

__all__ = ["CellblockConfig", "CellblockSandboxEnvironment"]

_LIMITS = {"timeout_seconds": 3600, "max_output_bytes": 20 * 2**20, "max_memory_mb": 1024, "max_disk_mb": 1024}
"""Default limits: Inspect has limits of time and output of its own for each command, which hold besides."""

_WORKSPACE = "/session/workspace"
_MOST_LINE = 100_000
"""Bytes of a command that fits into an argument of the shell; a longer one is put into a file."""
_CANNOT_EXECUTE = 126
_FOR_COMMANDS = (0, errno.EXDEV, errno.ELOOP, errno.ENXIO)
"""Errors with which the host refuses a path that commands inside may still use."""
_ERRNO_STATUS = 100
"""Added to the number of an error, in the status of a command of ours."""


class CellblockConfig(BaseModel):
    """Configuration of a sample's session: options of `Session`, as plain values that logs keep.

    `limits` are those of `ExecutionLimits`, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mounts: dict[str, str] = {}
    network: tuple[str, ...] | None = None
    preload: tuple[str, ...] = ()
    walls: Literal["full", "reduced"] | None = None
    limits: dict[str, Any] = {}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for `AsyncSession`."""
        own = {name: value for name, value in self if value and name != "limits"}
        return {**own, "limits": ExecutionLimits(**{**_LIMITS, **self.limits})}


@sandboxenv(name="cellblock")
class CellblockSandboxEnvironment(SandboxEnvironment):  # type: ignore[misc]
    """A sandbox of Inspect: `Task(sandbox="cellblock")`. `session` is the session beneath, which is open."""

    def __init__(self, session: AsyncSession) -> None:
        super().__init__()
        self.session = session
        self._users: frozenset[str] | None = None

    @classmethod
    def default_concurrency(cls) -> int | None:
        """Number of samples that have a sandbox at a time, unless the caller says so."""
        return 2 * (os.cpu_count() or 1)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> CellblockConfig:
        return CellblockConfig(**config)

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, Any]:
        """Open a session. `config` is a `CellblockConfig`, or the name of a file with one as JSON."""
        if isinstance(config, str):
            config = CellblockConfig.model_validate_json(await anyio.Path(config).read_text())
        if not isinstance(config, CellblockConfig | None):
            raise TypeError(f"config must be a CellblockConfig, not {type(config).__name__}")
        return {"default": cls(await AsyncSession(**(config or CellblockConfig()).options).open())}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool) -> None:
        """End the sample's sessions and everything they started."""
        with anyio.CancelScope(shield=True):
            for environment in environments.values():
                await environment.as_type(cls).session.close()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command. One that takes too long is stopped with what it started, and never run a second time."""
        if not cmd:
            raise ValueError("there is no command")
        if user is not None:
            await self._require_user(user)
        line = f"cd -- {shlex.quote(posixpath.join(_WORKSPACE, cwd or ''))} || exit\n"
        line += f"{export_lines(env)}exec {shlex.join(cmd)}"
        if input is not None:
            given = await self._put(input)
            line = f"exec < {given}; rm -f {given}\n{line}"
        if len(line.encode("utf-8", "surrogatepass")) > _MOST_LINE:
            script = _new_name()
            await self.session.files.write(script, valid(f"rm -f {script}\n{line}"))
            line = f"exec /bin/sh {script}"
        result = await self._run(line, timeout)
        if result.returncode == _CANNOT_EXECUTE and await self._is_refused(cmd[0], cwd):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), cmd[0])
        return result

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file, with the directories it needs; what the session may write is below its workspace and /tmp."""
        contents = _as_bytes(contents)
        try:
            await self.session.files.write(_as_path(file), contents)
        except FileRefused as refused:
            _raise_as_system_error(refused, file)
            await self._write_inside(file, contents)
        except (SessionClosed, LeaseLost) as gone:
            raise SandboxUnavailableError(str(gone)) from gone

    async def read_file(self, file: str, text: bool = True) -> Any:
        """A file's text, as it is, or its bytes."""
        try:
            data = await self._read(_as_path(file))
        except FileRefused as refused:
            _raise_as_system_error(refused, file)
            data = await self._read_inside(file)
        except (SessionClosed, LeaseLost) as gone:
            raise SandboxUnavailableError(str(gone)) from gone
        return data.decode() if text else data

    # ------------------------------------------------------------------------------ commands

    async def _run(self, line: str, timeout: float | None) -> ExecResult[str]:
        """Run a command to its end. Output that was cut is an error, as Inspect has it."""
        seconds = time_limit(self.session.limits, timeout)
        try:
            cell = await self.session.shell(line, timeout=seconds)
        except (SessionClosed, LeaseLost) as gone:
            raise SandboxUnavailableError(str(gone)) from gone
        if timed_out(cell.error):
            raise TimeoutError(f"the command ran longer than {seconds:g} s")
        end, most = command_end(cell.error, cell.outputs), SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        for text in (end.stdout, end.stderr):
            if cell.cut or len(text.encode()) > most:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, text[:most])
        return ExecResult(success=end.status == 0, returncode=end.status, stdout=end.stdout, stderr=end.stderr)

    async def _is_refused(self, program: str, cwd: str | None) -> bool:
        """True if a program may not be executed, by its file: a command may have the same status."""
        line = f"cd -- {shlex.quote(posixpath.join(_WORKSPACE, cwd or ''))} && f={shlex.quote(program)} && "
        line += '[ ! -x "$f" ] || [ -d "$f" ]' if "/" in program else '! command -v -- "$f"'
        return bool((await self._run(line, None)).success)

    async def _require_user(self, user: str) -> None:
        if self._users is None:
            self._users = frozenset((await self._run("id -u; id -un", None)).stdout.split())
        if user not in self._users:
            raise SandboxUserUnsupportedError(
                f"a session has one user, {' or '.join(sorted(self._users))}, and cannot run commands as {user!r}"
            )

    async def _put(self, data: str | bytes) -> str:
        """Put data into a new file, for a command to read and remove."""
        name = _new_name()
        await self.session.files.write(name, _as_bytes(data))
        return name

    # ------------------------------------------------------------------------------ files that only commands reach

    async def _read(self, file: str) -> bytes:
        most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            return await self.session.files.read(file, max_bytes=most)
        except FileRefused as refused:
            if refused.errno == errno.EFBIG:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from refused
            raise

    async def _read_inside(self, file: str) -> bytes:
        """Read as a command does, which also sees what is mounted into the session."""
        copy, most = _new_name(), int(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        result = await self._run(
            f"f={shlex.quote(posixpath.join(_WORKSPACE, file))}\n"
            f'[ ! -d "$f" ] || exit {_ERRNO_STATUS + errno.EISDIR}\n'
            f'[ -e "$f" ] || exit {_ERRNO_STATUS + errno.ENOENT}\n'
            f'[ -f "$f" ] || exit {_ERRNO_STATUS + errno.EINVAL}\n'
            f'[ -r "$f" ] || exit {_ERRNO_STATUS + errno.EACCES}\n'
            f'exec head -c {most + 1} -- "$f" > {copy}',
            None,
        )
        _raise_by_status(result, file)
        data = await self._read(copy)
        await self.session.files.delete(copy)
        return data

    async def _write_inside(self, file: str, contents: str | bytes) -> None:
        given = await self._put(contents)
        result = await self._run(
            f"exec < {given}; rm -f {given}\n"
            f"f={shlex.quote(posixpath.join(_WORKSPACE, file))}\n"
            f'[ ! -d "$f" ] || exit {_ERRNO_STATUS + errno.EISDIR}\n'
            f'mkdir -p -- "${{f%/*}}" && cat > "$f" || exit {_ERRNO_STATUS + errno.EACCES}',
            None,
        )
        _raise_by_status(result, file)


def _as_bytes(contents: str | bytes) -> bytes:
    """Contents as they are written: of a text that has no UTF-8, the rest."""
    return valid(contents).encode() if isinstance(contents, str) else contents


def _as_path(file: str) -> str:
    """A path that a file can have."""
    if "\0" in file or valid(file) != file:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), file)
    return file


def _raise_as_system_error(refused: FileRefused, file: str) -> None:
    """Raise the error that Inspect expects of a path; return where a command inside may still use it."""
    if refused.errno not in _FOR_COMMANDS:
        raise OSError(refused.errno, os.strerror(refused.errno), file) from refused


def _raise_by_status(result: ExecResult[str], file: str) -> None:
    if result.success:
        return
    number = result.returncode - _ERRNO_STATUS if result.returncode > _ERRNO_STATUS else errno.EIO
    raise OSError(number, os.strerror(number), file)


def _new_name() -> str:
    return f"/tmp/.inspect-{unique_word(12)}"
