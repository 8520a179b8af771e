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
            for key, label in group["uses"]:
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
            links = dict(map(_pair, group.get("links", ())))
            try:
                for key, label in group["uses"]:
                    links[_told(key, label)] = self._place(keys, key, label, elsewhere)
            except Unsaved as error:
                lost[group["key"]] = str(error)
                continue
            uses = [list(links[_told(key, label)]) for key, label in group["uses"]]
            moved = [[told, list(place)] for told, place in links.items() if told != _told(*place)]
            groups.append(
                {**group, "key": keys[group["key"]], "needs": sorted({key for key, _ in uses}), "links": moved}
            )
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


def _pair(link: list[Any]) -> tuple[str, Place]:
    told, (key, label) = link
    return told, (key, label)
