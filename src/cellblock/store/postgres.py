"""Tables in a PostgreSQL database, by psycopg 3. Each transaction is on the server's disk when it returns."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from cellblock.errors import StoreError
from cellblock.patience import LOCK_SECONDS, patience, pauses
from cellblock.store.database import LOCKED, Dialect, Row, Transaction, Uncertain, Value
from cellblock.store.schema import MIGRATIONS, Migrations, migrate, stored_format

try:
    import psycopg
    from psycopg import sql as _sql
    from psycopg.pq import TransactionStatus
except ImportError as error:  # the driver itself, or the libpq that it loads
    raise StoreError(
        f"PostgreSQL needs the package psycopg: {error}", hint='pip install "cellblock[postgres]"'
    ) from None

_IDLE = 4
"""Connections that are kept open while nobody uses them."""
_PATIENCE = 10.0
"""Seconds for which a server that was there is tried again, as it may be restarting."""
_LOCK_SECONDS = LOCK_SECONDS
_MIGRATING = 0x63656C6C
"""The advisory lock under which tables are made."""


class PostgresDatabase:
    """The database of a libpq connection URL; the tables are in a schema of their own, made if there is none.

    Connections are opened as threads need them, and once more where the server has closed one that was idle.
    """

    dialect = Dialect(
        name="postgresql",
        keyed="",
        serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", blob="BYTEA", text='TEXT COLLATE "C"',
        real="DOUBLE PRECISION", for_update=" FOR UPDATE", for_share=" FOR SHARE",
    )  # fmt: skip

    def __init__(
        self, location: str, shown: str, schema: str = "cellblock", *, migrations: Migrations = MIGRATIONS
    ) -> None:
        self._location = location
        self._schema = schema
        self._shown = shown
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection[Row]] = []
        self._closed = False
        self._patience = 0.0
        try:
            self._migrate(migrations)
        except BaseException:
            self.close()
            raise
        self._patience = _PATIENCE

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        with self._telling():
            while True:
                with self._connection() as connection:
                    try:
                        return _Transaction(connection).rows(sql, *parameters)
                    except psycopg.OperationalError:  # where the server ended the connection, another is tried
                        if not connection.broken:
                            raise

    def once(self, sql: str, *parameters: Value) -> int:
        with self._telling(), self._connection() as connection, _uncertain(connection):
            return _Transaction(connection).run(sql, *parameters)

    def at_once(self, sql: str, *parameters: Value) -> int | None:
        """None: a server is always waited for."""
        return None

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._telling(), self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield _Transaction(connection)
                with _uncertain(connection):
                    connection.execute("COMMIT")
            except BaseException:
                if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                    connection.execute("ROLLBACK")
                raise

    def sync(self) -> None:
        """Nothing: every commit waits for the server's disk."""

    def now(self) -> float:
        return float(str(self.select("SELECT extract(epoch FROM clock_timestamp())::text")[0][0]))

    def check(self) -> list[str]:
        """Nothing: it is for the server's own tools, such as pg_amcheck."""
        return []

    def compact(self) -> None:
        """Nothing: the server does it by itself."""

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # --- connections ---

    def _migrate(self, migrations: Migrations) -> None:
        with self.writing() as transaction:
            if self._found(transaction) == len(migrations):
                return
            transaction.rows("SELECT pg_advisory_xact_lock(?)", _MIGRATING)
            if not transaction.rows("SELECT 1 FROM pg_namespace WHERE nspname = ?", self._schema):
                transaction.run(f'CREATE SCHEMA "{self._schema}"')
            migrate(transaction, self.dialect, self._found(transaction), self._where, migrations)

    def _found(self, transaction: Transaction) -> int:
        """The format of what is there; 0 where there is nothing. Another program's table `meta` tells no format."""
        if not transaction.rows("SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'meta'", self._schema):
            return 0
        found = stored_format(transaction)
        if not found:
            raise StoreError(
                f"{self._where} holds the tables of another program", hint="give the store another: ?schema=…"
            )
        return found

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None or not _lives(connection):
            connection = self._connect()
        seconds = patience(_LOCK_SECONDS)
        try:
            if seconds < _LOCK_SECONDS:
                connection.execute("SELECT set_config('lock_timeout', %s, false)", [_milliseconds(seconds)])
            yield connection
        finally:
            if seconds < _LOCK_SECONDS:
                connection.close()
            self._put_back(connection)

    def _put_back(self, connection: psycopg.Connection[Row]) -> None:
        idle = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if idle and not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> psycopg.Connection[Row]:
        for pause in pauses(self._patience):
            time.sleep(pause)
            try:
                return self._connected()
            except psycopg.OperationalError as error:
                if self._closed:
                    raise
                last = error
        raise last

    def _connected(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self._location, autocommit=True, application_name="cellblock")
        connection.execute(
            "SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false)",
            [f'"{self._schema}"', _milliseconds(_LOCK_SECONDS)],
        )
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        return connection

    # --- errors ---

    @property
    def _where(self) -> str:
        return f"the store {self._shown}"

    @contextmanager
    def _telling(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"{self._where} was closed")
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._where} was opened by the process this one was forked from",
                hint="open it again in this process",
            )
        try:
            yield
        except Uncertain as error:
            raise Uncertain(f"{self._where} went away while it was written to: {error}", hint=_AWAY) from error
        except psycopg.errors.LockNotAvailable as error:
            raise StoreError(f"{self._where} {LOCKED}", hint=_UNLOCK) from error
        except psycopg.Error as error:
            raise StoreError(f"{self._where}: {_first_line(error)}", hint=_hint(error)) from error


_UNLOCK = (
    "see which session of the server holds the lock (`SELECT pid, query FROM pg_stat_activity WHERE state <> 'idle'`),"
    " and wait until that has ended, or end it with pg_terminate_backend(PID)"
)
_AWAY = "see whether its server runs; what was committed before is whole"
_HINTS = (
    (psycopg.errors.DiskFull, "free some space on its server; what was committed before is whole"),
    (psycopg.errors.ReadOnlySqlTransaction, "its server is a standby, or read-only"),
    (psycopg.errors.InsufficientPrivilege, "its user must be allowed to make and change tables"),
    (psycopg.errors.InvalidCatalogName, "create the database first"),
    (psycopg.OperationalError, _AWAY),
)


def _hint(error: psycopg.Error) -> str:
    return next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")


def _milliseconds(seconds: float) -> str:
    """A limit that the server takes, for which 0 is none."""
    return str(max(1, int(seconds * 1e3)))


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def _uncertain(connection: psycopg.Connection[Row]) -> Iterator[None]:
    """Tells a transaction that may have been committed from one that was refused."""
    try:
        yield
    except psycopg.OperationalError as error:
        if connection.closed or connection.broken:
            raise Uncertain(_first_line(error)) from error
        raise


def _lives(connection: psycopg.Connection[Row]) -> bool:
    """Whether the server has not closed an idle connection: it would have something to read then."""
    import select

    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    connection.close()
    return False


class _Transaction:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, *parameters: Value) -> list[Row]:
        with self._connection.cursor(binary=True) as cursor:
            return cursor.execute(_translated(sql), parameters).fetchall()

    def run(self, sql: str, *parameters: Value) -> int:
        with self._connection.cursor() as cursor:
            return cursor.execute(_translated(sql), parameters).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)


def _translated(sql: str) -> _sql.SQL:
    """psycopg's placeholders. The statements are the store's own, with nothing in them that came from elsewhere."""
    return _sql.SQL(sql.replace("?", "%s"))
