"""MIME bundles under construction: what a value's parts may be, and what is left out for its size."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecoder, JSONEncoder

from cellblock.text import exact, represent, valid
from cellblock.wire.messages import Display

MAX_BINARY_BYTES = 10_000_000
_TEXT_FACTOR = 20
_MAX_PARTS = 16
_MIME = re.compile(r"[a-z]+/[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")
_as_json, _from_json = JSONEncoder(allow_nan=False).encode, JSONDecoder().decode
_MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "application/pdf": b"%PDF-"}


@dataclass(frozen=True, slots=True)
class Bundle:
    """One thing a cell shows, as in Jupyter: text and JSON parts in `data`, binary ones in `buffers`."""

    data: dict[str, object] = field(default_factory=dict)
    buffers: dict[str, bytes] = field(default_factory=dict)

    def display(self, *, is_result: bool, mark: int, size: int = 0) -> Display:
        """The event that tells the host of it."""
        return Display(
            data=self.data,
            mimes=tuple(self.buffers),
            buffers=tuple(self.buffers.values()),
            is_result=is_result,
            mark=mark,
            size=size,
        )


class Parts:
    """Collects the parts of one bundle. A part that does not fit its MIME type is left out without a word,
    one that is too large with a note under the plain text: text and JSON past 20 times `max_text` characters,
    binary past 10 MB.
    """

    def __init__(self, max_text: int) -> None:
        self._max_text = max_text
        self._data: dict[str, object] = {}
        self._buffers: dict[str, bytes] = {}
        self._notes: list[str] = []

    def __contains__(self, mime: str) -> bool:
        return mime in self._data or mime in self._buffers

    def add(self, mime: str, part: object) -> None:
        """Take a part as a `_repr_*_` method gave it, of whatever type."""
        if part is None or mime in self or _MIME.fullmatch(mime) is None:
            return
        if len(self._data) + len(self._buffers) >= _MAX_PARTS:
            return
        if mime in _MAGIC:
            self._binary(mime, part)
        elif isinstance(part, str):
            self._text(mime, exact(part, None))
        elif mime.endswith("json"):
            self._json(mime, part)

    def note(self, text: str) -> None:
        """Say under the plain text what is missing."""
        self._notes.append(f"[{text}]")

    def finish(self, value: object) -> Bundle:
        """The bundle; its plain text is the repr of `value` unless a part gave one."""
        plain = self._data.get("text/plain")
        if not isinstance(plain, str):
            plain = represent(value, max_chars=self._max_text)
        self._data["text/plain"] = "\n".join([plain, *self._notes])
        return Bundle(self._data, self._buffers)

    def _text(self, mime: str, text: str) -> None:
        limit = self._max_text if mime == "text/plain" else _TEXT_FACTOR * self._max_text
        if len(text) > limit:
            self.note(f"{mime} left out: {len(text):,} characters, the limit is {limit:,}")
        else:
            self._data[mime] = valid(text)

    def _json(self, mime: str, part: object) -> None:
        text = _as_json(part)
        limit = _TEXT_FACTOR * self._max_text
        if len(text) > limit:
            self.note(f"{mime} left out: {len(text):,} characters, the limit is {limit:,}")
        else:
            self._data[mime] = _from_json(text)  # a copy without the value's own classes

    def _binary(self, mime: str, part: object) -> None:
        if isinstance(part, str):  # Jupyter allows base64 as well
            try:
                part = b64decode(part)
            except ValueError:
                return
        if not isinstance(part, bytes | bytearray) or not part.startswith(_MAGIC[mime]):
            return
        if len(part) > MAX_BINARY_BYTES:
            self.note(f"{mime} left out: {len(part):,} bytes, the limit is {MAX_BINARY_BYTES:,}")
        else:
            self._buffers[mime] = bytes(part)


def data_of(part: object) -> object:
    """Without the metadata that a `_repr_*_` method may give as second of a pair."""
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], Mapping):
        return part[0]
    return part
