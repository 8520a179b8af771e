"""`print` and the streams of a world, which go to its own outputs and never to the host's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cellblock.guard.standins import Module, Setting
from cellblock.guard.weights import light

if TYPE_CHECKING:
    from cellblock.guard.world import World


class Stream:
    """A text stream that code writes to."""

    __slots__ = ("_name", "_write")

    encoding = "utf-8"
    errors = "backslashreplace"
    closed = False

    def __init__(self, name: str, write: Callable[[str, str], None]) -> None:
        self._name = name
        self._write = write

    @property
    def name(self) -> str:
        return f"<{self._name}>"

    def write(self, text: str) -> int:
        if not issubclass(type(text), str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        text = str.__str__(text)
        self._write(self._name, text)
        return len(text)

    def __copy__(self) -> Stream:
        return self

    def __deepcopy__(self, memo: object) -> Stream:
        return self

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False


class Input:
    """`sys.stdin` of a world: there is nothing to read."""

    __slots__ = ()

    name = "<stdin>"
    encoding = "utf-8"
    closed = False

    def read(self, size: int | None = -1, /) -> str:
        return ""

    readline = read

    def readlines(self, hint: int = -1, /) -> list[str]:
        return []

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def isatty(self) -> bool:
        return False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False


_PLAIN = frozenset((str, int, float, bool, complex, bytes, type(None)))
"""Types whose texts run no code."""

STREAMS = frozenset(("stdin", "stdout", "stderr"))
"""Attributes of `sys` that code may set: its own streams."""


def stream_of(world: World, module: Module) -> Setting:
    """`sys`, as far as a stream of it may be set."""

    def put(name: str, target: Any) -> None:
        if name == "stdin":
            world.gates.read(target, "readline")
            world.values["stdin"] = target
        else:
            world.gates.read(target, "write")
            world.redirect(name, [] if target is world.streams[name] else [target])
        vars(module)[name] = target

    def drop(name: str) -> None:
        raise AttributeError(name)

    return Setting(world.gates, module, put, drop)


def printer(world: World) -> Callable[..., None]:
    """`print`."""
    stdout = world.streams["stdout"]

    def print(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
        for what, given in (("sep", sep), ("end", end)):
            if given is not None and not issubclass(type(given), str):
                raise TypeError(f"{what} must be None or a string, not {type(given).__name__}")
        sep, end = " " if sep is None else sep, "\n" if end is None else end
        if file is None and all(type(value) in _PLAIN for value in values):
            world.say("stdout", str.__str__(str.join(sep, [str(value) for value in values]) + end))
            return
        for number, value in enumerate(values):
            if number and sep:
                written(file, sep)
            written(file, str(light(value)))
        if end:
            written(file, end)

    def written(file: Any, text: str) -> None:
        """One piece after the other, as what is printed may print, or fail."""
        if file is None or file is stdout:
            world.say("stdout", str.__str__(text))
        else:
            world.gates.read(file, "write()").write(text)

    print.__qualname__, print.__module__ = "print", "builtins"
    return print
