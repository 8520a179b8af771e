"""Contracts as tests: whoever writes an executor or a store's database subclasses its kit. Needs pytest."""

import pytest

pytest.register_assert_rewrite("cellblock.testing.executors", "cellblock.testing.stores")

from cellblock.testing.executors import ExecutorConformance  # noqa: E402 - asserts are rewritten from here on
from cellblock.testing.stores import StoreConformance  # noqa: E402

__all__ = ["ExecutorConformance", "StoreConformance"]
