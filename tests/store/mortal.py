"""A process that writes to a store and is killed at a step of its choice; run by `test_kill`.

    python mortal.py URL STEP

A step is a statement, the end of a transaction, or a wait for the disk: each counts before and after it is done. At
number STEP the process kills itself. What it has been told was committed it prints first, line by line.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from cellblock.store import HeldSession, Quota, Store, blobs
from cellblock.store.database import Database, Row, Transaction, Value
from cellblock.store.places import DirectoryPlace
from cellblock.store.store import _database
from cellblock.store.urls import parse_url

COMMITS = 3
NAMES = 200


class Mortal:
    """A database and a place that count steps."""

    def __init__(self, database: Database, last: int) -> None:
        self.dialect = database.dialect
        self.steps = 0
        self._database = database
        self._last = last

    def step(self) -> None:
        self.steps += 1
        if self.steps == self._last:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, call: Callable[..., object], *arguments: object) -> object:
        self.step()
        result = call(*arguments)
        self.step()
        return result

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        return self._database.select(sql, *parameters)

    def once(self, sql: str, *parameters: Value) -> int:
        return self.around(self._database.once, sql, *parameters)  # type: ignore[return-value]

    def at_once(self, sql: str, *parameters: Value) -> int | None:
        return self.around(self._database.at_once, sql, *parameters)  # type: ignore[return-value]

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        self.step()
        with self._database.writing() as transaction:
            self.step()
            yield _Statements(self, transaction)
            self.step()
        self.step()

    def sync(self) -> None:
        self.around(self._database.sync)

    def now(self) -> float:
        return self._database.now()

    def check(self) -> list[str]:
        return self._database.check()

    def compact(self) -> None:
        self.around(self._database.compact)

    def close(self) -> None:
        self._database.close()


class _Statements:
    def __init__(self, mortal: Mortal, transaction: Transaction) -> None:
        self._mortal = mortal
        self._transaction = transaction

    def rows(self, sql: str, *parameters: Value) -> list[Row]:
        return self._transaction.rows(sql, *parameters)

    def run(self, sql: str, *parameters: Value) -> int:
        return self._mortal.around(self._transaction.run, sql, *parameters)  # type: ignore[return-value]

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        for row in list(rows):  # each a step
            self._mortal.around(self._transaction.many, sql, [row])


class _MortalPlace(DirectoryPlace):
    mortal: Mortal

    def put(self, prefix: str, body: bytes) -> str:
        return str(self.mortal.around(super().put, prefix, body))


def write(held: HeldSession, say: Callable[[str], None]) -> None:
    """Some cells as a session writes them: each noted before it runs, then its record, then its commit."""
    for number in range(1, COMMITS + 1):
        say(f"append {held.append({'begun': number})}")
        say(f"append {held.append({'finished': number})}")
        head = held.head().commit
        with held.batch() as batch:
            big = batch.put(os.urandom(70_000))
            names = {f"n{n}": {"value": number, "big": blobs(big)} for n in range(NAMES if number == 1 else 2)}
            root = batch.tree(None if head is None else held.resolve(head).trees["names"], names)
            entries = [1] if number == 1 else [2 * number - 2, 2 * number - 1]
            made = batch.commit(kind="cell", number=number, trees={"names": root}, entries=entries)
        say(f"commit {made.id}")


def main(url: str, last: int) -> None:
    parts = parse_url(url)
    mortal = Mortal(_database(parts), last)
    place = None
    if parts.objects:
        place = _MortalPlace(parts.objects)
        place.mortal = mortal
    with Store(mortal, place, shown=url, quota=Quota(sessions=9, bytes=1 << 30)) as store:
        with store.hold("ana", "q3") as held:
            write(held, lambda line: print(line, flush=True))
        store.gc(grace_seconds=0)
    print(f"steps {mortal.steps}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
