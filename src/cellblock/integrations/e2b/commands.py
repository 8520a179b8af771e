"""Commands in the sandbox, by E2B's methods, and the variables of its environment."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from cellblock.errors import CellblockError, SessionClosed
from cellblock.integrations.commands import command_end
from cellblock.integrations.e2b.exceptions import InvalidArgumentException, SandboxException, checked, told, wrong
from cellblock.integrations.e2b.execution import run_cell
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

        def show(output: Output) -> None:
            if callback := {"stdout": on_stdout, "stderr": on_stderr}.get(output.stream or ""):
                callback(output.text)

        with self._environment.once(envs):
            cell = run_cell(self._session, before + cmd, "shell", timeout, show)
        error, end = cell.error, command_end(cell.error, cell.outputs)
        result = CommandResult(
            stderr=end.stderr,
            stdout=end.stdout,
            exit_code=end.status,
            error=None if error is None else told(error),
        )
        if result.exit_code:
            raise CommandExitException(result)
        return result


_PROGRAM = """
def _cellblock_inside(given, for_good):
    import json, os
    for name, value in json.loads(os.environ.pop("_CELLBLOCK_BEFORE", "{{}}")).items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    if not for_good:
        os.environ["_CELLBLOCK_BEFORE"] = json.dumps({{name: os.environ.get(name) for name in given}})
    os.environ.update(given)
globals().pop("_cellblock_inside")({given!r}, {for_good!r})
"""
"""First takes back the variables of an earlier run, which are still there where that run was undone. Their values from
before it are kept in the environment too, since a session that is opened again has that."""

_IS_LEFT = "'_CELLBLOCK_BEFORE' in __import__('os').environ"


class Environment:
    """Variables of the environment, for good or for one run. Their values are in no cell."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._may_be_left = session.resumed is not None

    def set(self, variables: Mapping[str, str], *, for_good: bool = True) -> None:
        """Set variables, and unset those of an earlier run."""
        given = {str.__str__(name): str.__str__(value) for name, value in variables.items()}  # of an enum, too
        self._aside(_PROGRAM.format(given=given, for_good=for_good))

    def _aside(self, source: str, *, reads: bool = False) -> object:
        try:
            return self._session.aside(source, reads=reads)
        except SessionClosed:
            raise
        except CellblockError as error:
            what = "the sandbox could not set the variables of its environment"
            raise InvalidArgumentException(f"{what}: {error}", hint=error.hint) from None

    @contextmanager
    def once(self, variables: Mapping[str, str] | None) -> Iterator[None]:
        """Set variables for what is run within."""
        if not variables:
            if self._may_be_left and self._aside(_IS_LEFT, reads=True):
                self.set({})
            yield
            return
        self._may_be_left = True
        try:
            self.set(variables, for_good=False)
            yield
        finally:
            self.set({})
