"""`cellblock demo`: an analysis, a mistake, an attack, a loop and a memory bomb in one session, and what stays."""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from cellblock.cell import Cell
from cellblock.cli.exits import DONE, FAILED, Unusable
from cellblock.cli.export import write_document
from cellblock.cli.opening import Setup
from cellblock.cli.progress import Progress
from cellblock.cli.storyboard import STEPS, Step, sales_csv
from cellblock.limits import ExecutionLimits
from cellblock.private import private_directory, write_private
from cellblock.walls import Applied

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession

_PACKAGES = ("pandas", "matplotlib")
_VARIABLE = "CELLBLOCK_DEMO_API_KEY"
_WARM_CELLS = 30
_LIMITS = ExecutionLimits(timeout_seconds=3.0, max_memory_mb=128)
"""The loop ends soon, and the memory is full long before the time is up, on a busy machine too."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "demo",
        description="Runs an analysis and some attacks in one session. Needs no key and no network.",
    )
    parser.add_argument("--out", default=".", metavar="DIR", help="where to write the notebook and the page (.)")
    parser.add_argument("--fast", action="store_true", help="with the standard library only")
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    """Run the demo; the exit status is 0 where every cell ended as it is meant to."""
    out = Path(arguments.out)
    try:
        private_directory(out)
    except OSError as error:
        raise Unusable(f"--out {arguments.out!r}: {error.strerror}") from None
    if not os.access(out, os.W_OK):
        raise Unusable(f"--out {arguments.out!r}: nothing can be written there")
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing and not arguments.fast:
        print(f"{' and '.join(missing)} not found: a smaller demo (the whole: pip install 'cellblock[data]')\n")
    tables = not (missing or arguments.fast)
    return anyio.run(_demo, out, tables)


async def _demo(out: Path, tables: bool) -> int:
    began = time.perf_counter()
    progress = Progress(sys.stdout)
    preload = ("pandas", "matplotlib.pyplot") if tables else ()
    setup = Setup({"limits": _LIMITS, "preload": preload, "seed": 1})
    session = setup.session()
    os.environ[_VARIABLE] = "a secret of the host, for the attack to look for"
    try:
        async with progress.step("open a session" + (", preload pandas" if tables else "")) as line:
            line.doing = lambda: setup.doing
            await setup.open(session)
            await session.files.write("sales.csv", sales_csv())
            walls = sum(isinstance(wall, Applied) for wall in session.capabilities.walls)
            line.outcome = f"{walls} walls"
        failed = [step.caption for step in STEPS if not await _play(session, step, progress, tables=tables)]
        warm = await _warm_ms(session)
        written = _write(session, out)
    finally:
        await session.close()
        del os.environ[_VARIABLE]
    attempts = sum(step.attempts for step in STEPS)
    stopped = sum(step.end in ("timeout", "memory") for step in STEPS)
    print("", *(f"wrote {path}" for path in written), "", sep="\n")
    print(f"{len(session.notebook)} cells in {time.perf_counter() - began:.1f} s; a warm cell costs {warm:.2f} ms")
    print(f"contained: {attempts} attempts on the host, {stopped} cells that would not have ended")
    if failed:
        print(f"not as it should be: {'; '.join(failed)}")
    return FAILED if failed else DONE


async def _play(session: AsyncSession, step: Step, progress: Progress, *, tables: bool) -> bool:
    async with progress.step(step.caption) as line:
        cell = await session.run(step.source if tables else step.plain or step.source)
        ended = "completed" if cell.error is None else cell.error.kind
        stopped = cell.text.count(": nothing (")  # an attempt that is not printed so got something
        line.good = ended == step.end and stopped == step.attempts
        line.outcome = f"{stopped} of {step.attempts} got nothing" if step.attempts else _outcome(cell)
    return line.good


def _outcome(cell: Cell) -> str:
    if cell.error is not None:
        stopped = {"timeout": "stopped, names kept", "memory": "MemoryError, back to before it"}
        return stopped.get(cell.error.kind, f"{cell.error.type}: {cell.error.message}"[:60])
    if any(output.uri is not None for output in cell.outputs):
        return "a figure"
    printed = "".join(output.text for output in cell.outputs if output.stream == "stdout").splitlines()
    return printed[-1][:60] if printed else ""


async def _warm_ms(session: AsyncSession) -> float:
    """Milliseconds from call to reply of a cell: the median of some that do nothing."""
    times = []
    for _ in range(_WARM_CELLS):
        began = time.perf_counter()
        cell = await session.run("pass")
        times.append((time.perf_counter() - began) * 1e3)
        session.delete(cell.id)
    return sorted(times)[len(times) // 2]


def _write(session: AsyncSession, out: Path) -> list[Path]:
    """Write the notebook, the page and the figures, and name them."""
    notebook = session.notebook
    written = [out / "cellblock-demo.ipynb", out / "cellblock-demo.html"]
    for path in written:
        write_document(path, notebook)
    uris = [output.uri for cell in notebook.cells for output in cell.outputs if output.uri is not None]
    for number, uri in enumerate(uris):
        written.append(out / f"cellblock-demo{f'-{number + 1}' if number else ''}.png")
        write_private(written[-1], notebook.read(uri))
    return [path.resolve() for path in written]
