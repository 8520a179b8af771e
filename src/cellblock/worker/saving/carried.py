"""Taking over, into a new record, the groups of an earlier one that have not been loaded since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.restore import Restoring
from cellblock.worker.saving.walk import Walk

Place = tuple[str, str | int]


class Carried:
    """What is still unread. The definitions that it needs and that were loaded are saved anew, to be found there."""

    def __init__(self, restoring: Restoring, walk: Walk) -> None:
        self._restoring = restoring
        self._groups = restoring.unread()
        self._pinned: dict[Place, Any] = {}
        for group in self._groups:
            for _, (key, label) in _uses(group):
                if restoring.is_loaded(key):
                    definition = restoring.shared(key, label)
                    self._pinned[key, label] = definition
                    if id(definition) not in walk.definitions:
                        walk.add(definition)

    def add(
        self,
        groups: list[dict[str, Any]],
        names: list[list[Any]],
        ambient: list[list[str]],
        namespace: dict[str, Any],
        elsewhere: Callable[[Any, str], Place | None],
    ) -> list[list[str]]:
        """Add the unread groups, and the names among theirs that no cell has bound anew; rows of what is lost now."""
        taken = {group["key"] for group in groups}
        keys = {group["key"]: _free(group["key"], taken) for group in self._groups}
        lost: dict[str, str] = {}
        for group in self._groups:
            try:
                links = {told: self._place(keys, *place, elsewhere) for told, place in _uses(group)}
            except Unsaved as error:
                lost[group["key"]] = str(error)
                continue
            moved = [[told, list(place)] for told, place in links.items() if told != _told(*place)]
            needs = sorted({key for key, _ in links.values()})
            groups.append({**group, "key": keys[group["key"]], "needs": needs, "links": moved})
        rows = []
        for name, key, kind, *more in self._restoring.rows():
            if key in keys and name not in namespace:
                if key in lost:
                    rows.append([name, kind, lost[key], "define what it needs again, and make it again"])
                else:
                    names.append([name, keys[key], kind, *more])
        here = {label for label, _ in ambient}
        ambient += [[label, keys[key]] for label, key in self._restoring.around() if key in keys and label not in here]
        return rows

    def _place(self, keys: dict[str, str], key: str, label: str | int, elsewhere: Any) -> Place:
        if (key, label) in self._pinned:
            place: Place | None = elsewhere(self._pinned[key, label], "")
            assert place is not None
            return place
        return keys[key], label


def _free(key: str, taken: set[str]) -> str:
    while key in taken:
        key += "~"
    taken.add(key)
    return key


def _told(key: str, label: str | int) -> str:
    return f"{key}/{label!r}"


def _uses(group: dict[str, Any]) -> list[tuple[str, Place]]:
    """What the group's stream says of each definition that it refers to, and where that is now."""
    links = {told: (key, label) for told, (key, label) in group.get("links", ())}
    return [(told, links.get(told, (key, label))) for key, label in group["uses"] for told in (_told(key, label),)]
