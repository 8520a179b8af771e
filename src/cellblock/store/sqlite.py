"""Tables in one SQLite file, or in memory.

The file has a write-ahead log beside it, which is written by each transaction and brought to the disk by `sync`
alone: a transaction survives the death of any process at once, and a loss of power from then on. So nothing that an
event loop calls waits for the disk, and `sync` does so without keeping others from writing.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from cellblock.errors import StoreError
from cellblock.hosting import clock
from cellblock.hosting.forks import Calls, emptied
from cellblock.hosting.paths import absolute
from cellblock.hosting.shortage import has_room, limit, short_of
from cellblock.patience import LOCK_SECONDS, pauses, tries
from cellblock.private import fsync, open_private
from cellblock.store import lease
from cellblock.store.database import LOCKED, Dialect, Row, Transaction, Value, number
from cellblock.store.places import no_memory
from cellblock.store.schema import MIGRATIONS, Migrations, migrate, statements, stored_format

APPLICATION = 0x63656C6C
"""`cell`, in the file's header: what tells it from any other program's."""

_PATIENCE = LOCK_SECONDS
"""Seconds that a statement waits for others that write: SQLite itself is told not to."""
_LATER_PATIENCE = 0.5
"""The same once that was in vain, until one of them has found the file free."""
_LONG_LOG = 8 << 20
_SETTINGS = (
    "trusted_schema = OFF",
    "secure_delete = FAST",  # some builds write each page that is deleted once more, for which a full disk has no room
    "synchronous = NORMAL",
    "wal_autocheckpoint = 0",
)
_LOST_PATIENCE = 0.5
_LARGE = 2**16
"""Bytes of a write that leaves room to those of others."""
_LOG_HEADER, _PAGE_HEADER = 32, 24
_INDEX_HEADER = 20
"""Bytes of the log's index that end with the number of pages of the log that are read."""
_OLDEST = (3, 35, 0)
_PAGES_AT_ONCE = 256
_GROWTH = 2**17
"""Bytes: more than a file grows by at once."""

_Result = TypeVar("_Result")
_log = logging.getLogger("cellblock.store")


class _Files(NamedTuple):
    """Identity of a file and of its log: the device and the inode of each."""

    file: tuple[int, int] | None
    log: tuple[int, int] | None


class SqliteDatabase:
    """A database at a path, made with mode 0600 where there is none; `None` is one in memory, of this object alone."""

    dialect = Dialect(
        name="sqlite",
        keyed=" WITHOUT ROWID",
        serial="INTEGER PRIMARY KEY AUTOINCREMENT",
        blob="BLOB",
        text="TEXT",
        real="REAL",
        for_update="",
        for_share="",
        own_id="",
    )

    def __init__(self, path: str | None, *, migrations: Migrations = MIGRATIONS) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old", hint="3.35 or newer is needed")
        self._path = None if path is None else os.path.normpath(absolute(path, StoreError))
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._was_locked = False
        """The last statement that writes has waited for the file in vain."""
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._began: float | None = None
        """When the monotonic clock began, for all who have the file."""
        self._read_only = self._path is not None and _is_read_only(self._path)
        self._lost: list[str] = []
        self._files: _Files | None = None
        """Identity of the file and of its log, while they are open."""
        self._written = 0
        """Time at which the file was last written, noted with the two, and with each call that finds both."""
        with self._call():
            self._writer = self._opened(migrations)
            self._note_files()
        if self._path is not None:
            _databases.add(self)

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        def selected() -> list[Row]:
            with self._reader() as connection:
                return connection.execute(sql, parameters).fetchall()

        with self._call():
            for _ in tries(_PATIENCE if self._read_only else 0):
                before = self._seen()
                found = _retried(selected)
                if self._seen() == before:
                    break
            return found

    def _seen(self) -> tuple[int, ...]:
        """What changes where another program writes to a file that is read here: it is read again then."""
        if not self._read_only or self._path is None:
            return ()
        status = os.stat(self._path)
        return (status.st_mtime_ns, status.st_size, status.st_ino, _size(self._path + "-wal"))

    def once(self, sql: str, *parameters: Value) -> int:
        with self._call(writes=True), self._with_writer(sql, parameters) as changed:
            return changed

    def at_once(self, sql: str, *parameters: Value) -> int | None:
        if self._files is not None and self._files_now() != self._files:  # `once` waits, and tells
            return None
        with self._call(writes=True):
            if (changed := self._try_to_begin(sql, parameters)) is not None:
                self._lock.release()
            return changed

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._call(writes=True):
            if not self._has_room(2 * self._log_size()):  # while there is some for what the log brings into the file
                self._shorten_log()
            with self._with_writer("BEGIN IMMEDIATE"):
                try:
                    yield _Transaction(self._writer, self._require_room)
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:  # a full disk has rolled it back already
                        self._writer.execute("ROLLBACK")
                    raise

    def sync(self) -> None:
        if self._path is None or self._read_only:
            return
        with self._call():
            fsync(self._path + "-wal")
            self._require_files()  # what was brought to the disk is the log still
            if (size := self._log_size()) > _LONG_LOG or not self._has_room(2 * size):
                self._shorten_log()

    def now(self) -> float:
        """By a clock that nobody sets: a lease and a grace end when their time has passed."""
        if self._began is None:
            self._began = self._agreed_beginning()
        return self._began + clock.now()

    def home(self) -> str:
        return "memory" if self._path is None else f"{self._path} (inode {os.stat(self._path).st_ino})"

    def check(self) -> list[str]:
        found = [str(row[0]) for row in self.select("PRAGMA integrity_check(20)")]
        return [*self._lost, *(() if found == ["ok"] else found)]

    def compact(self) -> None:
        """In steps, between which others write."""
        steps = number(self.select("PRAGMA freelist_count")[0][0]) // _PAGES_AT_ONCE + 1
        for _ in range(steps if self._path is not None else 0):  # counted once: a damaged list does not become shorter
            with self.writing() as transaction:
                transaction.rows(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
        with self._call(writes=True):
            self._shorten_log()

    def close(self) -> None:
        """Close the connections. Reads under way come to their end: a connection is closed by whoever took it out of
        the idle ones."""
        self._closed = True
        with _calls:
            self._close_idle()
            with self._lock:
                self._writer.close()

    # --- time ---

    def _agreed_beginning(self) -> float:
        """When the monotonic clock began, as the first process since the machine started has told all others."""
        sql, mine = "SELECT value FROM meta WHERE name = 'clock'", lease.clock_began()
        if self._path is None or self._read_only or not (fresh := lease.clock_as_text(mine)):
            return mine
        if (told := _beginning(self.select(sql))) is not None:
            return told
        with self.writing() as transaction:
            if (sooner := _beginning(transaction.rows(sql))) is not None:
                return sooner
            transaction.run("DELETE FROM meta WHERE name = 'clock'")
            transaction.run("INSERT INTO meta (name, value) VALUES ('clock', ?)", fresh)
        return mine

    # --- connections ---

    def leave(self, is_clean: bool) -> None:
        """In a copy of the process, which has no lock of the file, whatever SQLite has noted: have it forget that.

        Where a call was under way it cannot, and the file is not opened here any more.
        """
        if is_clean:
            with suppress(sqlite3.Error):
                self._close_idle()
                self._writer.close()
        elif self._files is not None:
            _in_use.add(self._files.file)

    def _opened(self, migrations: Migrations) -> sqlite3.Connection:
        if self._path is not None and file_identity(self._path) in _in_use:
            raise StoreError(f"{self._where} was in use when this process was forked from another", hint=_FORK)
        if self._path is not None and not self._read_only and not os.path.exists(self._path):
            _make_private(self._path)
        if self._path is not None and not self._read_only and os.path.isfile(self._path):
            self._require_one_name(self._path)
        try:
            return _retried(lambda: self._prepared(migrations))
        except _NotAlone:
            raise StoreError(f"{self._where} is open elsewhere, too, and {_LOG_GONE}", hint=_REOPEN) from None

    def _require_one_name(self, path: str) -> None:
        """Refuse a file that has two names, and so two places for the log: who opens it by the one does not see what
        was written by the other, and writes over it.
        """
        if os.stat(path).st_nlink > 1:
            raise StoreError(
                f"{self._where} has two names, and a log beside each: neither would hold what is written by the other",
                hint="remove its other names (`find DIRECTORY -samefile FILE` tells them), or give the store a copy",
            )
        if _mount(path) != _mount(os.path.dirname(path)):
            raise StoreError(
                f"{self._where} is a file that is mounted alone, and the log beside it would stay behind",
                hint="mount the directory that it is in",
            )

    def _prepared(self, migrations: Migrations) -> sqlite3.Connection:
        self._require_log()
        connection = self._connect()
        try:
            self._prepare(connection, migrations)
            self._tell_lost()
        except BaseException:
            connection.close()
            raise
        return connection

    def _tell_lost(self) -> None:
        """Tell of transactions in the log that SQLite leaves out, as bytes before them are not those that were written:
        a turned bit, or a loss of power before they were brought to the disk.
        """
        if self._path is None:
            return
        for _ in tries(_LOST_PATIENCE):  # one that is being written counts until it is known to all
            if not (lost := _lost_transactions(self._path)):
                return
        self._lost = [f"{lost} transactions of its log are damaged and left out, the newest that were committed"]
        _log.warning("%s: %s", self._where, self._lost[0])

    def _require_log(self) -> None:
        """Refuse a file that others have open and whose log was deleted: they write where nobody would look. And one
        whose log is no file, such as a pipe.
        """
        for path in (f"{self._path}-wal", f"{self._path}-shm") if self._path is not None else ():
            if os.path.exists(path) and not os.path.isfile(path):
                raise StoreError(f"{path} is no file", hint="remove it, or restore a copy of the store")
        if self._path is None or self._read_only or os.path.exists(self._path + "-wal"):
            return
        alone = sqlite3.connect(_uri(self._path, False), uri=True, timeout=0, isolation_level=None)
        try:
            alone.execute("PRAGMA locking_mode = EXCLUSIVE")  # before anything that would make a log
            alone.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            if not _is_locked(error):
                raise
            raise _NotAlone("another program has it open") from error
        finally:
            alone.close()

    def _prepare(self, connection: sqlite3.Connection, migrations: Migrations) -> None:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (mark,) = connection.execute("PRAGMA application_id").fetchone()  # after them: another may make both meanwhile
        if mark != APPLICATION and (mark or tables):
            raise StoreError(f"{self._path} is an SQLite file of another program", hint="give the store another path")
        found = self._format(connection, migrations) if mark else 0
        if found == len(migrations):
            if not self._read_only:
                self._have_log(connection)
            return
        if self._read_only:
            migrate(_Transaction(connection), self.dialect, max(found, len(migrations)), self._where, migrations)
            raise StoreError(f"{self._where} has the older format {found}, and is open for reading only")
        if not tables:
            connection.execute("PRAGMA page_size = 8192")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._have_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            found = self._format(connection, migrations) if mark else 0
            migrate(_Transaction(connection), self.dialect, found, self._where, migrations)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _format(self, connection: sqlite3.Connection, migrations: Migrations) -> int:
        """The format of the tables. Refuses a file that others have given a view, a trigger, or another table or index
        where ours are: SQLite would run what it says at a statement of ours, for as long as it likes.
        """
        self._require_own(connection, migrations[:1], {"meta"})  # what tells the format
        found = stored_format(_Transaction(connection))
        if found <= len(migrations):
            self._require_own(connection, migrations[:found])
        return found

    def _require_own(
        self, connection: sqlite3.Connection, migrations: Migrations, tables: Set[str] | None = None
    ) -> None:
        """StoreError unless the tables, or some of them, and all that hangs on them are as the migrations make them."""
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_master"
        with closing(sqlite3.connect(":memory:")) as model:
            for statement in statements(self.dialect, migrations):
                model.execute(statement)
            own = {*model.execute(schema)}
        tables = tables or {name for _, name, _, _ in own}
        for row in connection.execute(schema):
            kind, name, table, _ = row
            if row not in own and not tables.isdisjoint((name, table)):
                raise StoreError(
                    f"{self._where} holds the {kind} {str(name)[:80]!a}, which cellblock did not make",
                    hint="do not use the file: whoever changed it can have it run statements of theirs",
                )

    def _have_log(self, connection: sqlite3.Connection) -> None:
        if self._path is not None and connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreError(f"{self._path}: its file system has no shared memory", hint="use a local disk")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # which opens it

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            _uri(self._path, self._read_only),
            uri=True, timeout=0, isolation_level=None, check_same_thread=False,
        )  # fmt: skip
        connection.text_factory = _as_text
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        if self._path is None:
            with self._lock:
                self._refuse_if_closed()
                yield self._writer
            return
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        finally:
            self._idle.append(connection)
            if self._closed or self._read_only:  # the next one sees what others have written by then
                self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            with suppress(IndexError):  # another thread took the last one
                self._idle.pop().close()

    # --- room on the disk ---

    def _log_size(self) -> int:
        return 0 if self._path is None else _size(self._path + "-wal")

    def _has_room(self, size: int) -> bool:
        return self._path is None or has_room(self._path, size)

    def _require_room(self, size: int) -> None:
        """Refuse a large write that would leave no room for the log's content in the file, or for others' small writes.

        Each page is written twice, first into the log.
        """
        if size >= _LARGE and not self._has_room(2 * size + self._log_size()):
            raise _Full("the disk has too little room")

    def _shorten_log(self) -> None:
        """Bring what the log holds into the file, and cut it off: here, where the disk may be waited for.

        Where that has no room for it, all stays in the log. No other write cuts it off: an event loop may wait for it.
        """
        if self._path is None or self._read_only:
            return
        try:
            with self._reader() as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            with self._with_writer("PRAGMA wal_checkpoint(TRUNCATE)"):  # not where it is read just now
                self._written = os.stat(self._path).st_mtime_ns
        except sqlite3.Error as error:
            if _name(error) != "SQLITE_FULL":
                raise

    def _give_back(self) -> None:
        """Cut off what a write that failed has left behind the last commit in the log; whoever writes just now uses it.
        """
        if self._path is None or self._try_to_begin("BEGIN IMMEDIATE", ()) is None:
            return
        try:
            _, size, ends = _commits(self._path + "-wal")
            os.truncate(self._path + "-wal", _LOG_HEADER + ends[-1] * size if ends else 0)
        finally:
            self._writer.execute("ROLLBACK")
            self._lock.release()

    # --- writing ---

    @contextmanager
    def _with_writer(self, sql: str, parameters: Sequence[Value] = ()) -> Iterator[int]:
        """Have the writer alone, once it has executed a statement; how many rows that changed."""
        seconds = _LATER_PATIENCE if self._was_locked else _PATIENCE
        until = clock.now() + seconds
        for pause in pauses(seconds):
            if (changed := self._try_to_begin(sql, parameters, pause)) is not None:
                break
        else:
            self._was_locked |= clock.now() >= until  # else the caller has left
            raise StoreError(f"{self._where} {LOCKED}", hint=_UNLOCK)
        try:
            yield changed
        finally:
            self._lock.release()

    def _try_to_begin(self, sql: str, parameters: Sequence[Value], pause: float = 0.0) -> int | None:
        """The same, with the lock for the caller to release. None where another thread has the writer for all of the
        pause, or another process the file: then the pause has passed, too.
        """
        if not self._lock.acquire(timeout=pause):
            return None
        try:
            self._refuse_if_closed()
            self._require_room(_weight(parameters))
            changed = self._writer.execute(sql, parameters).rowcount
            self._was_locked = False
            return changed
        except BaseException as error:
            self._lock.release()
            if not _is_locked(error):
                raise
        if pause:
            time.sleep(pause)
        return None

    # --- errors ---

    @property
    def _where(self) -> str:
        return f"the store {self._path or 'in memory'}"

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError(f"{self._where} was closed")

    @contextmanager
    def _call(self, *, writes: bool = False) -> Iterator[None]:
        self._refuse_if_closed()
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._where} was opened by the process this one was forked from",
                hint="open it again in this process",
            )
        if writes and self._read_only:
            raise StoreError(f"{self._where} cannot be written to", hint="its file or file system is read-only")
        try:
            with _calls:
                self._require_files()
                yield
        except sqlite3.Error as error:
            translated = self._store_error(error)
            if writes and _name(error).startswith(("SQLITE_FULL", "SQLITE_IOERR")):  # the second one for a quota
                with suppress(sqlite3.Error, StoreError, OSError):  # the first failure is told
                    self._give_back()
            raise translated from error
        except UnicodeDecodeError as error:  # in words of SQLite about a file whose own text is damaged
            raise StoreError(f"{self._where} {_DAMAGED}", hint=_RECOVER) from error
        except MemoryError as error:
            raise no_memory(self._where) from error
        except OSError as error:
            raise StoreError(f"{self._where}: {error.strerror}", hint=_HINTS.get(error.errno or 0, "")) from error

    # --- files that go while they are open ---

    def _files_now(self) -> _Files:
        """Identity of the file at the path and of its log. A store in memory has neither, one that is read only no log
        of its own."""
        if self._path is None:
            return _Files(None, None)
        return _Files(file_identity(self._path), None if self._read_only else file_identity(self._path + "-wal"))

    def _note_files(self) -> None:
        self._files = self._files_now()
        if self._path is not None:
            self._written = os.stat(self._path).st_mtime_ns

    def _require_files(self) -> None:
        """StoreError: what is written now, nobody would find. Where only the log was deleted, another takes its place:
        this process can still read what it held.
        """
        if (files := self._files) is None or self._path is None:
            return
        found = self._files_now()
        if found == files:
            self._written = os.stat(self._path).st_mtime_ns
        elif found.file != files.file:
            raise StoreError(f"{self._where} was moved, replaced or deleted while it is open", hint=_PUT_BACK)
        else:
            self._save_log()

    def _save_log(self) -> None:
        """Bring what the deleted log holds into the file, and begin another log.

        Not where another program has the file open, or has written to it meanwhile: it knows nothing of that log.
        """
        assert self._path is not None
        if not self._lock.acquire(timeout=_PATIENCE):
            raise StoreError(f"{self._where} {LOCKED}", hint=_UNLOCK)
        try:
            self._refuse_if_closed()  # which takes the log away
            if self._files_now() == self._files:  # another thread was sooner
                return
            if _size(self._path + "-wal") or os.stat(self._path).st_mtime_ns != self._written:
                raise StoreError(f"{self._where} was written to by another program, and {_LOG_GONE}", hint=_REOPEN_ALL)
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._written = os.stat(self._path).st_mtime_ns
            _retried(self._leave_log, _LATER_PATIENCE)
            self._have_log(self._writer)
            self._note_files()
        except sqlite3.OperationalError as error:
            if not _is_locked(error):
                raise
            raise StoreError(f"{self._where} is open elsewhere, too, and {_LOG_GONE}", hint=_REOPEN) from error
        finally:
            self._lock.release()

    def _leave_log(self) -> None:
        """Have the file hold all. It is refused while anybody else reads it, in this process or in another."""
        self._close_idle()
        self._writer.execute("PRAGMA journal_mode = DELETE").fetchone()

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        name = _name(error)
        if name.startswith("SQLITE_IOERR") and self._path is not None:
            largest = max(_size(self._path + end) for end in ("", "-wal", "-shm"))
            if limit("RLIMIT_FSIZE")[0] <= largest + _GROWTH and (short := short_of(OSError(errno.EFBIG, ""))):
                return StoreError(f"{self._where} cannot be written: {short.args[0]}", hint=short.hint)
        for prefix, what, hint in _MEANINGS:
            if name.startswith(prefix):
                return StoreError(f"{self._where} {what}", hint=hint)
        return StoreError(f"{self._where}: {error} {name}".rstrip())


_IS_FULL, _ROOM = "has no room: its disk is full", "free some space; what was committed before is whole"
_PUT_BACK = "put its file and the one that ends in -wal back, or close the session and open it where they are"
_LOG_GONE = "its log, the file that ends in -wal, was deleted while it is open"
_FORK = "close it there before, start processes with multiprocessing's spawn, or fork while nothing is saved"
_REOPEN = "close it there: the last that has it saves what the log held"
_REOPEN_ALL = (
    "close it in all programs, and look at what it holds: what this program wrote last may not be in it. A program that"
    " copies the file while it has it open, or reads it by another SQLite library, takes the locks off it"
)
_OPENS = "its directory must exist, and that, the file and those beside it be writable for this user"
_HINTS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS), _OPENS),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _ROOM),
}
_DAMAGED = "is damaged"
_RECOVER = (
    "restore a copy, with no -wal and -shm file of before beside it, or save what can be read: `sqlite3 FILE .recover`"
)
_UNLOCK = (
    "see which program has it open (`fuser FILE`), and wait until that has ended or end it;"
    " `sqlite3 FILE '.backup COPY'` makes a backup without a lock"
)
_MEANINGS = (
    ("SQLITE_FULL", _IS_FULL, _ROOM),
    ("SQLITE_IOERR_SHMSIZE", _IS_FULL, _ROOM),
    ("SQLITE_READONLY", "cannot be written to", "its file, directory or file system is read-only"),
    ("SQLITE_CORRUPT", _DAMAGED, _RECOVER),
    ("SQLITE_NOTADB", "is no SQLite file", "give the store another path, or restore a copy"),
    ("SQLITE_BUSY", LOCKED, _UNLOCK),
    ("SQLITE_CANTOPEN", "cannot be opened", _OPENS),
    ("SQLITE_IOERR", "cannot be read or written: its disk reports an error", "see the system's log"),
)
"""Beginnings of the driver's errors, with their meaning and the remedy."""


class _Full(sqlite3.OperationalError):
    """A disk that would be full after a write."""

    sqlite_errorname = "SQLITE_FULL"


class _NotAlone(sqlite3.OperationalError):
    """A file that others have open, without a log."""

    sqlite_errorname = "SQLITE_BUSY"


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, require_room: Callable[[int], None] = lambda size: None) -> None:
        self._connection = connection
        self._require_room = require_room

    def rows(self, sql: str, *parameters: Value) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()

    def run(self, sql: str, *parameters: Value) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        rows = list(rows)
        self._require_room(sum(map(_weight, rows)))
        self._connection.executemany(sql, rows)


def _weight(values: Sequence[Value]) -> int:
    return sum(len(value) for value in values if isinstance(value, (str, bytes)))


def _commits(log: str) -> tuple[bytes, int, list[int]]:
    """The header of a log, the bytes that a page takes in it, and the number of pages up to the end of each commit.

    The log is a header, with two random numbers at 16, and pages: each with the size that a commit gives the file, 0
    before its last page, and the two numbers, which tell it from a page of an earlier log.
    """
    with open(log, "rb", buffering=0) as file:
        header = file.read(_LOG_HEADER)
        size = int.from_bytes(header[8:12], "big") + _PAGE_HEADER
        pages = range((os.fstat(file.fileno()).st_size - _LOG_HEADER) // size if len(header) == _LOG_HEADER else 0)
        ends = []
        for page in pages:
            file.seek(_LOG_HEADER + page * size)
            head = file.read(16)
            if any(head[4:8]) and head[8:16] == header[16:24]:
                ends.append(page + 1)
        return header, size, ends


def _lost_transactions(path: str) -> int:
    """Number of transactions that lie whole in a log behind the last one that SQLite reads of it."""
    try:
        header, _, ends = _commits(path + "-wal")
        read = int.from_bytes(_index(path + "-shm")[-4:], sys.byteorder)
        with open(path + "-wal", "rb") as log:
            is_same = log.read(_LOG_HEADER) == header
    except FileNotFoundError:
        return 0
    return sum(end > read for end in ends) if is_same else 0


def _index(path: str) -> bytes:
    """The header of the index of a log, which SQLite has open here.

    It is read by the descriptor that is there: whoever closes one of his own drops all locks that this process has on
    the file, on which other processes rely.
    """
    if sys.platform == "win32":
        with open(path, "rb") as file:
            return file.read(_INDEX_HEADER)
    identity = file_identity(path)
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            status = os.fstat(int(name))
            if (status.st_dev, status.st_ino) == identity:
                return os.pread(int(name), _INDEX_HEADER, 0)
    raise FileNotFoundError(path)


def _make_private(path: str) -> None:
    """An empty file that only its owner may read; SQLite gives what it puts beside it the same mode."""
    with suppress(FileExistsError):
        os.close(open_private(path, "x"))
        fsync(os.path.dirname(path))


def _beginning(rows: list[Row]) -> float | None:
    return lease.clock_from_text(rows[0][0]) if rows and isinstance(rows[0][0], str) else None


_databases: weakref.WeakSet[SqliteDatabase] = emptied(weakref.WeakSet())
_in_use: set[tuple[int, int] | None] = set()
"""Files that this process cannot open: a call of another's thread was under way in them when it was forked."""


def _leave_databases(is_clean: bool) -> None:
    for database in list(_databases):
        database.leave(is_clean)


_calls = Calls(_leave_databases)


def file_identity(path: str) -> tuple[int, int] | None:
    """The device and the inode of a file, other than those of one that was at the same path before; None for none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _mount(path: str) -> str:
    """The number of the mount that a path is on; "" where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return ""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)  # whose closing takes no locks off the file
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
            return next((line for line in file if line.startswith("mnt_id:")), "")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _as_text(data: bytes) -> str | bytes:
    """A column that holds text, as its bytes where they are none: whoever reads it tells that this row is damaged."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _is_read_only(path: str) -> bool:
    return os.path.exists(path) and not os.access(path, os.W_OK)


def _uri(path: str | None, read_only: bool) -> str:
    if path is None:
        return "file::memory:"
    mode = "rw"
    if read_only:  # without a log there is nothing that another process could be writing
        mode = "ro" if _size(path + "-wal") else "ro&immutable=1"
    return f"file:{quote(path)}?mode={mode}"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _retried(act: Callable[[], _Result], seconds: float | None = None) -> _Result:
    """Try again while others have the file, as those do who open it or write to it."""
    for _ in tries(_PATIENCE if seconds is None else seconds):
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not _is_locked(error):
                raise
            last = error
    raise last


def _is_locked(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _name(error).startswith("SQLITE_BUSY")


def _name(error: sqlite3.Error) -> str:
    """SQLite's own name of an error; "" for one of the driver's."""
    return getattr(error, "sqlite_errorname", "")
