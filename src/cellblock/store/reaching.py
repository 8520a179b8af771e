"""Links from a session's commits and journal to every object, with words for the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cellblock.errors import StoreDamaged, StoreError
from cellblock.store.address import CHANGED, JSON, Link, links, parsed, spelled, unsummed
from cellblock.store.database import Database, blob, number, text
from cellblock.store.history import shown
from cellblock.store.objects import ObjectTable
from cellblock.store.words import Entry

_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Way:
    """One link met on the way: from which commit ("" for the journal), in what of it, to what."""

    commit: str
    path: str
    link: Link

    def __str__(self) -> str:
        start = f"commit {shown(self.commit)}" if self.commit else "the journal"
        return f"{start}, {self.path}" if self.path else start


def entries_of(database: Database, session_id: int) -> tuple[list[Entry], list[int]]:
    """The entries of a journal that can be read, in order, and the numbers of those that are damaged."""
    found, damaged = list[Entry](), list[int]()
    sql = "SELECT number, entry FROM journal WHERE session_id = ? ORDER BY number"
    for row in database.select(sql, session_id):
        place = number(row[0])
        try:
            found.append(Entry(place, unsummed(text(row[1]), session_id, place)))
        except StoreError:
            damaged.append(place)
    return found, damaged


def damaged_entry(database: Database, session_id: int, entry: int) -> StoreError:
    """The error of who needs all entries of a journal."""
    sql = "SELECT u.name, s.name FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.id = ?"
    whose = "".join(f" of session {name!r} of {user!r}" for user, name in database.select(sql, session_id))
    return StoreError(f"entry {entry} of the journal{whose} {CHANGED}", hint=_OPEN_IT)


_OPEN_IT = "open the session: it goes on without that entry, and says so"


def session_roots(database: Database, session_id: int, damaged: list[int] | None = None) -> Iterator[Way]:
    """A session's commits, the deepest first, and what the entries of its journal link to.

    The numbers of entries that cannot be read are added to `damaged`. StoreError: there is one, and nothing to add to.
    """
    sql = "SELECT address FROM commits WHERE session_id = ? ORDER BY depth DESC, address"
    for row in database.select(sql, session_id):
        id = spelled(blob(row[0]))
        yield Way(id, "", Link(id, True))
    entries, unread = entries_of(database, session_id)
    if unread and damaged is None:
        raise damaged_entry(database, session_id, unread[0])
    if damaged is not None:
        damaged += unread
    for entry in entries:
        for link in links(entry.value):
            yield Way("", f"entry {entry.number}", link)


def walk(objects: ObjectTable, roots: Iterable[Way], seen: set[str]) -> Iterator[tuple[Way, StoreDamaged | None]]:
    """Every link from the roots on; with what is wrong where a record cannot be read, from which nothing goes on.

    `seen` holds the addresses of records that were read before, and is added to: each is read once. Links to bytes
    are told, not followed.
    """
    waiting = list(roots)
    waiting.reverse()
    while waiting:
        some: dict[str, Way] = {}
        while waiting and len(some) < _AT_ONCE:
            way = waiting.pop()
            if not way.link.to_record:
                yield way, None
            elif way.link.address not in seen:
                seen.add(way.link.address)
                some[way.link.address] = way
            else:
                yield way, None
        for address, data in objects.get_many(some):
            way = some[address]
            if isinstance(data, StoreDamaged):
                yield way, data
                continue
            yield way, None
            waiting.extend(_onward(way, parsed(data)))


def _onward(way: Way, record: JSON) -> Iterator[Way]:
    """The links of a record, each with the words for what it belongs to."""
    if not isinstance(record, Mapping):
        parts: Iterable[tuple[str, JSON]] = [("", record)]
    elif "parents" in record and "trees" in record:
        parts = [("its parent", record["parents"]), *_named(record["trees"]), *_named(record.get("detail"))]
    elif "here" in record:
        parts = [*_quoted(record["here"]), *_quoted(record.get("apart"))]
    else:
        parts = [("", record)]
    for word, value in parts:
        path = f"{way.path} {word}".strip()
        for link in links(value):
            yield Way(link.address if word == "its parent" else way.commit, "" if word == "its parent" else path, link)


def _named(value: JSON) -> Iterator[tuple[str, JSON]]:
    if isinstance(value, Mapping):
        yield from value.items()


def _quoted(pairs: JSON) -> Iterator[tuple[str, JSON]]:
    """The keys and values of a tree's leaf."""
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, list) and len(pair) == 2:
            yield repr(pair[0]), pair[1]
