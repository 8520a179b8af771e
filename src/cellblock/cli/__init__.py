"""The command line: `main` picks a command; each command is a module, imported when it is named."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module

import cellblock
from cellblock.cli.exits import EPILOG, FAILED, INTERRUPTED, STOPPED, USAGE
from cellblock.errors import CellblockError, FileRefused, MountRefused, PreloadFailed

_COMMANDS = ("run", "repl", "doctor", "demo")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. Errors of cellblock and of its host end here, as one line on stderr."""
    try:
        arguments = _parse(list(sys.argv[1:] if argv is None else argv))
        status: int = arguments.command(arguments)
        sys.stdout.flush()
    except SystemExit as leaving:  # argparse: --help, --version, a usage error
        return leaving.code if isinstance(leaving.code, int) else USAGE
    except CellblockError as error:
        print(f"cellblock: {error}", file=sys.stderr)
        return USAGE if isinstance(error, PreloadFailed | FileRefused | MountRefused) else STOPPED
    except KeyboardInterrupt:
        print("cellblock: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains as it leaves
        return FAILED
    return status


def _reader_is_gone() -> bool:
    """Whether nobody reads our stdout any more: `cellblock run … | head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _parse(words: list[str]) -> argparse.Namespace:
    """What follows `--` in `cellblock run FILE -- ...` is the file's own and never looked at here."""
    passed: list[str] = []
    if words[:1] == ["run"] and "--" in words:
        at = words.index("--")
        words, passed = words[:at], words[at + 1 :]
    parser = argparse.ArgumentParser(
        prog="cellblock", description="Runs Python code behind kernel walls.", epilog=EPILOG
    )
    parser.add_argument("--version", action="version", version=f"cellblock {cellblock.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    named = [name for name in _COMMANDS if name in words[:1]]
    for name in named or _COMMANDS:
        import_module(f"cellblock.cli.{name}").add_to(commands)
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(USAGE, "\ncellblock: error: no COMMAND was given\n")
    if not named and not words[0].startswith("-"):
        parser.error(f"no command {words[0]!r}: there are {', '.join(_COMMANDS)} (cellblock run FILE runs a script)")
    arguments, unknown = parser.parse_known_args(words, argparse.Namespace(passed=passed))
    if unknown:
        hint = " (what is meant for the script stands after --)" if named == ["run"] else ""
        using = commands.choices[named[0]] if named else parser
        using.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments
