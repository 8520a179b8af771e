"""What E2B's interface raises, by E2B's names; each is a `CellblockError` with a hint as well."""

from __future__ import annotations

from cellblock.errors import CellblockError


class SandboxException(CellblockError):
    """Something about the sandbox, not about what the code did."""


class TimeoutException(SandboxException):
    """A time limit ended the code. The sandbox goes on."""


class InvalidArgumentException(SandboxException):
    """An argument that means nothing here."""


class NotFoundException(SandboxException):
    """No such file in the sandbox."""
