"""What every test shares: where cellblock was imported from, and the event loop of async tests."""

import sys
from pathlib import Path

import pytest

import cellblock

SUPPORT = str(Path(__file__).parent / "support")
if SUPPORT not in sys.path:
    sys.path.append(SUPPORT)


def pytest_report_header() -> str:
    return f"cellblock: {cellblock.__file__}"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
