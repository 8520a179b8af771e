"""Loading what a snapshot wrote anew once, in the process that wrote it and will end: what fails is told in time.

Groups that the standard pickler wrote alone are not tried: nothing of a cell's has a say in them. The definitions that
the others need are loaded again, too; for other names the session's own values stand in the namespace, and in the
session's own modules. The process has walls: an `OSError`, also one that led to another error, and a lack of memory or
of threads say nothing of how a restore will go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from cellblock.labels import label_of
from cellblock.worker.saving import building, imported
from cellblock.worker.saving.facts import full_name
from cellblock.worker.saving.restore import Restoring
from cellblock.worker.saving.streams import Piece, gather

MOST_BYTES = 64 * 2**20
"""Of all that is held to be loaded: what is larger is not tried."""
_OF_WALLS = (OSError, MemoryError, RecursionError)
_OF_FILES = "sqlite3.OperationalError"
"""The same of a file that may not be opened."""

Say = Callable[[str, list[list[str]]], None]
"""Report of the group that is loaded next, "" after the last, and of those that failed since: keys and reasons."""


class Trial:
    """A trial load. `is_new` tells whether bytes were put away by this snapshot first."""

    def __init__(self, is_new: Callable[[str], bool]) -> None:
        self._is_new = is_new
        self._groups: list[dict[str, Any]] = []
        self._pieces: dict[str, Piece] = {}
        self._fresh: list[str] = []
        self._left = MOST_BYTES
        self.originals: dict[tuple[str, str], Any] = {}
        """Originals that cells have replaced in modules and values refer to."""

    def take(self, group: dict[str, Any], pieces: Mapping[str, Piece], *, defines: bool) -> None:
        """Hold a group that was written, if it is to be loaded; of those that define something, others need them."""
        fresh = any(map(self._is_new, pieces))
        size = sum(map(len, pieces.values()))
        if (fresh or defines) and size <= self._left:
            self._left -= size
            self._groups.append(group)
            self._pieces.update(pieces)
            self._fresh += [group["key"]] * fresh

    def run(self, record: Mapping[str, Any], namespace: dict[str, Any], say: Say) -> None:
        """Load what is new of a record, each group after it was said."""
        held = {group["key"] for group in self._groups}
        names = [row for row in record["names"] if row[1] in held]
        if not self._fresh:
            return
        ambient = [row for row in record["ambient"] if row[1] in held]
        again = {label for label, *_ in (*names, *ambient)}
        own = {name: module for name, module, _ in imported.found()}
        for name in own:
            del sys.modules[name]
        main = ModuleType("__main__")
        vars(main).update((name, value) for name, value in namespace.items() if name not in again)
        sys.modules["__main__"] = main
        some = {**record, "groups": self._groups, "names": names, "ambient": ambient}
        get = self._pieces.__getitem__
        restoring = Restoring(vars(main), some, get, gather(get), lambda _: None)
        restoring.originals.update(self.originals)
        failed: list[list[str]] = []
        with restoring.importing():
            for name, module in own.items():
                stay = imported.held(module).items()
                here = {one: value for one, value in stay if label_of(name, one) not in again}
                vars(building.module(name)).update(here)
            for key in self._fresh:
                say(key, failed)
                failed, restoring.short = [], False
                if not restoring.bring_group(key) and not self._is_of_walls(key, restoring):
                    failed = [[key, restoring.failed[key]]]
        say("", failed)

    def _is_of_walls(self, key: str, restoring: Restoring) -> bool:
        """True if a group, or one that it needs, failed by what this process may not do."""
        needs = {group["key"]: group["needs"] for group in self._groups}
        seen, work = {key}, [key]
        while work:
            here = work.pop()
            kinds = restoring.errors.get(here, [OSError])
            if any(issubclass(one, _OF_WALLS) or full_name(one) == _OF_FILES for one in kinds):
                return True
            if "new thread" in restoring.failed[here]:
                return True
            following = [one for one in needs[here] if one in restoring.failed and one not in seen]
            seen.update(following)
            work += following
        return False
