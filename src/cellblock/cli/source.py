"""A script on its way in: bytes from a file or stdin, decoded as Python decodes them, split into cells."""

from __future__ import annotations

import io
import os
import re
import sys
import tokenize
from itertools import pairwise
from pathlib import Path

from cellblock.cli.exits import Unusable as Unusable

MAX_BYTES = 32 * 2**20
_CHUNK = 1 << 20
_MARKER = re.compile(r"^# ?%%.*$", re.MULTILINE)


def read(path: str) -> bytes:
    """A file's bytes, bounded."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unusable(f"cannot read {path!r}: {reason}") from None
    return _bounded(data, path)


async def read_stdin() -> bytes:
    """All of stdin, bounded, without holding up what else goes on."""
    import asyncio

    from cellblock.hosting.threads import in_thread

    def read() -> bytes:
        number, data = sys.stdin.fileno(), bytearray()
        while len(data) <= MAX_BYTES and (chunk := os.read(number, _CHUNK)):
            data += chunk
        return bytes(data)

    try:
        return _bounded(await asyncio.wrap_future(in_thread(read, "cellblock stdin")), "stdin")
    except (OSError, AttributeError) as error:
        raise Unusable(f"cannot read stdin: {error}") from None


def decode(data: bytes, name: str) -> str:
    """The text of a source file: by its byte order mark, its coding line (PEP 263), else as UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        raise Unusable(f"{name}: not {error.encoding}: {byte}: {error.reason}") from None
    except SyntaxError as error:
        reason = error.msg
        if "missing encoding" in reason:
            reason = "not UTF-8, and no coding line in its first two lines names another encoding"
        raise Unusable(f"{name}: {reason}") from None
    except (LookupError, UnicodeError) as error:
        raise Unusable(f"{name}: {error}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Unusable(f"{name}: line {line}: a NUL character: this is not Python source")
    return text


def split(text: str) -> list[str]:
    """The cells between `# %%` lines; text before the first is a cell when it holds anything."""
    starts = [match.start() for match in _MARKER.finditer(text)]
    edges = [0, *starts, len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    return [part for part in parts if _MARKER.sub("", part).strip()] or [""]


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise Unusable(f"{name}: more than {MAX_BYTES} bytes of source")
    return data
