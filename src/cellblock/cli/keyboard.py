"""Source from a terminal, block by block: Python's own line editing, what was typed before, and the Tab key.

Python's `readline` and no package of its own: it comes with every usual Python, and it knows the user's `~/.inputrc`.
"""

from __future__ import annotations

import builtins
import keyword
import os
import select
import shlex
import sys
import termios
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli.blocks import Block, is_command
from cellblock.cli.terminal import say
from cellblock.private import open_private, private_directory
from cellblock.text import BadJson, read_json, write_json

if TYPE_CHECKING:
    from types import ModuleType

_PROMPT, _MORE = ">>> ", "... "
_DELIMITERS = " \t\n`~!@#$%^&*()-=+[{]}\\|;:'\",<>/?"
MAX_MATCHES = 500
MAX_ENTRIES = 5000
_MAX_ENTRY_CHARS = 100_000
_MAX_READ_BYTES = 8 * 2**20
_INDENT = "    "
_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


class Keyboard:
    """Reads blocks with `input`. A KeyboardInterrupt drops the block that is begun. `newer`: see `Block`."""

    def __init__(self, completer: Completer, history: History | None, *, newer: bool = False) -> None:
        self._newer = newer
        self._history = history
        self._readline: ModuleType | None = None
        with suppress(ImportError):  # a Python built without it: lines come from the terminal as they are
            import readline

            self._readline = readline
            _set_up(readline, completer, history)

    def block(self) -> str | None:
        """The next block, None at the end of the input. A line that begins with `:` or `!` is one by itself."""
        block = Block(newer=self._newer)
        while True:
            try:
                text = _line(_MORE if block else _PROMPT)
            except EOFError:
                sys.stderr.write("\n")
                return None
            except UnicodeDecodeError as error:
                say(f"what was typed is not {error.encoding}")
                continue
            if not block:
                text = _as_typed(text)
            if is_command(text) and not block:
                break
            # a terminal that does not mark what is pasted sends it as if it were typed
            if block.add(text, goes_on=bool(select.select([sys.stdin], [], [], 0)[0])):
                text = block.source
                break
        self._remember(text.strip("\n"))
        return text

    def _remember(self, text: str) -> None:
        if self._readline is None or not text.strip():
            return
        is_new = True
        if self._history is not None:
            try:
                is_new = self._history.add(text)
            except OSError as error:
                say(f"history is no longer kept: {error.strerror}")
                self._history = None
        if is_new:
            _recall(self._readline, text)


def _as_typed(text: str) -> str:
    """Pasted text without a common indentation, and of a transcript only the input."""
    text = textwrap.dedent(text) if "\n" in text else text
    if not text.startswith((_PROMPT, _PROMPT.rstrip() + "\n")):
        return text
    typed = (line for line in text.split("\n") if line.startswith((_PROMPT.rstrip(), _MORE.rstrip())))
    return "\n".join(line[len(_PROMPT) :] for line in typed)


def _line(prompt: str) -> str:
    """One line, or several that were pasted as one; EOFError at the end."""
    if sys.stdout.isatty():
        with _dropped_at_ctrl_c():
            return input(prompt)
    sys.stderr.write(prompt)  # the program that reads our output wants no prompts in it
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


@contextmanager
def _dropped_at_ctrl_c() -> Iterator[None]:
    """Have Ctrl-C drop the input that is not yet read here, and not in the terminal.

    The terminal may drop it after line editing has seen a key and before it reads it. Line editing would then wait
    inside the read, where it handles no signal: neither this Ctrl-C nor the next, before another key.
    """
    before, changed = termios.tcgetattr(0), termios.tcgetattr(0)
    changed[3] |= termios.NOFLSH
    try:
        termios.tcsetattr(0, termios.TCSANOW, changed)
        yield
    except KeyboardInterrupt:
        termios.tcflush(0, termios.TCIFLUSH)
        raise
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


def _set_up(readline: ModuleType, completer: Completer, history: History | None) -> None:
    found: list[str] = []

    def complete(_word: str, state: int) -> str | None:
        nonlocal found
        if state == 0:
            found = completer.matches(readline.get_line_buffer(), readline.get_begidx(), readline.get_endidx())
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(_DELIMITERS)
    readline.set_auto_history(False)
    if "libedit" in (readline.__doc__ or ""):
        readline.parse_and_bind("bind ^I rl_complete")
    else:
        readline.parse_and_bind("tab: complete")
        readline.parse_and_bind("set enable-bracketed-paste on")
    for entry in history.entries if history is not None else ():
        _recall(readline, entry)


def _recall(readline: ModuleType, entry: str) -> None:
    """Add an entry for the arrow keys, if the locale has its characters: readline takes no others."""
    with suppress(ValueError):
        readline.add_history(entry)


# ------------------------------------------------------------------------------------- the history


def default_path() -> Path | None:
    """`cellblock/history` in the directory that XDG_STATE_HOME names, else in `~/.local/state`; None without a home."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.expanduser("~/.local/state")
    return Path(state, "cellblock", "history") if os.path.isabs(state) else None


class History:
    """The entries, oldest first. Each is in the file as soon as it is added; OSError where it cannot be written.

    The file has one JSON string a line, so that a block of many lines is one entry. It is readable by its owner alone,
    and a link is not followed.
    """

    def __init__(self, path: Path) -> None:
        private_directory(path.parent)
        self._file = open_private(path, "a")
        self.entries = self._read()

    def add(self, entry: str) -> bool:
        """Append an entry; False for one that repeats the last, or is too long to be kept."""
        if not entry.strip() or len(entry) > _MAX_ENTRY_CHARS or self.entries[-1:] == [entry]:
            return False
        self.entries.append(entry)
        os.write(self._file, _encoded(entry))
        return True

    def _read(self) -> list[str]:
        """The newest entries. A file of more than twice as many is cut down to them."""
        size = os.fstat(self._file).st_size
        data = os.pread(self._file, _MAX_READ_BYTES, max(size - _MAX_READ_BYTES, 0))
        lines = data.splitlines()
        found = [entry for entry in map(_decoded, lines) if entry]
        if len(lines) > 2 * MAX_ENTRIES or size > _MAX_READ_BYTES:
            os.ftruncate(self._file, 0)
            os.write(self._file, b"".join(map(_encoded, found[-MAX_ENTRIES:])))
        return found[-MAX_ENTRIES:]


def _encoded(entry: str) -> bytes:
    return write_json(entry).encode("ascii") + b"\n"


def _decoded(line: bytes) -> str:
    """The entry of a line; "" for another line, such as half of one where a disk was full."""
    try:
        entry = read_json(line)
    except BadJson:
        return ""
    return entry if isinstance(entry, str) and "\0" not in entry else ""


# ------------------------------------------------------------------------------------- the Tab key


class Completer:
    """Finds the completions of a half-typed word.

    `names` gives the names that the session has bound, `files` its files.
    """

    def __init__(
        self, commands: Iterable[str], names: Callable[[], Iterable[str]], files: Callable[[], Iterable[str]]
    ) -> None:
        self._commands = tuple(commands)
        self._names = names
        self._files = files

    def matches(self, line: str, begin: int, end: int) -> list[str]:
        """Completions for `line[begin:end]`, the last word up to the cursor."""
        word = line[begin:end]
        head = line[:begin]
        if not (head + word).strip():
            return [_INDENT]
        if line.startswith(":") and " " not in line[:end]:
            return _starting(word, (command.removeprefix(":" if begin else "") for command in self._commands))
        if line.startswith(":"):
            inside = line.startswith(":get ")
            names = self._files() if inside else _local_files(line[:end].rsplit(" ", 1)[1])
            return self._continued(line[:end], word, names)
        if line.startswith("!"):
            return self._continued(line[:end], word, self._files())
        if "." in word:  # only the session could tell attributes, by running code
            return []
        return _starting(word, {*self._names(), *keyword.kwlist, *keyword.softkwlist, *_BUILTINS})

    def _continued(self, typed: str, word: str, names: Iterable[str]) -> list[str]:
        """The parts of names that replace `word`, which may be only the end of the argument."""
        argument = typed.rsplit(" ", 1)[-1].lstrip("!")
        known = len(argument) - len(word)
        return [name[known:] for name in _starting(argument, names)]


def _starting(word: str, names: Iterable[str]) -> list[str]:
    """The names that start with `word`. Only those that are one word, printable as it stands: a terminal shows it, and
    what reads the line takes it for nothing else."""
    plain = (name for name in names if name.startswith(word) and name.isprintable() and _is_word(name))
    return sorted(plain)[:MAX_MATCHES]


def _is_word(name: str) -> bool:
    try:
        return shlex.split(name) == [name] and not name.startswith("~")
    except ValueError:
        return False


def _local_files(argument: str) -> list[str]:
    directory, _ = os.path.split(argument)
    try:
        with os.scandir(os.path.expanduser(directory) or ".") as found:
            return [os.path.join(directory, one.name) + ("/" if one.is_dir() else "") for one in found]
    except OSError:  # no such directory: nothing to complete
        return []
