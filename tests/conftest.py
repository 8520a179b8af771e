"""What every test shares: where cellblock was imported from, and the event loop of async tests."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from itertools import combinations
from pathlib import Path
from random import Random
from socket import IPPROTO_TCP, TCP_NODELAY

import pytest

import cellblock

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs: programs inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

SUPPORT = str(Path(__file__).parent / "support")
if SUPPORT not in sys.path:
    sys.path.append(SUPPORT)

from seeds import mark_of, seed  # noqa: E402 - found from here on


def pytest_report_header() -> str:
    return f"cellblock: {cellblock.__file__}"


@pytest.hookimpl(trylast=True)  # after rerunfailures has connected
def pytest_configure(config: pytest.Config) -> None:
    """Have tests be in the terminal that they make: pytest tells its processes how wide its own is.

    rerunfailures tells the first process of each test in small packets, which without TCP_NODELAY would wait for one
    another: 40 ms a test.
    """
    if hasattr(config, "workerinput"):
        os.environ.pop("COLUMNS", None)
        if config.pluginmanager.hasplugin("rerunfailures"):
            config.failures_db.sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose of sampled tests, set which are never tried again, and have those that run alone in one process, last."""
    _sample(items)
    if config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:  # what a wall let through once is a hole
            if item.get_closest_marker("hostile") or item.get_closest_marker("threat"):
                item.add_marker(pytest.mark.flaky(reruns=0))
    if hasattr(config, "workerinput"):
        for item in items:
            if item.get_closest_marker("alone"):
                item.add_marker(pytest.mark.xdist_group("alone"))
        items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


def _sample(items: list[pytest.Item]) -> None:
    """Mark the cases of sampled tests that `make test` leaves out: as thorough where it is their day, else as slow."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        left_out = item.get_closest_marker("slow") or item.get_closest_marker("thorough")
        if item.get_closest_marker("sampled") and not left_out:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        marker = cases[0].get_closest_marker("sampled")
        assert marker is not None
        for item in _left_out(Random(name).sample(cases, len(cases)), *marker.args):
            item.add_marker(mark_of(item.nodeid))


def _left_out(cases: list[pytest.Item], most: int) -> list[pytest.Item]:
    """All cases but `most`, each of which has most values, and pairs of values, that none before it has."""
    if not most:  # as of a test without parameters
        return cases
    values: dict[pytest.Item, set[object]] = {}
    pairs: dict[pytest.Item, set[object]] = {}
    for item in cases:
        of_item = [(name, id(value)) for name, value in item.callspec.params.items()]  # type: ignore[attr-defined]
        values[item], pairs[item] = set(of_item), set(combinations(of_item, 2))
    for _ in range(min(most, len(cases))):
        best = max(cases, key=lambda item: (len(values[item]), len(pairs[item])))
        cases.remove(best)
        for of in (values, pairs):
            found = of.pop(best)
            for item in cases:
                of[item] -= found
    return cases


def pytest_collection_finish() -> None:
    """Keep what was collected from the garbage collector: it would walk it again and again, in whatever test."""
    gc.collect()
    gc.freeze()


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
    """The seed of long random tests. A failure tells it."""
    return seed()
