"""What every test shares: where cellblock was imported from, and the event loop of async tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
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


def pytest_configure(config: pytest.Config) -> None:
    """Have tests be in the terminal that they make: pytest tells its processes how wide its own is."""
    if hasattr(config, "workerinput"):
        os.environ.pop("COLUMNS", None)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Set which tests are never tried again, and have the tests that run alone in one process, last."""
    if config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:  # what a wall let through once is a hole
            if item.get_closest_marker("hostile") or item.get_closest_marker("threat"):
                item.add_marker(pytest.mark.flaky(reruns=0))
    if hasattr(config, "workerinput"):
        for item in items:
            if item.get_closest_marker("alone"):
                item.add_marker(pytest.mark.xdist_group("alone"))
        items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give a process whole files, whose tests share caches and servers, and one process all tests that run alone."""
    from xdist.scheduler import LoadGroupScheduling

    class Files(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return super()._split_scope(nodeid).partition("::")[0]

    return Files(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside the timeout: a test's time begins when it need not wait
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let tests of several processes run beside one another, but nothing beside a test marked `alone`."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with open(__file__) as shared:
        flock(shared, LOCK_EX if item.get_closest_marker("alone") else LOCK_SH)
        try:
            return (yield)
        finally:
            flock(shared, LOCK_UN)  # a process that the test left would hold it on


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
