"""Containers started before a session asks for one: each start takes a third of a second or more."""

from __future__ import annotations

import atexit
import logging
from dataclasses import dataclass, field

from cellblock.errors import CellblockError
from cellblock.executors.container.family import Box, ContainerFamily
from cellblock.executors.process.family import FamilyGone
from cellblock.executors.process.kinds import Kind
from cellblock.executors.process.zygote import Progress
from cellblock.hosting.forks import Lock, emptied
from cellblock.hosting.threads import begun

_log = logging.getLogger("cellblock")


@dataclass(slots=True)
class _Shelf:
    """The containers of one box, with a session of one kind in each."""

    box: Box
    kind: Kind
    kept: int = 0
    """The number that somebody asked for."""
    ready: list[ContainerFamily] = field(default_factory=list)
    tended: bool = False
    """Whether a thread sees to it."""


class Pool:
    """All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shelves: dict[tuple[Box, str], _Shelf] = emptied({})

    def take(self, box: Box, kind: Kind, progress: Progress | None = None) -> ContainerFamily:
        """A container with no session yet: one that is ready, or a new one. Blocks while it starts."""
        with self._lock:
            shelf = self._shelf(box, kind)
            family = _alive(shelf)
        if family is None:
            family = ContainerFamily.started(box, progress, kind)
        self._tend_soon(shelf)
        return family

    def keep(self, box: Box, kind: Kind, count: int) -> None:
        """Keep so many ready. Blocks until they are there, and raises what keeps one from being started."""
        with self._lock:
            shelf = self._shelf(box, kind)
            shelf.kept = count
        try:
            while self._lacks(shelf):
                self._add(shelf, ContainerFamily.started(box, None, kind))
        except BaseException:
            shelf.kept = 0
            raise
        self._trim(shelf)

    def _shelf(self, box: Box, kind: Kind) -> _Shelf:
        return self._shelves.setdefault((box, repr(kind)), _Shelf(box, kind))

    def _lacks(self, shelf: _Shelf) -> bool:
        with self._lock:
            shelf.ready = [one for one in shelf.ready if one.ready]
            return len(shelf.ready) < shelf.kept

    def _add(self, shelf: _Shelf, family: ContainerFamily) -> None:
        with self._lock:
            shelf.ready.append(family)

    def _tend_soon(self, shelf: _Shelf) -> None:
        """Have a thread see to a shelf, if there is something to see to."""
        with self._lock:
            if shelf.tended or not shelf.kept:
                return
            shelf.tended = True
        begun(self._tend, shelf, name="cellblock-containers")

    def _tend(self, shelf: _Shelf) -> None:
        """Start what is wanted, and end what is not any more."""
        try:
            while self._lacks(shelf):
                self._add(shelf, ContainerFamily.started(shelf.box, None, shelf.kind))
            self._trim(shelf)
        except (CellblockError, FamilyGone, OSError) as error:
            _log.warning("no container could be started beforehand: %s", error)
            return
        finally:
            shelf.tended = False
        if self._lacks(shelf):  # one was taken since
            self._tend_soon(shelf)

    def _trim(self, shelf: _Shelf) -> None:
        """End the containers that nobody wants any more."""
        with self._lock:
            over = [shelf.ready.pop() for _ in range(len(shelf.ready) - shelf.kept)]
        for family in over:
            family.close()

    def close(self) -> None:
        """End every container that has no session yet."""
        with self._lock:
            shelves = list(self._shelves.values())
            self._shelves.clear()
        for shelf in shelves:
            shelf.kept = 0
            self._trim(shelf)


def _alive(shelf: _Shelf) -> ContainerFamily | None:
    while shelf.ready:
        family = shelf.ready.pop(0)
        if family.ready:
            return family
    return None


SHARED = Pool()
"""That of this process."""
atexit.register(SHARED.close)
