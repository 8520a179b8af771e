"""Places for large objects outside of the database: a directory, or a bucket of an object store.

Each put makes a key that no other put has, and nothing is ever written over: so a collection that deletes an object
can never meet a writer who has just put the same bytes.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from cellblock.errors import StoreError
from cellblock.hosting.paths import absolute
from cellblock.hosting.shortage import has_room
from cellblock.hosting.unique import unique_word
from cellblock.private import private_directory, write_private


@dataclass(frozen=True, slots=True)
class Stray:
    """A body that lies in a place: its key, and how long ago it was put there, in seconds by the place's own clock."""

    key: str
    age: float


class Place(Protocol):
    """Somewhere to keep bytes by keys. Errors are StoreErrors that name the place."""

    def put(self, prefix: str, body: bytes) -> str:
        """Keep some bytes under a new key that begins with `prefix`; durable when it returns."""

    def has(self, directory: str) -> bool:
        """False if nothing was ever put under this directory's name, as on a disk that is not mounted."""

    def get(self, key: str, most: int = sys.maxsize) -> bytes | None:
        """The bytes of a key; None if there is none, or what lies there is no object of at most so many bytes."""

    def delete(self, key: str) -> None:
        """Let go of a key; nothing if there is none."""

    def listed(self, prefix: str) -> Iterator[Stray]:
        """Objects under keys that begin with `prefix`, a directory's name."""


def open_place(location: str) -> Place | None:
    """The place that `?objects=` names; None for ""."""
    if path := directory_of(location):
        return DirectoryPlace(path)
    if not location:
        return None
    from cellblock.store.bucket import BucketPlace

    return BucketPlace.at(location)


def directory_of(location: str) -> str:
    """The directory that `?objects=` names; "" for a bucket and for none."""
    if "://" in location and not location.startswith("file://"):
        return ""
    return os.path.expanduser(location.removeprefix("file://"))


_HINT = "see that it is a directory which this user may read and write, and that its disk has room"


def no_memory(what: str) -> StoreError:
    """The error of a store for which this program has no memory left, or the database's driver."""
    hint = "have the program hold less, or give it more; what was committed before is whole, and is tried again"
    return StoreError(f"{what}: this program has no memory left for it", hint=hint)


@contextmanager
def _file_errors(what: str, *, may_lack: bool = False) -> Iterator[None]:
    """Raise what goes wrong as `StoreError`; with `may_lack` not that a file is not there."""
    try:
        yield
    except MemoryError:
        raise no_memory(what) from None
    except OSError as error:
        if may_lack and isinstance(error, FileNotFoundError):
            raise
        raise StoreError(f"{what}: {error.strerror}", hint=_HINT) from error


class DirectoryPlace:
    """A directory, made with mode 0700 where there is none."""

    def __init__(self, path: str) -> None:
        self._path = os.path.normpath(absolute(os.path.expanduser(path), StoreError))
        with _file_errors(f"objects cannot be kept in {self._path}"):
            private_directory(self._path)

    def __str__(self) -> str:
        return self._path

    def put(self, prefix: str, body: bytes) -> str:
        directory, _, address = prefix.rpartition("/")
        shard = address[7:9]  # the first byte of its hash, as file systems grow slow with many names in a directory
        key = f"{directory}/{shard}/{address}.{unique_word()}"
        path = os.path.join(self._path, key)
        with _file_errors(f"an object cannot be written to {self._path}"):
            if not has_room(self._path, len(body)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            private_directory(os.path.dirname(path))
            write_private(path, body)
        return key

    def has(self, directory: str) -> bool:
        return os.path.isdir(self._file(directory))

    def get(self, key: str, most: int = sys.maxsize) -> bytes | None:
        what = f"an object cannot be read from {self._path}"
        with suppress(FileNotFoundError), _file_errors(what, may_lack=True):
            path = self._file(key)
            if stat.S_ISREG(os.lstat(path).st_mode):  # opening another may wait, or be refused
                with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                    if os.fstat(file.fileno()).st_size <= most:
                        return file.read()
        return None

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError), _file_errors(f"an object cannot be deleted from {self._path}", may_lack=True):
            os.unlink(self._file(key))

    def listed(self, prefix: str) -> Iterator[Stray]:
        with _file_errors(f"objects cannot be listed in {self._path}"), tempfile.TemporaryFile(dir=self._path) as fresh:
            now = os.fstat(fresh.fileno()).st_mtime
        for directory, _, names in os.walk(self._file(prefix)):
            for name in names:
                path = os.path.join(directory, name)
                key = os.path.relpath(path, self._path)
                with suppress(FileNotFoundError, UnicodeEncodeError):  # no key of ours has such a name
                    key.encode()
                    yield Stray(key, now - os.lstat(path).st_mtime)

    def _file(self, key: str) -> str:
        """A key's path. Keys come out of the database, so one that leads out of the directory is damage."""
        if "\0" in key or any(part in ("", ".", "..") for part in key.split("/")):
            raise StoreError(f"{key[:80]!r} is not the key of an object")
        return os.path.join(self._path, key)
