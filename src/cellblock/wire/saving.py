"""Messages between a scribe and the host, over a stream of their own. No I/O.

A frame is a kind (one byte), a length (u32, little-endian) and so many bytes. The scribe says hello; the host says what
it has of the session already; then come chunks that it has not, an index for the next scribe, and the record, which
refers to chunks by their addresses. Or the scribe says why it failed. After the record it may load what is new of it,
and says group by group how that went.

Security border: whatever comes of a scribe is hostile. Kind and length are judged before the bytes are read, and each
address that a record names must be of bytes that came, or that the host had.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from io import BytesIO
from typing import Any

from cellblock.cell import Lost
from cellblock.snapshots import (
    CHUNK_BYTES,
    Buffer,
    Chunks,
    Group,
    Rows,
    SavedName,
    Snapshot,
    held_of_lost,
    held_of_texts,
)
from cellblock.wire import lines
from cellblock.wire.frames import ProtocolError
from cellblock.wire.lines import as_json, from_json
from cellblock.wire.schema import count, listed, record, row

HEADER = struct.Struct("<cI")
HELLO, WORK, CHUNK, INDEX, RECORD, FAILED, TRIED = b"H", b"W", b"C", b"I", b"R", b"F", b"T"
BEGIN = b"B"

MAX_INDEX_BYTES = 32 * 2**20
MAX_RECORD_BYTES = 32 * 2**20
_MAX_WORDS_BYTES = 64 * 1024
_MAX_NOTE = 2_000_000
_MAX_LIST = 1_000_000
_ADDRESS_BYTES = 32
_PREFIX = "sha256-"

Fields = Mapping[str, object]
Has = Callable[[str], bool]
"""True for an address whose bytes came, or were there."""


class Stage(Enum):
    """Progress of a scribe."""

    MAKING = "being made"
    WAITING = "waiting to begin"
    SAVING = "saving"
    INDEXED = "at its end"
    TRYING = "loading what it saved"
    ENDED = "done"


_FRAMES: dict[bytes, tuple[int, dict[Stage, Stage]]] = {
    HELLO: (_MAX_WORDS_BYTES, {Stage.MAKING: Stage.WAITING}),
    WORK: (_MAX_WORDS_BYTES, {Stage.SAVING: Stage.SAVING}),
    CHUNK: (CHUNK_BYTES, {Stage.SAVING: Stage.SAVING}),
    INDEX: (MAX_INDEX_BYTES, {Stage.SAVING: Stage.INDEXED}),
    RECORD: (MAX_RECORD_BYTES, {Stage.INDEXED: Stage.TRYING}),
    TRIED: (_MAX_WORDS_BYTES, {Stage.TRYING: Stage.TRYING}),
    FAILED: (_MAX_WORDS_BYTES, dict.fromkeys((Stage.MAKING, Stage.SAVING, Stage.INDEXED), Stage.ENDED)),
}
"""Frames of a scribe: the most bytes of each, and the stages that allow it with the one that follows."""


class Conversation:
    """The host's side: what may come next, and how much of it. At most `most` bytes come in all."""

    def __init__(self, most: int) -> None:
        self.stage = Stage.MAKING
        self._left = most
        self._most = most

    def begin(self) -> None:
        """The host has said what it has."""
        if self.stage is not Stage.WAITING:
            raise ProtocolError(f"a scribe that is {self.stage.value} cannot begin")
        self.stage = Stage.SAVING

    def expect(self, header: bytes) -> tuple[bytes, int]:
        """A frame's kind and how many bytes are to be read; ProtocolError for one that may not come now."""
        kind, length = HEADER.unpack(header)
        most, stages = _FRAMES.get(kind, (0, {}))
        following = stages.get(self.stage)
        if following is None:
            raise ProtocolError(f"{kind!r} is not allowed while {self.stage.value}")
        if length > most:
            raise ProtocolError(f"a frame of {length:,} bytes, where {most:,} are allowed")
        if kind == CHUNK and not length:
            raise ProtocolError("an empty chunk")
        self._left -= length + HEADER.size
        if self._left < 0:
            raise ProtocolError(f"more than {self._most:,} bytes in all")
        self.stage = following
        return kind, length


def frame(kind: bytes, length: int) -> bytes:
    """Header of so many bytes."""
    return HEADER.pack(kind, length)


# ------------------------------------------------------------------------------- down: trusted


_PARTS = struct.Struct("<4I")


def pack_beginning(
    index: bytes, known: Collection[str], had: Collection[str], left_out: Mapping[str, tuple[str, str]]
) -> bytes:
    """First message to a scribe: the index of the snapshot before, the addresses that this has, those that came of an
    earlier scribe of the same state, and the pieces of work to leave out.
    """
    parts = index, _bytes_of(known), _bytes_of(had), pack_words(left_out)
    return _PARTS.pack(*map(len, parts)) + b"".join(parts)


def unpack_beginning(data: bytes) -> tuple[bytes, set[str], set[str], dict[str, tuple[str, str]]]:
    """In the scribe."""
    parts, at = [], _PARTS.size
    for length in _PARTS.unpack_from(data):
        parts.append(data[at : at + length])
        at += length
    index, known, had, words = parts
    left_out = {work: (reason, holds) for work, (reason, holds) in json.loads(words).items()}
    return index, _addresses_of(known), _addresses_of(had), left_out


def _bytes_of(addresses: Collection[str]) -> bytes:
    return b"".join(bytes.fromhex(one.removeprefix(_PREFIX)) for one in addresses)


def _addresses_of(data: bytes) -> set[str]:
    return {_PREFIX + data[at : at + _ADDRESS_BYTES].hex() for at in range(0, len(data), _ADDRESS_BYTES)}


# -------------------------------------------------------------------------------- up: hostile


def pack_words(words: Fields) -> bytes:
    """In the scribe: a hello, a failure or a report."""
    return as_json(dict(words)).encode()


def read_hello(data: bytes) -> tuple[str, ...]:
    """The walls that a scribe says it has put up."""
    walls = listed(_said(data, "walls")[0], 16)
    return tuple(_words(one, 200) for one in walls)


def read_failure(data: bytes) -> str:
    """Why a scribe failed, as it says."""
    return _words(_said(data, "reason")[0], 2000)


def read_work(data: bytes) -> tuple[str, str]:
    """The piece of work that a scribe begins, or, with a fingerprint of what it holds, leaves out."""
    work, holds = _said(data, "work", "holds")
    return _words(work), _words(holds, 100)


def read_tried(data: bytes) -> tuple[str, dict[str, str]]:
    """The key of the group that a scribe loads next, "" for none, and of those that could not be loaded, why."""
    loading, failed = _said(data, "loading", "failed")
    rows = (row(one, 2) for one in listed(failed, 1))
    return _words(loading), {_words(key): _words(reason, 1000) for key, reason in rows}


def read_record(data: bytes, index: bytes, has: Has, take: Callable[[int], object]) -> Snapshot:
    """The snapshot, without files, that a record describes. `has` tells whether the bytes of an address are there.

    `take` gets how many bytes of memory it needs next, before it does, and may raise.
    """
    counted: dict[str, int] = dict.fromkeys(_FIELDS, 0)
    groups, names = Rows(Group, ()), Rows(SavedName, ())
    keys: set[str] = set()
    lost, ambient, said = list[Lost](), list[tuple[str, str]](), dict[str, object]()
    for field, item in lines.read(BytesIO(data), take):
        counted[field] = counted.get(field, 0) + 1
        if counted[field] > _FIELDS.get(field, 0):
            raise ProtocolError("expected the fields of a record, each so often")
        match field:
            case "groups":
                groups.append(group := _group(item, has))
                keys.add(group.key)
                take(group.held())
            case "names":
                names.append(name := _saved(item, keys))
                take(name.held())
            case "lost":
                lost.append(one := _lost(item))
                take(held_of_lost(one))
            case "ambient":
                ambient.append(around := _ambient(item, keys))
                take(held_of_texts(*around))
            case _:
                said[field] = item
    if len(keys) != len(groups):
        raise ProtocolError("two groups of one key")
    if not all(keys.issuperset(group.needs) for group in groups):
        raise ProtocolError("a group that needs one which is not there")
    if len({name.name for name in names}) != len(names):
        raise ProtocolError("a name twice")
    environment = {"format": str(count(said.get("format"))), "magic": _words(said.get("python"), 100)}
    return Snapshot(
        groups=groups, names=names, lost=tuple(lost), ambient=tuple(ambient), environment=environment, index=index
    )


_FIELDS = {"format": 1, "python": 1, "groups": 1_000_000, "names": 1_000_000, "lost": 100_000, "ambient": 100_000}
"""Of a record, and how many lines each may have."""


def record_of(snapshot: Snapshot) -> dict[str, object]:
    """A record again, of a snapshot, for `pack_record`: what `load` is given."""
    return {
        "format": int(snapshot.environment["format"]),
        "python": snapshot.environment["magic"],
        "groups": (
            {
                "key": one.key,
                "stream": list(one.stream),
                "buffers": [[buffer.length, list(buffer.chunks)] for buffer in one.buffers],
                "needs": list(one.needs),
                **(json.loads(one.note) if one.note else {}),
            }
            for one in snapshot.groups
        ),
        "names": ([one.name, one.group, one.type, one.size, one.preview] for one in snapshot.names),
        "lost": [[one.name, one.type, one.reason, one.remedy] for one in snapshot.lost],
        "ambient": [list(one) for one in snapshot.ambient],
    }


def pack_record(record: Fields) -> bytes:
    """A record as lines of JSON: a field and its value, or one item of it."""
    items = (
        (field, item)
        for field, value in record.items()
        for item in (value if field in _LISTS and isinstance(value, Iterable) else (value,))
    )
    return b"".join(lines.packed(items))


def unpack_record(data: bytes) -> dict[str, object]:
    """A record whose bytes the reader trusts."""
    record: dict[str, Any] = {}
    for field, item in lines.read(BytesIO(data)):
        if field in _LISTS:
            record.setdefault(field, []).append(item)
        else:
            record[field] = item
    return {**{field: [] for field in _LISTS}, **record}


_LISTS = ("groups", "names", "lost", "ambient")


def _said(data: bytes, *fields: str) -> list[object]:
    """The values of an object with just these fields."""
    otherwise = "expected an object with its fields"
    said = record(from_json(data, "what a scribe says"), dict.fromkeys(fields, _any), set(fields), otherwise)
    return [said[field] for field in fields]


def _any(value: object) -> object:
    return value


def _words(value: object, most: int = 4096) -> str:
    if type(value) is not str or len(value) > most:
        raise ProtocolError("expected words")
    try:
        value.encode()
    except UnicodeError:
        raise ProtocolError("expected text that is UTF-8") from None
    return value


def _address(value: object, has: Has) -> str:
    if type(value) is not str or not has(value):
        raise ProtocolError(f"an address of nothing that came: {value!r:.80}")
    return value


def _chunks(value: object, has: Has) -> Chunks:
    return tuple(_address(one, has) for one in listed(value, _MAX_LIST))


def _buffer(value: object, has: Has) -> Buffer:
    length, chunks = row(value, 2)
    buffer = Buffer(length=count(length), chunks=_chunks(chunks, has))
    if len(buffer.chunks) != -(-buffer.length // CHUNK_BYTES):
        raise ProtocolError("a buffer of another length than its chunks")
    return buffer


def _group(value: object, has: Has) -> Group:
    own = {"key", "stream", "buffers", "needs"}
    if type(value) is not dict or not value.keys() >= own:
        raise ProtocolError("expected a group")
    note = {key: one for key, one in value.items() if key not in own}
    return Group(
        key=_words(value["key"]),
        stream=_chunks(value["stream"], has),
        buffers=tuple(_buffer(one, has) for one in listed(value["buffers"], _MAX_LIST)),
        needs=tuple(map(_words, listed(value["needs"], _MAX_LIST))),
        note=_words(_text_of(note), _MAX_NOTE) if note else "",
    )


def _text_of(note: Fields) -> str:
    """A note as JSON, list by list and item by item."""
    try:
        lists = {key: f"[{','.join(map(as_json, one))}]" for key, one in note.items() if type(one) is list}
        texts = (f"{as_json(key)}:{lists[key] if key in lists else as_json(one)}" for key, one in note.items())
        return f"{{{','.join(texts)}}}"
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a note that is no JSON: {error}") from None


def _saved(value: object, keys: Collection[str]) -> SavedName:
    name, group, kind, size, preview = row(value, 5)
    if type(group) is not str or group not in keys:
        raise ProtocolError("a name of no group")
    return SavedName(name=_words(name), group=group, type=_words(kind), size=count(size), preview=_words(preview))


def _lost(value: object) -> Lost:
    name, kind, reason, remedy = (_words(one) for one in row(value, 4))
    return Lost(name=name, type=kind, reason=reason, remedy=remedy)


def _ambient(value: object, keys: Collection[str]) -> tuple[str, str]:
    what, group = (_words(one) for one in row(value, 2))
    if group not in keys:
        raise ProtocolError("surroundings of no group")
    return what, group
