"""The tables, as a list of migrations: format N is what the first N of them make. None is ever changed, only added.

`sessions`: `epoch` grows with each holder, and whoever writes names his; `until` is when an unheard holder has lost it.
`objects`: `condemned` is when a collection found that nothing led there; `place` is where a body outside lies.
`commits` lists what belongs to a session; a commit itself is an object. `trimmed`: the last entry that has gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from cellblock.errors import StoreError
from cellblock.store.database import Dialect, Transaction, text

_FIRST = (
    "CREATE TABLE meta (name {text} PRIMARY KEY, value {text} NOT NULL)",
    "CREATE TABLE users (id {serial}, name {text} NOT NULL UNIQUE, created BIGINT NOT NULL,"
    " objects BIGINT NOT NULL, bytes BIGINT NOT NULL, quota_sessions BIGINT, quota_bytes BIGINT)",
    "CREATE TABLE objects (user_id BIGINT NOT NULL, address {blob} NOT NULL, codec INTEGER NOT NULL,"
    " length BIGINT NOT NULL, stored BIGINT NOT NULL, condemned {real}, place {text} NOT NULL, body {blob} NOT NULL,"
    " PRIMARY KEY (user_id, address))",
    "CREATE TABLE sessions (id {serial}, user_id BIGINT NOT NULL, name {text} NOT NULL, created BIGINT NOT NULL,"
    " used BIGINT NOT NULL, settings {text} NOT NULL, head_branch {text}, head_commit {blob}, epoch BIGINT NOT NULL,"
    " holder {text}, until {real} NOT NULL, trimmed BIGINT NOT NULL, UNIQUE (user_id, name))",
    "CREATE TABLE commits (session_id BIGINT NOT NULL, address {blob} NOT NULL, depth BIGINT NOT NULL,"
    " PRIMARY KEY (session_id, address)){keyed}",
    "CREATE TABLE refs (session_id BIGINT NOT NULL, kind {text} NOT NULL, name {text} NOT NULL, address {blob}"
    " NOT NULL, PRIMARY KEY (session_id, kind, name)){keyed}",
    "CREATE TABLE journal (session_id BIGINT NOT NULL, number BIGINT NOT NULL, entry {text} NOT NULL,"
    " PRIMARY KEY (session_id, number)){keyed}",
    "postgresql: ALTER TABLE objects ALTER COLUMN body SET STORAGE EXTERNAL",  # it is compressed already
)

Migrations = tuple[tuple[str, ...], ...]
MIGRATIONS: Migrations = (_FIRST,)


def migrate(transaction: Transaction, dialect: Dialect, found: int, where: str, migrations: Migrations) -> None:
    """Bring tables of format `found` (0: none) to the newest. StoreError: they are of a newer one."""
    if found > len(migrations):
        raise StoreError(
            f"{where} is of format {found}, and this version of cellblock reads up to {len(migrations)}",
            hint="upgrade cellblock",
        )
    for statement in statements(dialect, migrations[found:]):
        transaction.run(statement)
    if found < len(migrations):
        transaction.run("DELETE FROM meta WHERE name = 'format'")
        transaction.run("INSERT INTO meta (name, value) VALUES ('format', ?)", str(len(migrations)))


def statements(dialect: Dialect, migrations: Migrations = MIGRATIONS) -> Iterator[str]:
    """Migrations as a database reads them; one that begins with the name of a dialect and a colon is for that alone."""
    words = {name: getattr(dialect, name) for name in ("serial", "keyed", "blob", "text", "real")}
    for statement in (one for some in migrations for one in some):
        only, colon, rest = statement.partition(": ")
        if not colon:
            yield statement.format(**words)
        elif only == dialect.name:
            yield rest


def stored_format(transaction: Transaction) -> int:
    """The format that the tables say they are of."""
    found = transaction.rows("SELECT value FROM meta WHERE name = 'format'")
    value = text(found[0][0]) if found else "0"
    if not value.isdecimal():
        raise StoreError(f"the store's format is told as {value[:40]!r}", hint="restore a copy")
    return int(value)
