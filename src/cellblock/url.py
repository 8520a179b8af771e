"""URLs that may hold secrets: taken apart, and shown by those of their parts that hold none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

_BUCKETS = "s3|s3a|gs|az|azure|adl|abfs|abfss"
_HOST = r"(?:[\w.~%-]*|\[[\da-f:.%]+\])(?::\d*)?"
_URL = re.compile(
    rf"(?:(?P<scheme>sqlite|postgres(?:ql)?|https?|file|{_BUCKETS})://|(?P<memory>memory):)"
    rf"(?:(?P<user>[^/?#@]*)@)?(?P<host>{_HOST}(?:,{_HOST})*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE | re.ASCII,
)
_PATHS = ("sqlite", "file")
"""Schemes whose paths may hold an @: elsewhere it ends a password that holds an unquoted /."""
_SHOWN = ("host", "port", "schema", "objects")
_PLAIN = re.compile(r"[\w./~, -]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """The parts of a URL: `host`, with ports, and `path` as written, the others decoded. `str` and `repr` show
    scheme, host, path and harmless options, and neither user nor password.
    """

    scheme: str
    host: str
    path: str
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    options: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        known = {name: self.options[name] for name in _SHOWN if name in self.options}
        told = {name: str(parsed(value) or "") if "://" in value else value for name, value in known.items()}
        query = "&".join(f"{name}={value}" for name, value in told.items() if "://" in value or _PLAIN.fullmatch(value))
        slashes = "" if self.scheme == "memory" else "//"
        return f"{self.scheme}:{slashes}{self.host}{self.path}{query and '?'}{query}"


def parsed(text: object) -> Url | None:
    """The parts of a URL; None for what is none of a scheme that this package knows, or is ambiguous."""
    found = _URL.fullmatch(text) if isinstance(text, str) and text.isprintable() else None
    if found is None:
        return None
    scheme, path, query = (found["scheme"] or "memory").lower(), found["path"] or "", found["query"] or ""
    pairs = query.split("&") if query else []
    if ("@" in path and scheme not in _PATHS) or (scheme == "memory" and found["host"] + path):
        return None
    if not all("=" in pair and ("@" not in pair or "://" in pair) for pair in pairs):
        return None
    user, colon, password = (found["user"] or "").partition(":")
    return Url(
        scheme=scheme,
        host=found["host"],
        path=path,
        user=unquote(user) or None,
        password=unquote(password) if colon else None,
        options=dict(parse_qsl(query, keep_blank_values=True)),
    )


def shown(text: object) -> str:
    """A URL without secrets; `***` for what is none."""
    return str(parsed(text) or "***")
