"""Hostile sequences of messages from inside a session, against its host: what one turn of the loop bounds, and memory.

Each round is a cell that says what a worker never would, in an order of chance, until its time limit; or, with
`--saved`, one that leaves many files and names, which are then saved. A round breaks the invariant where the host's
event loop stands still, where its memory grows past what the session may make it hold, or where the session does not
go on. Run as a program it tries seeds: `python tests/fuzz/floods.py --seed 7`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import asdict, dataclass

from cellblock import AsyncSession, Cell, ExecutionLimits, Versioned
from cellblock.errors import CaptureFailed
from cellblock.wire.frames import MAX_FRAME_BYTES
from cellblock_attacks.attack import prelude
from cellblock_attacks.checkpoints import _END
from cellblock_attacks.protocol import _FORGE, _MARKS

MOST_STANDSTILL = 0.1
"""Seconds for which the loop may stand still beside what an idle one does, tenfold: other programs run here, too."""
MOST_GROWTH = 32 * 2**20
"""Bytes of the host's memory beyond what the session may make it hold."""

_HOST_MB = 32
_IN_FORMS = 8 * 2**20
"""The largest message, 2 MB, as it comes, as text, as JSON and as it is kept; what the allocator has of it, too."""
_LIMITS = ExecutionLimits(timeout_seconds=0.7, interrupt_grace_seconds=0.2, max_host_mb=_HOST_MB)
_TOGETHER = _LIMITS.timeout_seconds + _LIMITS.interrupt_grace_seconds + 5
_TICK = 0.005

_PART = "part of a message"
"""It is held until it is whole, or larger than any message: that comes on top of what the session may make it hold."""
_STEPS = {
    "mark": "os.write(1, mark(chance.choice([b'M', b'O', b'E', b'?']), chance.choice([0, 1, number, 2**63])))",
    "part of a mark": "os.write(1, mark(b'M', 1)[:chance.randrange(1, 20)])",
    "text": "os.write(chance.choice([1, 2]), b'x' * chance.choice([1, 100, 65_536]))",
    "display": "say(dict(DISPLAY, mark=number, data={'a/b': [[]] * chance.choice([1, 1000, 20_000])}))",
    "many displays": "for _ in range(100): wire.send(small)",
    "large display": "say(dict(DISPLAY, data={'text/plain': 'x' * 2_000_000}))",
    "binary display": "say(dict(DISPLAY, mimes=['image/png'] * 4), [bytes(500_000)] * 4)",
    "call": "say(dict(TOOL, call=number, name='waits', mark=number), argument(bytes(chance.choice([1, 1_000_000]))))",
    "call of objects": "say(dict(TOOL, call=number, name='plain'), argument([[]] * chance.choice([1, 10_000])))",
    "malformed call": "say(dict(TOOL, call=number, name='waits'), [b'[' * 100_000])",
    _PART: "for _ in range(chance.randrange(1, 200)): wire.send(bytes(65_537))",
    "memory that nobody asked for": "say({'is': 'reserved', 'call': number, 'places': [[0, 0, 2**62]] * 1000})",
    "places that are lies": "say(dict(TOOL, call=number, name='waits', beside=[[0, 4096, 2**40]]), [b''])",
    "descriptors": "send_along(wire); send_along(end)",
    "by a child": "in_child(lambda: [wire.send(small) for _ in range(200)])",
    "text by a child": "in_child(lambda: [os.write(1, b'y' * 4096) for _ in range(200)])",
    "taken back": "os.set_blocking(drain, False); attempt(os.read, drain, 65_536)",
    "claim": "attempt(end.send, b'ready')",
    "nothing": "time.sleep(0.001)",
}
_DEADLY = frozenset({_PART, "malformed call"})
"""After these, most of what follows is a breach of the protocol: the worker is ended for it."""

_SAID = """
import array, random, socket, struct, time
from cellblock.values import portable
wire.setblocking(True)
drain = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
(small,) = packets(Frame(json.dumps(DISPLAY).encode()))
def argument(value):
    return portable.pack(portable.encode([[value], {}]))
def send_along(where):
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
    one.setblocking(False)
    attempt(one.send, b"x" * 10_000_000)
    rights = array.array("i", [one.fileno(), other.fileno(), drain])
    attempt(where.sendmsg, [small], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], socket.MSG_DONTWAIT)
    for each in (one, other, listener): each.close()
def in_child(act):
    if (child := os.fork()) == 0:
        try: act()
        finally: os._exit(0)
    os.waitpid(child, 0)
number = 0
"""

_LEFT = {
    "files": "for n in range(many): os.close(os.open(b'f%d' % n, os.O_CREAT))",
    "files of deep trees": "for n in range(many): os.close(os.open(deep(b'd') + b'/%d' % n, os.O_CREAT))",
    "files of no text": "for n in range(many): os.close(os.open(deep(b'\\xe9') + b'/%d' % n, os.O_CREAT))",
    "links": "for n in range(many): os.symlink('x' * 4000 + str(n), f'l{n}')",
    "links to no text": "for n in range(many): os.symlink(b'\\xe9' * 4000, f'n{n}')",
    "directories": "for n in range(many): os.mkdir(f'{n}' * 50)",
    "holes": "file = os.open('h', os.O_CREAT | os.O_RDWR)\nfor n in range(many): os.pwrite(file, b'x', n * 8192)",
    "a file of holes": "os.truncate(os.open('t', os.O_CREAT | os.O_RDWR), many * 2**24)",
    "long names": "for n in range(many): globals()['n' * 200 + str(n)] = n",
    "types of long names": "for n in range(many // 10): globals()[f't{n}'] = type('T' * 1500 + str(n), (), {})()",
    "names that are lost": "for n in range(many // 10): globals()['l' * 300 + str(n)] = (x for x in ())",
}
_MADE = """
import functools, os
@functools.cache
def deep(name):
    path = b"/".join(name * length for _ in range(14))
    os.makedirs(path, exist_ok=True)
    return path
"""
_SAVED_LIMITS = ExecutionLimits(timeout_seconds=60, max_host_mb=_HOST_MB)
_SAVED_TOGETHER = 120.0


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did to its host: seconds, and bytes. `broke` says why it is a find, "" where it is none."""

    seed: int
    steps: tuple[str, ...]
    standstill: float
    growth: int
    broke: str


def source_of(seed: int) -> tuple[str, tuple[str, ...]]:
    """A cell, and the names of the steps that it repeats."""
    chance = random.Random(seed)
    names = chance.sample(sorted(_STEPS), chance.randrange(1, 6))
    if chance.random() < 0.7:  # else nearly every cell has ended with its first steps
        names = [name for name in names if name not in _DEADLY] or ["display"]
    steps = "\n    ".join(f"number += 1\n    {_STEPS[name]}" for name in names)
    start = f"{prelude({})}{_END}\n{_FORGE}{_MARKS}{_SAID}chance = random.Random({seed})\n"
    return f"{start}while True:\n    {steps}\n", tuple(names)


def left_of(seed: int) -> tuple[str, tuple[str, ...]]:
    """A cell that leaves what is to be saved, and what that is."""
    chance = random.Random(seed)
    names = chance.sample(sorted(_LEFT), chance.randrange(1, 4))
    start = f"{_MADE}many, length = {chance.choice([1000, 12_000])}, {chance.choice([1, 250])}\n"
    return start + "\n".join(_LEFT[name] for name in names), tuple(names)


class _Beside:
    """For how long a task of the loop waited for its turn at most, and what the process held at most.

    Time for which other programs kept a thread of this one from a processor is not the loop's: while such a thread
    holds the interpreter, the loop waits with it.
    """

    def __init__(self) -> None:
        self.longest, self.most, self._ended = 0.0, 0, False

    async def tick(self) -> None:
        while True:
            began, delayed = time.monotonic(), _delayed()
            await asyncio.sleep(_TICK)
            stood = time.monotonic() - began - _TICK
            self.longest = max(self.longest, stood - max(0.0, _delayed() - delayed))

    def watch(self) -> None:
        while not self._ended:
            self.most = max(self.most, _held())
            time.sleep(_TICK)

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look while what is within runs."""
        thread, ticks = threading.Thread(target=self.watch), asyncio.create_task(self.tick())
        thread.start()
        try:
            yield
        finally:
            ticks.cancel()
            self._ended = True
            thread.join()


def _delayed() -> float:
    """Seconds for which the process's threads were ready to run, and had no processor."""
    delayed = 0
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/schedstat", "rb") as file:  # it has ended
            delayed += int(file.read().split()[1])
    return delayed / 1e9


def _held() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * 4096


async def waits(what: object) -> None:
    """Answer no call before its cell has ended."""
    await asyncio.sleep(60)


def plain(what: object) -> int:
    """Answer after a moment, in a thread."""
    time.sleep(0.05)
    return 0


async def rounds(seeds: list[int]) -> list[Round]:
    """A round of each seed, one after the other in one session."""
    bound = await _bound()
    async with AsyncSession(limits=_LIMITS, tools=[waits, plain]) as session:
        for _ in range(3):  # what every session needs once
            await session.run(source_of(0)[0])

        async def round_of(seed: int) -> Round:
            source, steps = source_of(seed)

            async def done() -> Cell:
                await session.run(source)
                return await session.run("1")

            more = _IN_FORMS + (MAX_FRAME_BYTES if _PART in steps else 0)
            return await _looked_at(seed, steps, done, more=more, bound=bound, seconds=_TOGETHER)

        return [await round_of(seed) for seed in seeds]


async def saved_rounds(seeds: list[int]) -> list[Round]:
    """A round of each seed, each in a session of its own, which is saved."""
    bound = await _bound()

    async def round_of(seed: int, directory: str) -> Round:
        source, steps = left_of(seed)
        state = Versioned(f"sqlite:///{directory}/{seed}.db")
        async with AsyncSession("saved", state=state, limits=_SAVED_LIMITS) as session:
            await session.run("1")
            await session.flush()

            async def done() -> Cell:
                await session.run(source)
                with contextlib.suppress(CaptureFailed):  # there is no room for what it left
                    await session.flush()
                return await session.run("1")

            return await _looked_at(seed, steps, done, more=0, bound=bound, seconds=_SAVED_TOGETHER)

    with tempfile.TemporaryDirectory() as directory:
        await round_of(0, directory)  # what every program needs once
        return [await round_of(seed, directory) for seed in seeds]


async def _bound() -> float:
    """For how many seconds the loop may stand still."""
    idle = _Beside()
    async with idle.looking():
        await asyncio.sleep(0.3)
    return 10 * max(MOST_STANDSTILL, idle.longest)


async def _looked_at(
    seed: int,
    steps: tuple[str, ...],
    done: Callable[[], Coroutine[None, None, Cell]],
    *,
    more: int,
    bound: float,
    seconds: float,
) -> Round:
    """A round, of which what is `done` ends with the cell that shows whether the session goes on."""
    gc.collect()
    before, beside, began = _held(), _Beside(), time.monotonic()
    async with beside.looking():
        after = await done()
    growth, broke = beside.most - before, ""
    if beside.longest > bound:
        broke = f"the loop stood still for {beside.longest:.2f} s"
    elif growth > _HOST_MB * 2**20 + MOST_GROWTH + more:
        broke = f"the host grew by {growth >> 20} MB"
    elif not after.ok:
        broke = f"the next cell: {after.error}"
    elif time.monotonic() - began > seconds:
        broke = f"the cell took {time.monotonic() - began:.1f} s"
    return Round(seed, steps, beside.longest, growth, broke)


def main() -> int:
    """Try seeds; what breaks the invariant is printed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--saved", action="store_true", help="rounds that leave what is saved")
    options.add_argument("--json", action="store_true", help="print a JSON object for each round")
    given = options.parse_args()
    tried = saved_rounds if given.saved else rounds
    done = asyncio.run(tried(list(range(given.seed, given.seed + given.rounds))))
    for one in done:
        told = f"{one.seed}: {one.standstill * 1e3:.0f} ms, {one.growth >> 20} MB, {', '.join(one.steps)}"
        print(json.dumps(asdict(one)) if given.json else f"{told}  {one.broke}".rstrip())
    return int(any(one.broke for one in done))


if __name__ == "__main__":
    raise SystemExit(main())
