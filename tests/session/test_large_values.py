"""Large values: from the memory of a session's process to the host's and back, and hostile words about where."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from family_tree import soon

from cellblock import CellblockError, ExecutionLimits, Opaque, Session, UnpicklableError
from cellblock.executors.process import memory
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.wire.messages import Finished

LIMITS = ExecutionLimits(max_memory_mb=512, max_value_mb=160)
ARRAY = np.random.default_rng(7).random(2**18).reshape(512, 512)
FRAME = pd.DataFrame({"x": np.arange(2**17), "y": [str(n % 7) for n in range(2**17)], "z": np.ones(2**17)})


@pytest.fixture(params=["memory to memory", "by messages"])
def session(
    request: pytest.FixtureRequest, open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> Session:
    if request.param == "by messages":
        monkeypatch.setattr(memory, "readable", lambda pid: False)
    return open_session(limits=LIMITS, tools=[echo, summed, later])


def echo(value: Any) -> Any:
    return value


def summed(value: Any) -> float:
    return float(value.sum())


async def later(value: Any) -> Any:
    return value


@pytest.mark.sampled(0)
def test_array_goes_in_and_comes_out(session: Session) -> None:
    session["array"] = ARRAY
    np.testing.assert_array_equal(session["array"], ARRAY)
    assert session.run("array[0, 0] = 5; float(array[0, 0]), array.flags.writeable").value == (5.0, True)
    assert session["array"][0, 0] == 5 != ARRAY[0, 0]


def _kill(session: Session) -> None:
    kernel: Any = session._session._kernel
    assert soon(lambda: kernel._checkpoints.newest.memory.settled, True)  # the process makes its copy first
    os.kill(kernel._link.pid, signal.SIGKILL)
    select.select([kernel._link.pidfd], [], [])


@pytest.mark.sampled(0)
@pytest.mark.parametrize("megabytes", [1, 104])
@pytest.mark.parametrize("ends", ["before", "after"])
def test_value_is_given_to_the_process_that_takes_the_place_of_one_that_ends(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch, ends: str, megabytes: int
) -> None:
    """Before there is memory for it, or with the memory that it was put into."""
    session = open_session(limits=LIMITS)
    session.run("import numpy")
    value = np.arange(megabytes * 2**17)
    store = ProcessKernel.store

    async def ended(kernel: ProcessKernel, buffers: Any, seconds: float) -> bool:
        monkeypatch.undo()
        if ends == "before":
            _kill(session)
        stored = await store(kernel, buffers, seconds)
        if ends == "after":
            _kill(session)
        return stored

    monkeypatch.setattr(ProcessKernel, "store", ended)
    session["value"] = value
    cell = session.run("value.size, int(value[-1])")
    assert (cell.value, cell.lost) == ((value.size, value.size - 1), ())


@pytest.mark.sampled(1)
def test_value_of_a_cell_is_the_hosts_own(session: Session) -> None:
    first = session.run("import numpy as np\nbig = np.zeros(2 ** 18)\nbig").value
    session.run("big[:] = 1")
    assert not first.any()
    first[:] = 2
    assert session.run("float(big.sum())").value == 2**18


@pytest.mark.sampled(1)
def test_frame_goes_in_and_comes_out(session: Session) -> None:
    session["frame"] = FRAME
    pd.testing.assert_frame_equal(session["frame"], FRAME)
    cell = session.run("frame.loc[0, 'x'] = -1\nframe")
    assert cell.value.loc[0, "x"] == -1


@pytest.mark.sampled(0)
def test_large_parts_of_a_value_keep_their_places(session: Session) -> None:
    value = [b"a" * 2**19, {"k": ARRAY}, "é" * 2**18, [1.5] * 2**16, ARRAY[:, ::2], ARRAY.T]
    session["value"] = value
    found = session.run("value").value
    assert (found[0], found[2], found[3]) == (value[0], value[2], value[3])
    for index in (4, 5):
        np.testing.assert_array_equal(found[index], value[index])
    np.testing.assert_array_equal(found[1]["k"], ARRAY)


@pytest.mark.sampled(0)
def test_tools_take_and_give_large_values(session: Session) -> None:
    session.run("import asyncio, numpy as np\nbig = np.ones(2 ** 18)")
    assert session.run("summed(big)").value == 2.0**18
    assert session.run("bool((echo(big) == big).all()), echo(big).flags.writeable").value == (True, True)
    gathered = session.run("[float(one.sum()) for one in await asyncio.gather(later(big), later(big * 2), later(big))]")
    assert gathered.value == [2.0**18, 2.0**19, 2.0**18]
    threads = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
    threads += "    sums = [float(one.sum()) for one in pool.map(echo, [big] * 6)]\nsums"
    assert session.run(threads).value == [2.0**18] * 6


@pytest.mark.sampled(1)
def test_large_values_are_undone_like_others(session: Session) -> None:
    session["array"] = ARRAY
    session["array"] = ARRAY * 2
    session.undo()
    np.testing.assert_array_equal(session["array"], ARRAY)
    assert session.run("import os\narray[:] = 0\nos._exit(1)").rolled_back
    np.testing.assert_array_equal(session["array"], ARRAY)


@pytest.mark.sampled(0)
def test_value_beyond_one_message_goes_where_the_limit_lets_it(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=LIMITS)
    value = np.arange(13 * 2**20)  # 104 MB
    session["value"] = value
    assert (session["value"] == value).all()


def test_value_past_its_limit_is_opaque_and_says_why(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_value_mb=1))
    found = session.run("import numpy as np\nnp.zeros(2 ** 18)").value
    assert isinstance(found, Opaque)
    assert (found.type, found.reason) == ("ndarray", "larger than 1,048,576 bytes")


def test_value_that_finds_no_memory_inside_is_refused(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_memory_mb=128))
    session.run("import numpy")
    session["kept"] = 1
    with pytest.raises(UnpicklableError):
        session["value"] = np.ones(2**24)
    assert session["kept"] == 1


def test_value_is_counted_as_the_sessions_memory(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_memory_mb=128))
    session.run("import numpy")
    session["value"] = np.ones(2**23)
    cell = session.run("more = bytearray(100 * 2 ** 20)")
    assert cell.error is not None
    assert cell.error.kind == "memory"


LIES = {
    "nothing is there": "[(1, 0, 2 ** 20)]",
    "an address that is none": "[(1, 2 ** 63 - 4096, 2 ** 20)]",
    "the kernel's": "[(1, 0x7fffffffffff, 2 ** 20)]",
    "more than is there": "[(1, address, 2 ** 27)]",
    "more than all memory": "[(1, address, 2 ** 62)]",
    "another length": "[(1, address, 2 ** 20 + 8)]",
    "nothing at all": "[(1, address, 0)]",
}
FORGING = """
import ctypes, gc
import numpy as np
(worker,) = [one for one in gc.get_objects() if type(one).__name__ == "Worker"]
told = type(worker)._carry_out.__globals__
leave = told["leave"]
def lie(buffers):
    left, places = leave(buffers)
    if not places:
        return left, places
    address = places[0][1]
    return left, tuple({lies})
told["leave"] = lie
np.ones(2 ** 17)
"""


@pytest.mark.sampled(1)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("lies", LIES)
def test_places_that_are_lies_give_no_value_and_nothing_of_the_hosts(
    open_session: Callable[..., Session], lies: str
) -> None:
    session = open_session(limits=LIMITS)
    found = session.run(FORGING.format(lies=LIES[lies])).value
    assert isinstance(found, Opaque)
    assert found.type in ("lost", "malformed")
    assert session.run("1 + 1").value == 2


@pytest.mark.sampled(1)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("places", ["[(0, 8, 8), (0, 8, 8)]", "[(9, 8, 8)]", "[(0, -1, 8)]", "[(0, 8)]", "['x']"])
def test_places_of_no_buffers_end_the_worker(open_session: Callable[..., Session], places: str) -> None:
    session = open_session(limits=LIMITS)
    source = FORGING.format(lies="()").replace("return left, tuple(())", f"return left, {places}")
    cell = session.run(source)
    assert cell.error is not None
    assert "broke the protocol" in cell.error.message
    assert session.run("1 + 1").value == 2


def test_process_that_is_gone_leaves_an_opaque() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    pidfd = os.pidfd_open(child)
    os.waitpid(child, 0)
    event = Finished(
        number=1, failure=None, duration_ms=0, cpu_ms=0, memory_peak=0, buffers=(b"1", b""), beside=((1, 4096, 8),)
    )
    fetched = memory.fetch(event, child, pidfd, 2**20)
    os.close(pidfd)
    assert fetched.beside == ()
    assert b"could not be read" in bytes(fetched.buffers[0])


@pytest.mark.sampled(0)
@pytest.mark.parametrize("walls", ["full", "reduced"])
@pytest.mark.parametrize("what", ["one", "many"])
def test_value_whose_message_finds_no_memory_inside_is_told_as_memory(
    open_session: Callable[..., Session], readable_python: str, walls: str, what: str
) -> None:
    value = b"x" * 98_000_000 if what == "one" else [f"{n:0100}" for n in range(950_000)]
    limits = ExecutionLimits(timeout_seconds=20, max_memory_mb=64)
    session = open_session(limits=limits, walls=walls, python=readable_python)
    session.run("k = 1")
    for _ in range(2):
        with pytest.raises(CellblockError) as caught:
            session["x"] = value
        assert str(caught.value).startswith("x: the session's process ended itself: it ran out of memory")
        assert caught.value.hint.startswith("use less memory at a time, or raise ExecutionLimits(max_memory_mb=…); ")
    assert session.run("6 * 7").value == 42
    if walls == "full":
        assert session.run("k").value == 1
