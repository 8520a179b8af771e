"""Snapshots as what a store keeps of them: a record for each group, and trees of names, files and cells."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import starmap
from typing import Any

from cellblock.cell import Cell, Lost
from cellblock.differences import Name
from cellblock.documents import fits, reading
from cellblock.errors import StoreError
from cellblock.session.archive import from_plain, to_plain
from cellblock.session.notebook import Changes, Kept
from cellblock.session.shown import Blob
from cellblock.snapshots import Buffer, File, Group, Rows, SavedName, Snapshot
from cellblock.store import JSON, Batch, Commit, StoredSession, blobs, records
from cellblock.store.address import address_of, canonical, linked
from cellblock.text import dumps

_STATE = ("groups", "names", "files")
_CELLS = "notebook"
"""The tree of cells: by id, the place of each, which is told by the number that it first ran under, and its record."""
_BY_PLACE = "cells"
"""The tree that older commits have in its stead: by place, each cell with its record."""
CELLS_AT_ONCE = 100
_MUCH_SHOWN = 1 << 20
"""Characters."""
_MOST_INSIDE, _MOST_ANSWERED, _MOST_ANSWERS = 1 << 16, 8 << 20, 20_000
"""Characters of an answer that stand in a record of answers, of all in one, and their number."""

_SIZE, _LINK = range(2**63), {"/": (str, [str])}
_GROUP = {"stream": _LINK, "buffers": [{"length": _SIZE, "chunks": _LINK}], "needs": [str], "note": str}
_NAME = {"group": str, "type": str, "size": _SIZE, "preview": str}
_FILE = {
    "kind": str, "mode": _SIZE, "modified_ns": int, "size": _SIZE, "chunks": _LINK, "target": str, "holes": [[_SIZE]],
    "same": _SIZE,
}  # fmt: skip
_DETAIL = {"ambient": [[str]], "environment": [[str]]}


@dataclass
class Written:
    """Contents of the newest commit, by tree: of the next commit only differences are written.

    `trees` has of each key of what was put the mark of its value; the cells are written by `put_cells`, change by
    change.
    """

    roots: dict[str, str | None] = field(default_factory=dict)
    trees: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def copy(self) -> Written:
        """Another that is written to apart."""
        return Written(dict(self.roots), dict(self.trees))

    def has(self, kind: str, key: str, value: JSON) -> bool:
        """True if a tree that was put holds a key with this value."""
        return self.trees.get(kind, {}).get(key) == _mark(value)

    def put(self, batch: Batch, kind: str, tree: Iterable[tuple[str, JSON]]) -> None:
        """Write one tree, of which the last one put is known."""
        before, marks, changes = self.trees.get(kind, {}), dict[str, bytes](), dict[str, JSON]()
        for key, value in tree:
            marks[key] = _mark(value)
            if before.get(key) != marks[key]:
                changes[key] = value
        changes.update(dict.fromkeys(before.keys() - marks.keys()))
        if changes or kind not in self.roots:
            self.roots[kind] = batch.tree(self.roots.get(kind), changes)
        self.trees[kind] = marks


def _mark(value: JSON) -> bytes:
    """A hash of a value: what a session holds of it does not grow with it."""
    return sha256(canonical(value)).digest()


def read_written(session: StoredSession, commit: Commit) -> Written:
    """Contents of a commit, for writing the next one. Its cells are not read: how many there are history decides."""
    state = {kind: root for kind, root in commit.trees.items() if kind in _STATE}
    return Written(
        dict(commit.trees),
        {kind: {key: _mark(value) for key, value in session.tree(root).pairs()} for kind, root in state.items()},
    )


_OF_STATE = ("ambient", "environment", "lost")


def of_state(commit: Commit) -> dict[str, JSON]:
    """The parts of a commit's detail about its state, as another commit of the same state has them."""
    return {what: commit.detail[what] for what in _OF_STATE if what in commit.detail}


def put_snapshot(batch: Batch, written: Written, snapshot: Snapshot) -> dict[str, JSON]:
    """Write a snapshot whose chunks are there already; what the commit's detail says of it."""
    groups = {group.key: _put_group(batch, written, group) for group in snapshot.groups}
    written.put(batch, "groups", groups.items())
    written.put(batch, "names", ((one.name, {**_name(one), "record": groups[one.group]}) for one in snapshot.names))
    written.put(batch, "files", ((one.path, _file(one)) for one in snapshot.files))
    return {
        "ambient": [[label, key] for label, key in snapshot.ambient],
        "environment": [[what, value] for what, value in snapshot.environment.items()],
        "lost": put_lost(batch, [[one.name, one.type, one.reason, one.remedy] for one in snapshot.lost]),
    }


def put_lost(batch: Batch, rows: Sequence[JSON]) -> JSON:
    """Write what a state lacks: a link, since all who list commits read these."""
    return records(batch.record(rows)) if rows else []


def get_lost(session: StoredSession, commit: Commit) -> list[list[str]]:
    """The name, type, reason and remedy of all that a commit's state lacks. Older stores have them in the commit."""
    told = commit.detail.get("lost", [])
    rows: Any = session.record(linked(told)[0]) if isinstance(told, dict) else told
    _require(rows, [[str]])
    return list(rows)


def _put_group(batch: Batch, written: Written, group: Group) -> JSON:
    """The link to a group's record, which is written unless the last commit has it."""
    record = _group(group)
    link = records(address_of(canonical(record)))
    return link if written.has("groups", group.key, link) else records(batch.record(record))


def get_snapshot(session: StoredSession, commit: Commit) -> Snapshot | None:
    """The snapshot that a commit holds; None for one from before the first step."""
    detail: Any = commit.detail
    if not detail.get("environment"):
        return None
    _require(detail, _DETAIL)
    trees = {kind: session.tree(commit.trees.get(kind)) for kind in _STATE}
    groups = {key: _addresses(link, "@")[0] for key, link in trees["groups"].pairs()}
    names: Any = trees["names"].pairs()
    files: Any = trees["files"].pairs()
    return Snapshot(
        groups=Rows(Group, map(_group_of, groups, map(json.loads, session.get_many(groups.values())))),
        names=Rows(SavedName, starmap(_name_of, names)).ordered(),
        files=Rows(File, starmap(_file_of, files)).ordered(),
        lost=tuple(Lost(name=a, type=b, reason=c, remedy=d) for a, b, c, d in get_lost(session, commit)),
        environment=dict(detail["environment"]),
        ambient=tuple((label, key) for label, key in detail["ambient"]),
    )


def _group(group: Group) -> JSON:
    return {
        "stream": blobs(*group.stream),
        "buffers": [{"length": one.length, "chunks": blobs(*one.chunks)} for one in group.buffers],
        "needs": list(group.needs),
        "note": group.note,
    }


def _require(plain: object, shape: object) -> None:
    """TypeError for a part of a commit that is not as this version, or one before, writes it."""
    if not fits(plain, shape):
        raise TypeError(f"{str(plain)[:80]} is not of its form")


def _group_of(key: str, plain: Any) -> Group:
    _require(plain, _GROUP)
    buffers = tuple(Buffer(one["length"], _addresses(one["chunks"], "/")) for one in plain["buffers"])
    return Group(
        key=key,
        stream=_addresses(plain["stream"], "/"),
        buffers=buffers,
        needs=tuple(plain["needs"]),
        note=plain["note"],
    )


def _name(one: SavedName) -> dict[str, JSON]:
    return {"group": one.group, "type": one.type, "size": one.size, "preview": one.preview}


def _name_of(name: str, plain: Any) -> SavedName:
    _require(plain, _NAME)
    return SavedName(name=name, group=plain["group"], type=plain["type"], size=plain["size"], preview=plain["preview"])


def put_cell(batch: Batch, cell: Cell, parts: Mapping[str, Blob]) -> str:
    """The address of a cell's record. What it showed may look like a link: it is kept as text."""
    kept: JSON = {uri: {"mime": blob.mime, "data": blobs(batch.put(blob.data))} for uri, blob in parts.items()}
    text = _text_of(cell)
    return batch.record({"id": cell.id, "cell": blobs(batch.put(text)), "parts": kept})


def _text_of(cell: Cell) -> bytes:
    """A cell as JSON. Of one that shows much the encoder makes one text at a time: it holds all other threads up."""
    plain = to_plain(cell)
    shown = sum(len(one) for output in cell.outputs for one in output.data.values() if isinstance(one, str))
    if shown < _MUCH_SHOWN:
        return dumps(plain).encode()
    return b"".join(part.encode() for part in json.JSONEncoder().iterencode(plain))


def put_answers(batch: Batch, entries: Sequence[JSON]) -> JSON:
    """The links to records of what host functions answered, each of some answers. Large bytes of theirs are objects."""
    addresses: list[str] = []
    part: list[JSON] = []
    size = 0
    for kept in entries:
        entry: dict[str, Any] = dict(kept)  # type: ignore[arg-type]
        texts = [str(one) for one in entry["buffers"]]
        if (length := sum(map(len, texts))) > _MOST_INSIDE:
            entry |= {"buffers": [], "data": blobs(*(batch.put(base64.b64decode(one)) for one in texts))}
            length = 0
        if part and (size + length > _MOST_ANSWERED or len(part) == _MOST_ANSWERS):
            addresses.append(batch.record(part))
            part, size = [], 0
        part.append(entry)
        size += length
    return records(*addresses, batch.record(part))


def get_answers(session: StoredSession, detail: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The answers of a commit's step, as the journal has them; what is an object of its own is bytes, as `data`."""
    for address in linked(detail["answers"]) if "answers" in detail else ():
        found: Any = session.record(address)
        for entry in found:
            yield {**entry, "data": [*map(session.get, linked(entry["data"]))]} if "data" in entry else entry


def put_cells(batch: Batch, session: StoredSession, roots: dict[str, str | None], changes: Changes) -> dict[str, JSON]:
    """Write what has changed of a notebook, and have `roots` tell its tree; the links to what was written, by id.

    What was undone is not written: the session went back to before it was, and the tree is of then. Of a tree by
    places one by ids is made, once: 10 µs for each cell.
    """
    if changes.cleared:
        roots.update({_BY_PLACE: None, _CELLS: None})
    known = rows_of(session, roots)
    rows: dict[str, JSON] = dict(known) if roots.pop(_BY_PLACE, None) is not None else {}
    links: dict[str, JSON] = {}
    for cell_id, kept in changes.cells.items():
        if kept is None:
            rows[cell_id] = None
        elif not kept[0].undone:
            cell, parts = kept
            row: Any = None if cell_id in changes.deleted else known.get(cell_id)
            links[cell_id] = link = records(put_cell(batch, cell, parts))
            rows[cell_id] = [max(cell.number - 1, 0) if row is None else row[0], link]
    roots[_CELLS] = batch.tree(roots.get(_CELLS), rows)
    return links


def rows_of(session: StoredSession, trees: Mapping[str, str | None]) -> Mapping[str, JSON]:
    """The place and the record of each cell of a commit, by id: read as they are asked for, but those of a tree by
    places at once, as a dict.
    """
    if (root := trees.get(_BY_PLACE)) is None:
        return session.tree(trees.get(_CELLS))
    places: Any = sorted(session.tree(root).pairs())
    with reading("a stored cell is", StoreError):
        found: Any = map(json.loads, session.get_many(_addresses(link, "@")[0] for _, link in places))
        return {one["id"]: [int(place), link] for (place, link), one in zip(places, found, strict=True)}


def find_cell(session: StoredSession, rows: Mapping[str, JSON], cell_id: str) -> Kept | None:
    """The cell of a row, by its id: nothing else is read."""
    row: Any = rows.get(cell_id)
    return None if row is None else get_cell(session, _addresses(row[1], "@")[0])


def get_cell(session: StoredSession, address: str) -> tuple[Cell, dict[str, Blob]]:
    """A cell and the binary parts of its outputs."""
    return next(get_cells(session, [address]))


def get_cells(session: StoredSession, addresses: Sequence[str]) -> Iterator[tuple[Cell, dict[str, Blob]]]:
    """Several of them, in order, in a few statements for a hundred."""
    for first in range(0, len(addresses), CELLS_AT_ONCE):
        with reading("a stored cell is", StoreError):
            found: list[Any] = list(map(json.loads, session.get_many(addresses[first : first + CELLS_AT_ONCE])))
            links = [one["cell"] for one in found]
            links += [part["data"] for one in found for part in one["parts"].values()]
            wanted = list(dict.fromkeys(address for link in links for address in _addresses(link, "/")))
            data = dict(zip(wanted, session.get_many(wanted), strict=True))
            joined = partial(_joined, data, session.most_bytes)
            cells = [from_plain(json.loads(joined(one["cell"]))) for one in found]
            parts = [
                {uri: Blob(str(one["mime"]), joined(one["data"])) for uri, one in cell["parts"].items()}
                for cell in found
            ]
        yield from zip(cells, parts, strict=True)


def records_of(session: StoredSession, trees: Mapping[str, str | None]) -> dict[str, str]:
    """The address of each cell's record in a commit, by id, in the order of the notebook."""
    rows: Any = rows_of(session, trees)
    ordered = sorted(rows.items() if isinstance(rows, dict) else rows.pairs(), key=lambda one: one[1][0])
    return {cell_id: _addresses(link, "@")[0] for cell_id, (_, link) in ordered}


def cells_of(session: StoredSession, commit: Commit) -> Iterator[Kept]:
    """The notebook of a commit, in order."""
    return get_cells(session, [*records_of(session, commit.trees).values()])


def names_of(session: StoredSession, commit: Commit) -> dict[str, Name]:
    """The names of a commit, sorted."""
    names: Any = session.tree(commit.trees.get("names")).pairs()
    return {name: name_of(one) for name, one in sorted(names)}


def name_of(plain: Any) -> Name:
    """The name of a row of the tree of names."""
    _require(plain, _NAME)
    return Name(type=plain["type"], size=plain["size"], preview=plain["preview"])


def size_of(plain: Any) -> int:
    """The size of a row of the tree of files, in bytes."""
    _require(plain, _FILE)
    return int(plain["size"])


def _joined(data: Mapping[str, bytes], most: int, link: Any) -> bytes:
    """What several objects are together, each of which may be named more than once. StoreError for more than `most`."""
    pieces = [data[address] for address in _addresses(link, "/")]
    if (size := sum(map(len, pieces))) > most:
        raise StoreError(f"a part of it takes {size / 2**20:,.0f} MB, where {most / 2**20:,.0f} are read at most")
    return b"".join(pieces)


def _bytes(session: StoredSession, link: Any) -> bytes:
    return b"".join(session.get(address) for address in _addresses(link, "/"))


def _file(one: File) -> JSON:
    return {
        "kind": one.kind,
        "mode": one.mode,
        "modified_ns": one.modified_ns,
        "size": one.size,
        "chunks": blobs(*one.chunks),
        "target": one.target,
        "holes": [list(hole) for hole in one.holes],
        "same": one.same,
    }


def _file_of(path: str, plain: Any) -> File:
    _require(plain, _FILE)
    holes = tuple((hole[0], hole[1]) for hole in plain["holes"])
    return File(**{**plain, "path": path, "chunks": _addresses(plain["chunks"], "/"), "holes": holes})


def _addresses(link: Any, kind: str) -> tuple[str, ...]:
    found = link[kind]
    return (found,) if isinstance(found, str) else tuple(found)
