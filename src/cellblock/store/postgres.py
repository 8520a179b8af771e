"""Tables in a PostgreSQL database, by psycopg 3. Each transaction is on the server's disk when it returns."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from cellblock.errors import StoreError
from cellblock.hosting import clock
from cellblock.patience import LOCK_SECONDS, patience, tries
from cellblock.store.database import LOCKED, Dialect, Row, Transaction, Uncertain, Value, text
from cellblock.store.places import no_memory
from cellblock.store.schema import MIGRATIONS, Migrations, migrate, stored_format
from cellblock.store.urls import StoreUrl

try:
    import psycopg
    from psycopg import sql as _sql
    from psycopg.pq import PGconn, TransactionStatus
except ImportError as error:  # the driver itself, or the libpq that it loads
    raise StoreError(
        f"PostgreSQL needs the package psycopg: {error}", hint='pip install "cellblock[postgres]"'
    ) from None

_IDLE = 4
"""Connections that are kept open while nobody uses them."""
_PATIENCE = 10.0
"""Seconds for which a server that was there is tried again, as it may be restarting."""
_LOCK_SECONDS = LOCK_SECONDS
_SILENT = LOCK_SECONDS + 30.0
"""Seconds for which a statement is waited for while the server says nothing: it gives up locks before."""
_STILL = LOCK_SECONDS
"""Seconds for which a host that stands still within a transaction keeps its locks."""
_SILENT_LEFT = 5.0
"""The same where nobody waits for what comes of it."""
_MIGRATING = 0x63656C6C
"""The advisory lock under which tables are made."""

_Result = TypeVar("_Result")


class PostgresDatabase:
    """The database of a URL; the tables are in a schema of their own, made if there is none.

    Connections are opened as threads need them, and once more where the server has closed one that was idle.
    """

    dialect = Dialect(
        name="postgresql",
        keyed="",
        serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", blob="BYTEA", text='TEXT COLLATE "C"',
        real="DOUBLE PRECISION", for_update=" FOR UPDATE", for_share=" FOR SHARE", own_id=" OVERRIDING SYSTEM VALUE",
    )  # fmt: skip

    def __init__(self, url: StoreUrl, *, migrations: Migrations = MIGRATIONS) -> None:
        self._url = url
        self._schema = url.schema
        self._where = f"the store {url.shown}"
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._closed = False
        self._patience = 0.0
        try:
            self._migrate(migrations)
        except BaseException:
            self.close()
            raise
        self._patience = _PATIENCE

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        for _ in tries(LOCK_SECONDS):
            with self._connection() as connection:
                try:
                    return _Transaction(connection, self._where).rows(sql, *parameters)
                except StoreError as error:  # where the server ended the connection, another is tried
                    if not connection.broken:
                        raise
                    broken = error
        raise broken

    def once(self, sql: str, *parameters: Value) -> int:
        with self._connection() as connection:
            return _Transaction(connection, self._where).run(sql, *parameters, commits=True)

    def at_once(self, sql: str, *parameters: Value) -> int | None:
        """None: a server is always waited for."""
        return None

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._connection() as connection:
            transaction = _Transaction(connection, self._where)
            transaction.run("BEGIN")
            try:
                yield transaction
                transaction.run("COMMIT", commits=True)
            except BaseException:
                if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                    transaction.run("ROLLBACK")
                raise

    def sync(self) -> None:
        """Nothing: every commit waits for the server's disk."""

    def now(self) -> float:
        return float(str(self.select("SELECT extract(epoch FROM clock_timestamp())::text")[0][0]))

    def home(self) -> str:
        """The number of the cluster, which its replicas share, and that of the database in it."""
        oid = "(SELECT oid::text FROM pg_database WHERE datname = current_database())"
        rows = self.select(f"SELECT system_identifier::text || '/' || {oid} FROM pg_control_system()")
        return f"PostgreSQL {text(rows[0][0])}"

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
    def _connection(self) -> Iterator[_Connection]:
        if self._closed:
            raise StoreError(f"{self._where} was closed")
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._where} was opened by the process this one was forked from",
                hint="open it again in this process",
            )
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None or not _lives(connection):
            connection = self._connect()
        seconds = patience(_LOCK_SECONDS)
        try:
            if seconds < _LOCK_SECONDS:
                _Transaction(connection, self._where).rows(
                    "SELECT set_config('lock_timeout', ?, false)", _milliseconds(seconds)
                )
            yield connection
        finally:
            if seconds < _LOCK_SECONDS:
                connection.close()
            self._put_back(connection)

    def _put_back(self, connection: _Connection) -> None:
        idle = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if idle and not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> _Connection:
        for _ in tries(self._patience):
            try:
                return self._connected()
            except StoreError as error:
                if self._closed:
                    raise
                last = error
        raise last

    def _connected(self) -> _Connection:
        settings: dict[str, Any] = {"application_name": "cellblock", "client_encoding": "UTF8"}
        connection = _by_driver(
            lambda: _Connection.connect(self._url.location, autocommit=True, **settings), self._where
        )
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in ("UTF8", None):
            connection.close()
            raise StoreError(
                f"{self._where} is a database of the encoding {encoding}, and a store needs one of UTF8",
                hint="make one, and name it in the URL: createdb --template=template0 --encoding=UTF8 NAME",
            )
        transaction = _Transaction(connection, self._where)
        if transaction.rows("SELECT pg_backend_pid()") != [(connection.info.backend_pid,)]:
            connection.close()
            raise StoreError(
                f"{self._where} is behind a pooler of connections, such as PgBouncer, which may give each statement to"
                " another one",
                hint="name the server itself in the URL: a store keeps few connections, for all its sessions",
            )
        transaction.rows(
            "SELECT set_config('search_path', ?, false), set_config('lock_timeout', ?, false),"
            " set_config('default_transaction_isolation', 'read committed', false),"
            " set_config('statement_timeout', '0', false),"
            " set_config('idle_in_transaction_session_timeout', ?, false),"
            " set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),"
            " set_config('tcp_keepalives_count', '3', false)",
            f'"{self._schema}"',
            _milliseconds(_LOCK_SECONDS),
            _milliseconds(_STILL),
        )
        transaction.rows(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        return connection


_UNLOCK = (
    "see which session of the server holds the lock (`SELECT pid, query FROM pg_stat_activity WHERE state <> 'idle'`),"
    " and wait until that has ended, or end it with pg_terminate_backend(PID)"
)
_AWAY = "see whether its server runs; what was committed before is whole"
_HINTS = (
    (psycopg.errors.LockNotAvailable, _UNLOCK),
    (psycopg.errors.DiskFull, "free some space on its server; what was committed before is whole"),
    (psycopg.errors.ReadOnlySqlTransaction, "its server is a standby, or read-only"),
    (psycopg.errors.InsufficientPrivilege, "its user must be allowed to make and change tables"),
    (psycopg.errors.InvalidCatalogName, "create the database first"),
    (psycopg.OperationalError, _AWAY),
)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_REFUSED = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        ("password|no pg_hba|role +does not exist", "lets nobody in by this user and password"),
        ("SSL|TLS|certificate", "cannot be reached by TLS as its URL asks"),
        ("does not exist", "has no such database"),
        ("resolve|translate", "has a host that nobody knows"),
        ("timeout", "does not answer in time"),
        ("too many|connection slots", "takes no more connections"),
        ("refused|denied|No such file", "does not answer"),
    )
)
"""Words of libpq about a connection that did not come about, which has no SQLSTATE, and what they mean: they may quote
the URL, and so are never repeated."""
_PARAMETER = " has a parameter that libpq does not take"


def _by_driver(act: Callable[[], _Result], where: str, connection: _Connection | None = None) -> _Result:
    """Security border: act by the driver, whose errors may hold passwords in words and frames, and end here.

    StoreError in words of our own.
    """
    try:
        return act()
    except MemoryError:
        raise no_memory(where) from None
    except UnicodeError:  # of a host, which is encoded to be looked up
        hint, what = "", " has a host that nobody knows"
    except psycopg.Error as error:
        hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
        if isinstance(error, psycopg.errors.LockNotAvailable):
            what = f" {LOCKED}"
        elif error.sqlstate is not None:
            what = f": the server reports {type(error).__name__} ({error.sqlstate})"
        elif connection is not None:
            what = " went away" if connection.broken else f": the driver reports {type(error).__name__}"
        elif isinstance(error, psycopg.ProgrammingError):
            what = _PARAMETER
        else:
            said = _QUOTED.sub("", str(error))
            otherwise = _PARAMETER if isinstance(error.pgconn, PGconn) else " is out of reach"  # that was never begun
            what = next((f" {what}" for words, what in _REFUSED if words.search(said)), otherwise)
            del said
    raise StoreError(f"{where}{what}", hint=hint)


def _milliseconds(seconds: float) -> str:
    """A limit that the server takes, for which 0 is none."""
    return str(max(1, int(seconds * 1e3)))


def _lives(connection: _Connection) -> bool:
    """True if the server has not closed an idle connection: it would have something to read then."""
    import select

    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    connection.close()
    return False


class _Connection(psycopg.Connection[Row]):
    """A connection that ends where the server has said nothing for too long, as behind a network that swallows all."""

    def wait(self, gen: Generator[Any, Any, _Result], *arguments: Any, **named: Any) -> _Result:
        return super().wait(self._attended(gen), *arguments, **named)

    def _attended(self, steps: Generator[Any, Any, _Result]) -> Generator[Any, Any, _Result]:
        """The steps of an exchange, of which the driver resumes the next when there is something, and now and then."""
        heard = clock.now()
        ready = None
        try:
            while True:
                ready = yield steps.send(ready)
                if ready:
                    heard = clock.now()
                elif clock.now() - heard > max(_SILENT_LEFT, patience(_SILENT)):
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server says nothing")
        except StopIteration as end:
            result: _Result = end.value
            return result


class _Transaction:
    def __init__(self, connection: _Connection, where: str) -> None:
        self._connection = connection
        self._where = where

    def rows(self, sql: str, *parameters: Value) -> list[Row]:
        def selected() -> list[Row]:
            with self._connection.cursor(binary=True) as cursor:
                return cursor.execute(_translated(sql), parameters).fetchall()

        return _by_driver(selected, self._where, self._connection)

    def run(self, sql: str, *parameters: Value, commits: bool = False) -> int:
        """Of one that `commits` nobody knows whether it took effect where its connection breaks: `Uncertain`."""

        def run() -> int:
            with self._connection.cursor() as cursor:
                return cursor.execute(_translated(sql), parameters).rowcount

        try:
            return _by_driver(run, self._where, self._connection)
        except StoreError as error:
            if commits and (self._connection.closed or self._connection.broken):
                raise Uncertain(f"{self._where} went away while it was written to", hint=_AWAY) from error
            raise

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        def run() -> None:
            with self._connection.cursor() as cursor:
                cursor.executemany(_translated(sql), rows)

        _by_driver(run, self._where, self._connection)


def _translated(sql: str) -> _sql.SQL:
    """psycopg's placeholders. The statements are the store's own, with nothing in them that came from elsewhere."""
    return _sql.SQL(sql.replace("?", "%s"))
