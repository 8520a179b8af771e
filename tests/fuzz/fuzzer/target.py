"""A reader that stands at the wall, with what must hold of what it read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fuzzer.cases import Case


@dataclass(frozen=True, slots=True)
class Target:
    """A reader. `read` is what is measured; `check` raises AssertionError for what it must not have given."""

    name: str
    seeds: Callable[[], Iterator[Case]]
    read: Callable[[Case], Any]
    check: Callable[[Case, Any], None]
    spare: int = 2 * 2**20
    each: int = 320
    """Bytes of memory that reading takes: so many, and so many for each byte."""
    also: frozenset[str] = frozenset()
    """What else than the rows of `border` it may do."""
