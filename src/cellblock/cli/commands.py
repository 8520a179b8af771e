"""Commands about the session, typed with a colon before them, as a table."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cell import Cell
from cellblock.cli import source
from cellblock.cli.exits import MOST_STEPS
from cellblock.cli.export import Shelf, write_document
from cellblock.cli.terminal import columns
from cellblock.limits import ExecutionLimits
from cellblock.session.files import listing
from cellblock.text import line, name, whole_number
from cellblock.walls import Applied, Wall

if TYPE_CHECKING:
    from cellblock.cli.console import Console

_OPTIONS = {"timeout_seconds": "--timeout", "max_memory_mb": "--memory", "max_output_bytes": "--output"}
_MOST_LISTED = 200
_WIDEST_NAME = 24


class Leave(Exception):
    """The one at the keyboard wants to go."""


class Refused(Exception):
    """A command cannot do what it was told; the message says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `on_host` marks those that read or write the user's own files."""

    usage: str
    help: str
    action: Callable[[Console, str], Awaitable[None]]
    on_host: bool = False


async def run_command(console: Console, line: str) -> None:
    """Carry out a line that begins with a colon.

    Security border: what comes through a pipe may be a model's words, and no command of it reaches the host's files.
    """
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise Refused(f"no command {ascii(name)[1:-1]} (:help lists them)")
    if command.on_host and not console.at_terminal:
        raise Refused(f"{name} is for the keyboard alone: it reaches your files, and stdin is not a terminal")
    await command.action(console, argument.strip())


# --------------------------------------------------------------------------------------- actions


async def _help(console: Console, _argument: str) -> None:
    rows = [(command.usage, command.help) for command in COMMANDS.values()]
    rows += [("!COMMAND", "the same as :shell"), ("", ""), *_KEYS]
    console.say(_table(rows))


async def _names(console: Console, _argument: str) -> None:
    names = await console.session.names()
    rows = [(name(key), found.type, _size(found.size), found.preview) for key, found in names.items()]
    console.say(_listed(columns(rows, _WIDEST_NAME), "nothing is bound"))


async def _files(console: Console, _argument: str) -> None:
    console.say(str(listing(await console.session.files.list(), most=_MOST_LISTED)))


async def _shell(console: Console, argument: str) -> None:
    if not argument:
        raise Refused("usage: :shell COMMAND")
    await console.cell(argument, "shell")


async def _load(console: Console, argument: str) -> None:
    name = str(_path(argument, ":load FILE.py"))
    text = source.decode(await source.off_loop(partial(source.read, name, regular=True)), name)
    for part in source.split(text):
        if not await console.cell(part):
            break


async def _save(console: Console, argument: str) -> None:
    path = _path(argument, ":save FILE.ipynb, .html or .py")
    notebook = console.session.notebook
    if path.suffix not in (".ipynb", ".html", ".py"):
        raise Refused(f"{path}: the name must end in .ipynb, .html or .py")
    if path.exists() and path.absolute() not in console.saved:
        raise Refused(f"{path} exists: give another name")
    if path.suffix == ".py":
        write_document(path, "\n".join(_as_script(cell) for cell, _ in notebook.every()))
    else:
        write_document(path, notebook)
    console.saved.add(path.absolute())
    console.say(f"saved {notebook.count()} cells to {path}")


async def _put(console: Console, argument: str) -> None:
    local, name = _one_or_two(argument, ":put FILE [NAME]")
    path = _local(local)
    size = await source.put(console.session, name or path.name, path)
    console.say(f"put {size} bytes into {name or path.name}")


async def _get(console: Console, argument: str) -> None:
    name, directory = _one_or_two(argument, ":get NAME [DIRECTORY]")
    shelf = Shelf(_local(directory), console.session.limits.max_disk_mb)
    saved = shelf.put(name, await console.session.files.read(name))
    if saved is None:
        raise Refused(f"not saved: {shelf.failed[0]}")
    console.say(f"saved {saved}")


async def _limits(console: Console, _argument: str) -> None:
    limits = console.session.limits
    rows = [
        (one.name, _amount(getattr(limits, one.name)), _OPTIONS.get(one.name, ""))
        for one in fields(ExecutionLimits)
        if one.name != "max_steps"
    ]
    console.say(_table(rows))


def _amount(value: float | None) -> str:
    return "as max_memory_mb" if value is None else f"{value:,}"


async def _walls(console: Console, _argument: str) -> None:
    console.say(_table([(wall.mechanism, _stand(wall)) for wall in console.session.capabilities.walls]))


def _stand(wall: Wall) -> str:
    if isinstance(wall, Applied):
        return wall.detail
    return f"{'MISSING' if wall.needed else 'none'}: {wall.reason} ({wall.remedy})"


async def _undo(console: Console, argument: str) -> None:
    if not (steps := whole_number(argument or "1", MOST_STEPS)):
        raise Refused("usage: :undo [N]")
    console.say(await console.undo(steps))


async def _clear(console: Console, _argument: str) -> None:
    await console.session.clear()


async def _restart(console: Console, _argument: str) -> None:
    await console.restart()
    console.say(console.walls_in_a_line())


async def _quit(_console: Console, _argument: str) -> None:
    raise Leave


COMMANDS = {
    ":help": Command(":help", "this list", _help),
    ":names": Command(":names", "the names that cells have bound", _names),
    ":files": Command(":files", "the files of the session", _files),
    ":shell": Command(":shell COMMAND", "run a command with /bin/sh in the session", _shell),
    ":load": Command(":load FILE.py", "run a script of yours, its `# %%` parts as cells", _load, on_host=True),
    ":save": Command(":save FILE", "write the cells as .ipynb, .html or .py", _save, on_host=True),
    ":put": Command(":put FILE [NAME]", "copy a file of yours into the session", _put, on_host=True),
    ":get": Command(":get NAME [DIRECTORY]", "copy a file of the session to you", _get, on_host=True),
    ":limits": Command(":limits", "what a cell may use, and the option that changes it", _limits),
    ":walls": Command(":walls", "what stands between the session and this machine", _walls),
    ":undo": Command(":undo [N]", "take back the last cell, or N steps: names and files", _undo),
    ":clear": Command(":clear", "forget names and cells; files stay", _clear),
    ":restart": Command(":restart", "a new session: names, cells and files are gone", _restart),
    ":quit": Command(":quit", "leave; so do Ctrl-D, exit and quit", _quit),
}
_KEYS = [
    ("Ctrl-C", "interrupts a cell, or drops a block that is half typed"),
    ("Tab", "completes names, commands and files; indents at the start of a line"),
    ("an empty line", "ends a block, as in Python"),
]


# ------------------------------------------------------------------------------- arguments, lists


def _path(argument: str, usage: str) -> Path:
    (path,) = _words(argument, usage, most=1)
    return _local(path)


def _local(path: str) -> Path:
    """A path of the user's, who may write `~`."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise Refused(f"{path}: no such user, or one without a home directory") from None


def _one_or_two(argument: str, usage: str) -> tuple[str, str]:
    first, *more = _words(argument, usage, most=2)
    return first, more[0] if more else ""


def _words(argument: str, usage: str, *, most: int) -> list[str]:
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise Refused(f"{error} (usage: {usage})") from None
    if not 1 <= len(words) <= most:
        raise Refused(f"usage: {usage}")
    return words


def _as_script(cell: Cell) -> str:
    """A cell as a part of a script for `:load` and `cellblock run --cells`: what they would stop at is a comment."""
    text, title = cell.source.rstrip(), "# %%"
    if cell.error is not None:
        title += f" {cell.error.kind}: {line(cell.error.type)}"
    if cell.undone:
        title += " undone"
    if cell.undone or cell.error is not None or cell.kind != "python":
        mark = "" if cell.kind == "python" else "!"
        text = "\n".join(f"# {mark}{line}" for line in text.splitlines())
    return f"{title}\n{text}\n"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _listed(lines: Sequence[str], nothing: str) -> str:
    if not lines:
        return nothing
    more = len(lines) - _MOST_LISTED
    return "\n".join(lines[:_MOST_LISTED]) + (f"\nand {more} more" if more > 0 else "")


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(columns(rows, _WIDEST_NAME))
