"""The command line: `main` runs a command; each command is a module, imported when it is named."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import cellblock
from cellblock.cli.exits import EPILOG, FAILED, INTERRUPTED, STOPPED, USAGE, Unusable, reason_of
from cellblock.cli.terminal import StreamLost, say, standard_streams
from cellblock.errors import (
    CellblockError,
    FileRefused,
    ImageNotBuilt,
    LogError,
    MergeConflict,
    MountRefused,
    PreloadFailed,
    SessionBusy,
    StoreError,
    UnknownCommit,
    UnknownSession,
)
from cellblock.executors.process import launching
from cellblock.text import row

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_COMMANDS = {
    "run": "run a script behind the walls",
    "agent": "have a model answer a question with code that runs behind the walls",
    "repl": "type Python into a session",
    "notebook": "run a Jupyter document behind the walls",
    "sessions": "look at the sessions of a store",
    "mcp": "serve sessions to MCP clients, on stdio or HTTP",
    "image": "make the image of containers that sessions run in",
    "doctor": "try the walls of this machine",
    "demo": "show a session, its limits and its walls",
}
_WITH_SESSION = (["run"], ["repl"], ["notebook"], ["mcp"])
_USAGE_ERRORS = (PreloadFailed, FileRefused, MountRefused, UnknownCommit, UnknownSession, LogError)
_STORE_ERRORS = (StoreError, SessionBusy, MergeConflict, ImageNotBuilt)
_NOT_EARLY = ("-h", "--h", "--py", "--tr")
"""Options, as short as they can be written, with which no session opens, or one of another interpreter or level."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. Errors of cellblock and of its host end here, as one line on stderr."""
    atexit.register(gc.freeze)  # or the interpreter looks through all that was imported for garbage as it leaves
    with standard_streams():
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        except StreamLost as lost:
            if not lost.unread:
                with suppress(StreamLost):  # then nobody reads a message
                    say(str(lost))
            return FAILED
        finally:
            launching.let_go()


def _run(words: list[str]) -> int:
    try:
        _start_early(words)
        arguments = _parse(words)
        status: int = arguments.command(arguments)
        sys.stdout.flush()
    except SystemExit as leaving:  # argparse: --help, --version, a usage error
        return leaving.code if isinstance(leaving.code, int) else USAGE
    except Unusable as error:
        say(str(error))
        return USAGE
    except CellblockError as error:
        say(str(error))
        return USAGE if isinstance(error, _USAGE_ERRORS) else FAILED if isinstance(error, _STORE_ERRORS) else STOPPED
    except OSError as error:  # of a file that the command line names
        say(reason_of(error))
        return USAGE
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    return status


def _start_early(words: list[str]) -> None:
    """Start the process that a command's session will come from, before the command is imported."""
    options = words[: words.index("--")] if "--" in words else words
    if words[:1] in _WITH_SESSION and not any(word.startswith(_NOT_EARLY) for word in options):
        launching.launch_early()


def _parse(words: list[str]) -> argparse.Namespace:
    """The arguments; words after `--` in `cellblock run FILE -- ...` are the script's own, and not read here."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            super().error(row(message))  # it quotes words as they are

    passed: list[str] = []
    if words[:1] == ["run"] and "--" in words:
        at = words.index("--")
        words, passed = words[:at], words[at + 1 :]
    parser = Parser(prog="cellblock", description="Runs Python code behind kernel walls.", epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"cellblock {cellblock.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    named = words[0] if words else ""
    if named in _COMMANDS:
        import_module(f"cellblock.cli.{named}").add_to(commands)
    else:  # by name alone, for --help and for errors
        for name, about in _COMMANDS.items():
            commands.add_parser(name, help=about).add_argument("words", nargs="...")
    if not named:
        parser.print_help(sys.stderr)
        parser.exit(USAGE, "\ncellblock: error: no COMMAND was given\n")
    if named not in _COMMANDS and not named.startswith("-"):
        parser.error(f"no command {named!r}: there are {', '.join(_COMMANDS)} (cellblock run FILE runs a script)")
    arguments, unknown = parser.parse_known_args(words, argparse.Namespace(passed=passed))
    if named not in _COMMANDS:  # an option, and none of those that end here
        parser.error(f"unrecognized arguments: {' '.join(unknown) or named}")
    if unknown:
        command = commands.choices[named]
        command.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(unknown[0], named, command)}")
    return arguments


def _meant(word: str, named: str, command: argparse.ArgumentParser) -> str:
    """The hint for a word that a command does not know."""
    from difflib import get_close_matches

    if near := get_close_matches(word.partition("=")[0], command._option_string_actions, n=1, cutoff=0.75):
        return f" (did you mean {near[0]}?)"
    if named != "run":
        return ""
    return " (code comes on stdin: cellblock run -)" if word == "-c" else " (what is for the script stands after --)"

