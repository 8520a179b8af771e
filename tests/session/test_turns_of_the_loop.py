"""While what a session gave is read, the host's event loop goes on: no call holds the interpreter for long."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator

import pytest

from cellblock import AsyncSession, ExecutionLimits
from cellblock.text import represent
from cellblock.values import portable

pytestmark = [pytest.mark.anyio, pytest.mark.alone]  # it measures time

MOST = 0.2
"""Seconds for which the loop may stand still, ten times what is promised: other programs run here, too."""
LIMITS = ExecutionLimits(timeout_seconds=60, max_output_bytes=8_000_000)
VALUES = {
    "texts and numbers": "[1, 'a', 2.5, None] * 750_000",
    "numbers": "list(range(4_000_000))",
    "a dict": "{str(n): n for n in range(1_000_000)}",
    "a set": "set(range(1_000_000))",
}
SHOWN = """
class Shown:
    def _repr_mimebundle_(self, **options):
        return {"application/json": [["a"]] * 130_000, "text/plain": "many"}
Shown()
"""


class Ticks:
    """The longest time for which a task of the loop waited for its turn."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def tick(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            self.longest = max(self.longest, time.monotonic() - began - 0.005)

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look for as long as this is open, without the collector's pauses for all that the tests hold."""
        gc.collect()
        gc.freeze()
        self.longest = 0.0
        task = asyncio.create_task(self.tick())
        await asyncio.sleep(0.02)
        try:
            yield
        finally:
            await asyncio.sleep(0.02)
            task.cancel()


@pytest.mark.threat("W7")
async def test_a_small_value_of_many_objects_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    unpack, threads = portable.unpack, list[int]()

    def noted(buffers: tuple[portable.Buffer, ...]) -> object:
        threads.append(threading.get_ident())
        return unpack(buffers)

    def taken(value: list[object]) -> int:
        return len(value)

    monkeypatch.setattr(portable, "unpack", noted)
    async with AsyncSession(tools=[taken]) as session:
        assert (await session.run("value = [[]] * 9000\nprint(taken(value))")).text == "9000"
        assert await session.get("value") == [[]] * 9000
        assert await session.aside("value") == [[]] * 9000
    assert len(threads) == 3
    assert threading.get_ident() not in threads


@pytest.mark.sampled(0)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("source", VALUES.values(), ids=VALUES)
async def test_the_loop_goes_on_while_a_value_of_millions_is_read(source: str) -> None:
    ticks = Ticks()
    async with ticks.looking():
        await asyncio.sleep(0.5)
    idle = ticks.longest
    async with AsyncSession(limits=LIMITS) as session:
        await session.run(f"value = {source}")
        times = []
        for _ in range(3):  # a machine that is busy holds one up, and not each
            async with ticks.looking():
                value = await session.get("value")
            times.append(ticks.longest)
            if times[-1] < MOST + 10 * idle:
                break
    assert value == eval(source)
    assert min(times) < MOST + 10 * idle


@pytest.mark.sampled(0)
@pytest.mark.threat("W7")
async def test_the_loop_goes_on_while_a_large_display_is_read() -> None:
    ticks = Ticks()
    async with ticks.looking():
        await asyncio.sleep(0.5)
    idle = ticks.longest
    async with AsyncSession(limits=LIMITS) as session:
        times = []
        for _ in range(3):  # a machine that is busy holds one up, and not each
            async with ticks.looking():
                cell = await session.run(SHOWN)
            times.append(ticks.longest)
            if times[-1] < MOST + 10 * idle:
                break
    assert cell.outputs[0].data["application/json"] == [["a"]] * 130_000
    assert min(times) < MOST + 10 * idle


@pytest.mark.sampled(0)
@pytest.mark.threat("W7")
async def test_the_loop_goes_on_while_a_nested_value_is_represented() -> None:
    value = [[n / 7] * 10 for n in range(200_000)]
    ticks = Ticks()
    async with ticks.looking():
        await asyncio.sleep(0.5)
    idle = ticks.longest
    times = []
    for _ in range(3):  # a machine that is busy holds one up, and not each
        async with ticks.looking():
            text = await asyncio.to_thread(represent, value, max_chars=10**9)
        times.append(ticks.longest)
        if times[-1] < MOST + 10 * idle:
            break
    assert text == repr(value)
    assert min(times) < MOST + 10 * idle


_FIRST_FRAME = """
import asyncio, sys, threading
from cellblock import AsyncSession

class Noted:
    def find_spec(self, name, path, target=None):
        if name in ("pandas", "numpy"):
            noted.append((name, threading.current_thread() is threading.main_thread()))

noted, taken = [], []
sys.meta_path.insert(0, Noted())

async def main():
    async with AsyncSession(tools=[taken.append], preload=["pandas"]) as session:
        await session.run("import pandas; frame = pandas.DataFrame({'a': [1]}); WAY")
        if "get" in "WAY":
            taken.append(await session.get("frame"))
    print(len(taken), taken[0].shape, sorted(dict(noted).items()))

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["append(frame)", "frame  # get"])
def test_first_import_of_a_library_for_values_is_not_on_the_loop(way: str) -> None:
    done = subprocess.run([sys.executable, "-c", _FIRST_FRAME.replace("WAY", way)], capture_output=True, text=True)
    assert done.stdout == "1 (1, 1) [('numpy', False), ('pandas', False)]\n", done.stderr


FORGED = """
import json, os, socket, struct

def send(head, *buffers):
    whole = struct.pack("<II", len(buffers), len(head)) + b"".join(struct.pack("<Q", len(one)) for one in buffers)
    whole += head + b"".join(buffers)
    with socket.socket(fileno=os.dup(5)) as channel:
        channel.setblocking(True)
        for at in range(0, len(whole), 65_536):
            channel.send((b"\\1" if at + 65_536 >= len(whole) else b"\\0") + whole[at : at + 65_536])

told = dict(failure=None, duration_ms=1, cpu_ms=1, memory_peak=1, gained={}, dropped=[], unsaved={}, left=False)

def finished(**more):
    send(json.dumps({"is": "finished", "number": 1, **told, **more}, separators=(",", ":")).encode())
"""
FORGERIES = {
    "a head": "send(b' ' * (95 << 20))",
    "a buffer": "send(b'{}', bytes(95 << 20))",
    "names that went": "finished(dropped=['a'] * 500_000)",
    "names that came": "finished(gained={f'{n:x}': '' for n in range(280_000)})",
    "quotes": "send(b'\"' * (8 << 20))",
}


@pytest.mark.sampled(1)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("forged", FORGERIES)
async def test_the_loop_goes_on_while_a_forged_message_is_taken(forged: str) -> None:
    ticks = Ticks()
    async with AsyncSession(limits=ExecutionLimits(max_memory_mb=1024)) as session, ticks.looking():
        await session.run(f"{FORGED}\n{FORGERIES[forged]}")
    assert ticks.longest < MOST / 2
