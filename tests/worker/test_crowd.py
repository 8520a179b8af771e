"""Who of a crowd is taken to run out of turn. The processes are none of a session: no signal is sent to all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator

import pytest
from family_tree import soon

from cellblock.worker import holdings
from cellblock.worker.holdings import Stand
from cellblock.worker.init.crowd import Crowd

pytestmark = pytest.mark.alone  # a crowd takes all processors

MANY = 16
MS = 10**6


@pytest.fixture
def crowd() -> Iterator[tuple[Crowd, list[int]]]:
    """Of processes that run, of which four at a time may; its two looks have stopped the rest."""
    pids = []
    for _ in range(MANY):
        pids.append(os.fork())
        if not pids[-1]:
            while True:
                pass
    crowd = Crowd(lambda: pids, processors=1)
    crowd._stop_all = lambda *_: stop(crowd._stopped)  # type: ignore[method-assign]  # it is for a pid namespace
    look(crowd, pids[:8])
    look(crowd, pids)
    yield crowd, pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def look(crowd: Crowd, pids: list[int]) -> int:
    """As of a session in which each has run for a millisecond since the last look."""
    return crowd.thin(dict.fromkeys(pids, MS), 0, frozenset())


def stop(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def until(pid: int, stand: Stand) -> None:
    assert soon(lambda: holdings.stand(pid), stand) is stand


@pytest.mark.sampled(0)
def test_what_they_ran_until_the_stop_reached_them_is_not_out_of_turn(crowd: tuple[Crowd, list[int]]) -> None:
    these, pids = crowd
    assert len(these._stopped) == MANY - 4
    assert [look(these, pids) for _ in range(6)] == [0] * 6


@pytest.mark.sampled(0)
def test_who_was_continued_and_runs_is_out_of_turn(crowd: tuple[Crowd, list[int]]) -> None:
    these, pids = crowd
    found = []
    for _ in range(3):
        for pid in these._stopped:
            until(pid, Stand.STILL)
            os.kill(pid, signal.SIGCONT)
            until(pid, Stand.RUNNING)
        found.append(look(these, pids))
    assert found == [0, 0, MANY - 4]


@pytest.mark.sampled(0)
def test_looks_that_find_them_standing_still_are_not_enough_for_it_to_be_forgotten(
    crowd: tuple[Crowd, list[int]],
) -> None:
    these, pids = crowd
    found = []
    for _ in range(3):
        for pid in these._stopped:
            until(pid, Stand.STILL)
        look(these, pids)
        for pid in these._stopped:
            until(pid, Stand.STILL)
            os.kill(pid, signal.SIGCONT)
            until(pid, Stand.RUNNING)
        found.append(look(these, pids))
    assert found == [0, 0, MANY - 4]


@pytest.mark.sampled(0)
def test_who_ran_between_two_looks_is_out_of_turn_though_both_find_it_standing_still(
    crowd: tuple[Crowd, list[int]],
) -> None:
    these, pids = crowd
    found = []
    for _ in range(4):
        for pid in these._stopped:
            until(pid, Stand.STILL)
            before = holdings.processor_time(pid)
            os.kill(pid, signal.SIGCONT)
            while holdings.processor_time(pid) < before + MS:
                time.sleep(0.001)
            stop([pid])
            until(pid, Stand.STILL)
        found.append(look(these, pids))
    assert found[:2] == [0, 0]
    assert found[-1] > 4


@pytest.mark.sampled(0)
def test_who_was_forked_as_all_were_stopped_takes_turns_too(crowd: tuple[Crowd, list[int]]) -> None:
    these, pids = crowd
    late = pids[-1]  # its parent was in the middle of a fork
    stop([late])
    until(late, Stand.STILL)
    these._known = set(pids[:-1])
    these._stopped.discard(late)
    these._queue.remove(late)
    had_a_turn = False
    for _ in range(MANY // 4 + 1):
        look(these, pids)
        had_a_turn = had_a_turn or holdings.stand(late) is Stand.RUNNING
    assert had_a_turn
