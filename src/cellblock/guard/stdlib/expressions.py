"""`re` with a deadline: what may take long is tried in a process of its own first, and what is quick runs as it is.

A pattern says how long a text it bears (`patterns.longest`); the length of the text decides each call. Matching is
`re`'s own at all times.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from cellblock.guard.anatomy import exact, name_of
from cellblock.guard.rehearsal import Rehearsal
from cellblock.guard.sizes import MAX_BYTES, counted
from cellblock.guard.stdlib.patterns import longest
from cellblock.guard.tables import Method

if TYPE_CHECKING:
    from cellblock.guard.calls import Calls
    from cellblock.guard.world import World

METHODS = ("match", "fullmatch", "search", "findall", "finditer", "split", "sub", "subn")
_ANCHORED = ("match", "fullmatch")
_TEXT_ALONE = ("match", "fullmatch", "search", "findall", "finditer")
_MOST = 500
_LISTED = 2_000_000
"""Characters of a text of which a list of pieces is made at once."""
_END = sys.maxsize
_FIRST_SECONDS = 0.05


class _Known(NamedTuple):
    """A pattern, and how long a text it bears: from one place on, from each, and for a list of all that it finds."""

    pattern: re.Pattern[Any]
    anchored: float
    anywhere: float
    listed: float


class Expressions:
    """The functions of `re` for one world."""

    def __init__(self, rehearsal: Rehearsal, calls: Calls) -> None:
        self._given = calls.called
        self._rehearsal = rehearsal
        self._compiled: dict[Any, re.Pattern[Any]] = {}
        self._known: dict[int, _Known] = {}

    # ------------------------------------------------------------------------------- compiling

    def compile(self, pattern: Any, flags: Any = 0) -> re.Pattern[Any]:
        """`re.compile`, without `re.DEBUG`, which prints to the host's own output."""
        flags = flags if type(flags) in (int, re.RegexFlag) else int(index(flags))
        if type(pattern) is re.Pattern:
            return re.compile(pattern, flags)
        text = exact(pattern)
        if type(text) not in (str, bytes):
            raise TypeError("first argument must be string or compiled pattern")
        key = (type(text), text, flags)
        if (known := self._compiled.get(key)) is not None:
            return known
        found = re.compile(text, flags & ~re.DEBUG)
        if not found.flags & re.LOCALE:
            if len(self._compiled) >= _MOST:
                self._compiled.clear()
            self._compiled[key] = found
        return found

    def _bears(self, pattern: re.Pattern[Any], text: Any, *, anchored: bool) -> bool:
        """True if this text can be matched at once. What is no text is left to `re`."""
        try:
            known = self._known[id(pattern)]
        except KeyError:
            known = self._judge(pattern)
        return _size(text) <= (known.anchored if anchored else known.anywhere)

    def _judge(self, pattern: re.Pattern[Any]) -> _Known:
        if len(self._known) >= _MOST:
            self._known.clear()
        source, flags = pattern.pattern, pattern.flags
        anywhere = longest(source, flags)
        found = _Known(pattern, longest(source, flags, anchored=True), anywhere, min(anywhere, _LISTED))
        self._known[id(pattern)] = found
        return found

    def _try(self, name: str, pattern: re.Pattern[Any], text: Any, *given: Any) -> Any:
        whole = str.__str__(text) if issubclass(type(text), str) else bytes(text)
        return self._rehearsal.call(name, pattern.pattern, pattern.flags, whole, *given)

    # -------------------------------------------------------------------------------- methods

    def quick(self, name: str) -> Callable[..., Any]:
        """A method of patterns, as a function: what is known to be borne is matched, and the rest looked at."""
        slow: Callable[..., Any] = getattr(self, name)
        if name not in _TEXT_ALONE:
            return slow
        known_of, direct = self._known.get, getattr(re.Pattern, name)
        which = 1 if name in _ANCHORED else 3 if name == "findall" else 2

        def quick(pattern: re.Pattern[Any], string: Any, pos: int = 0, endpos: int = _END) -> Any:
            known: Any = known_of(id(pattern))
            if known is not None and type(string) is str and len(string) <= known[which]:
                return direct(pattern, string, pos, endpos)
            return slow(pattern, string, pos, endpos)

        quick.__name__, quick.__qualname__ = name, f"Pattern.{name}"
        return quick

    def match(self, pattern: re.Pattern[Any], string: Any, pos: int = 0, endpos: int = _END) -> Any:
        return self._once("match", pattern, string, pos, endpos)

    def fullmatch(self, pattern: re.Pattern[Any], string: Any, pos: int = 0, endpos: int = _END) -> Any:
        return self._once("fullmatch", pattern, string, pos, endpos)

    def search(self, pattern: re.Pattern[Any], string: Any, pos: int = 0, endpos: int = _END) -> Any:
        return self._once("search", pattern, string, pos, endpos)

    def _once(self, name: str, pattern: re.Pattern[Any], string: Any, pos: int, endpos: int) -> Any:
        pos, endpos = counted(pos), counted(endpos)  # before the text is looked at, which that may change
        bears = self._bears(pattern, string, anchored=name in _ANCHORED)
        if not bears and self._try(name, pattern, string, pos, endpos) is False:
            return None
        return getattr(pattern, name)(string, pos, endpos)

    def findall(self, pattern: re.Pattern[Any], string: Any, pos: int = 0, endpos: int = _END) -> Any:
        pos, endpos = counted(pos), counted(endpos)
        if not self._bears(pattern, string, anchored=False) or _size(string) > _LISTED:
            found = self._try("findall", pattern, string, pos, endpos)
            if found is not None:
                return found
        return pattern.findall(string, pos, endpos)

    def finditer(self, pattern: re.Pattern[Any], string: Any, pos: int = 0, endpos: int = _END) -> Any:
        pos, endpos = counted(pos), counted(endpos)
        found = pattern.finditer(string, pos, endpos)
        if self._bears(pattern, string, anchored=False):
            return found
        return self._stepped(found, pattern, string, (pos, endpos))

    def _stepped(
        self, found: Iterator[Any], pattern: re.Pattern[Any], string: Any, where: tuple[int, int]
    ) -> Iterator[Any]:
        """Matches, each no sooner than it was tried: as many at a time as come in so many seconds."""
        done, tried, is_whole, seconds = 0, 0, False, _FIRST_SECONDS
        while True:
            if done == tried and not is_whole:
                tried, is_whole = self._try("finditer", pattern, string, where, done, seconds)
                seconds *= 2
            one = next(found, None)
            if one is None:
                return
            done += 1
            yield one

    def split(self, pattern: re.Pattern[Any], string: Any, maxsplit: int = 0) -> Any:
        maxsplit = counted(maxsplit)
        if not self._bears(pattern, string, anchored=False) or _size(string) > _LISTED:
            found = self._try("split", pattern, string, maxsplit)
            if found is not None:
                return found
        return pattern.split(string, maxsplit)

    def sub(self, pattern: re.Pattern[Any], repl: Any, string: Any, count: int = 0) -> Any:
        return self._replaced("sub", pattern, repl, string, count)

    def subn(self, pattern: re.Pattern[Any], repl: Any, string: Any, count: int = 0) -> Any:
        return self._replaced("subn", pattern, repl, string, count)

    def _replaced(self, name: str, pattern: re.Pattern[Any], repl: Any, string: Any, count: int) -> Any:
        count = counted(count)
        quick = self._bears(pattern, string, anchored=False)
        if not callable(repl):
            repl = _template(repl)
            if not quick or _grows(pattern, repl, string):
                found = self._try(name, pattern, string, repl, count)
                if found is not None:
                    return found
        elif not quick:
            self._try("calls", pattern, string, count)
        return getattr(pattern, name)(self._given(repl), string, count)


def _template(given: Any) -> Any:
    """A template as text or bytes: those are kept for the whole process."""
    if issubclass(type(given), str):
        return str.__str__(given)
    with suppress(TypeError):
        return bytes(memoryview(given))
    raise TypeError(f"decoding to str: need a bytes-like object, {name_of(type(given))} found")


def _size(text: Any) -> int:
    if issubclass(type(text), str):
        return str.__len__(text)
    try:
        return memoryview(text).nbytes
    except TypeError:
        return 0


def _grows(pattern: re.Pattern[Any], repl: str | bytes, text: Any) -> bool:
    """True if a replacement may make a text too large for one step."""
    size, references = _size(text) + 1, len(repl) if (b"\\" if issubclass(type(repl), bytes) else "\\") in repl else 0  # type: ignore[operator]
    looks = "(?" in pattern.pattern if isinstance(pattern.pattern, str) else b"(?" in pattern.pattern
    return len(repl) * size + references * size * (size if looks else 1) > MAX_BYTES


def expressions(world: World) -> Expressions:
    """Those of a world."""
    found = world.values.get("expressions")
    if found is None:
        found = world.values["expressions"] = Expressions(world.rehearsal, world.calls)
    return found


def function(name: str) -> Callable[[World], Callable[..., Any]]:
    """A maker of a function of `re`."""

    def make(world: World) -> Callable[..., Any]:
        found = expressions(world)
        method, compile = found.quick(name if name in METHODS else "match"), found.compile

        def on_text(pattern: Any, string: Any, flags: Any = 0) -> Any:
            return method(compile(pattern, flags), string)

        def split(pattern: Any, string: Any, maxsplit: int = 0, flags: Any = 0) -> Any:
            return method(compile(pattern, flags), string, maxsplit)

        def sub(pattern: Any, repl: Any, string: Any, count: int = 0, flags: Any = 0) -> Any:
            return method(compile(pattern, flags), repl, string, count)

        def compiled(pattern: Any, flags: Any = 0) -> Any:
            return compile(pattern, flags)

        made: Any = {"split": split, "sub": sub, "subn": sub, "compile": compiled}.get(name, on_text)
        made.__name__ = made.__qualname__ = name
        made.__doc__ = getattr(re, name).__doc__
        return made  # type: ignore[no-any-return]

    return make


def method(name: str) -> Method:
    """Stand-in for a method of a compiled pattern."""
    return Method(f"re.Pattern.{name}", lambda world: expressions(world).quick(name))


def expand(world: World, found: re.Match[Any]) -> Callable[[Any], Any]:
    """`Match.expand`, where the result is not too large."""

    def expand(template: Any) -> Any:
        template = _template(template)
        if issubclass(type(template), str | bytes) and len(template) * len(found.string) > MAX_BYTES:
            raise MemoryError("an expansion of a template to so many characters")
        return found.expand(template)

    return expand
