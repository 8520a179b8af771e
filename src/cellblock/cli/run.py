"""`cellblock run`: a script in a session of its own, shown as a notebook shows it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli import options, source
from cellblock.cli.exits import EPILOG, FAILED, INTERRUPTED, Unusable, status_of
from cellblock.cli.export import Shelf, contents
from cellblock.cli.interrupts import CtrlC
from cellblock.cli.opening import Setup, Width, set_script
from cellblock.cli.show import JsonLines, Screen
from cellblock.cli.terminal import say
from cellblock.limits import ExecutionLimits

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession

_JSON_BYTES = ExecutionLimits().max_output_bytes


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run",
        description="Runs a Python script in a new session, or in one that is kept: no network but what --network "
        "lists, no files but its own, limits.",
        usage="cellblock run [options] FILE|- [-- ARGUMENT ...]",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the script, or - for stdin; arguments after -- are its sys.argv")
    add("--json", action="store_true", help="print one JSON object for each cell and nothing else")
    add("--cells", action="store_true", help="run the parts between `# %%%%` lines as cells; stop at a failure")
    add("--save", metavar="DIR", help="copy images and files that the script made to this directory")
    options.add_session(parser, f"{options.SHOWN_BYTES}; with --json {_JSON_BYTES}")
    options.add_kept(parser)
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    save = None if arguments.save is None else options.directory(arguments.save)
    name: str = arguments.file
    if name.endswith(".ipynb"):
        raise Unusable(f"{name} is a notebook (cellblock notebook run {name})")
    script = "" if name == "-" else source.decode(source.read(name), name)
    output_bytes = _JSON_BYTES if arguments.json else options.SHOWN_BYTES
    setup = options.setup(arguments, output_bytes, options.kept(arguments))
    if name == "-":  # while processes start
        script = source.decode(source.read_stdin(), "stdin")
    import anyio

    return anyio.run(_run, arguments, save, setup, script)


async def _run(arguments: argparse.Namespace, save: Path | None, setup: Setup, script: str) -> int:
    session = setup.session()
    try:
        await setup.open(session, sys.stderr)
        await _prepare(session, arguments, script)
        before = {} if save is None else await contents(session)
        shelf = None if save is None else Shelf(save, session.limits.max_disk_mb)
        view = JsonLines(session, shelf) if arguments.json else Screen(session, shelf, option="--save DIR")
        with CtrlC(session) as ctrl_c:
            for part in source.split(script) if arguments.cells else [script]:
                cell = await view.run(part)
                if not cell.ok:
                    break
        await view.end(before)
        if arguments.file != "-" and source.is_piped_in():
            say("what is piped in does not reach the script: give it as a file (--file PATH)")
    finally:
        await session.close()
    if ctrl_c.count and not cell.ok:
        say(f"interrupted after {ctrl_c.seconds:.1f} s")
        return INTERRUPTED
    return FAILED if cell.ok and shelf is not None and shelf.failed else status_of(cell)


async def _prepare(session: AsyncSession, arguments: argparse.Namespace, script: str) -> None:
    """Put the script itself and its arguments where it expects them.

    The script is a file inside because a process that it spawns imports it again, by `__file__`.
    """
    named: str = arguments.file
    path = "/tmp/stdin.py" if named == "-" else f"/workspace/{Path(named).name}"  # inside the session
    await session.files.write(path, script.encode("utf-8", "surrogatepass"))
    await set_script(session, path, (Path(named).name, *arguments.passed))
    if sys.stdout.isatty():
        await Width().set(session)
