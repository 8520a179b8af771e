"""Loading: from a record to names, all of them or those that are wanted, with the groups that they need."""

from __future__ import annotations

import sys
import types
from _pickle import Unpickler
from collections.abc import Callable, Iterable, Sequence
from importlib.util import MAGIC_NUMBER
from io import BytesIO
from json import loads
from typing import Any

from cellblock.worker.saving import ambient, arrays, building, patches
from cellblock.worker.saving.pickler import OF_LOADER
from cellblock.worker.saving.reach import EVERYTHING, reached_by_source
from cellblock.worker.saving.streams import SIMPLE, Get, Source, reading

_PATCH = "@patch:"
_REMEDY = "run the cells again that made it"


class WrongVersion(Exception):
    """A record that another version of Python wrote, or of another format: its cells have to be run again."""


def load(
    namespace: dict[str, Any], record: dict[str, Any], *, get: Get, wanted: set[str] | None = None
) -> list[list[str]]:
    """Bind the names that a record holds, or those `wanted`. Rows of what could not be: name, type, reason, remedy.

    Raises WrongVersion before anything is bound. What the record tells as lost is not told again.
    """
    restoring = Restoring(namespace, record, get)
    rows = restoring.bring(restoring.names if wanted is None else wanted)
    rows += restoring.surround()
    return rows + restoring.bring_reached("_") if wanted is None else rows


class Restoring:
    """A record on its way into a namespace; names may be brought in several steps."""

    def __init__(self, namespace: dict[str, Any], record: dict[str, Any], get: Get) -> None:
        if record.get("format") != 1:
            raise WrongVersion(f"a record of format {record.get('format')}")
        if record["python"] != MAGIC_NUMBER.hex():
            raise WrongVersion(f"saved by a Python of magic number {record['python']}")
        self.namespace = namespace
        self.get = get
        self._groups = {group["key"]: group for group in record["groups"]}
        self._of_name = {name: (key, kind) for name, key, kind, *_ in record["names"]}
        self._rows: list[list[Any]] = record["names"]
        self._surrounded: set[str] = set()
        self._ambient = [(label, key) for label, key in record["ambient"]]
        self._loaded: dict[str, tuple[dict[str, Any], Sequence[Any]]] = {}
        self._failed: dict[str, str] = {}
        self._loading: set[str] = set()
        self.originals: dict[tuple[str, str], Any] = {}

    @property
    def names(self) -> list[str]:
        return list(self._of_name)

    def bring(self, names: Iterable[str]) -> list[list[str]]:
        """Bind these names and those that share objects with them; rows of what could not be loaded."""
        rows = []
        for name in names:
            key, kind = self._of_name.get(name, (None, ""))
            if key is None or key in self._loaded:
                continue
            if not self._bring_group(key):
                rows.append([name, kind, f"it could not be loaded: {self._failed[key]}", _REMEDY])
        return rows

    def bring_reached(self, source: str) -> list[list[str]]:
        """Bind what a cell of this source can reach, before it runs; rows of what could not be loaded."""
        reached = reached_by_source(source, self._of_name.keys() | {"_"})
        rows = self.bring(self._of_name if EVERYTHING in reached else reached)
        return rows + self._surround_all("@last") if not reached.isdisjoint(("_", EVERYTHING)) else rows

    def is_loaded(self, key: str) -> bool:
        return key in self._loaded

    def unread(self) -> list[dict[str, Any]]:
        """The groups that nothing has asked for yet, as they were recorded, and those that failed."""
        return [group for key, group in self._groups.items() if key not in self._loaded]

    def rows(self) -> list[list[Any]]:
        """The rows of names, as they were recorded."""
        return self._rows

    def around(self) -> list[list[str]]:
        """The labels and groups of what surrounds the names, as they were recorded."""
        return [[label, key] for label, key in self._ambient]

    def surround(self) -> list[list[str]]:
        """Have what surrounds the names be as it was; once, before any cell runs. Rows of what could not be had.

        What cells changed in modules comes last: values are loaded by what modules hold of their own. The value of
        the last cell is left where it is until something asks for it.
        """
        labels = [label for label, _ in self._ambient if label != "@last"]
        return self._surround_all(*sorted(labels, key=lambda label: label.startswith(_PATCH)))

    def _surround_all(self, *labels: str) -> list[list[str]]:
        rows = []
        keys = dict(self._ambient)
        for label in labels:
            key = keys.get(label)
            if key is None or label in self._surrounded:
                continue
            self._surrounded.add(label)
            try:
                if not self._bring_group(key):
                    raise ImportError(self._failed[key])
                self._surround(label, self._loaded[key][0][label])
            except BaseException as error:  # the values' own code, which may leave with SystemExit too
                told = f"it could not be had again: {type(error).__name__}: {error}"[:500]
                rows.append([label.removeprefix("@").removeprefix("patch:").replace(":", "."), "", told, _REMEDY])
        return rows

    def _surround(self, label: str, value: Any) -> None:
        if label.startswith(_PATCH):
            module, _, path = label.removeprefix(_PATCH).partition(":")
            before = patches.apply(patches.Patch(module, path), value)
            self.originals.setdefault((module, path), before)
        else:
            ambient.apply(label.removeprefix("@"), value, self.namespace)

    def shared(self, key: str, label: str | int) -> Any:
        """A definition of another group."""
        if not self._bring_group(key):
            raise ImportError(f"what it needs could not be loaded: {self._failed[key]}")
        named, anonymous = self._loaded[key]
        return named[label] if isinstance(label, str) else anonymous[label]

    def original(self, module: str, path: str) -> Any:
        """What a module holds, or held before a cell's change to it was applied."""
        known = self.originals.get((module, path))
        return known if known is not None else building.attribute(module, path)

    def _bring_group(self, key: str) -> bool:
        """Load a group after those that it needs. Without recursion: the needs of needs may go far."""
        work = [key]
        while work:
            here = work[-1]
            if here in self._loaded or here in self._failed:
                work.pop()
                continue
            group = self._groups.get(here)
            if group is None:
                self._failed[here] = "its group is not there"
                continue
            wanted = [*self._reached(group), *group["needs"]]
            missing = [
                one for one in wanted if not (one in self._loaded or one in self._failed or one in self._loading)
            ]
            if missing and here not in self._loading:
                self._loading.add(here)
                work += missing
                continue
            self._loading.discard(here)
            try:
                named, anonymous = self._read(group)
            except BaseException as error:  # the values' own code, which may leave with SystemExit too
                self._failed[here] = f"{type(error).__name__}: {error}"[:500]
                continue
            self._loaded[here] = named, anonymous
            for name, value in named.items():
                if self._of_name.get(name, ("",))[0] == here:
                    self.namespace.setdefault(name, value)
        return key in self._loaded

    def _reached(self, group: dict[str, Any]) -> list[str]:
        """The groups of the names that functions of this group mention: loading another may call one of them."""
        names = group["reaches"]
        if EVERYTHING in names:
            return [key for key, _ in self._of_name.values()]
        return [self._of_name[name][0] for name in names if name in self._of_name]

    def _read(self, group: dict[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        source = reading(group["stream"], self.get)
        line = source.readline()
        if line == SIMPLE:
            return {group["key"]: Unpickler(source).load()}, ()
        return _Reading(self, group, loads(line), source).read()


class _Reading:
    """One group being loaded."""

    def __init__(self, restoring: Restoring, group: dict[str, Any], spaces: list[list[str]], source: Any) -> None:
        self._restoring = restoring
        self._buffers = group["buffers"]
        self._links = {told: (key, label) for told, (key, label) in group.get("links", ())}
        own = {"array": self.array, "hand": self.hand, "original": restoring.original, "shared": self.shared}
        builders = (*(own[name] for name in OF_LOADER), *building.BUILDERS)
        self._slots: list[Any] = [builders.__getitem__]
        self._modules: dict[int, types.ModuleType] = {}
        self._slots += [self._space(*how) for how in spaces]
        self._unpickler = _Reader(_Joined(_prelude(len(self._slots)), source), buffers=self._out_of_band())
        self._unpickler.slots = self._slots
        self._unpickler.restoring = restoring
        self._unpickler.load()

    def read(self) -> tuple[dict[str, Any], Sequence[Any]]:
        content: tuple[dict[str, Any], Sequence[Any]] = self._unpickler.load()
        while (calls := self._unpickler.load()) is not None:
            for build, arguments in calls:
                build(*arguments)
        return content

    def array(self, number: int, *made: Any) -> Any:
        return arrays.read(made, self._room(self._buffers[-number]))

    def _out_of_band(self) -> Any:
        for length, chunks in self._buffers:
            room = bytearray(length)
            Source(chunks, self._restoring.get).readinto(room)
            yield room

    def _room(self, buffer: list[Any]) -> Callable[[Any], None]:
        def fill(room: Any) -> None:
            if Source(buffer[1], self._restoring.get).readinto(room) != buffer[0]:
                raise EOFError("a buffer ends too early")

        return fill

    def shared(self, key: str, label: str | int) -> Any:
        """A definition of another group, which may have another key than when this one was saved."""
        place = self._links.get(f"{key}/{label!r}")
        return self._restoring.shared(*(place or (key, label)))

    def hand(self, space: dict[str, Any]) -> types.ModuleType:
        """The module made by hand whose dictionary this is."""
        return self._modules[id(space)]

    def _space(self, how: str, name: str = "", *more: str) -> Any:
        if how == "main":
            return self._restoring.namespace
        if how == "module":
            return vars(building.module(name))
        space: dict[str, Any] = {}
        if how == "hand":
            made = types.ModuleType(name)
            space = vars(made)
            self._modules[id(space)] = made
            known, name = more
            if known:
                sys.modules[made.__name__] = made
        if name == "builtins":
            space["__builtins__"] = self._restoring.namespace.get("__builtins__", __builtins__)
        return space


class _Reader(Unpickler):
    slots: list[Any]
    restoring: Restoring

    def find_class(self, module: str, name: str) -> Any:
        if module == "@":
            return self.slots[int(name)]
        if module == "__main__":
            self.restoring.bring([name.partition(".")[0]])
        return super().find_class(module, name)


class _Joined:
    """A prelude of exactly one read, and what follows it."""

    def __init__(self, prelude: bytes, rest: Any) -> None:
        self._prelude: BytesIO | None = BytesIO(prelude)
        self._read: Callable[[int], bytes] = rest.read
        self.readinto, self.readline = rest.readinto, rest.readline

    def read(self, size: int) -> bytes:
        if self._prelude is not None:
            piece = self._prelude.read(size)
            if piece:
                return piece
            self._prelude = None
        return self._read(size)


def _prelude(count: int) -> bytes:
    """A pickle that leaves the slots in the memo, in order; in a frame, to be read at once."""
    body = b"".join(b"c@\n%d\n\x940" % number for number in range(count)) + b"N."
    return b"\x80\x05\x95" + len(body).to_bytes(8, "little") + body
