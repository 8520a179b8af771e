"""Cells and commands with a time limit each, for frameworks that run commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

import anyio

from cellblock.cell import Cell, CellError
from cellblock.events import Done
from cellblock.outputs import Output
from cellblock.session.session import AsyncSession

Kind = Literal["python", "shell"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """Exit status of a command, as a shell numbers it, and its output."""

    status: int
    stdout: str
    stderr: str


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


async def run_timed(
    session: AsyncSession, source: str, kind: Kind, seconds: float | None, on_output: Callable[[Output], None]
) -> Cell | None:
    """Run a cell, and call `on_output` as it shows something; None where it was interrupted after `seconds`."""
    cell: Cell | None = None
    with anyio.move_on_after(seconds):
        async with aclosing(session.stream(source, kind=kind)) as events:
            async for event in events:
                if isinstance(event, Output):
                    on_output(event)
                elif isinstance(event, Done):
                    cell = event.cell
    return cell
