"""Cells and commands as other frameworks give them and take their ends; each may have a time limit of its own."""

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

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """End of a command: its exit status, as a shell numbers it, and what it printed."""

    status: int
    stdout: str
    stderr: str


def exports(variables: Mapping[str, str] | None) -> str:
    """Source that gives a command its variables, a line each; ValueError for a name that is none."""
    lines = []
    for name, value in (variables or {}).items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a variable of the environment")
        lines.append(f"export {name}={shlex.quote(value)}\n")
    return "".join(lines)


def ended(error: CellError | None, outputs: Sequence[Output]) -> Ended:
    """End of the command of a cell. Where a limit or a wall ended it, the status is 1 and stderr says which."""
    stdout = "".join(one.text for one in outputs if one.stream == "stdout")
    stderr = "".join(one.text for one in outputs if one.stream == "stderr")
    status = 0 if error is None else error.status
    if error is not None and status is None:
        stderr += f"\n{error.type}: {error.message} ({error.hint})"
    return Ended(status=1 if status is None else status, stdout=stdout, stderr=stderr)


Kind = Literal["python", "shell"]


async def run_timed(
    session: AsyncSession, source: str, kind: Kind, seconds: float | None, tell: Callable[[Output], None]
) -> Cell | None:
    """Run a cell and tell what it shows as it happens; None where it was interrupted after `seconds`."""
    cell: Cell | None = None
    with anyio.move_on_after(seconds):
        async with aclosing(session.stream(source, kind=kind)) as events:
            async for event in events:
                if isinstance(event, Output):
                    tell(event)
                elif isinstance(event, Done):
                    cell = event.cell
    return cell
