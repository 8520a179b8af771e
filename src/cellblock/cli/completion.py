"""Completion by the Tab key: commands, their files, and names. Nothing of the session is run on the host for it."""

from __future__ import annotations

import builtins
import keyword
import os
from collections.abc import Callable, Iterable

MAX_MATCHES = 500
_INDENT = "    "
_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


class Completer:
    """Finds what a half-typed word may become. `names` gives what the session has bound, `files` its files."""

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
        if "." in word:  # what an attribute is only the session could tell, by running code
            return []
        return _starting(word, {*self._names(), *keyword.kwlist, *keyword.softkwlist, *_BUILTINS})

    def _continued(self, typed: str, word: str, names: Iterable[str]) -> list[str]:
        """The parts of names that stand in the place of `word`, which may be the end of the argument only."""
        argument = typed.rsplit(" ", 1)[-1].lstrip("!")
        known = len(argument) - len(word)
        return [name[known:] for name in _starting(argument, names)]


def _starting(word: str, names: Iterable[str]) -> list[str]:
    """The names that start so. A terminal shows them as they are, so only what is printable is given."""
    return sorted(name for name in names if name.startswith(word) and name.isprintable())[:MAX_MATCHES]


def _local_files(argument: str) -> list[str]:
    directory, _ = os.path.split(argument)
    try:
        with os.scandir(os.path.expanduser(directory) or ".") as found:
            return [os.path.join(directory, one.name) + ("/" if one.is_dir() else "") for one in found]
    except OSError:  # no such directory: nothing to complete
        return []
