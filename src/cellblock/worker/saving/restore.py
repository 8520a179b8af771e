"""Loading: from a record to names, group by group, each after those that it needs.

Of a record of another version of Python, the imports and definitions of its cells can be run again.
"""

from __future__ import annotations

import errno
import mmap
import sys
from _pickle import Unpickler
from _pickle import loads as unpickled
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import MAGIC_NUMBER
from json import loads
from types import ModuleType
from typing import Any

from cellblock.declarations import declared
from cellblock.labels import HELD, IMPORT, called, label_of
from cellblock.worker.saving import ambient, building, packages, patches
from cellblock.worker.saving.facts import causes, told
from cellblock.worker.saving.functions import EVERYTHING
from cellblock.worker.saving.imported import Finder, Taken
from cellblock.worker.saving.losses import unloadable
from cellblock.worker.saving.pickler import OF_LOADER
from cellblock.worker.saving.streams import CHUNK, SIMPLE, Fill, Get, Source, gather

_PATCH = "@patch:"
_PROCESS, _SETTINGS, _SOURCES = "@process", "@settings", "@sources:"
_OTHER = "it was saved by another version of Python, which alone can read it"
_REMEDY = "run the cells again that made it"
_AGAIN = "set again what its functions and classes held"
_ITSELF = "it is being loaded, and needs this"
_GROWS, _PLENTY = 64, 512 * 2**20
"""More times than objects are larger than what they are saved as, and more than code of values takes besides."""


class WrongVersion(Exception):
    """A record that another version of Python wrote, or of another format: its cells have to be run again."""


def load(
    namespace: dict[str, Any],
    record: dict[str, Any],
    *,
    get: Get,
    fill: Fill | None = None,
    announce: Callable[[str], None] | None = None,
) -> list[list[str]]:
    """Bind the names that a record holds. Rows of what could not be: name, type, reason, remedy.

    First the code of modules of the session's own is run: for what it does to others, and for what of them cannot be
    loaded, which stays as the code makes it.

    `fill` puts the pieces of a large buffer into its memory; without it they are got one by one. Groups that the record
    says to be `left_out`, each for a reason, are not loaded. `announce` is told the key of each before it is loaded,
    "" of one that runs no code of the cells.
    Raises WrongVersion before anything is bound, and MemoryError where the process may not hold what was saved. What
    the record tells as lost is not told again.
    """
    restoring = Restoring(namespace, record, get, fill or gather(get), announce or (lambda _: None))
    with restoring.importing():
        lost = restoring.bring_all() + restoring.surround()
    if restoring.short:
        raise MemoryError
    return lost


class Restoring:
    """A record on its way into a namespace."""

    def __init__(
        self,
        namespace: dict[str, Any],
        record: dict[str, Any],
        get: Get,
        fill: Fill,
        announce: Callable[[str], None],
    ) -> None:
        if record.get("format") != 1:
            raise WrongVersion(f"a record of format {record.get('format')}")
        if record["python"] != MAGIC_NUMBER.hex():
            raise WrongVersion(f"saved by a Python of magic number {record['python']}")
        self.namespace = namespace
        self.get = get
        self.fill = fill
        self._announce = announce
        self._groups = {group["key"]: group for group in record["groups"]}
        self._of_name = {name: (key, kind) for name, key, kind, *_ in record["names"]}
        self._ambient: dict[str, str] = dict(record["ambient"])
        self._loaded: dict[str, tuple[dict[str, Any], Sequence[Any]]] = {}
        left_out = dict(record.get("left_out", ()))
        self.failed: dict[str, str] = {key: reason for key, reason in left_out.items() if not key.startswith(IMPORT)}
        self._not_run = left_out.keys() - self.failed.keys()
        """Groups of modules whose code is not to be run: that was left out, and no code is run to load the group."""
        self._runs = False
        """True if the code of modules of the session's own is run."""
        self.errors: dict[str, list[type[BaseException]]] = {}
        """The types of what was raised by groups that could not be loaded, and of what that came from: errors
        themselves hold what was loaded."""
        self.short = False
        """True if there was no memory for a group: nothing more is loaded."""
        self._loading: set[str] = set()
        self._being_read: dict[str, None] = {}
        self._postponed: set[str] = set()
        self._later: list[str] = []
        """Groups that failed while what they may need was still to come: each is tried once more."""
        self._spread: set[str] = set()
        self.originals: dict[tuple[str, str], Any] = {}
        self._referred = {key for group in record["groups"] for key in group.get("refers", ())}
        self._memos: dict[str, dict[int, Any]] = {}
        """Of groups of which others refer to single objects: these objects by their places."""

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Have imports find the modules that were saved, and those the names of `__main__` that are still to come."""
        self.namespace["__getattr__"] = look = self.look
        self.finder = Finder(self._origin, self._ask, self._running)
        sys.meta_path.insert(0, self.finder)
        try:
            yield
        finally:
            sys.meta_path[:] = [one for one in sys.meta_path if one is not self.finder]
            self.finder.settle()
            del self.finder  # which refers to this
            if self.namespace.get("__getattr__") is look:
                del self.namespace["__getattr__"]

    def _ask(self, module: str, name: str) -> tuple[Any, ...]:
        """The value that a module of the session's own holds, before its turn has come."""
        label = label_of(module, name)
        key = self._ambient.get(label)
        return (self._loaded[key][0][label],) if key not in self._loaded and key and self.bring_group(key) else ()

    @contextmanager
    def _running(self, module: str) -> Iterator[bool]:
        """While the code of a module is run, if it is to be."""
        key = f"{IMPORT}{module}"
        if not self._runs or key in self._not_run:
            yield False
            return
        self._being_read[key] = None
        self._announce(key)
        yield True
        del self._being_read[key]
        if self._being_read:
            self._announce(next(reversed(self._being_read)))

    def _origin(self, name: str) -> tuple[Any, ...] | None:
        """Origin of a module, where that was saved."""
        label = f"{IMPORT}{name}"
        key = self._ambient.get(label)
        return self._loaded[key][0][label] if key is not None and self.bring_group(key) else None

    def bring_all(self) -> list[list[str]]:
        """Bind every name, in the order of the groups, in which their bytes are fetched ahead.

        What imports depend on comes first: the places where modules are, and where one is found nowhere, the cells' own
        ways to find them, that have to be loaded themselves.
        """
        if _PROCESS in self._ambient and self.bring_group(self._ambient[_PROCESS]):
            with suppress(BaseException):  # it may be anything by a cell: `surround`, which does it again, tells
                ambient.lead(self._loaded[self._ambient[_PROCESS]][0][_PROCESS])
        self._runs = True
        for label in [key for key in self._groups if key.startswith(IMPORT) and key in self._ambient]:
            with suppress(BaseException):  # a finder of the cells' own: what is saved of the module is told where lost
                building.module(label.removeprefix(IMPORT))
        self.finder.fill()
        place = {key: number for number, key in enumerate(self._groups)}
        names = sorted(self._of_name, key=lambda name: place.get(self._of_name[name][0], -1))
        rows = self.bring(names)
        unfound = [key for key, kinds in self.errors.items() if any(issubclass(kind, ImportError) for kind in kinds)]
        if not unfound or _SETTINGS not in self._ambient:
            return rows
        rows = self.surround({_SETTINGS: self._ambient.pop(_SETTINGS)})
        for key in unfound:
            del self.failed[key], self.errors[key]
        return rows + self.bring(names)

    def bring(self, names: Iterable[str]) -> list[list[str]]:
        """Bind these names and those that share objects with them; rows of what could not be loaded."""
        rows = []
        for name in names:
            key, kind = self._of_name.get(name, (None, ""))
            if key is None or key in self._loaded:
                continue
            if not self.bring_group(key) and key in self.failed:
                reason = f"it could not be loaded: {self.failed[key]}"
                rows.append([name, kind, reason, unloadable(reason)])
        return rows

    def look(self, name: str) -> Any:
        """A name that another module asks for before its turn has come.

        None for a plain value that is being read together with that module: it is among what the module held, which
        it is given once all is there.
        """
        key, kind = self._of_name.get(name, ("", ""))
        begun = key in self._being_read and key not in self._loaded and key not in self.failed
        if begun and "." not in kind and kind not in ("function", "type", "module"):
            return None
        self.bring([name])
        try:
            return self.namespace[name]
        except KeyError:
            raise AttributeError(f"module '__main__' has no attribute {name!r}") from None

    def surround(self, what: Mapping[str, str] | None = None) -> list[list[str]]:
        """Have what surrounds the names be as it was, or some of it. Rows of what could not be had.

        What cells changed in modules comes late: values are loaded by what modules hold of their own. The value of
        the last cell comes last.
        """
        rows = []
        order: list[str] = []
        damaged: set[str] = set()
        for label, key in sorted((self._ambient if what is None else what).items(), key=_late):
            try:
                if not self.bring_group(key):
                    if (made := self.finder.made(label)) is None:
                        raise ImportError(self.failed[key])
                    if made[0] not in damaged:
                        damaged.add(made[0])
                        reason = f"some of it is as its code makes it: {self.failed[key]}"
                        rows.append([made[0], "module", reason, _AGAIN])
                    continue
                self._announce(key)
                value = self._loaded[key][0][label]
                if label.startswith(f"@{ambient.ORDER}:"):
                    order += value
                else:
                    self._surround(label, value)
            except BaseException as error:  # the values' own code, which may leave with SystemExit too
                reason = f"it could not be had again: {told(error)}"
                rows.append([called(label), "", reason, _REMEDY])
        ambient.reorder(self.namespace, order)
        return rows

    def _surround(self, label: str, value: Any) -> None:
        if label.startswith(_PATCH):
            module, _, path = label.removeprefix(_PATCH).partition(":")
            before = patches.apply(patches.Patch(module, path), value)
            self.originals.setdefault((module, path), before)
        elif not label.startswith(HELD):  # it was given to its module
            ambient.apply(label.removeprefix("@"), value, self.namespace)

    def shared(self, key: str, label: str | int) -> Any:
        """A definition of another group."""
        if not self.bring_group(key):
            if isinstance(label, str) and (made := self.finder.made(label)) is not None:
                return made[1]
            raise ImportError(f"what it needs could not be loaded: {self.failed.get(key, _ITSELF)}")
        named, anonymous = self._loaded[key]
        return named[label] if isinstance(label, str) else anonymous[label]

    def original(self, module: str, path: str) -> Any:
        """Attribute of a module as it was before a cell's change to it was applied."""
        known = self.originals.get((module, path))
        return known if known is not None else building.attribute(module, path)

    def bring_group(self, key: str) -> bool:
        """Load a group after those that it needs. Without recursion: the needs of needs may go far."""
        work, is_first = [key], not self._being_read
        while work and not self.short:
            here = work[-1]
            if here in self._loaded or here in self.failed or here in self._later:
                work.pop()
                continue
            group = self._groups.get(here)
            if group is None:
                self.failed[here] = "its group is not there"
                continue
            wanted = [*self._reached(group), *group["needs"]]
            missing = [one for one in wanted if not (one in self._loaded or one in self.failed or one in self._loading)]
            if missing and here not in self._loading:
                self._loading.add(here)
                work += missing
                continue
            self._loading.discard(here)
            if here in self._being_read:  # what is loaded asks for what it is part of
                break
            self._being_read[here] = None
            found = self._attempt(group)
            del self._being_read[here]
            if self._being_read:
                self._announce(next(reversed(self._being_read)))
            if isinstance(found, BaseException):
                if (self._loading or not is_first) and here not in self._postponed:
                    self._postponed.add(here)  # it may have called what waits for it itself
                    self._later.append(work.pop())
                    continue
                self.failed[here], self.errors[here] = told(found), list(map(type, causes(found)))
                lacks = any(map(_is_of_memory, causes(found)))
                del found  # and what was loaded with it
                self.short = lacks and not _has_room(_GROWS * _size(group))
                continue
            self._loaded[here] = found
            for name, value in found[0].items():
                if self._of_name.get(name, ("",))[0] == here:
                    self.namespace.setdefault(name, value)
        while self._later and is_first:
            again, self._later = self._later, []
            for one in again:
                self.bring_group(one)
        return key in self._loaded

    def _reached(self, group: dict[str, Any]) -> list[str]:
        """The groups of the names that functions of this group mention: loading another may call one of them."""
        names = group["reaches"]
        if EVERYTHING in names:
            return [key for key, _ in self._of_name.values()]
        reached = [self._of_name[name][0] for name in names if name in self._of_name]
        for name in names:
            if name in self._ambient:
                reached.append(self._ambient[name])
            elif name.startswith(HELD) and name.endswith(f":{EVERYTHING}") and name not in self._spread:
                self._spread.add(name)
                reached += [key for one, key in self._ambient.items() if one.startswith(name[:-1])]
        return reached

    def _attempt(self, group: dict[str, Any]) -> tuple[dict[str, Any], Sequence[Any]] | BaseException:
        """Contents of a group. Raises what the values' own code raises, which may be SystemExit too.

        Short: CPython enters a handler that is further into a function than 256 instructions with an object that it
        makes, and tries for ever where there is no memory left for that.
        """
        try:
            return self._read(group)
        except BaseException as error:
            BaseException.__setattr__(error, "__traceback__", None)  # its frames hold what was loaded so far
            return error

    def _read(self, group: dict[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        source = Source(group["stream"], self.get)
        line = source.readline()
        self._announce("" if line == SIMPLE else group["key"])
        if line == SIMPLE:
            unpickler: Any = Unpickler(source)
            found: tuple[dict[str, Any], Sequence[Any]] = {group["key"]: unpickler.load()}, ()
        else:
            reading_it = _Reading(self, group, loads(line), source)
            try:
                found, unpickler = reading_it.read()
            except BaseException:
                self.finder.put_back(reading_it.taken)
                raise
        if group["key"] in self._referred:
            self._memos[group["key"]] = unpickler.memo.copy()
        for name, value in found[0].items():
            if name.startswith(HELD):
                self.finder.give(name, value)
        return found

    def referred(self, key: str, place: int) -> Any:
        """An object of another group."""
        if not self.bring_group(key):
            raise ImportError(f"what it shares could not be loaded: {self.failed.get(key, _ITSELF)}")
        return self._memos[key][place]


def _is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _size(group: dict[str, Any]) -> int:
    """Most bytes that a group was saved as."""
    return CHUNK * (len(group["stream"]) + sum(len(chunks) for _, chunks in group["buffers"]))


def _has_room(size: int) -> bool:
    """True if so much memory is left, or plenty: then a value's own code has raised MemoryError for no lack of it."""
    try:
        mmap.mmap(-1, max(size, _PLENTY), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return False
    return True


def _late(surrounding: tuple[str, str]) -> tuple[bool, bool]:
    return surrounding[0] == "@last", surrounding[0].startswith(_PATCH)


class _Reading:
    """One group being loaded. Nothing that it holds refers to it: what was loaded goes with the last name for it."""

    def __init__(self, restoring: Restoring, group: dict[str, Any], spaces: list[list[str]], source: Source) -> None:
        self._restoring = restoring
        self._buffers = group["buffers"]
        self._spaces = spaces
        self._source = source
        self._modules: dict[int, ModuleType] = {}
        self.taken: Taken = []

    def read(self) -> tuple[tuple[dict[str, Any], Sequence[Any]], Unpickler]:
        """Contents of the group, and the unpickler, whose memo others may refer to."""
        restoring = self._restoring
        own = {"array": self.array, "hand": self.hand, "original": restoring.original, "shared": restoring.shared}
        finder = restoring.finder
        again: dict[Any, Any] = {building.class_: finder.class_, building.function: finder.function}
        builders = (
            *(own[name] for name in OF_LOADER),
            *(partial(again[one], self.taken) if one in again else one for one in building.BUILDERS),
        )
        slots: list[Any] = [builders.__getitem__, *(self._space(*how) for how in self._spaces)]
        self._source.put_first(_prelude(len(slots)))
        unpickler = _Reader(self._source, buffers=self._out_of_band())
        unpickler.slots, unpickler.restoring = slots, restoring
        unpickler.load()
        content: tuple[dict[str, Any], Sequence[Any]] = unpickler.load()
        while (calls := unpickler.load()) is not None:
            for build, arguments in calls:
                build(*arguments)
        return content, unpickler

    def array(self, number: int, *made: Any) -> Any:
        return packages.read(made, self._room(self._buffers[-number]))

    def _out_of_band(self) -> Any:
        for length, chunks in self._buffers:
            room = bytearray(length)
            self._restoring.fill(chunks, memoryview(room))
            yield room

    def _room(self, buffer: list[Any]) -> Callable[[Any], None]:
        def fill(room: Any) -> None:
            if self._restoring.fill(buffer[1], room) != buffer[0]:
                raise EOFError("a buffer ends too early")

        return fill

    def hand(self, space: dict[str, Any]) -> ModuleType:
        """The module made by hand whose dictionary this is."""
        return self._modules[id(space)]

    def _space(self, how: str, name: str = "", *more: str) -> Any:
        if how == "main":
            return self._restoring.namespace
        if how == "module":
            return vars(building.module(name))
        if how == "set":
            return set()
        space: dict[str, Any] = {}
        if how == "hand":
            made = ModuleType(name)
            space = vars(made)
            self._modules[id(space)] = made
            known, name = more
            if known:
                sys.modules[made.__name__] = made
        if name in ("builtins", "builtins module"):
            standard: Any = self._restoring.namespace.get("__builtins__", __builtins__)
            is_dict = name == "builtins" and isinstance(standard, ModuleType)
            space["__builtins__"] = vars(standard) if is_dict else standard
        return space


class _Reader(Unpickler):
    slots: list[Any]
    restoring: Restoring

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        return self.restoring.referred(*pid)

    def find_class(self, module: str, name: str) -> Any:
        if module == "@":
            return self.slots[int(name)]
        if module == "__main__":
            self.restoring.bring([name.partition(".")[0]])
        building.module(module)
        return super().find_class(module, name)


def _prelude(count: int) -> bytes:
    """A pickle that leaves the slots in the memo, in order: what sets `memo` is no way, CPython keeps nothing of it."""
    body = b"".join(b"c@\n%d\n\x940" % number for number in range(count)) + b"N."
    return b"\x80\x05\x95" + len(body).to_bytes(8, "little") + body


def sources(record: dict[str, Any], get: Get) -> dict[str, str]:
    """The sources of the session's cells by their file names, in the order they ran. Any Python reads them."""
    streams = {group["key"]: group["stream"] for group in record["groups"]}
    blocks = [(label, key) for label, key in record["ambient"] if label.startswith(_SOURCES)]
    blocks = sorted((int(label.removeprefix(_SOURCES)), key) for label, key in blocks)
    found: dict[str, str] = {}
    for _, key in blocks:
        data = b"".join(map(get, streams[key]))
        if not data.startswith(SIMPLE):
            raise ValueError("the sources of cells are not plain text")
        found.update(unpickled(data.removeprefix(SIMPLE)))
    return found


def replay(namespace: dict[str, Any], record: dict[str, Any], *, get: Get) -> list[list[str]]:
    """Run the imports and definitions of a record's cells. Rows of the names that are not there afterwards.

    A definition that fails, since it needs a value that is not there, costs the names that it would have bound.
    """
    said = sources(record, get)
    ambient.apply("sources", said, namespace)  # the next record has them too
    reasons: dict[str, str] = {}
    for text, names in declared(said.values()):
        try:
            exec(compile(text, "<declarations>", "exec", dont_inherit=True), namespace)
        except BaseException as error:  # a cell's own code, which may leave with SystemExit too
            reasons.update(dict.fromkeys(names, f"its definition failed: {type(error).__name__}: {error}"[:300]))
    rows = []
    for name, _, kind, *_ in record["names"]:
        if name not in namespace:
            rows.append([name, kind, reasons.get(name, _OTHER), _REMEDY])
    return rows
