"""Files of the user's on their way in: scripts, decoded as Python decodes them and split into cells; input files."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import tokenize
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli.exits import Unusable

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession

MAX_BYTES = 32 * 2**20
_MARKER = re.compile(r"^# ?%%.*$", re.MULTILINE)


def read(path: str, *, regular: bool = False) -> bytes:
    """The bytes of a source file, bounded; `regular` refuses a FIFO and a device, which may never end."""
    try:
        data = read_local(path, MAX_BYTES + 1, regular=regular)
    except OSError as error:
        raise Unusable(f"cannot read {path!r}: {error.strerror}") from None
    return _bounded(data, path)


def read_local(path: str, most: int, *, regular: bool = True) -> bytes:
    """The first `most` bytes of a file of the user's; every failure is an OSError that names the file."""
    waits = os.O_NONBLOCK | os.O_NOCTTY if regular and os.name == "posix" else 0
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | waits)) as file:
            if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read(most)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    except ValueError as error:  # a NUL character, half of a character
        raise OSError(errno.EINVAL, str(error), path) from None


async def put(session: AsyncSession, name: str, local: Path) -> int:
    """Copy a regular file of the user's into a session, as far as its disk may hold it; the number of bytes."""
    most = session.limits.max_disk_mb << 20
    data = read_local(str(local), most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(local))
    await session.files.write(name, data)
    return len(data)


def is_piped_in() -> bool:
    """True if stdin is a pipe or a file with bytes that nobody has read."""
    if os.name != "posix":
        return False
    import fcntl
    import termios

    try:
        if stat.S_ISREG((about := os.fstat(0)).st_mode):
            return os.lseek(0, 0, os.SEEK_CUR) < about.st_size
        return stat.S_ISFIFO(about.st_mode) and any(fcntl.ioctl(0, termios.FIONREAD, bytes(4)))
    except OSError:  # it is closed
        return False


def read_stdin() -> bytes:
    """All of stdin, bounded."""
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    except (OSError, AttributeError) as error:
        raise Unusable(f"cannot read stdin: {error}") from None
    return _bounded(data, "stdin")


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
