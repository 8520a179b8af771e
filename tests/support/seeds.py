"""The seed of a day's random tests, and of the day's share of what `make test` leaves out."""

import os
import time

DAYS = 14
"""In so many days `make thorough` runs each case once that `make test` leaves out."""


def seed() -> int:
    """The number of the day, unless CELLBLOCK_SEED is set."""
    return int(os.environ.get("CELLBLOCK_SEED") or time.time() // 86_400)


def mark_of(number: int) -> str:
    """The mark of a case that `make test` leaves out, by its number among those: thorough where it is its day."""
    return "thorough" if number % DAYS == seed() % DAYS else "slow"
