"""Commands in the sandbox, by E2B's methods."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cellblock.integrations.commands import ended
from cellblock.integrations.e2b.environment import Environment
from cellblock.integrations.e2b.exceptions import (
    InvalidArgumentException,
    SandboxException,
    checked,
    wrong,
)
from cellblock.integrations.e2b.execution import followed
from cellblock.outputs import Output
from cellblock.session.blocking import Session


@dataclass
class CommandResult:
    """Output and end of a command."""

    stderr: str
    stdout: str
    exit_code: int
    error: str | None = None


class CommandExitException(SandboxException):
    """A command ended with a status other than 0."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__(f"command exited with code {result.exit_code} and error:\n{result.stderr}")
        self.stdout, self.stderr = result.stdout, result.stderr
        self.exit_code, self.error = result.exit_code, result.error


class Commands:
    """Runs commands with /bin/sh in the workspace."""

    def __init__(self, session: Session, environment: Environment) -> None:
        self._session, self._environment = session, environment

    @checked
    def run(
        self,
        cmd: str,
        background: bool | None = None,
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        timeout: float | None = 60,
    ) -> CommandResult:
        """Run a command to its end. CommandExitException for a status other than 0, TimeoutException at the limit.

        `timeout` in seconds, None or 0 for the session's own. `user` can only be the one that there is.
        """
        if background:
            raise InvalidArgumentException("no command runs in the background", hint="run it to its end")
        if user not in (None, "user"):
            raise wrong("user", "left out: a sandbox has one user", user)
        before = f"cd -- {shlex.quote(posixpath.join('.', cwd))} || exit 1\n" if cwd is not None else ""

        def tell(output: Output) -> None:
            if callback := {"stdout": on_stdout, "stderr": on_stderr}.get(output.stream or ""):
                callback(output.text)

        with self._environment.once(envs):
            cell = followed(self._session, before + cmd, "shell", timeout, tell)
        error, end = cell.error, ended(cell.error, cell.outputs)
        result = CommandResult(
            stderr=end.stderr,
            stdout=end.stdout,
            exit_code=end.status,
            error=None if error is None else error.message + (f" ({error.hint})" if error.hint else ""),
        )
        if result.exit_code:
            raise CommandExitException(result)
        return result
