"""What a session remembers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Live:
    """Names stay from one cell to the next, whatever they hold, in the memory of the session, until it is closed."""
