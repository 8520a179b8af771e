"""The seed of a day's random tests, and of the day's share of what `make test` leaves out."""

import os
import time
from zlib import crc32

DAYS = 28
"""In so many days `make thorough` runs each test and case once that `make test` leaves out."""


def seed() -> int:
    """The number of the day, unless CELLBLOCK_SEED is set."""
    return int(os.environ.get("CELLBLOCK_SEED") or time.time() // 86_400)


def mark_of(name: str) -> str:
    """The mark of what `make test` leaves out: thorough where it is its day, which its name alone decides."""
    return "thorough" if crc32(name.encode(errors="surrogatepass")) % DAYS == seed() % DAYS else "slow"
