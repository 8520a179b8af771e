"""Contracts as tests: whoever writes an executor subclasses its kit and inherits them. Needs pytest."""

import pytest

pytest.register_assert_rewrite("cellblock.testing.executors")

from cellblock.testing.executors import ExecutorConformance  # noqa: E402 - its asserts are rewritten from here on

__all__ = ["ExecutorConformance"]
