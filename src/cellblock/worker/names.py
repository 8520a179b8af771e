"""Names that came and went since the host was last told."""

from __future__ import annotations

from operator import is_

from cellblock.worker.interpreter import Interpreter
from cellblock.worker.survey import type_name

_MAX_CHARS = 1000
_MAX_TOLD_CHARS = 200_000
"""Of names and types in one reply, which has to hold an error's texts as well; the rest is told in the next."""
_CHARS_A_NAME = 10


class _Gone:
    """Stands for the value of a name that is not bound."""


_GONE = _Gone()


class Names:
    """The names that cells have bound, as the host knows them.

    Before each reply all keys and types are compared with those of the last one, by identity: 50 ns a name. Only
    where one differs are names looked at one by one. Runs no code of a value's class.
    """

    __slots__ = ("_interpreter", "_keys", "_left", "_told", "_types")

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._told: dict[str, type] = {}
        self._keys: list[object] = []
        self._types: list[type] = []
        self._left = False

    def news(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Names that are new or of another type, with their types' names, and names no longer bound."""
        keys, types, same = self.look()
        if same and not self._left:
            return {}, ()
        self._keys, self._types = keys, types
        return self._compare(self._interpreter.namespace)

    def look(self) -> tuple[list[object], list[type], bool]:
        """Keys and types as they are now, and whether they are what they were."""
        namespace = self._interpreter.namespace
        keys: list[object] = list(namespace)
        types = list(map(type, namespace.values()))
        return keys, types, _same(keys, self._keys) and _same(types, self._types)

    def _compare(self, namespace: dict[str, object]) -> tuple[dict[str, str], tuple[str, ...]]:
        gained: dict[str, str] = {}
        dropped: list[str] = []
        room = _MAX_TOLD_CHARS
        for name in [name for name in self._told if name not in namespace]:
            if room > 0:
                del self._told[name]
                dropped.append(name)
                room -= len(name) + _CHARS_A_NAME
        for name in self._interpreter.names():
            kind = type(namespace.get(name, _GONE))
            if kind is _Gone or len(name) > _MAX_CHARS:  # a thread unbound it meanwhile, or it is none to be told
                continue
            if room > 0 and self._told.get(name) is not kind:
                self._told[name], gained[name] = kind, type_name(kind)
                room -= len(name) + len(gained[name]) + _CHARS_A_NAME
        self._left = room <= 0
        return gained, tuple(dropped)


def _same(these: list[object] | list[type], those: list[object] | list[type]) -> bool:
    return len(these) == len(those) and all(map(is_, these, those))
