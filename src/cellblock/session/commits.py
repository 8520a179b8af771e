"""Snapshots as what a store keeps of them: a record for each group, and trees of names, files and cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cellblock.cell import Cell
from cellblock.session.archive import from_plain, to_plain
from cellblock.session.shown import Blob
from cellblock.snapshots import Buffer, File, Group, Lost, SavedName, Snapshot
from cellblock.store import JSON, Batch, Commit, StoredSession, blobs, records

Tree = dict[str, JSON]


@dataclass
class Written:
    """What the newest commit holds, by tree: of the next one only what differs is written."""

    roots: dict[str, str | None] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)

    def copy(self) -> Written:
        """Another that is written to apart."""
        return Written(dict(self.roots), dict(self.trees))

    def put(self, batch: Batch, kind: str, tree: Tree) -> None:
        """Write one tree, of which the last one put is known."""
        before = self.trees.get(kind, {})
        changes: dict[str, JSON] = {key: value for key, value in tree.items() if before.get(key) != value}
        changes.update(dict.fromkeys(before.keys() - tree.keys()))
        if changes or kind not in self.roots:
            self.roots[kind] = batch.tree(self.roots.get(kind), changes)
        self.trees[kind] = tree


def read_written(session: StoredSession, commit: Commit) -> Written:
    """What a commit holds, to write the next one by."""
    return Written(dict(commit.trees), {kind: dict(session.tree(root)) for kind, root in commit.trees.items()})


def put_snapshot(batch: Batch, written: Written, snapshot: Snapshot) -> dict[str, JSON]:
    """Write a snapshot whose chunks are there already; what the commit's detail says of it."""
    groups = _put_groups(batch, snapshot)
    names: Tree = {
        one.name: {"group": records(groups[one.group]), "type": one.type, "size": one.size, "preview": one.preview}
        for one in snapshot.names
    }
    written.put(batch, "names", names)
    written.put(batch, "ambient", {kind: records(groups[key]) for kind, key in snapshot.ambient})
    written.put(batch, "files", {one.path: _file(one) for one in snapshot.files})
    return {
        "environment": dict(snapshot.environment),
        "declarations": records(batch.record(list(snapshot.declarations))),
        "lost": [[one.name, one.type, one.reason, one.remedy] for one in snapshot.lost],
    }


def _put_groups(batch: Batch, snapshot: Snapshot) -> dict[str, str]:
    """Addresses of the records of groups, by key; what a group needs comes before it."""
    waiting = {group.key: group for group in snapshot.groups}
    written: dict[str, str] = {}

    def put(key: str) -> str:
        if key in written:
            return written[key]
        group = waiting.pop(key)
        needs = {one: records(put(one)) for one in group.needs}
        written[key] = batch.record(
            {
                "key": key,
                "stream": blobs(*group.stream),
                "buffers": [{"length": one.length, "chunks": blobs(*one.chunks)} for one in group.buffers],
                "needs": needs,
            }
        )
        return written[key]

    for key in list(waiting):
        put(key)
    return written


def get_snapshot(session: StoredSession, commit: Commit) -> Snapshot:
    """The snapshot that a commit holds."""
    groups: dict[str, Group] = {}
    keys: dict[str, str] = {}

    def get(link: Any) -> str:
        (address,) = _addresses(link, "@")
        if address not in keys:
            record: Any = session.record(address)
            needs = tuple(get(one) for one in record["needs"].values())
            key = keys[address] = record["key"] if record["key"] not in groups else address
            groups[key] = Group(
                key=key,
                stream=_addresses(record["stream"], "/"),
                buffers=tuple(Buffer(one["length"], _addresses(one["chunks"], "/")) for one in record["buffers"]),
                needs=needs,
            )
        return keys[address]

    detail: Any = commit.detail
    names: Any = session.tree(commit.trees.get("names"))
    ambient = session.tree(commit.trees.get("ambient"))
    files: Any = session.tree(commit.trees.get("files"))
    return Snapshot(
        names=tuple(
            SavedName(name=name, group=get(one["group"]), type=one["type"], size=one["size"], preview=one["preview"])
            for name, one in names.items()
        ),
        ambient=tuple((kind, get(link)) for kind, link in ambient.items()),
        files=tuple(_file_of(path, one) for path, one in files.items()),
        groups=tuple(groups.values()),
        lost=tuple(Lost(name=a, type=b, reason=c, remedy=d) for a, b, c, d in detail.get("lost", ())),
        declarations=tuple(session.record(_addresses(detail["declarations"], "@")[0])),  # type: ignore[arg-type]
        environment=detail.get("environment", {}),
    )


def put_cell(batch: Batch, cell: Cell, parts: Mapping[str, Blob]) -> str:
    """The address of a cell's record. What it showed may look like a link: it is kept as text."""
    kept: JSON = {uri: {"mime": blob.mime, "data": blobs(batch.put(blob.data))} for uri, blob in parts.items()}
    text = json.dumps(to_plain(cell)).encode()
    return batch.record({"id": cell.id, "cell": blobs(batch.put(text)), "parts": kept})


def put_cell_again(batch: Batch, session: StoredSession, cell: Cell, link: JSON) -> str:
    """The address of a record for a cell of which only the marks have changed, not what it showed."""
    (address,) = _addresses(link, "@")
    before: Any = session.record(address)
    return batch.record({**before, "cell": blobs(batch.put(json.dumps(to_plain(cell)).encode()))})


def place_key(place: int) -> str:
    """A cell's key in the tree of cells, which sorts as its place."""
    return f"{place:08}"


def get_cell(session: StoredSession, address: str) -> tuple[Cell, dict[str, Blob]]:
    """A cell and the binary parts of its outputs."""
    record: Any = session.record(address)
    parts = {uri: Blob(one["mime"], _bytes(session, one["data"])) for uri, one in record["parts"].items()}
    return from_plain(json.loads(_bytes(session, record["cell"]))), parts


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
        "holes": list(one.holes),
    }


def _file_of(path: str, plain: Any) -> File:
    chunks = _addresses(plain["chunks"], "/")
    return File(**{**plain, "path": path, "chunks": chunks, "holes": tuple(plain["holes"])})


def _addresses(link: Any, kind: str) -> tuple[str, ...]:
    found = link[kind]
    return (found,) if isinstance(found, str) else tuple(found)
