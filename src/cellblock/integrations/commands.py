"""Commands with variables, a time limit and an exit status, for frameworks that run commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cellblock.cell import CellError
from cellblock.limits import ExecutionLimits
from cellblock.outputs import Output

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """Exit status of a command, as a shell numbers it, and its output."""

    status: int
    stdout: str
    stderr: str


def time_limit(limits: ExecutionLimits, seconds: float | None) -> float:
    """Seconds that a command may take: its own limit where it has one, within that of the session."""
    return min(seconds or limits.timeout_seconds, limits.timeout_seconds)


def timed_out(error: CellError | None) -> bool:
    """True if a cell met its time limit."""
    return error is not None and error.kind == "timeout"


def export_lines(variables: Mapping[str, str] | None) -> str:
    """Shell source that sets a command's variables, a line each; ValueError for a name that cannot be one."""
    lines = []
    for name, value in (variables or {}).items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a variable of the environment")
        lines.append(f"export {name}={shlex.quote(value)}\n")
    return "".join(lines)


def command_end(error: CellError | None, outputs: Sequence[Output]) -> CommandEnd:
    """End of the command of a cell. Where a limit or a wall ended it, the status is 1 and stderr names which."""
    stdout = "".join(one.text for one in outputs if one.stream == "stdout")
    stderr = "".join(one.text for one in outputs if one.stream == "stderr")
    status = 0 if error is None else error.status
    if error is not None and status is None:
        stderr += f"\n{error.type}: {error.message} ({error.hint})"
    return CommandEnd(status=1 if status is None else status, stdout=stdout, stderr=stderr)
