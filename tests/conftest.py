"""What every test shares: where cellblock was imported from, and the event loop of async tests."""

import pytest

import cellblock


def pytest_report_header() -> str:
    return f"cellblock: {cellblock.__file__}"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
