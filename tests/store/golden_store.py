"""Writes a store that holds one of everything, and tells all that is in one.

    python golden_store.py DIRECTORY [POSTGRESQL-URL]

makes the golden files of the newest format: they are made once, when a format is released, and never again.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from cellblock.store import JSON, Quota, Store, blobs, open_store, records
from cellblock.store.database import Dialect
from cellblock.store.postgres import PostgresDatabase
from cellblock.store.schema import MIGRATIONS, statements
from cellblock.store.urls import parse_url

TABLES = ("meta", "users", "objects", "sessions", "commits", "refs", "journal")


def write(store: Store) -> None:
    """Two users, three sessions, branches, tags, a merge, a head on no branch, entries, garbage."""
    with store.hold("ana", "q3", settings={"seed": 7, "text": "é\0"}) as held:
        with held.batch() as batch:
            small, text = batch.put(b"small"), batch.put(b"compressible " * 500)
            noise = batch.put(random.Random(1).randbytes(3000))
            values: dict[str, JSON] = {f"n{n}": {"n": n} for n in range(150)}
            values |= {"名前": {"data": blobs(small, text)}, "big": {"preview": "x" * 2000, "data": blobs(noise)}}
            lost = batch.record([{"name": "lock", "data": blobs(small)}])
            trees = {"names": batch.tree(None, values), "files": None}
            detail: dict[str, JSON] = {"cell": blobs(text), "lost": records(lost), "usage": [1, 2.5, None, True]}
            first = batch.commit(kind="cell", message="x = 1\0\ud800", number=1, trees=trees, detail=detail)
        held.tag("v1")
        held.branch("side")
        with held.batch() as batch:
            batch.commit(kind="shell", number=2, snapshot=False, trees=first.trees)
        held.move("side")
        with held.batch() as batch:
            root = batch.tree(first.trees["names"], {"n1": None, "n2": "changed"})
            side = batch.commit(kind="cell", number=2, trees={"names": root})
        held.move("main")
        with held.batch() as batch:
            parents = (held.branches()["main"], side.id)
            batch.commit(kind="merge", number=3, trees=side.trees, parents=parents)
        held.append({"begun": "y = 2"})
        held.append({"answer": blobs(small), "text": "日本語\0"})
        held.trim([1])
    store.fork("ana", "q3", "copy", at="v1")
    with store.hold("ana", "copy") as held:
        held.move("v1")
    with store.hold("bob", "q3") as held, held.batch() as batch:
        batch.put(b"garbage" * 100)
        batch.flush()
    store.set_quota("bob", Quota(sessions=3, bytes=5_000_000))
    store.gc()


def tell(store: Store) -> JSON:
    """All that a store holds, as JSON."""
    out: list[JSON] = []
    for row in store.sessions():
        session = store.read(row.user, row.name)
        known = {}
        for name in ("HEAD", *session.branches(), *session.tags()):
            if row.commit is not None:
                known.update({one.id: one for one in session.log(name)})
        commits: list[JSON] = []
        for one in sorted(known.values(), key=lambda one: (one.depth, one.id)):
            trees = {
                name: None if root is None else [root, dict(session.tree(root).pairs())]
                for name, root in one.trees.items()
            }
            commits.append(
                [one.id, list(one.parents), one.created, one.depth, one.kind, one.message, one.number, one.snapshot,
                 trees, one.detail]
            )  # fmt: skip
        out.append(
            {
                "session": [row.user, row.name, row.created, row.used, row.branch, row.commit, row.depth, row.pending],
                "settings": session.settings,
                "branches": session.branches(),
                "tags": session.tags(),
                "journal": [[entry.number, entry.value] for entry in session.journal()],
                "commits": commits,
            }
        )
    usage = {user: store.usage(user) for user in ("ana", "bob")}
    report = store.verify()
    assert report.ok
    return {
        "sessions": out,
        "usage": {
            user: [one.sessions, one.objects, one.bytes, one.quota.sessions, one.quota.bytes]
            for user, one in usage.items()
        },
        "objects": report.objects,
    }


def postgres_dump(database: PostgresDatabase, dialect: Dialect) -> str:
    """The tables of a database as statements that make them."""
    from psycopg import sql

    lines = list(statements(dialect))
    for table in TABLES:
        for row in database.select(f"SELECT * FROM {table}"):
            values = sql.SQL(", ").join(map(sql.Literal, row)).as_string(None)
            lines.append(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE VALUES ({values})")
    return "".join(line.replace("\n", " ") + ";\n" for line in lines)


def main(directory: Path, postgres: str | None) -> None:
    name = f"format-{len(MIGRATIONS)}"
    with open_store(f"sqlite:///{directory}/{name}.sqlite") as store:
        write(store)
        (directory / f"{name}.sqlite.json").write_text(json.dumps(tell(store), indent=1))
    if postgres is not None:
        parts = parse_url(postgres)
        database = PostgresDatabase(parts)
        with Store(database) as store:
            write(store)
            (directory / f"{name}.postgres.json").write_text(json.dumps(tell(store), indent=1))
            (directory / f"{name}.postgres.sql").write_text(postgres_dump(database, database.dialect))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
