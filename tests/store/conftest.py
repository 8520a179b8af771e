"""A PostgreSQL server for the tests of the store that need one, and a schema of its own for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from postgres_server import Server, server, why_none

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    reason = why_none()
    if reason:
        pytest.skip(reason)
    with server() as running:
        yield running


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    """The URL of a schema that does not exist yet."""
    return f"{postgres.url}&schema=s{next(_numbers)}"
