"""Saving: from a namespace to the record of its groups. Runs the code of values, such as `__reduce__`."""

from __future__ import annotations

import sys
from _pickle import Pickler, PicklingError, dumps
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import MAGIC_NUMBER
from json import dumps as told_as_json
from re import compile as compiled
from sys import getsizeof
from types import MappingProxyType
from typing import Any
from warnings import catch_warnings, simplefilter

from cellblock.labels import DECLARED, HELD, IMPORT, LAST, called, is_around, label_of, place_of
from cellblock.text import represent
from cellblock.worker.saving import ambient, building, classes, codecs, functions, imported, packages, parts, patches
from cellblock.worker.saving.canonical import order, unify
from cellblock.worker.saving.circles import Circles
from cellblock.worker.saving.facts import is_a, mro_of, names_in, qualname_of, sayable, storable, told
from cellblock.worker.saving.groups import Quiet, Together, arrange
from cellblock.worker.saving.losses import PART, Unsaved, advice, path_to, type_of, unloadable
from cellblock.worker.saving.origins import Origins
from cellblock.worker.saving.pickler import Call, Saving, unlimited
from cellblock.worker.saving.streams import SIMPLE, Nowhere, Pieces, Put, Sink
from cellblock.worker.saving.trial import Trial
from cellblock.worker.saving.walk import VALUES, Walk
from cellblock.worker.saving.work import Ended, Work

__all__ = ["classes", "codecs", "functions", "packages", "parts", "save", "unsaved"]  # modules of reducers

FORMAT = 1
_PREVIEW_CHARS = 200
_LONG = 4096  # as in the walk: objects that names may share
_MOST_LOST = 10_000
_UNSTORABLE = "its name is longer than 1000 characters, or has NUL or a lone surrogate in it"
_ADDRESS = compiled(r" at 0x[0-9a-f]+(?=>)")


def save(
    namespace: dict[str, Any],
    *,
    put: Put,
    index: bytes = b"",
    unchanged: Callable[[int, int], bool] = lambda _start, _end: False,
    trial: Trial | None = None,
    standing: Mapping[str, object] = MappingProxyType({}),
    work: Work | None = None,
) -> dict[str, Any]:
    """Save every name that can be saved. The record, of JSON's own types alone.

    `put` takes a piece of at most 1 MB and gives its address. `index` is what the record before this one held, of
    memory that `unchanged(start, end)` tells about: whether nothing has written there since. `trial` is given what is
    to be loaded once. `standing` are settings of the process that are others while it is saved. `work` is told each
    piece of work that may run code of the cells'.
    """
    snapshot = _Snapshot(namespace, Pieces(put, index, unchanged), work or Work(), trial)
    snapshot.surround(standing)  # before the filters of warnings are others
    with catch_warnings():
        simplefilter("ignore")
        return snapshot.take()


def unsaved(namespace: dict[str, Any], names: Collection[str]) -> list[str]:
    """Of some names, those whose values cannot be saved. Runs the code of values, here and now, and keeps nothing."""
    snapshot = _Snapshot(namespace, Pieces(lambda _: "", b"", lambda _start, _end: False), Work())
    with catch_warnings():
        simplefilter("ignore")
        saved = {name for name, *_ in snapshot.take(names)["names"]}
    return [name for name in names if name not in saved]


class _Snapshot:
    def __init__(self, namespace: dict[str, Any], pieces: Pieces, work: Work, trial: Trial | None = None) -> None:
        self.pieces, self.work, self.trial = pieces, work, trial
        self._namespace = namespace
        self._origins = Origins(namespace)
        self.how: dict[int, Any] = {}
        self._walk = Walk(self._origins, namespace)
        self._groups: list[dict[str, Any]] = []
        self._names: list[list[Any]] = []
        self._lost: list[list[str]] = []
        self._ambient: list[list[str]] = []
        self._noted: set[tuple[str, str]] = set()
        self._broken: dict[int, str] = {}
        """Roots that cannot be saved, and why."""
        self._together: list[Together] = []
        self._place: dict[int, int] = {}
        self._labels: dict[int, str] = {}
        self._modules: dict[int, str] = {}
        """Of roots that modules of the session's own hold: the modules."""
        self._around: dict[str, Any] = {}
        self._shared: set[int] = set()
        """Roots, as `find` gives them, of which another group refers to single objects."""
        self._memos: dict[str, dict[int, int]] = {}
        """Places in the memo of a group's pickle, by ids."""
        self._numbers: dict[int, int] = {}
        """Of definitions without a name: their position in their group."""

    def surround(self, standing: Mapping[str, object]) -> None:
        """Take up what surrounds the names."""
        begin = self.work.pieces("around")
        with self._losing("what surrounds the names"):
            for label, get in ambient.collect(self._namespace, standing):
                with self._losing(called(f"@{label}")):
                    begin(f"around {label}")
                    if (value := get()) is not None:
                        self._put_around(label, value)
        with self._losing("what cells changed in modules"):
            begin("around what cells changed in modules")
            chains = self.pieces.targets(ambient.blocks().values())
            found = patches.find(chains, self._namespace, self._origins.of)
            for made, (*_, said) in self._origins.own.values():
                found += patches.find(said, names_in(made), self._origins.of)
            for patch in dict.fromkeys(found):
                if patch.module not in self._origins.own:
                    with self._losing(f"{patch.module}.{patch.path}"):
                        self._put_around(f"patch:{patch.module}:{patch.path}", patches.value_of(patch))
        for module, (made, _) in self._origins.own.items():
            for name, value in imported.held(made).items():
                with self._losing(f"{module}.{name}"):
                    self._put_around(label_of(module, name).removeprefix("@"), value)

    def _put_around(self, label: str, value: Any) -> None:
        if not storable(label):
            raise Unsaved(value, _UNSTORABLE, "give it another name")
        self._around[f"@{label}"] = value

    @contextmanager
    def _losing(self, what: str) -> Iterator[None]:
        """Tell something that surrounds the names as lost where code of a cell's or of a package's fails."""
        try:
            yield
        except MemoryError:
            raise
        except BaseException as error:
            reason = str(error) if type(error) in (Ended, Unsaved) else told(error)
            remedy = error.remedy if type(error) is Unsaved else "set it again in the next cell"
            self._lost.append([what, "", reason, remedy])

    def take(self, names: Collection[str] | None = None) -> dict[str, Any]:
        self._walk.begin, self._walk.go_on = self.work.pieces("walk"), self.work.go_on
        for name in names_of(self._namespace) if names is None else names:
            value = self._namespace[name]
            if not storable(name):
                self._lost.append([name, type_of(value), _UNSTORABLE, "give it another name"])
                continue
            self._add(name, value)
        for label, value in self._around.items():
            self._add(label, value)
        self._walk.run()
        Quiet(self._walk, self._origins).tie(self._labels, self._modules)
        if names is None:  # and this process ends
            order(self._walk.sets)
        self._shared = {self._walk.find(root) for touched in self._walk.touched.values() for root in touched.values()}
        for number, error in self._walk.failed.items():
            self._lose(number, error, self._walk.values[number])
        self._together, self._place = arrange(self._walk, self._labels)
        for group in self._together:
            anonymous = (number for number in group.roots if number not in self._labels)
            self._numbers.update((number, place) for place, number in enumerate(anonymous))
        for group in self._together:
            self._save_group(group)
        self._take_imported()
        with self._losing("modules of packages"):
            for part in ambient.parts(self._walk.packages.values()):
                self._save_simple(f"@part:{part}", part)
        if self.trial is not None:
            self.trial.originals = self._walk.originals
        more = len(self._lost) - _MOST_LOST
        if more > 0:
            self._lost[_MOST_LOST:] = [[f"{more} more", "", "there are too many to name", "see why the first are lost"]]
        return {
            "format": FORMAT,
            "python": MAGIC_NUMBER.hex(),
            "groups": self._groups,
            "names": sorted(self._names),
            "lost": [list(map(sayable, row)) for row in self._lost],
            "ambient": sorted(self._ambient),
            "index": self.pieces.index(),
        }

    def _add(self, name: str, value: Any) -> None:
        is_held = name.startswith(HELD)
        if not is_held and id(type(value)) in VALUES and not (type(value) in (str, bytes) and len(value) >= _LONG):
            self._save_simple(name, value)
            return
        number = self._walk.add(value, name, ties=name != LAST and not name.startswith(DECLARED))
        self._labels[number] = name
        if is_held:
            self._modules[number] = place_of(name)[0]

    def _take_imported(self) -> None:
        """Write the origins of the session's own modules, in the order of their imports."""
        groups = []
        for name, (module, origin) in self._origins.own.items():
            with self._losing(f"module {name}"):
                if not storable(label := f"{IMPORT}{name}"):
                    raise Unsaved(origin, _UNSTORABLE, "give it another name")
                self._note_pieces()
                sink = self.sink()
                sink.write(SIMPLE)
                Pickler(sink, 5).dump((*origin, list(imported.held(module))))
                groups.append(_alone(label, sink.finish()))
                self._ambient.append([label, label])
                self._try_later(groups[-1], defines=True)
        self._groups[:0] = groups  # first, as what needs them does when it is loaded

    def _save_simple(self, name: str, value: Any) -> None:
        self._groups.append(_alone(name, [self.pieces.put(SIMPLE + dumps(value, 5))]))
        self._tell(name, name, value, plain=True)

    def _save_standard(self, key: str, number: int) -> bool:
        """Save a value that the standard pickler can do alone; False where it cannot: it nests too deep for that."""
        sink = self.sink()
        sink.write(SIMPLE)
        try:
            pickler = Pickler(sink, 5)
            pickler.dump(self._walk.values[number])
        except Exception:  # the other way tells why
            return False
        self._keep_memo(key, [number], pickler, unify(sink, pickler, 0))
        self._groups.append(_alone(key, sink.finish()))
        self._tell(self._labels[number], key, self._walk.values[number], plain=True)
        return True

    def sink(self) -> Sink:
        return Sink(self.pieces, self._walk.owner_of)

    def _note_pieces(self) -> None:
        """Begin to hold the pieces of a group, for the trial."""
        self.pieces.noted = None if self.trial is None else {}

    def _try_later(self, group: dict[str, Any], *, defines: bool) -> None:
        """Give a group that was written to the trial."""
        if self.trial is not None:
            self.trial.take(group, self.pieces.noted or {}, defines=defines)
        self.pieces.noted = None

    def _save_group(self, group: Together) -> None:
        roots = [number for number in group.roots if number not in self._broken]
        if not roots:
            return
        if len(roots) == 1 and roots[0] in self._walk.standard and self._save_standard(group.key, roots[0]):
            return
        failure = self._try(group.key, group.key, roots, kept=True)
        if failure is None:
            return
        bad: dict[int, tuple[BaseException, Any]] = {}
        if len(roots) > 1:
            for number in sorted(roots, key=lambda one: not self._walk.defines(one)):  # which may come from their code
                label = self._labels.get(number) or f".{number}"
                alone = self._try(f"{group.key} of {label}", group.key, [number], kept=False)
                if alone is not None:
                    bad[number] = alone
                    self._lose(number, *alone)
        if not bad:
            bad = dict.fromkeys(roots, failure)
            for number in roots:
                self._lose(number, *failure)
        left = [number for number in roots if number not in bad]
        if left and (failure := self._try(f"{group.key} of {len(left)}", group.key, left, kept=True)) is not None:
            for number in left:
                self._lose(number, *failure)

    def _try(
        self, work: str, key: str, roots: list[int], *, kept: bool, deep: bool = False
    ) -> tuple[BaseException, Any] | None:
        """Pickle these roots, to nowhere if it is not `kept`; what went wrong, and at which object."""
        writing = None
        values = [self._walk.values[number] for number in roots]
        try:
            self.work.require(f"load {work}", *values)
            self.work.begin(f"save {work}", *values)
            self._note_pieces()
            writing = _Writing(self, key, roots, kept=kept)
            writing.deep = deep
            with unlimited() if deep else nullcontext():
                pickler = writing.write()
        except BaseException as error:  # the values' own code, which may leave with SystemExit too
            BaseException.with_traceback(error, None)  # its frames would count among what refers to the values
            if is_a(error, RecursionError) and not deep:
                return self._try(work, key, roots, kept=kept, deep=True)
            if is_a(error, SystemError) and deep:  # an allocation failed far down
                error = Unsaved(values[0], "it nests too deep for the memory there is", "keep it in a flat list")
            if type(error) is Unsaved:
                return error, error.culprit
            return error, None if writing is None else writing.last
        if kept:
            group = writing.record()
            self._groups.append(group)
            self._keep_memo(key, roots, pickler, writing.numbers)
            if not all(is_around(self._labels.get(one, "")) for one in roots):
                self._try_later(group, defines=any(map(self._walk.defines, roots)))
            for number in roots:
                if number in self._labels:
                    self._tell(self._labels[number], key, self._walk.values[number])
            for culprit, what, remedy in writing.notes:
                self._note(roots, culprit, what, remedy)
        return None

    def _tell(self, name: str, key: str, value: Any, *, plain: bool = False) -> None:
        """Have a name, or what surrounds the names, in the record. A `plain` value has no code of its own."""
        if name.startswith("@"):
            self._ambient.append([name, key])
            return
        try:
            if not plain:
                self.work.begin(f"show {name}", value)
            size, preview = _size(value), represent(value, max_chars=_PREVIEW_CHARS)
        except Ended as ended:
            size, preview = 0, f"<no repr: {ended}>"
        preview = _ADDRESS.sub("", preview)  # which is another in each process
        self._names.append([name, key, sayable(type_of(value)), size, sayable(preview)])

    def _note(self, roots: list[int], culprit: Any, what: str, remedy: str) -> None:
        """Tell what is left out of these roots, each kind of part once."""
        for number in roots:
            name = self._labels.get(number)
            if name is None:
                continue
            path = path_to(culprit, ambient.unwrapped(name, self._walk.values[number]), called(name))
            if is_around(name) or (name, what) in self._noted:
                continue
            if path is not None or len(roots) == 1:
                self._noted.add((name, what))
                of = type_of(culprit)
                part = f"{what.removeprefix('its ')} of {path or called(name)}"
                self._lost.append([part, PART + of, f"{what} cannot be saved", remedy])

    def _lose(self, number: int, error: BaseException, culprit: Any) -> None:
        root, name = self._walk.values[number], self._labels.get(number)
        value = root if name is None else ambient.unwrapped(name, root)
        reason, remedy = _explain(error, value if culprit is root else culprit)
        if name is not None:
            name = called(name)
        path = None if type(error) is Ended else path_to(culprit, value, name or type_of(value))
        if path is not None and path != name:
            reason = f"{path}: {reason}"
        self._broken[number] = reason
        self._origins.leave_to_code(value)
        if name is not None:
            self._lost.append([name, type_of(value), reason, remedy])

    def _keep_memo(self, key: str, roots: list[int], pickler: Any, numbers: list[int]) -> None:
        if any(self._walk.find(one) in self._shared for one in roots):
            held = pickler.memo.copy().items()
            self._memos[key] = {one: numbers[place] if numbers else place for one, (place, _) in held}

    def references(self, roots: list[int]) -> dict[int, tuple[str, int]]:
        """Objects of other groups that these roots share, by ids: the key of the group, and the place in its memo."""
        found = {}
        for root in roots:
            for one, holder in self._walk.touched.get(root, {}).items():
                if holder in self._broken:
                    label = self._labels.get(holder)
                    other = _defined(self._walk.values[holder]) if label is None else called(label)
                    reason = f"it shares objects with {other}, which is not saved: {self._broken[holder]}"
                    raise Unsaved(self._walk.values[root], reason, "make it again")
                key = self._together[self._place[holder]].key
                if one in self._memos.get(key, ()):
                    found[one] = key, self._memos[key][one]
        return found

    def elsewhere(self, value: Any, key: str) -> tuple[str, str | int] | None:
        """Place of a definition that is not of this group."""
        number = self._walk.definitions.get(id(value))
        if number is None:
            return None
        group = self._together[self._place[number]]
        if number in self._broken:
            reason = f"its {_defined(value)} cannot be saved: {self._broken[number]}"
            raise Unsaved(value, reason, "define it without that, or make it again in the next cell")
        if group.key == key:
            return None
        return group.key, self._labels.get(number, self._numbers.get(number, 0))


class _Writing(Saving):
    """One attempt to pickle some roots of a group, to nowhere if it is not `kept`."""

    def __init__(self, snapshot: _Snapshot, key: str, roots: list[int], *, kept: bool) -> None:
        walk = snapshot._walk
        self._snapshot, self._key, self._roots = snapshot, key, roots
        self._sink = snapshot.sink() if kept else None
        self.numbers: list[int] = []
        """Places in the memo, as `unify` gives them."""
        self._pickled: list[tuple[int, list[str]]] = []
        self._arrays: list[tuple[int, list[str]]] = []
        self._whole = snapshot._together[snapshot._place[roots[0]]].roots
        references = snapshot.references(roots)
        self._needs = {key for key, _ in references.values()}
        super().__init__(
            walk,
            snapshot._namespace,
            snapshot._origins,
            sorted({walk.find(number) for number in self._whole}),
            snapshot.how,
            references=references,
            circles=self._circles(walk),
        )

    def _circles(self, walk: Walk) -> tuple[list[Any], dict[int, dict[str, Any]]]:
        """Tables that are filled late, and early attributes: see `Circles.tables`."""
        if walk.hashed.isdisjoint(self._whole):
            return [], {}
        in_turn = sorted(self._roots, key=lambda number: self._snapshot._labels.get(number, ""))
        return Circles(walk).tables([walk.values[number] for number in in_turn])

    def write(self) -> Any:
        """Write all. The pickler."""
        labels = self._snapshot._labels
        named = dict(sorted(map(self._named, labels.keys() & self._roots), key=_in_turn))
        self.kept.append(named)
        # all of the group's: their positions are what others refer to
        others = [one for one in self._whole if one not in labels]
        anonymous = tuple(self.walk.values[one] if one in self._roots else None for one in others)
        sink: Any = self._sink if self._sink is not None else Nowhere(self._snapshot.work.go_on)
        sink.write(told_as_json(self.spaces, separators=(",", ":")).encode() + b"\n")
        pickler = self.dump((named, anonymous), sink, lambda buffer: self._pickled.append(self._put(buffer.raw())))
        if self._sink is not None:
            self.numbers = unify(self._sink, pickler, self.begin)
        return pickler

    def _named(self, number: int) -> tuple[str, Any]:
        """A label and its value, which a module holds at once where it needs nothing else of the group."""
        label, value = self._snapshot._labels[number], self.walk.values[number]
        if not label.startswith(HELD) or len(self._roots) == 1:
            return label, value
        if self.walk.needs[number] or self.walk.defines(number):
            return label, value
        module, name = place_of(label)
        return label, Call(building.bound, self.space_of(names_in(self.origins.own[module][0])), name, value)

    def record(self) -> dict[str, Any]:
        assert self._sink is not None
        record = {
            "key": self._key,
            "stream": self._sink.finish(),
            "buffers": [[length, chunks] for length, chunks in self._pickled + self._arrays[::-1]],
            "needs": sorted(self._needs),
            "reaches": sorted(filter(storable, self.reaches)),
        }
        if self.references:
            record["refers"] = sorted({key for key, _ in self.references.values()})
        return record

    def elsewhere(self, value: Any) -> tuple[str, str | int] | None:
        place = self._snapshot.elsewhere(value, self._key)
        if place is not None:
            self._needs.add(place[0])
        return place

    def buffer(self, data: Any, owner: Any) -> int:
        """Numbers count from the end of the buffers: those that values' own pickling puts out of band come first."""
        self._arrays.append(self._put(data, owner))
        return len(self._arrays)

    def _put(self, data: Any, owner: Any = None) -> tuple[int, list[str]]:
        view, pieces = memoryview(data), self._snapshot.pieces
        if self._sink is None:
            return view.nbytes, []
        if owner is not None and self.walk.reaches(owner):
            return view.nbytes, pieces.put_held(view, id(owner))
        return view.nbytes, pieces.put_all(view)


def _alone(key: str, stream: list[str]) -> dict[str, Any]:
    """A group that needs no other."""
    return {"key": key, "stream": stream, "buffers": [], "needs": [], "reaches": []}


def _in_turn(item: tuple[str, Any]) -> tuple[bool, int, str]:
    """Classes before those derived from them: what the first hold may be of the others, which are not made twice so."""
    label, value = item
    return type(value) is not Call, len(mro_of(value)) if is_a(value, type) else sys.maxsize, label


def names_of(namespace: dict[str, Any]) -> list[str]:
    """The names that cells have bound, without what Python itself keeps there."""
    return [
        name for name in list(namespace) if type(name) is str and not (name.startswith("__") and name.endswith("__"))
    ]


def _defined(value: Any) -> str:
    """A definition in a sentence."""
    if is_a(value, type):
        return f"class {qualname_of(value)}"
    return f"{type_of(value).rpartition('.')[2]} {getattr(value, '__qualname__', value.__name__)}"


def _explain(error: BaseException, culprit: Any) -> tuple[str, str]:
    if type(error) is Unsaved:
        return error.reason, error.remedy
    if type(error) is Ended:
        return str(error), unloadable(str(error))
    if is_a(error, MemoryError):
        return "the session's memory limit leaves no room to save it in", "raise max_memory_mb, and make it again"
    what, remedy = advice(culprit)
    said = told(error)
    if is_a(error, TypeError, PicklingError) and "cannot pickle" in said:
        return what, remedy
    return said, remedy


def _size(value: object) -> int:
    try:
        return getsizeof(value, 0)
    except BaseException:  # an object's own __sizeof__ may do anything
        return 0
