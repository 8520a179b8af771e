"""The seeds of the generators that cells have without making one."""

from __future__ import annotations

import random

from cellblock.worker.import_hooks import on_import


def sow(seed: int) -> None:
    """Seed `random`, and NumPy's generator now or when it is imported."""
    random.seed(seed)
    on_import("numpy.random", lambda module: module.seed(seed % 2**32))
