"""Saving beside what else happens to a session: ends of its processes, limits, branches."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import anyio
import pytest

from cellblock.errors import CaptureFailed, RestoreFailed, SessionClosed
from cellblock.executors.process import memory
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.launcher import ProcessLauncher
from cellblock.executors.protocol import Capture, Kernel, KernelSpec
from cellblock.executors.suspects import Suspects
from cellblock.hosting import to_thread
from cellblock.limits import ExecutionLimits
from cellblock.snapshots import address_of
from cellblock.testing.executors import finished, read, rest, restored, running, saved, told, value
from cellblock.walls import Applied

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

_SLOW = """
import time
class Slow:
    def __reduce__(self):
        time.sleep(%s)
        return str, ('slow',)
slow = Slow()
"""
_CROWD = """
import os, time
made = 0
try:
    while True:
        if not os.fork(): time.sleep(1000)
        made += 1
except BlockingIOError: pass
"""
_FULL = """
rows = []
try:
    while True: rows.append((len(rows), str(len(rows))))
except MemoryError: del rows[-30_000:]
"""


@pytest.fixture
async def kernel(anyio_backend: str) -> AsyncIterator[ProcessKernel]:
    kernel = await ProcessLauncher().open(KernelSpec(seed=1))
    yield kernel
    await kernel.close()


async def _captured_at_last(kernel: Kernel) -> None:
    while True:
        with suppress(CaptureFailed):  # until the session has quite ended
            await kernel.capture()


async def _restored_value(kernel: Kernel, source: str) -> object:
    chunks, snapshot = await saved(kernel)
    other = await ProcessLauncher().open(KernelSpec())
    await restored(other, snapshot, chunks)
    found = await value(other, source)
    await other.close()
    return found


@pytest.mark.sampled(0)
@pytest.mark.threat("D1")
async def test_scribe_that_is_killed_costs_its_capture_alone(kernel: ProcessKernel) -> None:
    await finished(kernel, "x = [1]\n" + _SLOW % 0.5)
    capture = await kernel.capture()
    await capture.begin(None)
    os.kill(capture._pid, signal.SIGKILL)
    with pytest.raises(CaptureFailed, match="has ended"):
        await read(capture, begun=True)
    assert await value(kernel, "x") == [1]
    assert await _restored_value(kernel, "x") == [1]


@pytest.mark.sampled(0)
@pytest.mark.threat("D1")
async def test_value_whose_scribe_somebody_else_killed_is_no_suspect(kernel: ProcessKernel) -> None:
    await finished(kernel, "x = [1]\n" + _SLOW % 0.5)
    suspects, capture = Suspects(), await kernel.capture()
    await capture.begin(None, suspects)
    os.kill(capture._pid, signal.SIGKILL)
    with pytest.raises(CaptureFailed, match="has ended"):
        await read(capture, begun=True)
    assert suspects.tries_again()
    assert not suspects.left_out
    again = await kernel.capture()
    await again.begin(None, suspects)
    _, snapshot = await read(again, begun=True)
    assert {"x", "slow"} <= {one.name for one in snapshot.names}


@pytest.mark.sampled(0)
@pytest.mark.threat("D1")
async def test_state_is_saved_whose_copy_and_worker_are_killed(kernel: ProcessKernel) -> None:
    await finished(kernel, "x = [1]\n" + _SLOW % 0.3)
    capture = await kernel.capture()
    memory = kernel._checkpoints.newest.memory
    assert memory is not None
    assert memory.pid()
    os.kill(memory._copy, signal.SIGKILL)
    os.kill(kernel._link.pid, signal.SIGKILL)
    _, snapshot = await read(capture)
    assert {"x", "slow"} <= {one.name for one in snapshot.names}
    await kernel.recover()
    assert await value(kernel, "1") == 1


@pytest.mark.threat("D1")
async def test_init_that_is_killed_ends_the_capture_with_the_session(kernel: ProcessKernel) -> None:
    await finished(kernel, "x = [1]\n" + _SLOW % 10)
    capture = await kernel.capture()
    await capture.begin(None)
    kernel._shell.end()
    with pytest.raises(CaptureFailed):
        await read(capture, begun=True)
    with pytest.raises(SessionClosed):
        await _captured_at_last(kernel)


@pytest.mark.sampled(0)
async def test_scribe_is_none_of_what_a_cell_past_its_time_started(kernel: ProcessKernel) -> None:
    await finished(kernel, "x = [1]\n" + _SLOW % 0.5)
    turn = await running(
        kernel, "import subprocess\none = subprocess.Popen(['sleep', '1000'])\nprint('begun')\nwhile True: pass"
    )
    capture = await kernel.capture()
    await capture.begin(None)
    kernel.time_out()
    await rest(turn)
    assert await kernel.end_started() == 1
    _, snapshot = await read(capture, begun=True)
    assert "x" in {one.name for one in snapshot.names}


async def test_session_with_all_the_processes_it_may_have_is_saved(anyio_backend: str) -> None:
    kernel = await ProcessLauncher().open(KernelSpec(limits=ExecutionLimits(max_processes=8)))
    await finished(kernel, _CROWD)
    assert await value(kernel, "made") >= 6
    captures = [await kernel.capture() for _ in range(3)]
    for capture in captures:
        _, snapshot = await read(capture)
        assert "made" in {one.name for one in snapshot.names}
    with anyio.fail_after(30):  # until init has taken note that the scribes have ended
        while (await finished(kernel, "os.fork()")).failure is None:
            continue
    await kernel.close()


async def test_scribe_is_made_only_once_init_has_made_room_for_it(anyio_backend: str) -> None:
    """Of a session with all the processes it may have, whose init comes to its turn late, as on a busy machine."""
    kernel = await ProcessLauncher().open(KernelSpec(limits=ExecutionLimits(max_processes=8)))
    await finished(kernel, _CROWD)
    assert await value(kernel, "made") >= 6

    async def go_on() -> None:
        await anyio.sleep(0.3)
        signal.pidfd_send_signal(kernel._shell.init, signal.SIGCONT)

    signal.pidfd_send_signal(kernel._shell.init, signal.SIGSTOP)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        capture = await kernel.capture()
    _, snapshot = await read(capture)
    assert "made" in {one.name for one in snapshot.names}
    await kernel.close()


@pytest.mark.sampled(0)
async def test_memory_of_scribes_is_not_the_cells(anyio_backend: str) -> None:
    """Many small objects, saved three times at once: nobody is ended for it."""
    kernel = await ProcessLauncher().open(KernelSpec(limits=ExecutionLimits(max_memory_mb=128)))
    await finished(kernel, "rows = [(n, str(n)) for n in range(250_000)]")
    captures = [await kernel.capture() for _ in range(3)]
    for capture in captures:
        _, snapshot = await read(capture)
        assert [one.name for one in snapshot.names] == ["rows"]
        events = await told(kernel, "import time\ntime.sleep(0.2)\nlen(rows)")
        assert not any(type(event).__name__ == "Curbed" for event in events)
    assert await value(kernel, "len(rows)") == 250_000
    await kernel.close()


@pytest.mark.sampled(0)
async def test_state_that_leaves_no_memory_to_save_it_in_is_refused_with_a_remedy(anyio_backend: str) -> None:
    kernel = await ProcessLauncher().open(KernelSpec(limits=ExecutionLimits(max_memory_mb=64)))
    await finished(kernel, _FULL)
    with pytest.raises(CaptureFailed, match="leaves no room to save in"):
        await saved(kernel)
    assert await value(kernel, "len(rows) > 100_000") is True
    await kernel.close()


@pytest.mark.sampled(0)
async def test_branch_is_saved_apart_from_what_it_was_branched_from(kernel: ProcessKernel) -> None:
    await finished(kernel, "x = [1]\nopen('f', 'w').write('1')")
    branch, lost = await kernel.branch(KernelSpec(seed=2))
    assert lost == ()
    await finished(branch, "x.append(2)\nopen('f', 'w').write('2')")
    assert await _restored_value(branch, "x, open('f').read()") == ([1, 2], "2")
    assert await _restored_value(kernel, "x, open('f').read()") == ([1], "1")
    inner, _ = await branch.branch(KernelSpec(seed=3))
    await finished(inner, "x.append(3)")
    assert await _restored_value(inner, "x") == [1, 2, 3]
    for one in (inner, branch):
        await one.close()


async def test_state_that_a_session_went_back_to_is_saved(kernel: ProcessKernel) -> None:
    for number in range(3):
        await finished(kernel, f"x = {number}\nopen('f', 'w').write('{number}')")
    await kernel.recover(2)
    assert await _restored_value(kernel, "x, open('f').read()") == (0, "0")
    await finished(kernel, "x = 'after'")
    assert await _restored_value(kernel, "x, open('f').read()") == ("after", "0")


async def test_state_without_a_copy_is_not_saved_and_that_is_said(kernel: ProcessKernel) -> None:
    with pytest.raises(CaptureFailed, match="no checkpoint"):
        await kernel.capture()
    without = await ProcessLauncher().open(KernelSpec(limits=ExecutionLimits(max_checkpoints=0)))
    await finished(without, "x = 1")
    with pytest.raises(CaptureFailed, match="without checkpoints"):
        await without.capture()
    await without.close()


async def test_captures_that_are_read_at_the_same_time_have_each_the_files_of_its_own_state(
    kernel: ProcessKernel,
) -> None:
    """Each state of three is captured when another has been read, or is being read: all three reads end at once."""
    stored, files = {}, dict[str, dict[str, str]]()

    async def state(content: str) -> Capture:
        source = f"for name in ('f', 'g' + {content!r}): open(name, 'w').write({content!r} + name)"
        await finished(kernel, source)
        capture = await kernel.capture()
        await capture.begin(None)
        return capture

    async def read_it(content: str, capture: Capture, put: Callable[[bytes], None]) -> None:
        snapshot = await capture.read(put)
        files[content] = {one.path: b"".join(stored[part] for part in one.chunks).decode() for one in snapshot.files}
        capture.close()

    reading, goes_on = threading.Event(), threading.Event()

    def keep(data: bytes) -> None:
        stored[address_of(data)] = data

    def keep_when_told(data: bytes) -> None:
        reading.set()
        assert goes_on.wait(60)
        keep(data)

    async with anyio.create_task_group() as tasks:
        await read_it("a", await state("a"), keep)
        first = await state("b")
        tasks.start_soon(read_it, "b", first, keep_when_told)
        await to_thread.run_sync(reading.wait)
        try:
            second = await state("c")
            again = await kernel.capture()
            await again.begin(None)
            await read_it("c again", again, keep)
            await read_it("c", second, keep)
        finally:
            goes_on.set()
    made = [{f"workspace/{name}": f"{one}{name}" for name in ("f", f"g{one}")} for one in "abc"]
    assert files["a"] == made[0]
    assert files["b"] == {**made[0], **made[1]}
    assert files["c"] == files["c again"] == {**made[0], **made[1], **made[2]}


async def test_capture_is_read_after_another_of_a_later_telling_of_the_files(kernel: ProcessKernel) -> None:
    """It tells the difference to the files that were known when it was begun, whatever has been read since."""
    await finished(kernel, "open('a', 'w').write('a')")
    await saved(kernel)
    await finished(kernel, "open('b', 'w').write('b')")
    first = await kernel.capture()
    _, again = await saved(kernel)
    _, snapshot = await read(first)
    found, expected = ({one.path: one for one in each.files} for each in (snapshot, again))
    assert found == expected
    assert sorted(found) == ["workspace/a", "workspace/b"]


async def test_session_with_threads_is_saved(kernel: ProcessKernel) -> None:
    await finished(
        kernel,
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\nx = [1]",
    )
    assert await _restored_value(kernel, "x") == [1]


async def test_random_state_is_the_cells_own(kernel: ProcessKernel) -> None:
    """A copy seeds its generators anew; a scribe has those of the state."""
    source = (
        "import random\nclass Now:\n    def __reduce__(self): return tuple, (random.getstate()[1][:5],)\nnow = Now()"
    )
    await finished(kernel, source)
    here = await value(kernel, "random.getstate()[1][:5]")
    assert await _restored_value(kernel, "now") == here


@pytest.mark.sampled(0)
async def test_cells_see_nothing_of_scribes(kernel: ProcessKernel) -> None:
    await finished(kernel, "import os\nx = [1]\n" + _SLOW % 0.5)
    before = await value(kernel, "os.listdir('/proc')")
    capture = await kernel.capture()
    await capture.begin(None)
    seen = "[one for one in os.listdir('/proc') if one.isdigit()], len(os.listdir('/proc/self/fd'))"
    during = await value(kernel, seen)
    waited = await value(kernel, "try: got = os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError: got = None\ngot")
    await read(capture, begun=True)
    assert (await value(kernel, seen), waited) == (during, None)
    assert len(before) >= 1


async def test_most_files_of_a_large_tree_are_not_read_again(kernel: ProcessKernel) -> None:
    await finished(kernel, "import os\nfor n in range(500): open(f'f{n}', 'w').write(str(n))")
    _, first = await saved(kernel)
    assert len(first.files) == 500
    await finished(kernel, "os.remove('f0')\nopen('f1', 'a').write('!')\nos.chmod('f2', 0o600)\nos.rename('f3', 'g3')")
    capture = await kernel.capture()
    opened: list[str] = []
    real = os.open

    def noting(path: object, *args: object, **more: object) -> int:
        if "dir_fd" in more:
            opened.append(str(path))
        return real(path, *args, **more)  # type: ignore[arg-type]

    os.open = noting  # type: ignore[assignment]
    try:
        sent, second = await read(capture, first)
    finally:
        os.open = real
    assert len(opened) <= 3
    assert next(iter(sent.values())) == b"1!"
    kinds = {one.path: one.mode for one in second.files}
    assert ("workspace/f0" in kinds, kinds["workspace/f2"], "workspace/g3" in kinds) == (False, 0o600, True)
    await anyio.lowlevel.checkpoint()


async def test_control_group_has_room_for_scribes_where_states_are_saved(anyio_backend: str) -> None:
    told = []
    for is_saved in (False, True):
        kernel = await ProcessLauncher().open(KernelSpec(saved=is_saved))
        (wall,) = (wall for wall in kernel.capabilities.walls if wall.mechanism == "cgroup")
        await kernel.close()
        if not isinstance(wall, Applied):
            pytest.skip("no control groups here")
        told.append([int(word) for word in wall.detail.split() if word.isdigit()])
    plain, room = told
    assert all(one < other for one, other in zip(plain, room, strict=True))


_ARRAYS = """
import numpy
x = numpy.arange(5_000_000)
y = numpy.asfortranarray(numpy.arange(600_000.0).reshape(2, -1))
z = numpy.zeros(40_000_000, dtype='u1')
held = {'view': x[1:], 'bytes': b'ab' * 3_000_000}
"""
_SUMS = "int(x.sum()), float(y.sum()), y.flags.f_contiguous, int(z.sum()), len(z), int(held['view'].sum())"
_FOUND = [12_499_997_500_000, 179_999_700_000.0, True, 0, 40_000_000, 12_499_997_500_000]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("beside", [True, False])
async def test_large_buffers_come_back_by_memory_and_by_message(
    kernel: ProcessKernel, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    pytest.importorskip("numpy")
    await finished(kernel, _ARRAYS)
    chunks, snapshot = await saved(kernel)
    if not beside:
        monkeypatch.setattr(memory, "readable", lambda _: False)
    other = await ProcessLauncher().open(KernelSpec())
    assert other.beside is beside
    assert await restored(other, snapshot, chunks) == ()
    assert await value(other, _SUMS) == tuple(_FOUND)
    assert await value(other, "held['bytes'] == b'ab' * 3_000_000, numpy.shares_memory(held['view'], x)") == (
        True,
        True,
    )
    await other.close()


@pytest.mark.sampled(0)
async def test_interrupt_waits_until_a_buffer_is_there(kernel: ProcessKernel) -> None:
    """Else the host would write to memory that is something else's by then."""
    pytest.importorskip("numpy")
    await finished(kernel, _ARRAYS)
    chunks, snapshot = await saved(kernel)
    other = await ProcessLauncher().open(KernelSpec())
    large = {address for group in snapshot.groups for buffer in group.buffers for address in buffer.chunks}

    async def fetch(addresses: Sequence[str]) -> list[bytes]:
        if not large.isdisjoint(addresses):
            other.interrupt()
            await anyio.sleep(0.05)
        return [chunks[address] for address in addresses]

    with anyio.fail_after(30):
        rows = await other.restore(snapshot, fetch)
    left = {"x", "y", "z", "held"} - {row[0] for row in rows}
    whole = {"x": "int(x.sum()) == 12_499_997_500_000", "y": "y[1, -1] == 599_999", "z": "int(z.sum()) == 0",
             "held": "held['bytes'][-1:] == b'b'"}  # fmt: skip
    for name in left:
        assert await value(other, f"bool({whole[name]})") is True
    assert await value(other, "1") == 1
    await other.close()


_THIEF = """
class Thief:
    def __setstate__(self, state):
        import sys
        frame = sys._getframe()
        while frame is not None:
            if 'get' in dir(frame.f_locals.get('self')):
                self.taken = bytes(frame.f_locals['self'].get(state['address']))
            frame = frame.f_back
thief = Thief()
thief.address = '{}'
"""


@pytest.mark.threat("W10")
async def test_restored_code_is_given_no_bytes_but_its_own(kernel: ProcessKernel) -> None:
    """It knows the address of another session's; the host gives what the snapshot refers to."""
    await finished(kernel, "secret = 'a secret'")
    theirs, secrets = await saved(kernel)
    address = next(group.stream[0] for group in secrets.groups if group.key == "secret")
    thieves = await ProcessLauncher().open(KernelSpec())
    await finished(thieves, _THIEF.format(address))
    chunks, snapshot = await saved(thieves)
    assert address not in snapshot.addresses()
    asked: list[str] = []

    async def fetch(addresses: Sequence[str]) -> list[bytes]:
        asked.extend(addresses)
        return [{**theirs, **chunks}[one] for one in addresses]

    other = await ProcessLauncher().open(KernelSpec())
    with pytest.raises(RestoreFailed, match="not its own"):
        await other.restore(snapshot, fetch)
    assert address not in asked
    await other.close()
    await thieves.close()
