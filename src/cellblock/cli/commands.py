"""The commands of the prompt, which are typed with a colon before them, as a table."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cellblock.cli import source
from cellblock.cli.exits import Unusable
from cellblock.cli.export import Shelf, write_document
from cellblock.cli.options import MOST_STEPS
from cellblock.cli.terminal import columns
from cellblock.limits import ExecutionLimits
from cellblock.session.files import listing
from cellblock.text import name, whole_number
from cellblock.walls import Applied

if TYPE_CHECKING:
    from cellblock.cli.repl import Console

_OPTIONS = {"timeout_seconds": "--timeout", "max_memory_mb": "--memory", "max_output_bytes": "--output"}
_MOST_LISTED = 200
_WIDEST_NAME = 24


class Leave(Exception):
    """The prompt ends."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `on_host` marks one that reads or writes the user's own files."""

    usage: str
    help: str
    action: Callable[..., Awaitable[None]]
    on_host: bool


COMMANDS: dict[str, Command] = {}
Action = TypeVar("Action", bound=Callable[..., Awaitable[None]])


def command(usage: str, help: str, *, on_host: bool = False) -> Callable[[Action], Action]:
    """Enter a function into the table; it is called with the console and the words that are typed."""

    def enter(action: Action) -> Action:
        COMMANDS[usage.partition(" ")[0]] = Command(usage, help, action, on_host)
        return action

    return enter


async def run_command(console: Console, line: str) -> None:
    """Carry out a line that begins with a colon.

    Security border: what comes through a pipe may be a model's words, and no command of it reaches the host's files.
    """
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise Unusable(f"no command {ascii(name)[1:-1]} (:help lists them)")
    if command.on_host and not console.at_terminal:
        raise Unusable(f"{name} is for the keyboard alone: it reaches your files, and stdin is not a terminal")
    argument = argument.strip()
    try:  # paths are split as a shell does; the argument of another command is one, as it is typed
        words = shlex.split(argument) if command.on_host else [argument] if argument else []
    except ValueError as error:
        raise Unusable(f"{error} (usage: {command.usage})") from None
    most = command.usage.count(" ")
    if not most - command.usage.count("[") <= len(words) <= most:
        raise Unusable(f"usage: {command.usage}")
    await command.action(console, *words)


# --------------------------------------------------------------------------------------- the table


@command(":help", "this list")
async def _help(console: Console) -> None:
    rows = [(one.usage, one.help) for one in COMMANDS.values()]
    rows += [
        ("!COMMAND", "the same as :shell"),
        ("", ""),
        ("Ctrl-C", "interrupts a cell, or drops a block that is half typed"),
        ("Tab", "completes names, commands and files; indents at the start of a line"),
        ("an empty line", "ends a block, as in Python"),
    ]
    console.say(_table(rows))


@command(":names", "the names that cells have bound")
async def _names(console: Console) -> None:
    names = await console.session.names()
    rows = [(name(key), found.type, _size(found.size), found.preview) for key, found in names.items()]
    lines = columns(rows[:_MOST_LISTED], _WIDEST_NAME)
    if len(rows) > _MOST_LISTED:
        lines.append(f"and {len(rows) - _MOST_LISTED} more")
    console.say("\n".join(lines) or "nothing is bound")


@command(":files", "the files of the session")
async def _files(console: Console) -> None:
    console.say(str(listing(await console.session.files.list(), most=_MOST_LISTED)))


@command(":shell COMMAND", "run a command with /bin/sh in the session")
async def _shell(console: Console, line: str) -> None:
    await console.cell(line, "shell")


@command(":load FILE.py", "run a script of yours, its `# %%` parts as cells", on_host=True)
async def _load(console: Console, path: str) -> None:
    name = str(_local(path))
    text = source.decode(source.read(name, regular=True), name)
    for part in source.split(text):
        if not await console.cell(part):
            break


@command(":save FILE", "write the cells as .ipynb, .html or .py", on_host=True)
async def _save(console: Console, target: str) -> None:
    path, notebook = _local(target), console.session.notebook
    if path.suffix not in (".ipynb", ".html", ".py"):
        raise Unusable(f"{path}: the name must end in .ipynb, .html or .py")
    if path.exists() and path.absolute() not in console.saved:
        raise Unusable(f"{path} exists: give another name")
    write_document(path, notebook)
    console.saved.add(path.absolute())
    console.say(f"saved {notebook.count()} cells to {path}")


@command(":put FILE [NAME]", "copy a file of yours into the session", on_host=True)
async def _put(console: Console, local: str, name: str = "") -> None:
    path = _local(local)
    size = await source.put(console.session, name or path.name, path)
    console.say(f"put {size} bytes into {name or path.name}")


@command(":get NAME [DIRECTORY]", "copy a file of the session to you", on_host=True)
async def _get(console: Console, name: str, directory: str = "") -> None:
    shelf = Shelf(_local(directory), console.session.limits.max_disk_mb)
    saved = shelf.put(name, await console.session.files.read(name))
    if saved is None:
        raise Unusable(f"not saved: {shelf.failed[0]}")
    console.say(f"saved {saved}")


@command(":limits", "what a cell may use, and the option that changes it")
async def _limits(console: Console) -> None:
    limits = console.session.limits
    rows = []
    for one in fields(ExecutionLimits):
        if one.name != "max_steps":
            value: float | None = getattr(limits, one.name)
            rows.append((one.name, "as max_memory_mb" if value is None else f"{value:,}", _OPTIONS.get(one.name, "")))
    console.say(_table(rows))


@command(":walls", "what stands between the session and this machine")
async def _walls(console: Console) -> None:
    rows = []
    for wall in console.session.capabilities.walls:
        if isinstance(wall, Applied):
            rows.append((wall.mechanism, wall.detail))
        else:
            absent = "MISSING" if wall.needed else "none"
            rows.append((wall.mechanism, f"{absent}: {wall.reason} ({wall.remedy})"))
    console.say(_table(rows))


@command(":undo [N]", "take back the last cell, or N steps: names and files")
async def _undo(console: Console, count: str = "1") -> None:
    if not (steps := whole_number(count, MOST_STEPS)):
        raise Unusable("usage: :undo [N]")
    console.say(await console.undo(steps))


@command(":clear", "forget names and cells; files stay")
async def _clear(console: Console) -> None:
    await console.session.clear()


@command(":restart", "a new session: names, cells and files are gone")
async def _restart(console: Console) -> None:
    await console.restart()
    console.say(console.walls_in_a_line())


@command(":quit", "leave; so do Ctrl-D, exit and quit")
async def _quit(_console: Console) -> None:
    raise Leave


def _local(path: str) -> Path:
    """A path of the user's, who may write `~`."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise Unusable(f"{path}: no such user, or one without a home directory") from None


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(columns(rows, _WIDEST_NAME))
