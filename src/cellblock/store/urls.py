"""Where a store is: `sqlite:///notes.db`, `sqlite:////srv/notes.db`, `postgresql://host/name`, `memory:`.

`?objects=` says where large objects lie instead of in the database: a directory, or a bucket's URL. In PostgreSQL the
tables are in the schema `cellblock`, or in that of `?schema=`; all other parameters are libpq's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from cellblock.errors import StoreError

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_FORMS = "sqlite:///relative.db, sqlite:////absolute.db, postgresql://user@host/database, memory:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUrl:
    """A URL taken apart. `location`: a path for "sqlite", what libpq reads for "postgresql", "" for "memory"."""

    kind: Literal["sqlite", "postgresql", "memory"]
    location: str
    schema: str
    objects: str
    shown: str


def default_url(environment: Mapping[str, str] | None = None) -> str:
    """`$CELLBLOCK_STORE`, else a file under the user's data directory, which is made with mode 0700."""
    environment = os.environ if environment is None else environment
    if environment.get("CELLBLOCK_STORE"):
        return environment["CELLBLOCK_STORE"]
    home = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    directory = os.path.join(home, "cellblock")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"no directory for stored sessions: {error}", hint="set CELLBLOCK_STORE to a URL") from None
    return "sqlite:///" + quote(os.path.join(directory, "sessions.db"))


def parse_url(url: str) -> StoreUrl:
    """Take a URL apart. StoreError: it is none that leads to a store; passwords are not repeated."""
    scheme = url.partition(":")[0].lower()
    if "\0" in url or not url.isprintable():
        raise StoreError("the URL of a store has a character that cannot be seen", hint=f"use one of {_FORMS}")
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise StoreError(f"the URL of the store cannot be read: {error}", hint=f"use one of {_FORMS}") from None
    objects = query.pop("objects", "")
    if scheme == "memory":
        _refuse_more(url, parts.netloc + parts.path.strip("/"), query)
        return StoreUrl(kind="memory", location="", schema="", objects=objects, shown="memory:")
    if scheme == "sqlite":
        path = unquote(parts.path.removeprefix("/"))
        if not path or parts.netloc or parts.fragment or not url[len("sqlite:") :].startswith("///"):
            raise StoreError(
                f"{url!r} names no file", hint="sqlite:///relative.db, or four slashes: sqlite:////srv/x.db"
            )
        _refuse_more(url, "", query)
        return StoreUrl(kind="sqlite", location=os.path.expanduser(path), schema="", objects=objects, shown=url)
    if scheme in ("postgresql", "postgres"):
        schema = query.pop("schema", "cellblock")
        if not _SCHEMA.fullmatch(schema):
            raise StoreError(f"{schema[:80]!r} cannot be the name of a schema", hint="use a to z, 0 to 9 and _")
        location = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(query, quote_via=quote), ""))
        return StoreUrl(
            kind="postgresql", location=location, schema=schema, objects=objects, shown=_without_password(url)
        )
    raise StoreError(f"{_without_password(url)!r} is not the URL of a store", hint=f"use one of {_FORMS}")


def _refuse_more(url: str, rest: str, query: Mapping[str, str]) -> None:
    if rest or query:
        raise StoreError(f"{url!r} says {rest or ', '.join(query)!r}, which means nothing there", hint=f"use {_FORMS}")


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if not parts.netloc and not parts.query:
        return url
    name, at, host = parts.netloc.rpartition("@")
    query = [(key, "***" if key == "password" else value) for key, value in parse_qsl(parts.query)]
    netloc = name.partition(":")[0] + at + host
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(query, quote_via=quote), ""))
