"""What every test shares: where cellblock was imported from, and the event loop of async tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cellblock

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs: programs inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

SUPPORT = str(Path(__file__).parent / "support")
if SUPPORT not in sys.path:
    sys.path.append(SUPPORT)


def pytest_report_header() -> str:
    return f"cellblock: {cellblock.__file__}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What a wall let through once is a hole: its tests are never tried again."""
    if config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            if item.get_closest_marker("hostile") or item.get_closest_marker("threat"):
                item.add_marker(pytest.mark.flaky(reruns=0))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def readable_python() -> str:
    """An interpreter for sessions without namespaces: as root they run as accounts that cannot enter root's home."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.getuid() != 0 or _is_for_all(python):
            return python
    pytest.skip("no Python 3.11 or newer that all users may read")


def _is_for_all(python: str) -> bool:
    if not os.path.exists(python):
        return False
    ask = "import sys; print(sys.version_info >= (3, 11), sys.base_prefix, sys.prefix, sep='\\n')"
    told = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.splitlines()
    places = [one for place in map(Path, told[1:]) for one in (place, *place.parents)]
    return told[0] == "True" and all(place.stat().st_mode & 0o001 for place in places)


@pytest.fixture(scope="session")
def thorough_seed() -> int:
    """The seed of long random tests: another one each day, unless CELLBLOCK_SEED says which. A failure tells it."""
    return int(os.environ.get("CELLBLOCK_SEED") or time.time() // 86_400)
