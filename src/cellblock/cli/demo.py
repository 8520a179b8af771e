"""`cellblock demo`: an analysis, a mistake, an attack, a loop and a memory bomb in one session, and what stays."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cell import Cell
from cellblock.cli.exits import DONE, FAILED, Unusable
from cellblock.cli.storyboard import STEPS, Step
from cellblock.limits import ExecutionLimits
from cellblock.private import private_directory, write_private
from cellblock.walls import Applied

if TYPE_CHECKING:
    from cellblock.cli.progress import Progress
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
        help="show a session, its limits and its walls",
        description="Runs an analysis and some attacks in one session. Needs no key and no network.",
    )
    parser.add_argument("--out", default=".", metavar="DIR", help="where to write the notebook and the page (.)")
    parser.add_argument("--fast", action="store_true", help="with the standard library only")
    parser.set_defaults(command=demo)


def demo(arguments: argparse.Namespace) -> int:
    """Run the demo; 0 when every cell ended as it is meant to."""
    import anyio

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
    from cellblock.cli.opening import open_session, start_early
    from cellblock.cli.progress import Progress
    from cellblock.session.session import AsyncSession

    began = time.perf_counter()
    progress = Progress(sys.stdout)
    preload = ("pandas", "matplotlib.pyplot") if tables else ()
    session = AsyncSession(limits=_LIMITS, preload=preload, seed=1)
    os.environ[_VARIABLE] = "a secret of the host, for the attack to look for"
    try:
        async with progress.step("open a session" + (", preload pandas" if tables else "")) as line:
            start = start_early(preload=preload, limits=session.limits)
            line.doing = lambda: start.doing
            await open_session(session, start)
            await session.files.write("sales.csv", sales_csv())
            line.good, line.outcome = (
                True,
                f"{sum(isinstance(wall, Applied) for wall in session.capabilities.walls)} walls",
            )
        good = [await _play(session, step, progress, tables=tables) for step in STEPS]
        warm = await _warm_ms(session)
        written = _write(session, out)
    finally:
        await session.close()
        del os.environ[_VARIABLE]
    print()
    for path in written:
        print(f"wrote {path}")
    print()
    print(_summary(session, good, warm, time.perf_counter() - began))
    return DONE if all(good) else FAILED


async def _play(session: AsyncSession, step: Step, progress: Progress, *, tables: bool) -> bool:
    async with progress.step(step.caption) as line:
        cell = await session.run(step.source if tables else step.plain or step.source)
        ended = "completed" if cell.error is None else cell.error.kind
        line.good = ended == step.end and _reached(cell, step) == 0
        line.outcome = _outcome(cell, step)
    return line.good


def _reached(cell: Cell, step: Step) -> int:
    """Number of attempts that got anything: all that is not printed as nothing counts."""
    return step.attempts - sum(": nothing (" in line for line in cell.text.splitlines()) if step.attempts else 0


def _outcome(cell: Cell, step: Step) -> str:
    if step.attempts:
        return f"{step.attempts - _reached(cell, step)} of {step.attempts} got nothing"
    if cell.error is None:
        if any(output.uri is not None for output in cell.outputs):
            return "a figure"
        printed = "".join(output.text for output in cell.outputs if output.stream == "stdout").splitlines()
        return printed[-1][:60] if printed else ""
    if cell.error.kind == "timeout":
        return "stopped, names kept"
    if cell.error.kind == "memory":
        return "MemoryError, back to before it"
    return f"{cell.error.type}: {cell.error.message}"[:60]


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
    from cellblock.cli.export import write_document

    notebook = session.notebook
    written = [out / "cellblock-demo.ipynb", out / "cellblock-demo.html"]
    for path in written:
        write_document(path, notebook)
    uris = [output.uri for cell in notebook.cells for output in cell.outputs if output.uri is not None]
    for number, uri in enumerate(uris):
        written.append(out / f"cellblock-demo{f'-{number + 1}' if number else ''}.png")
        write_private(written[-1], notebook.read(uri))
    return [path.resolve() for path in written]


def _summary(session: AsyncSession, good: list[bool], warm_ms: float, seconds: float) -> str:
    attempts = sum(step.attempts for step in STEPS)
    stopped = sum(step.end in ("timeout", "memory") for step in STEPS)
    lines = [
        f"{len(session.notebook)} cells in {seconds:.1f} s; a warm cell costs {warm_ms:.2f} ms",
        f"contained: {attempts} attempts on the host, {stopped} cells that would not have ended",
    ]
    failed = [step.caption for step, ended_well in zip(STEPS, good, strict=True) if not ended_well]
    if failed:
        lines.append(f"not as it should be: {'; '.join(failed)}")
    return "\n".join(lines)


ROWS = 4000
_PRODUCTS = (("espresso", 2.6), ("filter coffee", 3.1), ("tea", 2.4), ("croissant", 2.2), ("sandwich", 6.5))
_SHOPS = ("Harbour", "Old Town", "Station", "University")
_SEED = 20240131


def sales_csv(rows: int = ROWS) -> bytes:
    """A CSV of `rows` sales of 2024, some twice.

    Dates in two notations, amounts with units, commas or nothing, names in any case and with stray spaces.
    """
    generator = random.Random(_SEED)  # noqa: S311  (made-up data, not a secret)
    lines = ["date,shop,product,quantity,price"]
    for _ in range(rows):
        lines.append(_line(generator))
        if generator.random() < 0.01:
            lines.append(lines[-1])
    return ("\n".join(lines) + "\n").encode()


def _line(generator: random.Random) -> str:
    month = generator.choices(range(1, 13), weights=(6, 6, 7, 8, 9, 11, 12, 12, 9, 8, 8, 14))[0]
    day = generator.randint(1, 28)
    date = f"2024-{month:02}-{day:02}" if generator.random() < 0.8 else f"{day:02}.{month:02}.2024"
    shop = generator.choices(_SHOPS, weights=(5, 4, 7, 3))[0]
    product, price = generator.choice(_PRODUCTS)
    return ",".join((date, _scrawled(shop, generator), _scrawled(product, generator), *_amount(price, generator)))


def _amount(price: float, generator: random.Random) -> tuple[str, str]:
    quantity = str(generator.randint(1, 6)) if generator.random() > 0.01 else ""
    shown = f"{price * generator.uniform(0.95, 1.1):.2f}"
    notation = generator.random()
    if notation < 0.03:
        return quantity, generator.choice(("", "n/a", "?"))
    if notation < 0.15:
        return quantity, f'"{shown.replace(".", ",")} EUR"'
    return quantity, f"{shown} EUR" if notation < 0.3 else shown


def _scrawled(name: str, generator: random.Random) -> str:
    chance = generator.random()
    if chance < 0.08:
        return name.upper()
    return f" {name.lower()} " if chance < 0.16 else name
