"""Memory that a snapshot leaves out because nobody has written to it: an in-place change is never missed."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import AsyncIterator

import pytest

from cellblock.executors.process import memory
from cellblock.executors.process.launcher import ProcessLauncher
from cellblock.executors.protocol import Capture, Kernel, KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.snapshots import Snapshot, address_of
from cellblock.testing.executors import finished, value

pytest.importorskip("numpy")
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

_LIMITS = ExecutionLimits(max_memory_mb=512, timeout_seconds=60)
_ARRAYS, _ELEMENTS = 4, 400_000
_BEGIN = f"""
import ctypes, gc, hashlib, mmap, os, signal, threading, time, weakref
import numpy as np
arrays = [np.arange({_ELEMENTS}) + n for n in range({_ARRAYS})]
views = [array[100:] for array in arrays]
memories = [memoryview(array) for array in arrays]
libc = ctypes.CDLL(None)
class Truth:
    def __reduce__(self):
        found = [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays]
        return str, (two * '<' + ' '.join(found) + two * '>',)
truth, two = Truth(), 2
"""
_CHANGES = (
    "arrays[{n}][{i}] += 1",
    "views[{n}][{i}] -= 3",
    "memories[{n}][{i}] = {v}",
    "arrays[{n}][::50_000] *= 2",
    "np.add(arrays[{n}], 1, out=arrays[{n}])",
    "arrays[{n}].sort()",
    "arrays[{n}].byteswap(inplace=True)",
    "ctypes.memset(arrays[{n}].ctypes.data + 8 * {i}, {v} % 256, 16)",
    "ctypes.c_long.from_address(arrays[{n}].ctypes.data + 8 * {i}).value = {v}",
    "libc.memmove(ctypes.c_void_p(arrays[{n}].ctypes.data), ctypes.c_void_p(arrays[{m}].ctypes.data), 2_000_000)",
    "t = threading.Thread(target=arrays[{n}].__setitem__, args=({i}, {v})); t.start(); t.join(); del t",
    "t = threading.Timer(0.02, lambda: arrays[{n}].__setitem__({i}, {v})); t.start(); time.sleep(0.1); del t",
    "weakref.finalize(type('T', (), {{}})(), arrays[{n}].__setitem__, {i}, {v})",
    "signal.signal(signal.SIGALRM, lambda *_: arrays[{n}].__setitem__({i}, {v}));"
    " signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.05)",
    "gc.callbacks[:] = [lambda *_: arrays[{n}].__setitem__({i}, arrays[{n}][{i}] + 1)]",
    "gc.callbacks.clear()",
    "os.register_at_fork(before=lambda: arrays[{n}].__setitem__({i}, arrays[{n}][{i}] + 1))",
    "arrays[{n}] = arrays[{n}].copy()",
    "arrays[{n}], arrays[{m}] = arrays[{m}], arrays[{n}]",
    "memories[{n}] = views[{n}] = None; arrays[{n}] = None; arrays[{n}] = np.arange({elements}) * {v};"
    " views[{n}] = arrays[{n}][100:]; memories[{n}] = memoryview(arrays[{n}])",
    "memories[{n}] = views[{n}] = None; arrays[{n}] = None; arrays[{n}] = np.zeros({elements}, dtype=int);"
    " arrays[{n}].sum(); views[{n}] = arrays[{n}][100:]; memories[{n}] = memoryview(arrays[{n}])",
    "libc.madvise(ctypes.c_void_p((arrays[{n}].ctypes.data + 4095) & ~4095), 2_000_000, 4)",
    "libc.madvise(ctypes.c_void_p((arrays[{n}].ctypes.data + 4095) & ~4095), 2_000_000, 4); arrays[{n}].sum()",
    "arrays[{n}][{i}] += 1\nif not os.fork(): time.sleep(3); os._exit(0)",
    "arrays[{n}].sum()",
    "pass",
)


@pytest.fixture
async def kernel(anyio_backend: str) -> AsyncIterator[Kernel]:
    kernel = await ProcessLauncher().open(KernelSpec(seed=1, limits=_LIMITS, saved=True))
    yield kernel
    await kernel.close()


class Saver:
    """Saves one state after the other, and keeps all bytes that were sent."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.chunks: dict[str, bytes] = {}
        self.before: Snapshot | None = None
        self.sent = 0

    async def save(self, capture: Capture | None = None) -> Snapshot:
        capture = capture or await self.kernel.capture()
        try:
            await capture.begin(self.before)
            self.sent = 0
            self.before = await capture.read(self._put)
            return self.before
        finally:
            capture.close()

    def _put(self, data: bytes) -> None:
        self.chunks[address_of(data)] = data
        self.sent += len(data)

    def truth(self) -> set[str]:
        """What the arrays were, by an object that looks at them while it is saved."""
        assert self.before is not None
        group = next(one.group for one in self.before.names if one.name == "truth")
        stream = next(one.stream for one in self.before.groups if one.key == group)
        (told,) = re.findall(rb"<<([0-9a-f ]+)>>", b"".join(self.chunks[one] for one in stream))
        return set(told.decode().split())

    def hashes(self) -> set[str]:
        """Of each large buffer of the newest snapshot."""
        assert self.before is not None
        return {
            hashlib.sha256(b"".join(self.chunks[one] for one in buffer.chunks)).hexdigest()
            for group in self.before.groups
            for buffer in group.buffers
            if buffer.length == 8 * _ELEMENTS
        }


@pytest.mark.sampled(0)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.threat("W10")
async def test_what_is_saved_is_what_is_there(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    saver = Saver(kernel)
    assert (await finished(kernel, _BEGIN)).failure is None
    for _ in range(40):
        n, m = chance.sample(range(_ARRAYS), 2)
        values = {"n": n, "m": m, "i": chance.randrange(_ELEMENTS - 200), "v": chance.randrange(10**6)}
        source = chance.choice(_CHANGES).format(**values, elements=_ELEMENTS)
        await finished(kernel, source)
        if chance.random() < 0.1:
            await kernel.recover(1)
        if chance.random() < 0.6:
            await saver.save()
            assert saver.truth() <= saver.hashes(), source


@pytest.mark.sampled(0)
@pytest.mark.skipif(not memory.exact_pages(), reason="this kernel's account of pages is no evidence")
async def test_large_memory_that_nobody_wrote_to_is_not_read_again(kernel: Kernel) -> None:
    """Told by a lie: what is left out is not looked at, so that a change past the kernel's account goes unseen."""
    saver = Saver(kernel)
    await finished(kernel, _BEGIN)
    await finished(kernel, "pass")  # from the second copy on there is one to compare with
    await saver.save()
    assert saver.sent > 8 * _ELEMENTS * _ARRAYS
    taken = _written_of(saver.before)
    await finished(kernel, "small = 1")
    await saver.save()
    assert saver.sent < 100_000
    assert _written_of(saver.before) != taken
    await finished(kernel, "arrays[1][300_000] = 7")
    await saver.save()
    assert 2**19 < saver.sent < 2**20 + 100_000
    assert saver.truth() <= saver.hashes()


def _written_of(snapshot: Snapshot | None) -> bytes:
    assert snapshot is not None
    tag = snapshot.index.partition(b"\n")[0]
    assert len(tag) == 16
    return tag


@pytest.mark.sampled(0)
async def test_evidence_of_a_future_that_was_undone_is_none(kernel: Kernel) -> None:
    saver = Saver(kernel)
    await finished(kernel, _BEGIN)
    await saver.save()
    await finished(kernel, "arrays[0][:] = 1")
    await saver.save()
    await kernel.recover(1)
    await finished(kernel, "small = 1")
    await saver.save()
    assert saver.truth() <= saver.hashes()
    assert await value(kernel, "int(arrays[0][1])") == 1 or await value(kernel, "int(arrays[0][5])") == 5


async def test_older_snapshot_than_the_one_before_is_enough(kernel: Kernel) -> None:
    saver = Saver(kernel)
    await finished(kernel, _BEGIN)
    await finished(kernel, "pass")
    first = await saver.save()
    for number in range(3):
        await finished(kernel, f"arrays[{number}][{number}] = -1")
    saver.before = first
    await saver.save()
    assert saver.truth() <= saver.hashes()
    if memory.exact_pages():
        assert saver.sent < 3 * 2**20 + 100_000
    for number in range(20):  # more copies than are remembered
        await finished(kernel, f"arrays[3][{number}] = -{number}")
    saver.before = first
    await saver.save()
    assert saver.truth() <= saver.hashes()


async def test_equal_pages_are_not_merged(kernel: Kernel) -> None:
    """Merged pages would look as if nobody had written to them."""
    await finished(kernel, _BEGIN)
    asked = "libc.madvise(ctypes.c_void_p(arrays[0].ctypes.data & ~4095), 8192, 12)"
    assert await value(kernel, asked) == -1
