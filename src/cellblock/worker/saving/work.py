"""Pieces of work in which code of the cells may run, each announced before it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from gc import get_referents
from hashlib import sha256
from time import monotonic
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from cellblock.worker.saving.facts import attributes_of, is_a, mro_of, sayable

_PAUSE_SECONDS = 0.5
_MOST = 10_000
"""Objects that a fingerprint covers."""


class Ended(Exception):
    """The code of a value has ended, or held up, an earlier process in this piece of work; the reason."""


class Work:
    """Announces pieces of work to `say`, each with a fingerprint of its objects where it is left out.

    `left_out` are those that fail without being begun: reasons and fingerprints, "" for whatever the objects hold.
    """

    def __init__(
        self,
        say: Callable[[str, str], None] = lambda _work, _holds: None,
        left_out: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    ) -> None:
        self._say, self._left_out = say, left_out
        self._now, self._said = "", 0.0

    def begin(self, work: str, *values: Any) -> None:
        """Announce a piece of work; `Ended` where it is left out."""
        self.require(work, *values)
        self._now, self._said = sayable(work), monotonic()
        self._say(self._now, "")

    def require(self, work: str, *values: Any) -> None:
        """`Ended` for a piece of work that is left out."""
        work = sayable(work)
        reason, held = self._left_out.get(work, ("", ""))
        if reason:
            holds = _fingerprint(values) if values else ""
            if held in ("", holds):
                self._say(work, holds)
                raise Ended(reason)

    def pieces(self, work: str) -> Callable[..., None]:
        """Begin work of many pieces. What each is to call: they are announced only where an earlier process ended."""
        try:
            self.begin(work)
        except Ended:
            return self.begin
        return self.require

    def go_on(self) -> None:
        """Tell that the piece of work gets on, at most twice a second."""
        if monotonic() - self._said > _PAUSE_SECONDS:
            self._said = monotonic()
            self._say(self._now, "")


def _fingerprint(values: Iterable[Any]) -> str:
    """A text that is another one once these objects hold others. Runs none of their code."""
    told = sha256()
    seen: set[int] = set()
    level: list[Any] = list(values)
    while level and len(seen) < _MOST:
        following: list[Any] = []
        for one in level:
            told.update(b"%d " % id(one))
            if id(one) in seen or is_a(one, ModuleType, CodeType, str):
                continue
            seen.add(id(one))
            if is_a(one, type):
                told.update(repr([id(part) for kind in mro_of(one) for part in attributes_of(kind).values()]).encode())
            elif type(one) is FunctionType:
                told.update(b"%d " % id(one.__code__))
            else:
                following += get_referents(one)
        level = following
    return told.hexdigest()
