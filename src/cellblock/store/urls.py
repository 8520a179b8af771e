"""The URL of a store: `sqlite:///notes.db`, `sqlite:////srv/notes.db`, `postgresql://host/name`, `memory:`.

`?objects=` says where large objects lie instead of in the database: a directory, or a bucket's URL. In PostgreSQL the
tables are in the schema `cellblock`, or in that of `?schema=`; all other parameters are libpq's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote, urlencode

from cellblock.errors import StoreError
from cellblock.private import private_directory
from cellblock.url import Url, parsed

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HINT = (
    "use one of sqlite:///relative.db, sqlite:////absolute.db, postgresql://user@host/database, memory:,"
    " with / ? # @ : % of a password as %2F %3F %23 %40 %3A %25"
)
_CONNECTING = {"connect_timeout": "10"}
"""Seconds that a server of PostgreSQL has for a new connection, where a URL does not say."""
_SET = "set CELLBLOCK_STORE to a URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUrl:
    """A URL taken apart. `location`: a path for "sqlite", what libpq reads for "postgresql", "" for "memory".

    `shown` is the URL without secrets, and `location` is no part of the `repr`.
    """

    kind: Literal["sqlite", "postgresql", "memory"]
    location: str = field(repr=False)
    schema: str
    objects: str
    shown: str


def default_url(environment: Mapping[str, str] | None = None) -> str:
    """`$CELLBLOCK_STORE`, else a file under the user's data directory, which is made with mode 0700."""
    environment = os.environ if environment is None else environment
    if environment.get("CELLBLOCK_STORE"):
        return environment["CELLBLOCK_STORE"]
    home = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    if home.startswith("~"):
        raise StoreError("no directory for stored sessions: this user has no home directory", hint=_SET)
    directory = os.path.join(home, "cellblock")
    try:
        private_directory(directory)
    except OSError as error:
        raise StoreError(f"no directory for stored sessions: {error}", hint=_SET) from None
    try:
        return "sqlite:///" + quote(os.path.join(directory, "sessions.db"))
    except UnicodeEncodeError:
        raise StoreError(f"the directory for stored sessions is no UTF-8: {directory!r}", hint=_SET) from None


def parse_url(url: str | None = None) -> StoreUrl:
    """Security border: take a URL apart, the default one where none is given.

    StoreError, without any of its words: it is none that leads to a store. No frame of the error holds it.
    """
    found = _read(default_url() if url is None else url)
    del url
    if isinstance(found, StoreError):
        raise found
    return found


def _read(url: str) -> StoreUrl | StoreError:
    found = parsed(url)
    if found is None:
        return StoreError("this is not the URL of a store", hint=_HINT)
    options = dict(found.options)
    objects, path = options.pop("objects", ""), unquote(found.path.removeprefix("/"), errors="surrogateescape")
    schema = options.pop("schema", "cellblock") if found.scheme.startswith("postgres") else ""
    if ("objects" in found.options and not objects) or ("://" in objects and not _is_bucket(parsed(objects))):
        return StoreError(f"the URL {found} names no place for objects", hint="objects=DIRECTORY or s3://bucket/prefix")
    if found.scheme.startswith("postgres"):
        if not _SCHEMA.fullmatch(schema):
            return StoreError(f"the URL {found} has a schema that can be none", hint="use a to z, 0 to 9 and _")
        return StoreUrl(
            kind="postgresql", location=_location(found, options), schema=schema, objects=objects, shown=str(found)
        )
    nothing_more = not (found.host or found.user or found.password or options)
    if found.scheme == "sqlite" and path == ":memory:":
        return StoreError(f"{found} would be a file of that name", hint="a store in memory is memory:")
    if found.scheme == "sqlite" and path and path.isprintable() and nothing_more:
        location = os.path.expanduser(path)
        return StoreUrl(kind="sqlite", location=location, schema="", objects=objects, shown=str(found))
    if found.scheme == "memory" and not path and nothing_more:
        return StoreUrl(kind="memory", location="", schema="", objects=objects, shown=str(found))
    return StoreError(f"the URL {found} names no store, or has parts that mean nothing there", hint=_HINT)


def _is_bucket(url: Url | None) -> bool:
    """True if it names a place and no credentials: those come from where the provider's own tools take them."""
    container = url is not None and url.scheme.startswith("abfs")  # abfs://container@account.…
    return url is not None and url.password is None and not url.options and (url.user is None or container)


def _location(url: Url, options: dict[str, str]) -> str:
    user = "" if url.user is None else quote(url.user, safe="")
    password = "" if url.password is None else ":" + quote(url.password, safe="")
    at = "@" if user or password else ""
    query = urlencode(_CONNECTING | options, quote_via=quote)
    return f"postgresql://{user}{password}{at}{url.host}{url.path}?{query}"
