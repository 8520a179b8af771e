"""`cellblock run`: one script, in a session of its own, shown as a notebook shows it."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
from pathlib import Path

from cellblock.cli import source
from cellblock.cli.exits import USAGE
from cellblock.limits import ExecutionLimits

_MEMORY_MB = 1 << 20
_OUTPUT_BYTES = 1 << 30
_SHOWN_BYTES = 1_000_000
_DEFAULT = ExecutionLimits()


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a script behind the walls",
        description="Runs a Python script in a new session: no network, no files but its own, limits.",
        usage="cellblock run [options] FILE|- [-- ARGUMENT ...]",
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the script, or - for stdin; arguments after -- are its sys.argv")
    add("--json", action="store_true", help="print one JSON object for each cell and nothing else")
    add("--cells", action="store_true", help="run the parts between `# %%%%` lines as cells; stop at a failure")
    add("--preload", type=_names, default=(), metavar="A,B", help="import these packages before the session starts")
    add("--timeout", type=_seconds, default=_DEFAULT.timeout_seconds, metavar="S", help="seconds a cell (30)")
    add("--memory", type=_megabytes, default=_DEFAULT.max_memory_mb, metavar="MB", help="memory (256)")
    add(
        "--output", type=_bytes, metavar="BYTES",
        help=f"text kept of a cell, the middle is cut ({_SHOWN_BYTES}; with --json {_DEFAULT.max_output_bytes})",
    )  # fmt: skip
    add(
        "--file", action="append", default=[], dest="files", metavar="LOCAL[:NAME]",
        help="copy a file into the session first; may be repeated",
    )  # fmt: skip
    add("--save", metavar="DIR", help="copy images and files that the script made to this directory")
    add("--python", type=_interpreter, metavar="PATH", help="the interpreter inside (the one that runs cellblock)")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Read what the command line names, then run it."""
    from cellblock.cli.script import Job, execute

    try:
        name = arguments.file
        code = None if name == "-" else source.decode(source.read(name), name)
        inputs = dict(_input(word) for word in arguments.files)
        output = arguments.output or (_DEFAULT.max_output_bytes if arguments.json else _SHOWN_BYTES)
        job = Job(
            name=None if name == "-" else Path(name).name,
            code=code,
            arguments=tuple(arguments.passed),
            inputs=inputs,
            by_cell=arguments.cells,
            limits=ExecutionLimits(
                timeout_seconds=arguments.timeout, max_memory_mb=arguments.memory, max_output_bytes=output
            ),
            preload=arguments.preload,
            python=arguments.python,
            as_json=arguments.json,
            save=None if arguments.save is None else Path(arguments.save),
        )
        return execute(job)
    except source.Unusable as error:
        print(f"cellblock: {error}", file=sys.stderr)
        return USAGE


def _input(word: str) -> tuple[str, Path]:
    """Name inside and local path of a `LOCAL[:NAME]`; a local name may hold colons itself."""
    local, name = Path(word), ""
    if not local.exists() and ":" in word:
        before, _, name = word.rpartition(":")
        local = Path(before)
    if not local.is_file():
        reason = "is not a file" if local.exists() else "does not exist"
        raise source.Unusable(f"--file {word!r}: {str(local)!r} {reason}")
    if not os.access(local, os.R_OK):
        raise source.Unusable(f"--file {word!r}: {str(local)!r} is not readable")
    return name or local.name, local


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise argparse.ArgumentTypeError(f"{name!r} is not the name of a package")
    return names


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _megabytes(text: str) -> int:
    return _whole(text, _MEMORY_MB)


def _bytes(text: str) -> int:
    return _whole(text, _OUTPUT_BYTES)


def _whole(text: str, most: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    if not 0 < number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
    return number


def _interpreter(text: str) -> str:
    """An absolute path; a link is not followed, since an environment's interpreter is known by its link."""
    found = shutil.which(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a program")
    return str(Path(found).absolute())
