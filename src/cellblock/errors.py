"""Errors that are about cellblock or its host, never about what a cell's code did.

A cell's own failure is a value (`cell.error`). Everything here derives from `CellblockError` and
carries a `hint`: what the caller can do about it.
"""

from __future__ import annotations

from contextlib import contextmanager

from cellblock.text import as_terminal, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Literal

    ModelFailure = Literal[
        "setup", "key", "unknown", "context", "filtered", "refused", "quota", "rate", "server", "connection", "timeout",
        "malformed", "raised", "script",
    ]  # fmt: skip


_MOST_SAID = 10_000


class CellblockError(Exception):
    """Base of every error cellblock raises; `hint` says what to do, "" where there is nothing.

    Security border: a message may quote a cell, a model or a file. It and the hint are printable text, cut to 10,000
    characters each.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(_printable(message))
        self.hint = _printable(hint)

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies, and for another process: a pool waits for ever for an error that it cannot read."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[CellblockError], args: tuple[object, ...], attributes: dict[str, object]) -> CellblockError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


def _printable(said: str) -> str:
    return as_terminal(cut(said, _MOST_SAID))


@contextmanager
def needing(extra: str, said: str, error: Callable[..., CellblockError] = CellblockError) -> Iterator[None]:
    """Around the import of a package that an extra brings: where it fails, an error that names the extra."""
    try:
        yield
    except ImportError as missing:
        raise error(f"{said}: {missing}", hint=f'pip install "cellblock[{extra}]"') from None


class IsolationUnavailable(CellblockError):
    """This machine cannot give a wall that was asked for; `mechanism` names it."""

    def __init__(self, message: str, *, mechanism: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.mechanism = mechanism


class ImageNotBuilt(CellblockError):
    """An engine could not make, or remove, an image for containers."""


class SessionClosed(CellblockError):
    """The session was closed, its processes died, or this is a forked copy of the process that opened it."""


class CaptureFailed(CellblockError):
    """A state of a session could not be saved. The session is as it was."""


class RestoreFailed(CellblockError):
    """The saved state of a session could not be put into a new one."""


class SessionBusy(CellblockError):
    """Another call is using the session and `wait=False` was asked for."""


class Busy(CellblockError):
    """A pool has no place for another session or call; one may be free after `retry_after` seconds."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class PreloadFailed(CellblockError):
    """A package named in `preload=` could not be imported in the session's environment."""


class UnpicklableError(CellblockError):
    """A host value cannot be copied into a session."""


class FileRefused(CellblockError):
    """A path leads outside the session's own files, or names nothing there. `errno` is the system's, or 0."""

    def __init__(self, message: str, *, hint: str = "", errno: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.errno = errno


class MountRefused(CellblockError):
    """A path in `mounts=` cannot be given to a session: it is missing, not readable, or would undo the walls."""


class UnknownCell(CellblockError):
    """No cell, output or name of the session answers to what was asked for."""


class SourceRejected(CellblockError):
    """Source that the guard does not let run. `refusals` are all of them, in the order of the lines.

    `excerpts` shows the places, with carets.
    """

    def __init__(self, message: str, *, hint: str = "", refusals: tuple[object, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.refusals = refusals
        self.excerpts = ""


class SecurityError(SourceRejected):
    """Source that would have reached what was not given to it."""


class StoreError(CellblockError):
    """The store cannot do what was asked: it is full, read-only, damaged, out of reach, or of another format."""


class UnknownSession(StoreError):
    """The store holds no session of that user and name."""


class QuotaReached(StoreError):
    """The user may keep no more sessions, or no more bytes."""


class LeaseLost(StoreError):
    """Another host took the session over, after this one had not been heard of for too long: nothing was written."""


class StoreDamaged(StoreError):
    """A stored object is missing, or its bytes are not those that were stored; `address` names it."""

    def __init__(self, message: str, *, hint: str = "", address: str = "") -> None:
        super().__init__(message, hint=hint)
        self.address = address


class SessionHeld(SessionBusy):
    """Another process has the stored session open; `holder` says which."""

    def __init__(self, message: str, *, hint: str = "", holder: str = "") -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class UnknownCommit(CellblockError):
    """No commit, branch or tag of the session answers to what was asked for."""


class MergeConflict(CellblockError):
    """Two versions changed the same `names` or `files` to different ends; nothing was merged."""

    def __init__(
        self, message: str, *, hint: str = "", names: tuple[str, ...] = (), files: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.names = names
        self.files = files


class ModelError(CellblockError):
    """A model gave no answer. `kind` says why, in a word of docs/models.md.

    `status` is an endpoint's HTTP status, 0 where there was none; `attempts` is how many requests were made. `result`
    is what an agent had come to by then, where one asked.
    """

    def __init__(self, message: str, *, kind: ModelFailure, hint: str = "", status: int = 0, attempts: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.result: object = None
        self.kind = kind
        self.status = status
        self.attempts = attempts

    @property
    def context_too_long(self) -> bool:
        """True if the messages were more than the model takes: shorter ones may be answered."""
        return self.kind == "context"


class LogError(CellblockError):
    """A file is no log of a run, cannot be written as one, or holds a run that cannot be replayed or gone on with."""


class StepLimitReached(CellblockError):
    """An agent used up its steps without an answer; `result` is what it came to, a `RunResult` with `partial`."""

    def __init__(self, message: str, *, hint: str = "", result: object = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class TaskFailed(CellblockError):
    """An agent said that its task cannot be done; `reason` is in its words, `result` what it came to."""

    def __init__(self, message: str, *, hint: str = "", reason: str = "", result: object = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.result = result
