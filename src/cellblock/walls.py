"""Walls around a worker: one record a mechanism, either applied or unavailable and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TrustLevel = Literal["local", "isolated", "sandboxed"]
"""Level of what stands between a session's code and the host: the guard, the kernel's walls, or those in a container.
"""

Walls = Literal["full", "reduced"]
"""Walls that a session asks for: all, or those that need no namespaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A mechanism that is in force, with what it was set to."""

    mechanism: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A mechanism that this machine did not give, why, and what would give it.

    Without one that is not `needed` a session opens all the same: it adds to the others where the machine gives it.
    """

    mechanism: str
    reason: str
    remedy: str
    needed: bool = True


Wall = Applied | Unavailable
