"""The error of processes that make sessions where the system refuses a wall."""

from __future__ import annotations


class WallRefused(Exception):
    """A mechanism that this machine does not give, why, and what would give it."""

    def __init__(self, mechanism: str, reason: str, remedy: str) -> None:
        super().__init__(f"{mechanism}: {reason}")
        self.report = {"failed": mechanism, "reason": reason, "remedy": remedy}
